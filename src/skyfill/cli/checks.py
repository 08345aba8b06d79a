"""What commands say of their input before the work: declared facts, and what may be wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from skyfill.cli.terminal import DECLARED, mention

if TYPE_CHECKING:
    from skyfill.catalog import Schema
    from skyfill.model import Model


def mention_rules(rules: Schema, names: Iterable[str]) -> None:
    """List what the user declares about the columns of a table."""
    for name, facts in rules.only(names).to_dict().items():
        mention(DECLARED, f"{name}: {fact_words(facts)}")


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
    for name, key, before, now in changes(model, rules):
        mention(DECLARED, f"{name}: {_word(key, now)} (in training: {_word(key, before)})")
    for name, facts in model.declared.to_dict().items():
        same = {key: value for key, value in facts.items() if (name, key) not in changed}
        if name in here and same:
            mention(DECLARED, f"{name}: {fact_words(same)} (in training)")
    mention_rules(rules.only(here - {name for name, _ in changed}), here)
    return overridden(model, rules)


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
