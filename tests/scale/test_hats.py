"""HATS catalogues through LSDB give what one machine gives, row for row."""

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skyfill.catalog import ColumnInfo, Provenance, Role, Schema, Table
from skyfill.classify import CatalogClassifier
from skyfill.errors import CatalogError
from skyfill.impute import NetworkImputer
from skyfill.model import (
    Filling,
    Scoring,
    classify_table,
    fill_table,
    load_model,
    save_model,
    train,
    train_classifier,
)
from skyfill.scale import Run, apply_model, cluster, open_source, scoring
from skyfill.scale.hats import import_lsdb, is_hats, open_hats, write_hats
from skyfill.scale.hats_match import Counterpart, join_hats
from skyfill.scale.job_folder import folder_of
from skyfill.scale.scoring import ModelTask, score_frame
from skyfill.scale.workers import open_client
from skyfill.sky import MatchRules, Survey, join_surveys
from tests.stars import read_hats_table

pytest.importorskip("lsdb", reason="needs LSDB: pip install skyfill[lsdb]", exc_type=ImportError)

# LSDB 0.11 itself uses what pandas 3.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

INFO = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in ("V", "I")}


def make_table(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    v = rng.normal(18, 1, n)
    i = np.where(rng.random(n) < 0.3, np.nan, v - 0.8 + rng.normal(0, 0.2, n))
    columns = {
        "id": np.arange(n),
        "ra": rng.uniform(75, 85, n),
        "dec": rng.uniform(-72, -66, n),
        "V": v,
        "I": i,
        "name": [f"star {k}" for k in range(n)],
    }
    table = Table.from_columns(columns, info=INFO)
    return table.with_reasons("I", [None if np.isfinite(x) else "unmatched" for x in i])


@pytest.fixture(scope="module")
def model_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.skyfill"
    save_model(train(make_table(400), ["V", "I"], n_components=2, n_fits=1)[0], path)
    return path


@pytest.fixture(scope="module")
def model(model_path):
    return load_model(model_path)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hats") / "stars"
    write_hats(make_table(), folder, partition_rows=300)
    return folder


def fill(model_path, catalog, output, work=None, **run):
    """Fill a HATS catalogue; folders may be given without hats://."""
    places = (f"hats://{str(place).removeprefix('hats://')}" for place in (catalog, output))
    return apply_model(work or Filling(), model_path, *places, run=Run(**run))


def by_id(table):
    order = np.argsort(table.numbers("id")[:, 0])
    return table.arrow.take(pa.array(order)).combine_chunks()


def test_kernels_of_hats_are_kept_for_the_next_process():
    from hats.pixel_tree.pixel_alignment import perform_align_trees

    import_lsdb()
    assert perform_align_trees.stats.cache_path is not None


def test_a_table_comes_back_from_a_hats_catalog_with_units_roles_and_rows(catalog):
    found, table = read_hats_table(catalog), make_table()
    assert len(open_hats(catalog).get_healpix_pixels()) > 4
    assert found.info("V").unit == "mag"
    assert found.info("I_gap").role is Role.REASON
    assert by_id(found).equals(table.arrow.combine_chunks())
    assert open_source(f"hats://{catalog}").count_rows() == len(table)


def test_a_filled_hats_catalog_holds_the_rows_of_one_machine(model, model_path, catalog, tmp_path):
    out = f"hats://{tmp_path}/filled"
    made = Provenance("by hand", model=model.identifier)
    done = fill(model_path, catalog, out, provenance=made)
    expected = fill_table(model, make_table())
    found = read_hats_table(out)
    assert by_id(found).equals(expected.arrow.combine_chunks())
    n_gaps = int(np.isnan(make_table().numbers("I")).sum())
    assert (done.rows, done.counts["filled"]) == (1500, n_gaps)
    for name in ("V", "I", "I_sd", "I_gap", "I_was"):
        assert found.info(name) == expected.info(name)
    assert json.loads(found.meta["provenance"])["model"] == model.identifier
    opened = open_hats(out)
    assert opened.hc_structure.catalog_info.extra_dict()["skyfill_model"] == model.identifier
    assert len(opened.margin.compute(progress_bar=False)) == len(
        open_hats(catalog).margin.compute(progress_bar=False)
    )
    assert [p.name for p in tmp_path.iterdir()] == ["filled"]


def test_a_filled_hats_catalog_is_filled_again_from_what_was_measured(
    model, model_path, catalog, tmp_path
):
    fill(model_path, catalog, tmp_path / "once", Filling((0.16,)))
    fill(model_path, tmp_path / "once", tmp_path / "twice", Filling((0.84,)))
    expected = fill_table(model, make_table(), Filling((0.84,)))
    found = read_hats_table(tmp_path / "twice")
    assert set(found.names) == set(expected.names)
    assert by_id(found).select(expected.names).equals(expected.arrow.combine_chunks())


@dataclass(frozen=True)
class KillOnce:
    """Fill, but kill the process that works on the partition with a given value: once."""

    marker: str
    victim: float
    prefix = ""

    def apply(self, model, table, place):
        done = Filling().apply(model, table, place)
        if self.victim in table.numbers("V") and not Path(self.marker).exists():
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return done


def test_two_workers_of_which_one_is_killed_give_the_same_catalog(
    model, model_path, catalog, tmp_path
):
    work = KillOnce(str(tmp_path / "killed"), float(make_table().numbers("V")[700, 0]))
    with open_client("local", n_workers=2), cluster(None) as workers:
        fill(model_path, catalog, tmp_path / "out", work, workers=workers)
    assert (tmp_path / "killed").exists()
    expected = fill_table(model, make_table())
    assert by_id(read_hats_table(tmp_path / "out")).equals(expected.arrow.combine_chunks())


def test_an_empty_partition_gives_the_columns_and_types_of_a_full_one(model_path, catalog):
    from hats import HealpixPixel

    opened = open_hats(catalog)
    recipe = ModelTask.of(Filling(), model_path, Schema())
    used = open_source(f"hats://{catalog}").schema
    full = opened.partitions[0].compute(progress_bar=False)
    empty = score_frame(full.iloc[:0], HealpixPixel(1, 1), recipe, used)
    done = score_frame(full, HealpixPixel(1, 1), recipe, used)
    assert len(empty) == 0
    assert len(done) == len(full) > 0
    assert (empty.dtypes == done.dtypes).all()
    assert (score_frame(opened.meta, None, recipe, used).dtypes == done.dtypes).all()
    assert done.index.equals(full.index)


def test_partitions_that_a_query_has_emptied_are_filled_and_left_out(
    model, model_path, catalog, tmp_path, monkeypatch
):
    south = open_hats(catalog).query("dec < -70.5")
    monkeypatch.setattr(scoring, "open_hats", lambda path: south)
    rows = fill(model_path, catalog, tmp_path / "out").rows
    monkeypatch.undo()
    table = make_table()
    keep = table.numbers("dec")[:, 0] < -70.5
    expected = fill_table(model, Table(table.arrow.filter(pa.array(keep)))).arrow
    assert rows == keep.sum()
    assert by_id(read_hats_table(tmp_path / "out")).equals(expected.combine_chunks())
    assert len(open_hats(tmp_path / "out").get_healpix_pixels()) < len(south.get_healpix_pixels())


def test_nan_is_a_gap_like_null_and_stays_nan_in_columns_that_are_not_filled(
    model, model_path, tmp_path
):
    import lsdb
    import pandas as pd

    table = make_table(200)
    frame = table.drop(["I_gap"]).arrow.to_pandas(types_mapper=pd.ArrowDtype)
    lost = np.flatnonzero(np.isnan(table.numbers("I")[:, 0]))
    cells = table.numbers("I")[:, 0]
    mask = np.isin(np.arange(200), lost[::2])  # half of the gaps are null, half NaN
    frame["I"] = pd.arrays.ArrowExtensionArray(pa.array(cells, mask=mask))
    frame["extra"] = pd.arrays.ArrowExtensionArray(pa.array([np.nan, None] * 100, pa.float32()))
    made = lsdb.from_dataframe(frame, margin_threshold=10, catalog_name="nans")
    made.write_catalog(tmp_path / "nans", progress_bar=False)
    done = fill(model_path, tmp_path / "nans", tmp_path / "out")
    assert done.counts["filled"] == lost.size
    found = pq.read_table(open_source(f"hats://{tmp_path}/out").files[0]).sort_by("id")
    expected = fill_table(model, table)
    assert np.array_equal(found.column("I").to_numpy(), expected.numbers("I")[:, 0])
    extra = found.column("extra")
    assert extra.type == pa.float32()
    assert extra.null_count == 100
    assert np.isnan(extra.drop_null().to_numpy()).all()


def test_an_interrupted_run_is_resumed_and_a_finished_one_is_not_overwritten(
    model, model_path, catalog, tmp_path
):
    work = FailOnce(str(tmp_path / "failed"), float(make_table().numbers("V")[700, 0]))
    out = tmp_path / "out"
    with pytest.raises(RuntimeError, match="power cut"):
        fill(model_path, catalog, out, work)
    assert not out.exists()
    # Nothing is at work any more: what is there is whole, and stays.
    left = written(folder_of(out) / "parts")
    assert left
    with pytest.raises(CatalogError, match=r"another run \(it differs in: options\)"):
        fill(model_path, catalog, out, resume=True)
    assert written(folder_of(out) / "parts") == left
    told = []
    done = fill(model_path, catalog, out, work, resume=True, progress=told.append)
    assert done.rows == sum(told) == 1500
    assert {name: written(out)[name] for name in left} == left
    expected = fill_table(model, make_table()).arrow.combine_chunks()
    assert by_id(read_hats_table(out)).equals(expected)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["failed", "out"]
    with pytest.raises(CatalogError, match="exists; choose another folder"):
        fill(model_path, catalog, out)


def written(folder):
    """Partitions of a catalogue, or of one that is being written, and when they were."""
    found = folder.rglob("Npix=*.parquet")
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in found}


