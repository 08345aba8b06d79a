"""What may be wrong with a table, in words that name the column and the next step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from skyfill.cli.terminal import GUESSED, mention, warn

if TYPE_CHECKING:
    from pathlib import Path

    from skyfill.catalog import Schema, Table
    from skyfill.catalog.sentinels import Suspect
    from skyfill.model import Feature, Model


# Components of a model that is learned only to compare another table with: they need not be many.
COMPARING = 8
# Room for a list that is not cut.
WHOLE = 1 << 30


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

    for feature, each in find_disagreeing(model, table):
        if each.is_off:
            side = "above" if each.off > 0 else "below"
            unit = f" {feature.unit}" if feature.unit else ""
            how = (
                f"lies {abs(each.off):.3g}{unit} {side} what other columns say (median of {each.n} "
                f"values; half are off by more than {each.sigmas:.1f} standard deviations): "
                "another zero point, unit or quantity, swapped columns"
            )
        else:
            how = (
                f"falls where other columns say that it rises ({each.n} values): a reversed sign, "
                "another quantity"
            )
        warn(
            f"{place}{feature.name}: {how}, or a kind of object that the training set lacks? "
            "Compare it with the training table; correct it, or leave it out"
        )


def warn_of_gaps_beyond(model: Model, table: Table) -> None:
    """Say how many gaps are of objects unlike all that were measured."""
    from skyfill.model.guard import find_gaps_beyond

    found = [each for each in find_gaps_beyond(model, table) if each.is_notable]
    if found:
        listed = ", ".join(f"{each.name} ({each.n_beyond} of {each.n_gaps})" for each in found)
        warn(
            f"gaps beyond what was measured in training, in {len(table)} rows: {listed}; they are "
            "extrapolated with widened intervals (where a survey saw nothing, state its limits: "
            "--role COLUMN=limit:NAME)"
        )


def warn_of_flags(table: Table, names: Sequence[str], rules: Schema) -> None:
    """Warn of limits that are marked in another column."""
    from skyfill.catalog.schema import fact_line
    from skyfill.model.guard import find_flagged

    for name, (flag, count) in find_flagged(table, names, rules).items():
        warn(
            f"{name}: {flag} marks {count} values as limits, which are used as values; declare "
            f"them, {fact_line(name, 'limits', 'flag')}"
        )


def warn_of_companions(features: Sequence[Feature], table: Table) -> None:
    """Warn of limits and errors that contradict the values beside them."""
    from skyfill.model.odd_companions import find_odd_errors, find_odd_limits

    for odd in find_odd_limits(features, table):
        side, other = ("larger", "smaller") if odd.is_magnitude else ("smaller", "larger")
        unit = "" if odd.is_magnitude else f'a magnitude (columns.{odd.name}.unit = "mag")? '
        how = f"only {100 * odd.share:.0f} % of those measured are {other}"
        how = "all those measured are far from there" if odd.is_far else how
        warn(
            f"{odd.name}: its limits say that missing values are {side} than {odd.limit:.4g} "
            f"(median), but {how} ({odd.low:.4g} .. {odd.high:.4g}); {unit}another sign or unit?"
        )
    for each in find_odd_errors(features, table):
        if each.n_without:
            warn(
                f"{each.name}: {each.n_without} errors of {each.of} are 0 or negative and count as "
                f"none; declare them, columns.{each.name}.sentinels = [...]"
            )
        if each.median > each.scatter:
            warn(
                f"{each.name}: the median error, {each.median:.4g}, is larger than the scatter of "
                f"{each.of}, {each.scatter:.4g}; another unit?"
            )


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
            f"{sum(counts.values())} cells of {value:.15g} in {shortened(counts, room)}"
            for value, counts in by_value.items()
        )
        return f"{place}{shortened(lines, 2 * room, '; ')} are gaps ({n_rows} rows read)"

    if by_value:
        mention(GUESSED, words(WHOLE), words(100))


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
        warn(shortened(words, WHOLE, "; ") + more, shortened(words, 100, "; ") + more)


def shortened(words: Iterable[str], room: int, between: str = ", ") -> str:
    """Join words, and only count those for which there is no room; the first is always there.

    Examples
    --------
    >>> shortened(["W1mag", "W2mag", "W3mag"], 12)
    'W1mag, W2mag and 1 more'
    """
    words = list(words)
    lengths = accumulate(len(word) + len(between) for word in words)
    n_shown = max(sum(length - len(between) <= room for length in lengths), 1)
    rest = f" and {len(words) - n_shown} more" if n_shown < len(words) else ""
    return between.join(words[:n_shown]) + rest


def listed(suspects: Sequence[Suspect]) -> str:
    """List values with how often they occur."""
    return ", ".join(f"{suspect.value!r} × {suspect.count}" for suspect in suspects)
