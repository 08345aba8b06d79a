"""Learn a model from the columns of a table, with or without labels, or from sums over its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog import Reason, Schema, Table
from skyfill.catalog.limit_rules import DEPTH
from skyfill.classify.training_set import check_features
from skyfill.errors import CatalogError
from skyfill.impute.refining import check_refine, learn_refinement
from skyfill.model.cells import cells_of, find_fluxes, learn_detections
from skyfill.model.declared import declared_for, find_sentinels, without_sentinels
from skyfill.model.measured import before_filling
from skyfill.model.pipeline import Feature, Model
from skyfill.model.quality import filling_quality
from skyfill.model.rebuilding import LEAST_WIDTH, MAX_VALUE
from skyfill.network import MixtureNetwork, learn_mixture
from skyfill.network.mixture.few_values import warn_if_small
from skyfill.network.mixture.fit import Plan, climb_mixture
from skyfill.network.mixture.learn import LearnedMixture
from skyfill.network.mixture.mixture import Mixture
from skyfill.network.moments import Moments

Expect = Callable[[Mixture], Moments]
Watch = Callable[[Expect, int, int], Expect]


def train(  # noqa: PLR0913 - what is learned, and how
    table: Table,
    names: Sequence[str],
    *,
    provenance: Mapping[str, Any] | None = None,
    force: Sequence[str] = (),
    limits: str = "auto",
    errors: str = "auto",
    rules: Schema | None = None,
    learn: Callable[..., LearnedMixture] = learn_mixture,
    refine: str | None = None,
    **options: Any,
) -> tuple[Model, LearnedMixture]:
    """Learn a model from columns of a table.

    Parameters
    ----------
    table : Table
        Columns of role `limit` and `error` and reasons of gaps tell what is known of the features
        besides their values.
    names : sequence of str
        The features. Identifiers, positions, labels and reasons are refused.
    provenance : mapping, optional
    force : sequence of str
        Columns to take although they would be refused.
    limits : {"auto", "off"}
        Use limits where the table states any, or never.
    errors : {"auto", "on", "off"}
        Use errors of values if their median square exceeds 1 % of the variance of some feature,
        always, or never.
    rules : Schema, optional
        What was declared about the table when it was read. The model keeps what concerns its
        features, and applies it to every table that it is used on.
    learn : callable
        `learn_mixture`, or `learn_one_network` for the paper's single network.
    refine : {"auto", "trees"}, optional
        Let forests correct the mixtures; see `NetworkImputer`.
    **options
        Of `learn`.

    Returns
    -------
    Model, LearnedMixture

    Examples
    --------
    >>> import numpy as np
    >>> table = Table.from_columns({"J": np.linspace(14, 15, 30), "K": np.linspace(13, 15, 30)})
    >>> model, learned = train(table, ["J", "K"], n_components=1, n_fits=1)
    >>> model.names
    ('J', 'K')
    """
    table = before_filling(table)
    check_features(table, names, force)
    bare = untrained(table, names, limits=limits, errors=errors, rules=rules)
    check_refine(refine)
    cells = cells_of(bare, table)[0]
    warn_if_small(cells.values, names)
    if learn is learn_mixture:
        options["fluxes"] = find_fluxes(bare.features)
    learned = learn(cells, names, **options)
    rng, what = np.random.default_rng(options.get("rng", 0)), (learned.network, learned.plan, cells)
    found = learn_refinement(*what, rng, refine=refine)
    quality = {"filling": filling_quality(names, cells, found.quality, refine=refine)}
    bare = replace(bare, provenance=provenance or {}, refinement=found.refinement, quality=quality)
    return replace(bare, network=learned.network), learned


def untrained(
    table: Table,
    names: Sequence[str],
    *,
    limits: str = "auto",
    errors: str = "auto",
    rules: Schema | None = None,
) -> Model:
    """Return a model that knows what the columns of a table say, and has learned nothing else.

    Examples
    --------
    >>> untrained(Table.from_columns({"J": [14.2, None]}), ["J"]).detections
    ()
    """
    table = before_filling(table, names)
    features = describe_features(table, names)
    declared = declared_for(table, names, rules or Schema())
    found = {name: tuple(each) for name, each in find_sentinels(table, names, rules).items()}
    table = without_sentinels(table, found)
    for name in names:
        check_range(name, table.numbers(name)[:, 0])
    detections = learn_detections(table, features, limits=limits, errors=errors)
    if limits != "off":
        check_depths(table, names, declared)
    network = MixtureNetwork(tuple(names), (), ())
    return Model(features, network, {}, detections=detections, declared=declared, found=found)


def check_depths(table: Table, names: Sequence[str], declared: Schema) -> None:
    """Refuse a depth that is declared of a column with gaps, none of which is known to lie there.

    Examples
    --------
    >>> rules = Schema.from_dict({"u": {"depth": 26.4}})
    >>> check_depths(Table.from_columns({"u": [24.2, 25.1]}), ["u"], rules)
    """
    for name in names:
        facts, n_gaps = declared.facts(name), table.column(name).null_count
        if DEPTH not in facts or not n_gaps:
            continue
        known = pc.is_in(table.reasons(name), pa.array([Reason.UNDETECTED, Reason.UNMATCHED]))
        if not pc.any(known).as_py():
            value = (facts.get("sentinels") or [99.0])[:1]
            raise CatalogError(
                f"column {name!r}: depth {facts[DEPTH]:g} has no effect, since none of its "
                f"{n_gaps} gaps is known to be undetected; say which values are, as in "
                f"columns.{name}.undetected = {value}, or leave the depth out"
            )


def knowing(model: Model, table: Table) -> Model:
    """Return a model that also knows what means a gap in another table that it learns from."""
    more = find_sentinels(table, model.names, model.declared)
    names = {*model.found, *more}
    found = {name: (*model.found.get(name, ()), *more.get(name, ())) for name in sorted(names)}
    return replace(model, found=found)


def check_range(name: str, values: NDArray[np.float64]) -> None:
    """Refuse values of a feature whose model could not be used: too large, or too close together.

    Examples
    --------
    >>> check_range("L", np.array([1e43, np.nan, 1e44]))
    """
    seen = values[np.isfinite(values)]
    if seen.size and np.abs(seen).max() > MAX_VALUE:
        row = int(np.flatnonzero(np.abs(values) > MAX_VALUE)[0])
        raise CatalogError(
            f"column {name!r}: {values[row]:g} is too large for a feature, {MAX_VALUE:g} at most; "
            "take its logarithm, or declare it as a sentinel"
        )
    width = np.ptp(seen) if seen.size else 0.0
    if 0 < width <= LEAST_WIDTH:
        raise CatalogError(
            f"column {name!r}: its values differ by {width:g} at most, too little for a feature; "
            "use another unit"
        )


@dataclass(frozen=True)
class Refined:
    """A model fitted to all rows of a catalogue, and how far EM went."""

    model: Model
    plan: Plan
    n_rows: int
    n_iter: int
    converged: bool


def refine(
    model: Model,
    expect: Expect,
    plan: Plan,
    *,
    n_rows: int,
    watch: Watch = lambda expect, fit, n_fits: expect,
    tol: float = 1e-4,
    max_iter: int = 200,
) -> Refined:
    """Run EM from every fit of a model over all rows.

    Parameters
    ----------
    model : Model
        Learned from a sample of the rows. Its classifier, if it has one, is left out: it was
        trained on the old fits.
    expect : callable
        The E-step: takes a mixture, gives the expected sums over all rows.
    plan : Plan
        Shrinkage and arcs of the fits.
    n_rows : int
        How many they are.
    watch : callable
        Takes the E-step, the number of a fit and that of all fits; gives the E-step to take.
    tol, max_iter : float, int
        EM stops when a step gains less than `tol` per row, or after `max_iter` steps.

    Returns
    -------
    Refined
        With the steps of the fit that took most, and whether all settled.
    """
    starts, climbs = model.network.fits, []
    for i, start in enumerate(starts):
        own = plan._replace(
            n_components=len(start.weights), informative=start.gap_rates is not None
        )
        watched = watch(expect, i, len(starts))
        rng = np.random.default_rng(0)
        climbs.append(climb_mixture(watched, start, own, rng=rng, tol=tol, max_iter=max_iter))
    network = replace(model.network, fits=tuple(found.params for found in climbs))
    n_iter = max(found.n_iter for found in climbs)
    converged = all(found.converged for found in climbs)
    model = replace(model, network=network, scorer=None)
    return Refined(model, plan, n_rows, n_iter, converged)


def describe_features(table: Table, names: Sequence[str]) -> tuple[Feature, ...]:
    """Describe columns as a model does: name, unit, UCD and description.

    Examples
    --------
    >>> describe_features(Table.from_columns({"J": [14.2]}).with_info("J", unit="mag"), ["J"])
    (Feature(name='J', unit='mag', ucd=None, description=None),)
    """
    infos = [table.info(name) for name in names]
    return tuple(
        Feature(name, info.unit, info.ucd, info.description)
        for name, info in zip(names, infos, strict=True)
    )