@dataclass(frozen=True)
class FailOnce:
    marker: str
    victim: float
    prefix = ""

    def apply(self, model, table, place):
        if self.victim in table.numbers("V") and not Path(self.marker).exists():
            Path(self.marker).touch()
            raise RuntimeError("power cut")
        return Filling().apply(model, table, place)


def test_mistakes_are_said_in_one_line(model_path, catalog, tmp_path):
    with pytest.raises(CatalogError, match="there is no such folder"):
        fill(model_path, tmp_path / "none", tmp_path / "out")
    (tmp_path / "plain").mkdir()
    with pytest.raises(CatalogError, match="not a HATS catalogue"):
        fill(model_path, tmp_path / "plain", tmp_path / "out")
    write_hats(make_table(20).drop(["V", "I", "I_gap"]), tmp_path / "other")
    with pytest.raises(CatalogError, match="none of the model's features"):
        fill(model_path, tmp_path / "other", tmp_path / "out")
    lost = make_table(20).with_column("ra", [None, *[80.0] * 19])
    with pytest.raises(CatalogError, match="row 1 has no position"):
        write_hats(lost, tmp_path / "lost")
    hours = make_table(20).with_info("ra", unit="hourangle")
    hours = hours.with_column("ra", make_table(20).numbers("ra")[:, 0] / 15)
    with pytest.raises(CatalogError, match="not in degrees"):
        write_hats(hours, tmp_path / "hours")
    with pytest.raises(CatalogError, match="its margin is 10 arcsec wide"):
        join_hats(catalog, [Counterpart(catalog, "b", 8.0)], tmp_path / "out")
    with pytest.raises(CatalogError, match="b: the radius is -1.0 arcsec; it must be positive"):
        join_hats(catalog, [Counterpart(catalog, "b", -1.0)], tmp_path / "out")
    twice = [Counterpart(catalog, "b", 1.0), Counterpart(catalog, "b", 2.0)]
    with pytest.raises(CatalogError, match="two columns would be called 'id_b'"):
        join_hats(catalog, twice, tmp_path / "out")
    assert is_hats("hats://a")
    assert not is_hats(tmp_path)


