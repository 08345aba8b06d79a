"""What commands say of their input before the work: declared facts, and what may be wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skyfill.cli.input_warnings import (
    listed,
    mention_gaps,
    warn_of_companions,
    warn_of_disagreement,
    warn_of_flags,
    warn_of_gaps_beyond,
    warn_of_suspects,
)
from skyfill.cli.terminal import CONVERTED, DECLARED, GUESSED, listing, mention, warn
from skyfill.errors import counted, shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from skyfill.catalog import Schema, Table
    from skyfill.classify.repeats import Groups
    from skyfill.model import Model
    from skyfill.scale import Source


def mention_rules(rules: Schema, names: Iterable[str], place: str = "") -> None:
    """List what the user declares about the columns of a table; `place` is put before them."""
    facts = rules.only(names).to_dict().items()
    _mention_each(DECLARED, [f"{name}: {fact_words(each)}" for name, each in facts], place)


def _mention_each(kind: str, words: Sequence[str], start: str = "", end: str = "") -> None:
    """Say the same of several columns in one line."""
    if words:
        mention(kind, listing(start, words, end, "; "))


def mention_position(table: Table, place: str = "") -> None:
    """List the columns that positions are found in, unless their roles state it.

    `place` is put before them. CatalogError where there are none, or several.
    """
    from skyfill.catalog import Role
    from skyfill.sky import find_position_columns

    columns = find_position_columns(table)
    infos = {name: table.info(name) for name in (*columns.ra, *columns.dec)}
    if any(info.role is not Role.POSITION for info in infos.values()):
        unit = _unit_words(table, columns.ra)
        mention(GUESSED, f"{place}position {shortened(infos, 150)}{unit}")


def _unit_words(table: Table, ra: Sequence[str]) -> str:
    """Say which unit numbers without one are taken to have, as `read_positions` does."""
    from skyfill.sky.angles import is_text

    if len(ra) > 1 or table.info(ra[0]).unit or is_text(table.column(ra[0])):
        return ""
    return f" (no unit: {'radians' if ra[0].lower().endswith('rad') else 'degrees'})"


def mention_training(model: Model, rules: Schema, names: Iterable[str]) -> Model:
    """List what holds for a table: what was declared in training, and what takes its place.

    Parameters
    ----------
    model : Model
    rules : Schema
        What the user declares here.
    names : iterable of str
        Columns of the table.

    Returns
    -------
    Model
        As the rules change it.
    """
    from skyfill.model.declared import changes, overridden

    here = set(names)
    changed = {(name, key) for name, key, _, _ in changes(model, rules)}
    new = [
        f"{name}: {_word(key, now)} (in training: {_word(key, before)})"
        for name, key, before, now in changes(model, rules)
    ]
    old = []
    for name, facts in model.declared.to_dict().items():
        same = {key: value for key, value in facts.items() if (name, key) not in changed}
        old += [f"{name}: {fact_words(same)}"] if name in here and same else []
    _mention_each(DECLARED, new)
    _mention_each(DECLARED, old, end=" (in training)")
    mention_rules(rules.only(here - {name for name, _ in changed}), here)
    return overridden(model, rules)


def check_training(table: Table, names: Sequence[str], rules: Schema) -> Table:
    """Say which numbers are gaps; warn of others that may be, and of odd errors and limits.

    Parameters
    ----------
    table : Table
        `rules` were applied to it.
    names : sequence of str
        The features.
    rules : Schema

    Returns
    -------
    Table
        With these gaps.
    """
    from skyfill.model.declared import find_sentinels, without_sentinels
    from skyfill.model.guard import find_undeclared
    from skyfill.model.training import describe_features

    found = find_sentinels(table, names, rules)
    mention_gaps(found, len(table))
    table = without_sentinels(table, found)
    warn_of_suspects(find_undeclared(table, names, rules))
    warn_of_flags(table, names, rules)
    warn_of_companions(describe_features(table, names), table)
    return table


def check_repeats(table: Table, names: Sequence[str], column: str | None) -> Groups:
    """Find rows of one object, by the column that the user names; otherwise warn of any."""
    from skyfill.classify.repeats import find_groups

    groups = find_groups(table, names, column)
    if groups.n_repeated and column is None:
        by = f"the same {groups.column}, or " if groups.column else ""
        warn(
            f"{groups.n_repeated} rows repeat an object ({by}equal values of all features): folds "
            "keep its rows together, and it counts once for each of them; drop the repeated rows, "
            "or name the column that tells objects apart (--group COLUMN)"
        )
    return groups


def check_values(values: NDArray[np.float64]) -> None:
    """Warn of values of light curves that may be sentinels."""
    from skyfill.catalog import Table
    from skyfill.catalog.sentinels import suspects_of

    for suspects in suspects_of(Table.from_columns({"value": values}), ["value"]).values():
        options = " ".join(f"--sentinel {suspect.value!r}" for suspect in suspects)
        warn(
            f"light curves: {listed(suspects)} may stand for no value ({suspects[0].why}) and is "
            f"used as one; leave it out with {options}"
        )


def check_use(model: Model, table: Table, *, are_objects: bool = True) -> None:
    """Say what is converted, and warn of values unlike those in the training set.

    Parameters
    ----------
    model : Model
        From `mention_training`.
    table : Table
        Some rows of the table to use the model on, to which the rules of the user were applied.
    are_objects : bool
        Whether the columns of a row are of one object; most associations are of two.
    """
    from skyfill.model.declared import cleaned, count_rejected, prepared, without_sentinels
    from skyfill.model.guard import find_outside, find_unknown
    from skyfill.model.weighing import are_associations

    mention_gaps(count_rejected(model, prepared(model, table)), len(table))
    table = cleaned(model, table)
    _mention_units(model, table)
    known = [name for name in model.names if name in table.names]
    if empty := [name for name in known if table.column(name).null_count == len(table) > 0]:
        warn(listing("", empty, f": no value in {counted(row=len(table))}; taken as gaps"))
    warn_of_flags(table, model.names, model.declared)
    warn_of_companions(model.features, table)
    unknown = find_unknown(model, table)
    warn_of_suspects(unknown)
    # What is warned of once counts no more.
    values = {n: [float(each.value) for each in found] for n, found in unknown.items()}
    rest = without_sentinels(table, values)
    if outside := find_outside(model, rest):
        words = [
            f"{name} ({100 * share:.0f} % outside {low:.4g} .. {high:.4g})"
            for name, share, low, high in outside
        ]
        end = (
            "; other units, or another kind of object? "
            f"(columns.{outside[0].name}.unit in the schema file sets the unit)"
        )
        warn(listing("values outside the range seen in training: ", words, end))
    if are_objects and not are_associations(table.names):
        warn_of_disagreement(model, rest)
    warn_of_gaps_beyond(model, rest)


def check_source(model: Model, source: Source, rules: Schema) -> None:
    """Check a few rows of a catalogue with `check_use`; what can be read only once is not read."""
    from skyfill.model.cells import columns_for
    from skyfill.model.declared import prepared
    from skyfill.model.weighing import are_associations

    if not all(file.is_file() for file in source.files[:1]):
        return
    empty = prepared(model, rules.apply(source.table()))
    columns = [name for name in columns_for(empty, model.names) if name in source.schema.names]
    are_objects = not are_associations(source.schema.names)
    check_use(model, rules.apply(source.sample(columns)), are_objects=are_objects)


def _mention_units(model: Model, table: Table) -> None:
    converted, guessed = [], []
    for feature in model.features:
        own = table.info(feature.name).unit if feature.name in table.names else feature.unit
        if own and feature.unit and own != feature.unit:
            converted.append(f"{feature.name}: {own} to {feature.unit}")
        elif feature.unit and not own:
            guessed.append(f"{feature.name}: in {feature.unit}")
    _mention_each(CONVERTED, converted, end=", the unit of the model")
    _mention_each(GUESSED, guessed, end=", the unit of the model")


def fact_words(facts: Mapping[str, Any]) -> str:
    """Put facts about a column into words.

    Examples
    --------
    >>> fact_words({"unit": "mag", "sentinels": [-99, 99.999]})
    'unit mag, sentinels -99, 99.999'
    """
    return ", ".join(_word(key, value) for key, value in facts.items())


def _word(key: str, value: Any) -> str:
    if isinstance(value, list):
        return f"{key} {', '.join(map(str, value)) or 'none'}"
    return f"{key} {value}"
