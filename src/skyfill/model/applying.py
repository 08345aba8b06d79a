"""What a fitted model does to a table: fill its gaps, classify its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog import ColumnInfo, Reason, Role, Table
from skyfill.catalog.column_info import gap_name
from skyfill.classify.scorer import N_DRAWS, Scorer, Scores
from skyfill.errors import ModelError
from skyfill.model import results
from skyfill.model.cells import cells_of
from skyfill.model.declared import prepared
from skyfill.model.pipeline import Feature, Model
from skyfill.network import Cells

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Filling:
    """How to fill, and what to write beside values and standard deviations.

    Attributes
    ----------
    quantiles : sequence of float
        Levels of the quantiles to write.
    n_draws : int
        Joint draws of the gaps to write.
    seed : int
        Of the draws.
    denoise : bool
        Also write what values seen with an error would be without it.
    """

    quantiles: Sequence[float] = ()
    n_draws: int = 0
    seed: int = 0
    denoise: bool = False

    def apply(self, model: Model, table: Table, place: int = 0) -> Table:
        """Fill a batch of a table; its draws follow from the seed and the place of the batch."""
        return fill_table(model, table, replace(self, seed=self.seed + place))


@dataclass(frozen=True)
class Scoring:
    """How to classify.

    Attributes
    ----------
    n_draws : int
        Draws of the gaps for the share of the uncertainty that they cause.
    marginalize : int
        Draws of the gaps that the probabilities average over; 0 is fast.
    seed : int
        Of the draws.
    prior : tuple of float, optional
        Shares of the classes in the field, in the order of the model's classes; those that the
        model knows where not given.
    """

    n_draws: int = N_DRAWS
    marginalize: int = 0
    seed: int = 0
    prior: tuple[float, ...] | None = None

    def apply(self, model: Model, table: Table, place: int = 0) -> Table:
        """Classify a batch of a table; as in `Filling`, draws follow from its place."""
        return classify_table(model, table, replace(self, seed=self.seed + place))


def fill_table(model: Model, table: Table, how: Filling | None = None) -> Table:
    """Fill the gaps of a table's features; seen cells stay bit for bit.

    Parameters
    ----------
    model : Model
        What `load_model` gives.
    table : Table
        Any columns; features of the model that it lacks are added, all filled.
    how : Filling, optional

    Returns
    -------
    Table
        For each feature ``<name>_sd`` (null where seen) and the reason ``filled`` in
        ``<name>_gap``; ``<name>_q16`` and the like, ``<name>_draw1`` and the like on request, and
        ``<name>_denoised`` with ``<name>_denoised_sd`` for features whose errors the model uses.
    """
    how = how or Filling()
    if how.denoise:
        _check_errors(model)
    table = prepared(model, table)
    cells, factors, _ = cells_of(model, table)
    lost, noisy = np.isnan(cells.values), cells.is_noisy
    post = model.network.posterior(cells, denoise=how.denoise)
    values = [post.sd]
    if how.quantiles:
        values += list(model.network.quantiles(cells, how.quantiles))
    if how.n_draws:
        values += list(model.network.draws(cells, how.n_draws, how.seed))
    parts = results.filled_parts(how.quantiles, how.n_draws)
    companions = {str(table.info(name).of): name for name in table.names_with(Role.REASON)}
    for j, feature in enumerate(model.features):
        name = feature.name
        table = _with_values(table, feature, post.mean[:, j] / factors[j], lost[:, j])
        for part, each in zip(parts, values, strict=True):
            info = results.filled_info(table.info(name), name, part)
            table = _with_part(table, name, part, each[:, j] / factors[j], lost[:, j], info)
        if how.denoise and model.detections[j].errors:
            for part, each in zip(results.DENOISED, post[:2], strict=True):
                info = results.denoised_info(table.info(name), name, part)
                table = _with_part(table, name, part, each[:, j] / factors[j], noisy[:, j], info)
        table = _with_filled(table, name, lost[:, j], companions.get(name))
    return table


def _check_errors(model: Model) -> None:
    if not any(detection.errors for detection in model.detections):
        raise ModelError(
            f"model {model.identifier} uses no errors: nothing can be denoised; train one with "
            "--errors on from a table whose columns of errors have the role error"
        )


def _with_part(
    table: Table,
    name: str,
    part: str,
    values: Array,
    shown: NDArray[np.bool_],
    info: ColumnInfo,
) -> Table:
    """Add a column beside a feature, null where there is nothing to show."""
    column = pa.array(np.where(shown, values, np.nan), from_pandas=True)
    return table.with_column(results.filled_name(name, part), column, info)


def _with_values(table: Table, feature: Feature, values: Array, lost: NDArray[np.bool_]) -> Table:
    if feature.name not in table.names:
        info = ColumnInfo(feature.unit, feature.ucd, feature.description, Role.FEATURE)
        return table.with_column(feature.name, values, info)
    seen = table.numbers(feature.name)[:, 0]
    filled = pa.array(np.where(lost, values, seen))
    return table.with_column(feature.name, filled, table.info(feature.name))


def _with_filled(table: Table, name: str, lost: NDArray[np.bool_], companion: str | None) -> Table:
    """Mark filled cells; the reasons that were there are kept in a column of their own."""
    if companion is not None:
        before = table.column(companion)
        table = table.with_column(results.before_name(name), before, results.before_info(name))
    words = pc.if_else(pa.array(lost), str(Reason.FILLED), pa.scalar(None, pa.string()))
    info = ColumnInfo(role=Role.REASON, of=name)
    return table.with_column(companion or gap_name(name), words, info)


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
        The columns of the input, ``class`` (the most probable one), ``p_<class>`` for each class,
        ``entropy`` (bits), ``gap_share``, ``outlier`` and ``outlier_score``. A column of the input
        that has one of these names stays as ``<name>_was``.
    """
    how, scorer = how or Scoring(), scorer_of(model)
    if how.prior is not None:
        scorer = replace(scorer, prior=np.array(how.prior))
    cells, _, absent = cells_of(model, table)
    found = _score(scorer.without([model.names.index(name) for name in absent]), cells, how)
    columns = _result_columns(scorer, found)
    names = [results.before_name(name) if name in columns else name for name in table.names]
    renamed = table.arrow.rename_columns(names)
    # Renaming forgets what is known of the table as a whole.
    table = Table(renamed.replace_schema_metadata(table.arrow.schema.metadata))
    for name, values in columns.items():
        table = table.with_column(name, values, results.result_info(name))
    return table


def scorer_of(model: Model) -> Scorer:
    """Return a model's scorer; ModelError where it was trained without labels."""
    if model.scorer is None:
        raise ModelError(
            f"model {model.identifier} was trained without labels and cannot classify; train one "
            "with skyfill train --label COLUMN"
        )
    return model.scorer


def _score(scorer: Scorer, cells: Cells, how: Scoring) -> Scores:
    rng = np.random.default_rng(how.seed)
    found = scorer.score(cells, n_draws=how.n_draws, rng=rng)
    if not how.marginalize:
        return found
    return found._replace(
        probabilities=scorer.probabilities(cells, n_draws=how.marginalize, rng=rng)
    )


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