RADIUS = 200.0


def crowded(n, seed):
    """Stars so dense that many want the same neighbor, also across borders of partitions."""
    rng = np.random.default_rng(seed)
    ra, dec = rng.uniform(75, 85, n), rng.uniform(-72, -66, n)
    ra[-5:], dec[-5:] = ra[:5], dec[:5]  # equal positions: the first row wins
    magnitude = {"J": ColumnInfo(unit="mag", role=Role.FEATURE)}
    return Table.from_columns(
        {"id": np.arange(n), "ra": ra, "dec": dec, "J": ra - dec}, info=magnitude
    )


@pytest.mark.parametrize("sizes", [(3000, 1500), (1500, 3000)])
def test_a_match_of_hats_catalogs_is_that_of_the_whole_tables(sizes, tmp_path):
    margin = 3 * RADIUS
    write_hats(crowded(sizes[0], 1), tmp_path / "a", margin_arcsec=margin, partition_rows=400)
    write_hats(crowded(sizes[1], 2), tmp_path / "b", margin_arcsec=margin, partition_rows=250)
    join_hats(tmp_path / "a", [Counterpart(tmp_path / "b", "b", RADIUS)], tmp_path / "m")
    left, right = read_hats_table(tmp_path / "a"), read_hats_table(tmp_path / "b")
    expected, _ = join_surveys(left, [Survey("b", right, RADIUS)], MatchRules(n_controls=0))
    found = read_hats_table(tmp_path / "m")
    names = [name for name in expected.names if name in found.names]
    # The flag says why a row has nothing from `b`; a column of reasons for each would repeat it.
    assert all(name.endswith("_b_gap") for name in set(expected.names) - set(names))
    assert by_id(found.select(names)).equals(by_id(expected.select(names)))
    flags = found.column("flag_b").to_pylist()
    assert {"taken", "ambiguous", "matched"} <= set(flags)
    assert found.info("J_b").unit == "mag"
    assert found.info("sep_b").unit == "arcsec"
    pairs = [k for k in found.column("id_b").to_pylist() if k is not None]
    assert len(set(pairs)) == len(pairs) == sum(f in ("matched", "ambiguous") for f in flags)


