"""Which columns `train` and `evaluate` learn from: features and labels."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.terminal import GUESSED, mention, note, warn
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.catalog import Table

# Instead of names of features: all that look like features.
AUTO = "auto"

takes_classes = shared.stacked(
    click.option(
        "--merge",
        "merges",
        multiple=True,
        metavar="CLASS,...=NAME",
        help='Take classes for one, as in "YSO?,YSO??=YSO"; may be repeated.',
    ),
    click.option(
        "--min-class",
        type=click.IntRange(min=1),
        metavar="N",
        help="Rows of classes with fewer objects count as unlabelled.  [default: 1; 2 in evaluate]",
    ),
)


takes_tree = click.option(
    "--tree",
    type=shared.FILE,
    metavar="TOML",
    help='Groups of classes: lines such as RRL = "pulsating", pulsating = "periodic".',
)


def choose_features(table: Table, options: Mapping[str, Any], option: str) -> tuple[str, ...]:
    """Give the features asked for, or of that role; guessed ones only if nothing can leak.

    Parameters
    ----------
    table : Table
    options : mapping
        Of the command.
    option : {"features", "columns"}
        The name of the option for features.
    """
    from skyfill.catalog import Role, with_guessed_roles

    label, asked = options["label"], shared.words_of(options[option])
    _check_names(table, [*(asked if asked != (AUTO,) else ()), *([label] if label else [])])
    is_auto = asked == (AUTO,) and AUTO not in table.names
    known = () if is_auto else asked or table.names_with(Role.FEATURE)
    guessed = () if known else with_guessed_roles(table).names_with(Role.FEATURE)
    names = known or tuple(name for name in guessed if name != label)
    if not names:
        raise CatalogError(
            f"no column looks like a feature; name them with --{option} COLUMN,..., or set roles "
            "with --schema (see skyfill inspect)"
        )
    _check_numbers(table, names)
    if known:
        note(f"features: {', '.join(names)}")
    else:
        mention(GUESSED, f"features: {', '.join(names)}")
    if label and not known and not is_auto:
        _confirm(names, option)
    return _with_values(table, names)


def _check_names(table: Table, names: list[str]) -> None:
    """Name all columns that do not exist, not only the first."""
    from skyfill.catalog.table import nearest

    lost = [name for name in names if name not in table.names]
    if lost:
        hints = "; ".join(f"no column {name!r}; {nearest(name, table.names)}" for name in lost)
        raise CatalogError(hints)


def _check_numbers(table: Table, names: tuple[str, ...]) -> None:
    """Name all features that are text and not numbers, not only the first.

    What is refused as a feature for its role is left to those who know how to force it.
    """
    import pyarrow as pa

    from skyfill.catalog import Role, with_guessed_roles

    known, faults = with_guessed_roles(table), []
    for name in names:
        is_feature = known.info(name).role in (Role.FEATURE, Role.OTHER)
        if is_feature and pa.types.is_string(table.column(name).type):
            try:
                table.numbers(name)
            except CatalogError as error:
                faults.append(str(error))
    if faults:
        raise CatalogError("; ".join(faults))


def _confirm(names: tuple[str, ...], option: str) -> None:
    """Ask whether guessed features may be learned: some may be set by who set the class."""
    if sys.stdin.isatty() and click.confirm("Learn the classes from these columns?", err=True):
        return
    raise CatalogError(
        f"--label: the features are not guessed, since some may give the class away; name them "
        f"with --{option} COLUMN,..., or take all of {', '.join(names)} with --{option} {AUTO}"
    )


def _with_values(table: Table, names: tuple[str, ...]) -> tuple[str, ...]:
    """Leave features without any value out, with a warning."""
    empty = [name for name in names if len(table) and table.column(name).null_count == len(table)]
    if empty:
        warn(f"{', '.join(empty)}: no value in {len(table)} rows; left out of the features")
    return tuple(name for name in names if name not in empty)


def with_labels(table: Table, options: Mapping[str, Any], least: int) -> Table:
    """Merge classes and drop rare ones, as --merge and --min-class say.

    `least` is the default of --min-class.
    """
    from collections import Counter

    import pyarrow as pa

    from skyfill.classify.training_set import check_class_count, label_texts, merged

    label, least = options["label"], options["min_class"] or least
    texts = merged(label_texts(table.column(label).to_pylist()), _merges(options["merges"]))
    counts = Counter(text for text in texts if text is not None)
    rare = {name: count for name, count in counts.items() if count < least}
    if rare and len(rare) < len(counts):
        check_class_count(len(counts) - len(rare), label)
        listed = ", ".join(f"{name} ({count})" for name, count in sorted(rare.items())[:12])
        more = f" and {len(rare) - 12} more" if len(rare) > 12 else ""
        warn(
            f"classes with fewer than {least} objects count as unlabelled: {listed}{more}; merge "
            "them with --merge CLASS,...=NAME"
        )
        texts = [None if text in rare else text for text in texts]
    check_class_count(len(counts), label)
    return table.with_column(label, pa.array(list(texts), pa.string()))


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
