"""What may be wrong with a table, in words that name the column and the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skyfill.cli.terminal import GUESSED, listing, mention, warn
from skyfill.errors import counted, shortened

if TYPE_CHECKING:
    from pathlib import Path

    from skyfill.catalog import Schema, Table
    from skyfill.catalog.sentinels import Suspect
    from skyfill.model import Feature, Model


# Components of a model that is learned only to compare another table with: they need not be many.
COMPARING = 8


def warn_of_odd_field(
    table: Table, field: Table, names: Sequence[str], place: Path | str, **how: Any
) -> None:
    """Name features of a field that do not go with the others as in the training table.

    A model that learns from both would take a wrong zero point for another kind of object.
    `how` are options of `skyfill.model.train`.
    """
    from skyfill.model import train

    model, _ = train(table, names, n_components=COMPARING, n_fits=1, **how)
    warn_of_disagreement(model, field, f"--field {place}: ")


def warn_of_disagreement(model: Model, table: Table, place: str = "") -> None:
    """Name features that do not go with the others as in training."""
    from skyfill.model.guard import find_disagreeing

    off, falling = [], []
    for feature, each in find_disagreeing(model, table):
        if each.is_off:
            side = "above" if each.off > 0 else "below"
            unit = f" {feature.unit}" if feature.unit else ""
            off.append(f"{feature.name} lies {abs(each.off):.3g}{unit} {side}")
        else:
            falling.append(f"{feature.name} ({each.n} values)")
    advice = (
        "or a kind of object that the training set lacks? Compare with the training table; "
        "correct, or leave out"
    )
    if off:
        end = " what other columns say (median): another zero point, unit or quantity, swapped "
        warn(listing(place, off, f"{end}columns, {advice}"))
    if falling:
        end = " falls where other columns say that it rises: a reversed sign, another quantity, "
        warn(listing(place, falling, end + advice))


def warn_of_gaps_beyond(model: Model, table: Table) -> None:
    """Say how many gaps are of objects unlike all that were measured."""
    from skyfill.model.guard import find_gaps_beyond

    found = [each for each in find_gaps_beyond(model, table) if each.is_notable]
    if found:
        words = [f"{each.name} ({each.n_beyond} of {each.n_gaps})" for each in found]
        start = f"gaps beyond what was measured in training, in {counted(row=len(table))}: "
        how = "where a survey saw nothing, state its limits: --role COLUMN=limit:NAME"
        warn(listing(start, words, f"; they are extrapolated with widened intervals ({how})"))


def warn_of_flags(table: Table, names: Sequence[str], rules: Schema) -> None:
    """Warn of limits that are marked in another column."""
    from skyfill.catalog.schema import fact_line
    from skyfill.model.guard import find_flagged

    if found := find_flagged(table, names, rules):
        words = [f"{name}: {flag} marks {counted(value=n)}" for name, (flag, n) in found.items()]
        line = fact_line(next(iter(found)), "limits", "flag")
        end = f" as limits, which are used as values; declare them, {line}"
        warn(listing("", words, end, "; "))


def warn_of_companions(features: Sequence[Feature], table: Table) -> None:
    """Warn of limits and errors that contradict the values beside them."""
    from skyfill.model.odd_companions import find_odd_errors, find_odd_limits

    sides: dict[tuple[bool, bool], tuple[str, list[str]]] = {}
    for odd in find_odd_limits(features, table):
        share = "" if odd.is_far else f", {100 * odd.share:.0f} %"
        words = f"{odd.name} ({odd.limit:.4g} beside {odd.low:.4g} .. {odd.high:.4g}{share})"
        advice = "" if odd.is_magnitude else f'a magnitude (columns.{odd.name}.unit = "mag")? '
        sides.setdefault((odd.is_magnitude, odd.is_far), (advice, []))[1].append(words)
    for (is_magnitude, is_far), (advice, odds) in sides.items():
        side, other = ("larger", "smaller") if is_magnitude else ("smaller", "larger")
        how = "all those measured are far from there" if is_far else f"few measured are {other}"
        start = f"limits say that missing values are {side}, but {how}: "
        warn(listing(start, odds, f"; {advice}another sign or unit?"))
    errors = find_odd_errors(features, table)
    if none := [each for each in errors if each.n_without]:
        zeros = [f"{each.name}: {counted(error=each.n_without)} of {each.of}" for each in none]
        how = f"declare them, columns.{none[0].name}.sentinels = [...]"
        warn(listing("", zeros, f" are 0 or negative and count as none; {how}", "; "))
    if wide := [each for each in errors if each.median > each.scatter]:
        pairs = [f"{e.name} ({e.median:.4g}; {e.of}, {e.scatter:.4g})" for e in wide]
        start = "the median error is larger than the scatter of the values: "
        warn(listing(start, pairs, "; another unit?"))


def mention_gaps(found: Mapping[str, Mapping[float, int]], n_rows: int, place: str = "") -> None:
    """Say in one line which numbers are gaps, in how many cells of which columns.

    `found` holds the cells of each value in each column, of so many rows.
    """
    by_value: dict[float, dict[str, int]] = {}
    for name, counts in found.items():
        for value, count in counts.items():
            by_value.setdefault(value, {})[name] = count

    def words(room: int) -> str:
        lines = (
            f"{counted(cell=sum(counts.values()))} of {value:.15g} in {shortened(counts, room)}"
            for value, counts in by_value.items()
        )
        return f"{place}{shortened(lines, 2 * room, '; ')} are gaps ({counted(row=n_rows)} read)"

    if by_value:
        mention(GUESSED, words)


def warn_of_suspects(found: Mapping[str, Sequence[Suspect]]) -> None:
    """Warn in one line of values that may stand for no value, and are used as values."""
    from skyfill.catalog.schema import sentinel_line

    if found:
        words = [f"{listed(suspects)} in {name}" for name, suspects in found.items()]
        name, suspects = next(iter(found.items()))
        line = sentinel_line(name, [suspect.value for suspect in suspects[:1]])
        more = (
            f" may stand for no value ({suspects[0].why}), and are used as values; "
            f"--declare '{line}' makes them gaps, [] keeps them"
        )
        warn(listing("", words, more, "; "))


def listed(suspects: Sequence[Suspect]) -> str:
    """List values with how often they occur."""
    return ", ".join(f"{suspect.value!r} × {suspect.count}" for suspect in suspects)