def test_several_catalogs_are_joined_as_the_whole_tables_are(tmp_path):
    # The base has the largest partitions: each match cuts them finer.
    sizes = {"a": (1500, 800), "b": (3000, 250), "c": (900, 150)}
    for seed, (name, (n, rows)) in enumerate(sizes.items()):
        write_hats(crowded(n, seed), tmp_path / name, margin_arcsec=600, partition_rows=rows)
    others = [Counterpart(tmp_path / "b", "b", RADIUS), Counterpart(tmp_path / "c", "c", 150.0)]
    join_hats(tmp_path / "a", others, tmp_path / "m")
    base, b, c = (read_hats_table(tmp_path / name) for name in sizes)
    surveys = [Survey("b", b, RADIUS), Survey("c", c, 150.0)]
    expected, _ = join_surveys(base, surveys, MatchRules(n_controls=0))
    found = read_hats_table(tmp_path / "m")
    pixels = [open_hats(tmp_path / name).get_healpix_pixels() for name in ("a", "m")]
    assert len(pixels[0]) < len(pixels[1])
    assert [n for n in expected.names if not n.endswith("_gap")] == list(found.names)
    assert by_id(found).equals(by_id(expected.select(found.names)))
    assert "taken" in found.column("flag_c").to_pylist()


def test_left_rows_where_the_right_catalog_has_nothing_stay(tmp_path):
    write_hats(crowded(300, 1), tmp_path / "a", margin_arcsec=60)
    far = crowded(50, 2).with_column("ra", crowded(50, 2).numbers("ra")[:, 0] + 120)
    write_hats(far, tmp_path / "b", margin_arcsec=60)
    join_hats(tmp_path / "a", [Counterpart(tmp_path / "b", "b", 10.0)], tmp_path / "m")
    found = read_hats_table(tmp_path / "m")
    assert len(found) == 300
    assert found.column("J_b").null_count == found.column("sep_b").null_count == 300
    assert set(found.column("flag_b").to_pylist()) == {"unmatched"}
    assert found.column("id_b").type == pa.int64()


