"""Which columns `train` and `evaluate` learn from: features and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.terminal import GUESSED, Words, listing, mention, note, warn
from skyfill.errors import CatalogError, counted, shortened

if TYPE_CHECKING:
    from skyfill.catalog import Schema, Table, Verdict
    from skyfill.classify.training_set import ClassCounts

NOTHING = "no column is left to learn from"
# Letters of a line, and lines, that list columns.
LINE, MOST_LINES = 250, 6
_PLURALS = {role: f"{role}s" for role in ("identifier", "position", "error", "limit", "label")}

# A class of one object cannot be judged.
LEAST = 2

takes_classes = shared.stacked(
    click.option(
        "--merge",
        multiple=True,
        metavar="CLASS,...=NAME",
        help='Take classes for one, as in "YSO?,YSO??=YSO"; may be repeated.',
    ),
    click.option(
        "--min-class",
        type=click.IntRange(min=1),
        metavar="N",
        help=f"Rows of classes with fewer objects count as unlabelled.  [default: {LEAST}]",
    ),
)


takes_tree = click.option(
    "--tree",
    type=shared.FILE,
    metavar="TOML",
    help='Groups of classes: lines such as RRL = "pulsating", pulsating = "periodic".',
)


def choose_features(
    table: Table, options: Mapping[str, Any], option: str
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Give the features asked for, or all that `judge` finds; say what is taken and left out.

    Parameters
    ----------
    table : Table
        Some rows, or all.
    options : mapping
        Of the command.
    option : {"features", "columns"}
        The name of the option for features.

    Returns
    -------
    tuple of str
        The features.
    dict
        What each column is, for JSON.
    """
    from skyfill.catalog import Role
    from skyfill.classify.training_set import check_features

    label, asked = options["label"], shared.words_of(options[option])
    _check_names(table, [*asked, *([label] if label else [])])
    check_features(table, asked, shared.words_of(options["force"]), label)
    _check_numbers(table, asked)
    for name in asked:
        table = table.with_info(name, role=Role.FEATURE)
    verdicts = judged(table, label, shared.rules_of(options))
    if asked:
        names = tuple(name for name in asked if table.column(name).null_count < len(table))
        if empty := [name for name in asked if name not in names]:
            rest = f": no value in {counted(row=len(table))}; left out of the features"
            warn(listing("", empty, rest))
    else:
        names = tuple(name for name, found in verdicts.items() if found.is_feature)
    if not names:
        why = shortened([f"{name} ({each.kind})" for name, each in verdicts.items()], 120)
        raise CatalogError(
            f"{NOTHING}: {why}; name columns of numbers with --{option} "
            "COLUMN,..., or set roles with --schema (see skyfill inspect)"
        )
    how = {"is_asked": bool(asked), "uses_errors": options.get("errors") == "on"}
    mention_columns(verdicts, names, label, **how)
    return names, _described(verdicts)


def judged(table: Table, label: str | None, rules: Schema) -> dict[str, Verdict]:
    """Say what each column is, once what a model has written is taken away."""
    from skyfill.catalog import judge
    from skyfill.model import before_filling
    from skyfill.model.results import result_columns

    words = rules.unlabelled(label) if label else ()
    return judge(before_filling(table), label, results=result_columns(table), unlabelled=words)


def _described(verdicts: Mapping[str, Verdict]) -> dict[str, dict[str, Any]]:
    """Give what each column is, for JSON."""
    return {name: {**asdict(found), "role": str(found.role)} for name, found in verdicts.items()}


def mention_columns(
    verdicts: Mapping[str, Verdict],
    names: Sequence[str],
    label: str | None,
    *,
    is_asked: bool = False,
    uses_errors: bool = False,
) -> None:
    """Say in a few lines what is learned from, and what is not, and why.

    What the user left out is not listed again.
    """
    from skyfill.catalog.roles import AS_TEXT, COPY, WORDS

    taken = {name: verdicts[name] for name in names}
    is_declared = bool(names) and all(found.why == "declared" for found in taken.values())
    beside = {n: v for n, v in verdicts.items() if v.of in taken and v.why != "declared"
              and v.role in ("error", "limit") and n not in taken}  # fmt: skip
    told = {n: v.tells or ("all",) for n, v in taken.items() if v.tells or v.why == COPY}
    lines: list[tuple[Callable[[Words], None], Words]] = []
    if texts := [name for name, found in taken.items() if found.why == AS_TEXT]:
        lines.append((_guessed, listing("numbers written as text: ", texts)))
    used = error_rules(_described(verdicts), names).to_dict() if uses_errors else {}
    if used:
        words = [f"{name} of {facts['of']}" for name, facts in used.items()]
        lines.append(
            (_guessed, listing(f"errors of {counted(column=len(words))} are used: ", words))
        )
    for role, how in (("error", "train --errors on uses them"), ("limit", "--role {} uses it")):
        some = {name: found.of for name, found in beside.items() if found.role == role}
        if some and not (uses_errors and role == "error"):
            start = f"{role}s of {counted(column=len(some))} are known and not used: "
            name, of = next(iter(some.items()))
            words = [f"{name} of {of}" for name, of in some.items()]
            end = f"; {how.format(f'{name}={role}:{of}')}"
            lines.append((_guessed, listing(start, words, end)))
    words = [f"{n} ({v.example[:20]})" for n, v in verdicts.items() if v.why == WORDS]
    if words and not is_asked:
        how = "; declare such cells as gaps (columns.NAME.sentinels = [...]) or correct them"
        start = "left out, since not all of their cells are numbers: "
        lines.append((warn, listing(start, words, how)))
    if told:
        listed = [f"{n} ({shortened(each, 30)})" for n, each in told.items()]
        how = (
            f"; was it made from {label}, or set by who set it? Then name the other "
            "features with --features"
        )
        start = "classes that a column gives away nearly alone: "
        lines.append((warn, listing(start, listed, how)))
    if not is_asked:
        rest = {n: v for n, v in verdicts.items() if n not in (*taken, *beside, label)
                and not (v.why == "declared" and v.of) and v.why != WORDS}  # fmt: skip
        left = [f"left out: {line}" for line in left_out(rest, MOST_LINES - 1 - len(lines))]
        lines = [*((_guessed, line) for line in left), *lines]
    announce: Callable[[str], None] = note if is_asked or is_declared else _guessed
    announce(f"features ({len(names)}): {shortened(names, LINE)}" if names else NOTHING)
    for say, line in lines:
        say(line)


