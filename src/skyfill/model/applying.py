"""What a fitted model says about the rows of a table: their classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyfill.catalog import ColumnInfo, Table
from skyfill.catalog.new_columns import check_new
from skyfill.classify.class_tree import decide, sum_groups
from skyfill.classify.gap_draws import AUTO, N_DRAWS, Draws
from skyfill.classify.likeness import Likeness, measure_likeness
from skyfill.classify.scorer import Scorer, Scores
from skyfill.errors import ModelError
from skyfill.model import results
from skyfill.model.cells import cells_of
from skyfill.model.pipeline import Model
from skyfill.model.recognition import are_known
from skyfill.network import Cells

Array = NDArray[np.float64]
# From which probability on a group of classes is decided for.
SURE = 0.8


@dataclass(frozen=True)
class Scoring:
    """How to classify.

    Attributes
    ----------
    n_draws : int
        Draws of the gaps for the share of the uncertainty that they cause.
    marginalize : int or "auto"
        Draws of the gaps that the probabilities average over; 0 is fast, "auto" takes some where
        gaps are unlike those of the training set (`Scorer.probabilities`).
    seed : int
        Of the draws.
    prior : tuple of float, optional
        Shares of the classes in the field, in the order of the model's classes; those that the
        model knows where not given.
    prefix : str
        Before the names of all columns that are added.
    sure : float
        Where the model knows groups of classes: the probability from which on one is decided for.
    likeness : Likeness, optional
        How many objects of the whole table are unlike the training set (`likeness_of`); written
        into the metadata, nothing else.
    """

    n_draws: int = N_DRAWS
    marginalize: Draws = AUTO
    seed: int = 0
    prior: tuple[float, ...] | None = None
    prefix: str = results.PREFIX
    sure: float = SURE
    # No part of what makes two jobs different: it follows from the model and the table.
    likeness: Likeness | None = field(default=None, repr=False)

    def apply(self, model: Model, table: Table, first_row: int = 0) -> Table:
        """Classify rows; each as if it were alone, wherever they begin in the input."""
        return classify_table(model, table, self)


def classify_table(model: Model, table: Table, how: Scoring | None = None) -> Table:
    """Add the class, its probabilities and what they rest on to a table.

    Parameters
    ----------
    model : Model
        What `load_model` gives, trained with labels.
    table : Table
        Any columns in any order; other units are converted; features of the model that it lacks
        are gaps.
    how : Scoring, optional

    Returns
    -------
    Table
        The columns of the input and, behind the identifier, ``sf_class`` (the most probable one),
        ``sf_p_<class>`` for each class, ``sf_entropy`` (bits), ``sf_gap_share``, ``sf_outlier`` and
        ``sf_outlier_score``; ``sf_trained_on`` marks rows of the training set. With a tree of
        classes also ``sf_any_<group>``, the probability of each group, and ``sf_class_sure``, the
        smallest group or the class that is sure. What an earlier run wrote under this prefix goes;
        under another prefix, any other column that has one of these names is refused. The metadata
        tell which columns are the results.
    """
    how = how or Scoring()
    more = [] if model.trained_on is None else [results.TRAINED_ON]
    scorer, cells = scorer_and_cells(model, table, how.prior)
    table = check_results(table, scorer, how.prefix, more)
    found = scorer.score(cells, n_draws=how.n_draws, average=how.marginalize, rng=how.seed)
    columns = _result_columns(scorer, found) | tree_columns(scorer, found.probabilities, how.sure)
    if model.trained_on is not None:
        columns[results.TRAINED_ON] = pa.array(are_known(cells.values, model.trained_on))
    for name, values in columns.items():
        table = table.with_column(how.prefix + name, values, results.result_info(name))
    table = results.after_identifier(table, [how.prefix + name for name in columns])
    return results.with_record(table, how.prefix, _record(model, scorer, how))


def scorer_and_cells(
    model: Model, table: Table, prior: Sequence[float] | None = None
) -> tuple[Scorer, Cells]:
    """Return what classifies the rows of a table, and all that it is told of them."""
    scorer = scorer_of(model)
    if prior is not None:
        scorer = replace(scorer, prior=np.array(prior))
    cells, _, absent = cells_of(model, table)
    return scorer.without([model.names.index(name) for name in absent]), cells


def likeness_of(model: Model, table: Table, how: Scoring | None = None) -> Likeness:
    """Measure how many objects of a table are unlike the training set; see `measure_likeness`.

    Parameters
    ----------
    model : Model
    table : Table
        All rows that are classified, or a fair sample of them.
    how : Scoring, optional
    """
    how = how or Scoring()
    scorer, cells = scorer_and_cells(model, table, how.prior)
    P = scorer.probabilities(cells, n_draws=how.marginalize, rng=how.seed)
    named = {"classes": scorer.classes, "names": model.names}
    return measure_likeness(P, scorer.prior, cells.values, scorer.looks, **named)


def _record(model: Model, scorer: Scorer, how: Scoring) -> dict[str, Any]:
    """Describe for the metadata how a table was classified."""
    record = {"model": model.identifier, "classes": scorer.classes, "prior": how.prior}
    return record if how.likeness is None else record | {"likeness": how.likeness._asdict()}


def check_results(
    table: Table, scorer: Scorer, prefix: str = results.PREFIX, more: Sequence[str] = ()
) -> Table:
    """Drop the results of an earlier run; refuse other columns of the names of results."""
    table = results.without_results(table, prefix)
    classes = [results.probability_name(name) for name in scorer.classes]
    groups = list(tree_columns(scorer, np.empty((0, len(scorer.classes)))))
    names = (results.CLASS, *classes, *groups, *results.NUMBERS, results.OUTLIER, *more)
    check_new(table, {prefix + name: results.result_info(name) or ColumnInfo() for name in names})
    return table


def tree_columns(scorer: Scorer, P: Array, sure: float = SURE) -> dict[str, pa.Array]:
    """Probabilities of groups of classes, and decisions; none without a tree of classes."""
    tree, classes = scorer.tree, scorer.classes
    if tree is None:
        return {}
    sums = sum_groups(P, tree.groups(classes)).items()
    columns = {results.group_name(name): pa.array(p) for name, p in sums}
    return columns | {results.CLASS_SURE: pa.array(decide(P, classes, tree, sure), pa.string())}


def scorer_of(model: Model) -> Scorer:
    """Return a model's scorer; ModelError where it was trained without labels."""
    if model.scorer is None:
        raise ModelError(
            f"model {model.identifier} was trained without labels and cannot classify; train one "
            "with skyfill train --label COLUMN"
        )
    return model.scorer


def _result_columns(scorer: Scorer, found: Scores) -> dict[str, pa.Array]:
    P = found.probabilities
    best = np.array(scorer.classes, dtype=object)[P.argmax(axis=1)]
    shares = {results.probability_name(name): P[:, c] for c, name in enumerate(scorer.classes)}
    return {
        results.CLASS: pa.array(best, pa.string()),
        **{name: pa.array(share) for name, share in shares.items()},
        results.ENTROPY: pa.array(found.entropy),
        results.GAP_SHARE: pa.array(found.gap_share, from_pandas=True),
        results.OUTLIER: pa.array(found.outlier),
        results.OUTLIER_SCORE: pa.array(found.outlier_score),
    }