def test_a_hats_catalog_is_read_like_files_and_folders(model_path, catalog, tmp_path):
    source = open_source(f"hats://{catalog}")
    assert source.schema.names == list(make_table().names)
    assert source.schema.field("V").metadata[b"unit"] == b"mag"
    assert not source.is_one_file
    assert [path.name for path in source.checked_files] == ["collection.properties"]
    found = [table.numbers("I")[:, 0] for table in source.tables(["I"])]
    expected = read_hats_table(catalog).numbers("I")[:, 0]
    assert np.array_equal(np.concatenate(found), expected, equal_nan=True)
    with pytest.raises(CatalogError, match="before both or before none"):
        apply_model(Filling(), model_path, source.path, tmp_path / "out.parquet")


def test_a_classified_hats_catalog_keeps_a_column_whose_name_is_needed(tmp_path):
    names = ["RRL" if v < 18 else "QSO" for v in make_table(300).numbers("V")[:, 0]]
    table = make_table(300).with_column("class", names)
    small = CatalogClassifier("forest", n_trees=5, imputer=NetworkImputer(1, n_fits=1, refine=None))
    model, _ = train_classifier(table, ["V", "I"], "class", classifier=small)
    save_model(model, tmp_path / "c.skyfill")
    # Objects with gaps that no object of the training set has: their classes rest on draws.
    values = table.numbers("V")[:, 0]
    table = table.with_column("V", np.where(np.arange(300) % 4 == 0, np.nan, values))
    write_hats(table, tmp_path / "in", partition_rows=100)
    work = Scoring(prefix="sf_")
    done = fill(tmp_path / "c.skyfill", tmp_path / "in", tmp_path / "out", work)
    expected = classify_table(model, table, work)
    assert expected.column("class").to_pylist() == names
    assert by_id(read_hats_table(tmp_path / "out")).equals(expected.arrow.combine_chunks())
    classes = expected.column("sf_class").to_pylist()
    assert (done.rows, done.counts["class.RRL"]) == (300, classes.count("RRL"))


def test_draws_of_a_hats_catalog_follow_from_its_identifiers(model, model_path, tmp_path):
    """With them, an object has the draws that it has in any table; without, each row its own."""
    table, work = make_table(300).with_info("id", role="identifier"), Filling(n_draws=2)
    write_hats(table, tmp_path / "in", partition_rows=100)
    fill(model_path, tmp_path / "in", tmp_path / "out", work)
    expected = fill_table(model, table, work)
    assert by_id(read_hats_table(tmp_path / "out")).equals(expected.arrow.combine_chunks())
    # Equal rows in several partitions.
    same = make_table(300).with_column("V", np.full(300, 18.0))
    same = same.with_column("I", np.full(300, np.nan))
    write_hats(same, tmp_path / "same", partition_rows=100)
    fill(model_path, tmp_path / "same", tmp_path / "filled", work)
    draws = read_hats_table(tmp_path / "filled").numbers("I_draw1", "I_draw2")
    assert len(np.unique(draws)) == 600