def error_rules(judged: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> Schema:
    """Declare the roles of those errors of features that nobody has declared, one for each."""
    from skyfill.catalog import Schema

    errors = {name: facts for name, facts in judged.items() if facts["role"] == "error"}
    known = {facts["of"] for facts in errors.values() if facts["why"] == "declared"}
    found = {}
    for name, facts in errors.items():
        if facts["of"] in names and facts["of"] not in known:
            known.add(facts["of"])
            found[name] = {"role": "error", "of": facts["of"]}
    return Schema.from_dict(found)


def _guessed(words: Words) -> None:
    mention(GUESSED, words)


def left_out(verdicts: Mapping[str, Verdict], most: int) -> list[str]:
    """List columns by what they are, in at most so many lines."""
    kinds: dict[str, list[str]] = {}
    for name, found in verdicts.items():
        kinds.setdefault(_PLURALS.get(found.kind, found.kind), []).append(name)
    lines: list[str] = []
    for width in (80, 40, 20, 1):
        lines = []
        for kind, names in kinds.items():
            words = f"{kind}: {shortened(names, width)}"
            if lines and len(lines[-1]) + len(words) < LINE:
                lines[-1] += f"; {words}"
            else:
                lines.append(words)
        if len(lines) <= most:
            return lines
    return [*lines[: most - 1], f"{lines[most - 1]}; ... (--json lists all)"]


def _check_names(table: Table, names: list[str]) -> None:
    """Name all columns that do not exist, not only the first."""
    from skyfill.catalog.table import nearest

    lost = [name for name in names if name not in table.names]
    if lost:
        hints = [f"no column {name!r}; {nearest(name, table.names)}" for name in lost]
        raise CatalogError(shortened(hints, LINE, "; "))


def _check_numbers(table: Table, names: Sequence[str]) -> None:
    """Name all features that are text and not numbers, not only the first."""
    faults = []
    for name in names:
        try:
            table.numbers(name)
        except CatalogError as error:
            faults.append(str(error))
    if faults:
        raise CatalogError(shortened(faults, LINE, "; "))


def refuse_without_label(options: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse options of classes where no column of classes is given."""
    for name in names:
        if options[name] and not options["label"]:
            hint = f"--{name.replace('_', '-')}"
            raise click.BadParameter("needs --label COLUMN", param_hint=hint)


def with_labels(table: Table, options: Mapping[str, Any]) -> Table:
    """Read the classes, merge them and drop rare ones, as --merge and --min-class say."""
    import pyarrow as pa

    least = options["min_class"] or LEAST
    table, counts = with_merged(table, options)
    mention_classes(counts, least)
    rare, label = counts.rare(least), options["label"]
    texts = [None if text in rare else text for text in table.column(label).to_pylist()]
    return table.with_column(label, pa.array(texts, pa.string()))


def with_merged(table: Table, options: Mapping[str, Any]) -> tuple[Table, ClassCounts]:
    """Read the classes of a table and merge those of --merge; count them."""
    import pyarrow as pa

    from skyfill.catalog.class_labels import class_texts
    from skyfill.classify.training_set import ClassCounts, merged

    label, merges = options["label"], _merges(options["merge"])
    # A word that is merged is meant as a class.
    words = shared.rules_of(options).unlabelled(label) - {each.casefold() for each in merges}
    counts = ClassCounts.of(table, label, words)
    texts = merged(class_texts(table, label, words), merges)
    known = Counter(text for text in texts if text is not None)
    table = table.with_column(label, pa.array(texts, pa.string()))
    return table, counts._replace(classes=known)


def mention_classes(counts: ClassCounts, least: int) -> None:
    """Say which labels count as none, and what may be wrong with the classes, or refuse them."""
    if line := counts.assumed():
        mention(GUESSED, line)
    counts.check(least)
    for line in counts.doubts(least):
        warn(line)


def _merges(texts: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        classes, equals, name = text.rpartition("=")
        if not (equals and name.strip() and classes.strip()):
            raise click.BadParameter(
                f'{text!r}: write CLASS,...=NAME, as in "YSO?,YSO??=YSO"', param_hint="--merge"
            )
        found |= {word: name.strip() for word in shared.words_of(classes)}
    return found
