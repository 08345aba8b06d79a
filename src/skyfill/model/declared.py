"""What the user declared about the training table, for the tables that a model is used on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from skyfill.catalog import Role, Schema, Table
from skyfill.model.measured import before_filling
from skyfill.model.pipeline import Model

# A model converts by itself, and leaves the table in its own units.
_NOT_KEPT = ("convert", "description")


def declared_for(table: Table, names: Sequence[str], rules: Schema) -> Schema:
    """Return what rules state about features and the columns beside them.

    Parameters
    ----------
    table : Table
        The training table, to which the rules were applied.
    names : sequence of str
        The features.
    rules : Schema

    Examples
    --------
    >>> table = Table.from_columns({"J": [14.2], "n": [3]})
    >>> declared_for(table, ["J"], Schema.from_toml("sentinels = [-99]")).to_dict()
    {'J': {'sentinels': [-99]}}
    """
    beside = [
        name
        for name in table.names
        if table.info(name).role in (Role.ERROR, Role.LIMIT) and table.info(name).of in names
    ]
    return rules.only([*names, *beside], without=_NOT_KEPT)


def prepared(model: Model, table: Table) -> Table:
    """Return a table as a model sees it: filled cells are gaps, and declared rules hold.

    What was declared in training holds as far as the table itself does not say otherwise. It makes
    no difference whether a table was prepared before.
    """
    table = before_filling(table, model.names)
    return model.declared.apply(table, keep=True) if model.declared.rules else table


def overridden(model: Model, rules: Schema) -> Model:
    """Let what rules state about a column take the place of what was declared in training."""
    if not (model.declared.rules and rules.rules):
        return model
    left = {
        name: {key: value for key, value in facts.items() if key not in rules.facts(name)}
        for name, facts in model.declared.to_dict().items()
    }
    kept = Schema.from_dict({name: facts for name, facts in left.items() if facts})
    changed = replace(model, declared=kept)
    # Results name the file that they come from.
    changed.__dict__["identifier"] = model.identifier
    return changed


def changes(model: Model, rules: Schema) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield column, fact, and its values in training and by the rules, where the two differ."""
    for name, facts in model.declared.to_dict().items():
        given = rules.only([name]).to_dict().get(name, {})
        for key in facts.keys() & given.keys():
            if facts[key] != given[key]:
                yield name, key, facts[key], given[key]
