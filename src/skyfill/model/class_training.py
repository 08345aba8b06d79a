"""Learn a model that classifies, from a table with labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog import Schema, Table
from skyfill.catalog.class_labels import class_texts
from skyfill.classify.repeats import find_groups
from skyfill.classify.training_set import check_features
from skyfill.model.cells import cells_of, find_fluxes
from skyfill.model.declared import cleaned
from skyfill.model.measured import before_filling
from skyfill.model.pipeline import Model
from skyfill.model.quality import filling_quality, quality_of_classes
from skyfill.model.recognition import known_rows
from skyfill.model.training import knowing, untrained
from skyfill.network import Cells
from skyfill.network.mixture.fit import Plan


def train_classifier(
    table: Table,
    names: Sequence[str],
    label: str,
    *,
    classifier: Any = None,
    provenance: Mapping[str, Any] | None = None,
    force: Sequence[str] = (),
    group: str | None = None,
    field: Table | None = None,
    **how: Any,
) -> tuple[Model, Any]:
    """Learn a model that classifies, from columns of a table and a column of labels.

    Parameters
    ----------
    table : Table
        Rows without a label help to learn the features.
    names : sequence of str
        The features. Identifiers, positions, labels and reasons are refused, and whatever else may
        give the class away; see `check_features`.
    label : str
        Column of the classes. Words that mean no class (`Schema.unlabelled`) are no labels.
    classifier : CatalogClassifier, optional
        What to fit; the default one otherwise.
    provenance : mapping, optional
    force : sequence of str
        Columns to take although they would be refused.
    group : str, optional
        Rows with the same value there are of one object, and not calibrated on one another; see
        `find_groups`.
    field : Table, optional
        A sample of the catalogue that is to be classified. It helps to learn the features, and
        unless the classifier has a prior, the shares of the classes are estimated from it.
    **how
        `limits`, `errors` and `rules`, as in `train`.

    Returns
    -------
    Model, CatalogClassifier
        The classifier is the fitted one.

    Examples
    --------
    >>> import numpy as np
    >>> from skyfill.classify import CatalogClassifier
    >>> from skyfill.impute import NetworkImputer
    >>> columns = {"J": np.arange(30.0), "K": np.arange(30.0) % 7, "class": ["a", "b"] * 15}
    >>> small = CatalogClassifier("forest", n_trees=5, imputer=NetworkImputer(1, n_fits=1))
    >>> table = Table.from_columns(columns)
    >>> model, fitted = train_classifier(table, ["J", "K"], "class", classifier=small)
    >>> model.scorer.classes
    ('a', 'b')
    """
    from sklearn.base import clone

    from skyfill.classify import CatalogClassifier

    table = before_filling(table)
    check_features(table, names, force, label)
    fitted = CatalogClassifier() if classifier is None else clone(classifier)
    bare = replace(untrained(table, names, **how), provenance=provenance or {})
    more: dict[str, Any] = {"group": group, "field": field, "rules": how.get("rules")}
    return _with_classes(bare, table, label, fitted, **more)


def add_classes(
    model: Model,
    table: Table,
    label: str,
    *,
    plan: Plan,
    classifier: Any = None,
    force: Sequence[str] = (),
    group: str | None = None,
    rules: Schema | None = None,
) -> tuple[Model, Any]:
    """Let a model classify whose network was learned from more rows than fit into memory.

    Parameters
    ----------
    model : Model
        Without a classifier, or with another one.
    table : Table
        Labelled rows, and a sample of others: they show what ordinary rows look like.
    label : str
        Column of the classes.
    plan : Plan
        What the network was fitted with.
    classifier, force, group, rules
        As in `train_classifier`; the imputer of the classifier is not used.

    Returns
    -------
    Model, CatalogClassifier
    """
    from sklearn.base import clone

    from skyfill.classify import CatalogClassifier
    from skyfill.impute.known_network import KnownNetwork

    table = before_filling(table)
    check_features(table, model.names, force, label)
    fitted = CatalogClassifier() if classifier is None else clone(classifier)
    fitted.set_params(imputer=KnownNetwork(model.network, plan))
    return _with_classes(model, table, label, fitted, group=group, rules=rules)


def _with_classes(
    bare: Model,
    table: Table,
    label: str,
    fitted: Any,
    *,
    group: str | None = None,
    field: Table | None = None,
    rules: Schema | None = None,
) -> tuple[Model, Any]:
    """Fit a classifier to what the cells of a table say to a model."""
    texts = class_texts(table, label, (rules or Schema()).unlabelled(label))
    table = cleaned(bare, table)
    cells, groups = cells_of(bare, table)[0], find_groups(table, bare.names, group)
    more: dict[str, Any] = {"groups": groups.codes} if groups.n_repeated else {}
    more["fluxes"] = find_fluxes(bare.features)
    hashes = known_rows(cells.values[[text is not None for text in texts]])
    if field is None:
        fitted.fit(table.select(bare.names), texts, **_known(cells), **more)
    else:
        fitted.set_params(prior="field" if fitted.prior is None else fitted.prior)
        _fit_with_field(fitted, cells, texts, cells_of(knowing(bare, field), field)[0], more)
    scorer = fitted.scorer_
    model = replace(bare, network=scorer.network, scorer=scorer, trained_on=hashes)
    quality = {**bare.quality, "classes": quality_of_classes(fitted, texts, label)}
    imputer = fitted.imputer_
    if (found := getattr(imputer, "fill_quality_", None)) is not None:
        quality["filling"] = filling_quality(bare.names, cells, found, refine=imputer.refine)
    # A network that was known already keeps its own.
    refinement = getattr(imputer, "refinement_", bare.refinement)
    return replace(model, refinement=refinement, quality=quality), fitted


def _fit_with_field(
    fitted: Any, cells: Cells, texts: NDArray[Any], field: Cells, more: dict[str, Any]
) -> None:
    """Fit to training rows and, without labels, those of a field."""
    both = cells.joined(field)
    labels = np.concatenate([texts, np.full(len(field), None, dtype=object)])
    if "groups" in more:
        own = more["groups"].max() + 1 + np.arange(len(field))
        more = {**more, "groups": np.concatenate([more["groups"], own])}
    fitted.fit(both.values, labels, **_known(both), **more)


def _known(cells: Cells) -> dict[str, Any]:
    return {name: getattr(cells, name) for name in ("lower", "upper", "errors")}
