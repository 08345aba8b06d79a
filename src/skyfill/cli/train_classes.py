"""`skyfill train --label`: trees on the labelled rows, in memory or of a larger catalogue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.checks import check_repeats
from skyfill.cli.field_shares import facts_of as field_facts
from skyfill.cli.field_shares import mention_shares, read_field
from skyfill.cli.input_warnings import warn_of_odd_field
from skyfill.cli.terminal import listing, warn
from skyfill.cli.train_network import arcs_of, refine_of, words_of_network
from skyfill.cli.training_columns import with_labels
from skyfill.errors import CatalogError, DataError, counted

if TYPE_CHECKING:
    from skyfill.catalog import Table
    from skyfill.classify.class_tree import ClassTree
    from skyfill.model import Model, Refined
    from skyfill.scale import Source

# A class with fewer objects than this gets a warning.
FEW = 10
# Options that make no sense without labels.
CLASS_OPTIONS = (
    "trees", "class_weight", "prior", "field", "no_calibration", "merge", "min_class",
    "tree",
)  # fmt: skip
Learned = tuple["Model", dict[str, Any], str]


def learn_classes(table: Table, names: Sequence[str], options: dict[str, Any]) -> Learned:
    """Learn features and classes from a table; return the model, facts and a summary."""
    from skyfill.model import train_classifier
    from skyfill.model.declared import find_sentinels, without_sentinels

    force = shared.words_of(options["force"])
    plain = without_sentinels(table, find_sentinels(table, names, options["rules"]))
    check_repeats(plain, names, options["group"])
    tree, path = _tree(table, options), options["field"]
    field = read_field(path, names, options["rules"]) if path else None
    how = {name: options[name] for name in ("limits", "errors", "rules")} | {"force": force}
    if field is not None:
        warn_of_odd_field(table, field, names, path, rng=options["seed"], **how)
    model, fitted = train_classifier(
        table,
        names,
        options["label"],
        classifier=_classifier(options),
        provenance=options["made"],
        group=options["group"],
        field=field,
        **how,
    )
    plan = fitted.imputer_.plan_
    facts, words = _describe(table, fitted, options)
    if field is not None and not options["prior"]:
        mention_shares(fitted.field_shares_, fitted.scorer_.classes, path)
        shares = field_facts(fitted.field_shares_, fitted.scorer_.classes)
        facts["field"] = {"rows": len(field), **shares}
    facts = {"rows": len(table), "plan": plan._asdict(), **facts}
    return _with_tree(model, tree), facts, f"{words}, {words_of_network(model, plan)}"


def grow_classes(source: Source, options: dict[str, Any], found: Refined) -> Learned:
    """Grow trees on the labelled rows of a catalogue whose features were learned from all rows."""
    from skyfill.catalog import Role, with_guessed_roles
    from skyfill.model import add_classes, before_filling
    from skyfill.model.cells import columns_for
    from skyfill.model.declared import cleaned
    from skyfill.scale.labelled_rows import labelled_rows

    empty, label, model = source.table(), options["label"], found.model
    more = [*with_guessed_roles(empty).names_with(Role.IDENTIFIER)]
    more += [options["group"]] if options["group"] else []
    columns = [*columns_for(empty, model.names), *more]
    how = {"rules": options["rules"], "rng": options["seed"]}
    table = before_filling(labelled_rows(source, columns, label, **how))
    table = cleaned(model, with_labels(table, options))
    check_repeats(table, model.names, options["group"])
    tree = _tree(table, options)
    model, fitted = add_classes(
        model,
        table,
        label,
        plan=found.plan,
        classifier=_classifier(options),
        force=shared.words_of(options["force"]),
        group=options["group"],
        rules=options["rules"],
    )
    facts, words = _describe(table, fitted, options)
    return _with_tree(model, tree), facts, words


def _tree(table: Table, options: Mapping[str, Any]) -> ClassTree | None:
    """Read the groups of classes before the work, and check them."""
    from skyfill.catalog.class_labels import class_texts
    from skyfill.classify.class_tree import ClassTree

    if not options["tree"]:
        return None
    tree = ClassTree.read(options["tree"])
    texts = class_texts(table, options["label"], ())
    try:
        tree.check(sorted({text for text in texts if text is not None}))
    except DataError as error:
        raise CatalogError(f"{options['tree']}: {error}") from None
    return tree


def _with_tree(model: Model, tree: ClassTree | None) -> Model:
    scorer = model.scorer
    if scorer is None or tree is None:
        return model
    return replace(model, scorer=replace(scorer, tree=tree))


def _describe(table: Table, fitted: Any, options: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Count the classes, and warn of small ones."""
    counts = Counter(text for text in table.column(options["label"]).to_pylist() if text)
    if few := sorted(name for name, count in counts.items() if count < FEW):
        listed = [f"{name} ({counts[name]})" for name in few]
        start = f"classes with fewer than {FEW} objects, whose probabilities are rough: "
        warn(listing(start, listed))
    unlabelled = len(table) - sum(counts.values())
    rest = f", {counted(row=unlabelled)} without a label" if unlabelled else ""
    facts = {"classes": counts, "calibration": fitted.scorer_.calibration.kind}
    return facts, f"{len(counts)} classes{rest}"


def _classifier(options: dict[str, Any]) -> Any:
    from skyfill.classify import CatalogClassifier

    weight, prior = options["class_weight"], options["prior"]
    if weight and weight != "balanced":
        weight = shared.shares_of(weight, "--class-weight")
    return CatalogClassifier(
        options["method"],
        class_weight=weight,
        prior=shared.shares_of(prior, "--prior") if prior else None,
        calibrate=not options["no_calibration"],
        imputer=_imputer(options),
        random_state=options["seed"],
        **({"n_trees": options["trees"]} if options["trees"] else {}),
    )


def _imputer(options: dict[str, Any]) -> Any:
    from skyfill.impute import NetworkImputer, OneNetworkImputer

    if options["network"] != "mixture":
        scoring, how = arcs_of(options)
        return OneNetworkImputer(scoring, **how, random_state=options["seed"])
    return NetworkImputer(
        components_of(options["components"]),
        arcs=options["arcs"],
        gaps=options["gaps"] or "auto",
        n_fits=options["fits"],
        refine=refine_of(options),
        random_state=options["seed"],
    )


def components_of(text: str) -> int | str:
    """Read --components: a number, or auto."""
    if text == "auto":
        return text
    if not text.isdigit() or int(text) < 1:
        raise click.BadParameter(
            f"{text!r} is neither a number from 1 nor auto", param_hint="--components"
        )
    return int(text)
