"""The simulated field: counts, gaps, determinism, limits, and what the surveys publish."""

from collections import Counter
from dataclasses import fields

import numpy as np
import pyarrow.compute as pc
import pytest
from scipy.spatial import cKDTree
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from skyfill.catalog import Reason, Role, Table, read_table
from skyfill.datasets import (
    Field,
    join_by_truth,
    simulate_field,
    simulate_training_set,
    write_field,
)
from skyfill.datasets.field.observing import SURVEYS
from skyfill.datasets.field.polygons import Polygons, box
from skyfill.datasets.field.population import CLASSES
from skyfill.errors import DataError
from skyfill.sky.sphere import unit_vectors

from .conftest import python_calls

# Pichara & Protopapas (2013): objects per class, percentage of gaps per band.
PAPER_COUNTS = {"NV": 1136, "QSO": 45, "BE": 76, "CEPH": 70, "RRL": 69, "EB": 100, "LPV": 337}
PAPER_MISSING = {
    **{"J": 54, "H": 54, "K": 58, "m36": 1, "m45": 13, "m58": 68, "m80": 74},
    **{"U": 49, "B": 0, "V": 0, "I": 14},
}
BANDS = tuple(PAPER_MISSING)
SEEDS = (0, 1, 2)


@pytest.fixture(scope="module")
def training() -> dict[int, Field]:
    return {seed: simulate_training_set(seed=seed) for seed in SEEDS}


@pytest.fixture(scope="module")
def field() -> Field:
    return simulate_field(40_000, seed=5)


def tables(field: Field) -> dict[str, Table]:
    found = {f.name: getattr(field, f.name) for f in fields(field)}
    return {name: table for name, table in found.items() if isinstance(table, Table)}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_training_set_has_the_papers_class_counts(training, seed):
    assert Counter(training[seed].truth.column("class").to_pylist()) == PAPER_COUNTS


@pytest.mark.parametrize("seed", SEEDS)
def test_the_training_set_has_about_the_papers_gaps(training, seed):
    joined = join_by_truth(training[seed])
    missing = {band: 100 * joined.column(band).null_count / len(joined) for band in BANDS}
    assert missing == pytest.approx(PAPER_MISSING, abs=6)


def test_a_blind_cross_match_gives_the_same_gaps(training):
    """Nearest neighbor within 1.5 arcsec, which knows nothing of the truth."""
    field = training[0]
    base = unit_vectors(*field.macho.numbers("ra", "dec").T)
    for name, survey in SURVEYS.items():
        catalog = getattr(field, name)
        tree = cKDTree(unit_vectors(*catalog.numbers("ra", "dec").T))
        distance, row = tree.query(base, distance_upper_bound=np.deg2rad(1.5 / 3600))
        found = np.isfinite(distance)
        identifiers = np.array([*catalog.column("id").to_pylist(), None], dtype=object)
        true = np.array(field.truth.column(f"id_{name}").to_pylist(), dtype=object)
        assert (identifiers[row] == true).mean() > 0.95
        for band in survey.bands:
            values = np.append(catalog.numbers(band)[:, 0], np.nan)
            missing = 100 * np.isnan(values[np.where(found, row, -1)]).mean()
            assert missing == pytest.approx(PAPER_MISSING[band], abs=6)


def test_a_forest_on_photometry_alone_lands_where_the_papers_did(training):
    """Weighted F about 0.85: quasars and LPVs easy, RR Lyrae stars and binaries hard."""
    joined = join_by_truth(training[0])
    labels = np.array(joined.column("class").to_pylist())
    forest = RandomForestClassifier(100, random_state=0, n_jobs=1)
    model = make_pipeline(SimpleImputer(strategy="median"), forest)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    guess = cross_val_predict(model, joined.numbers(*BANDS), labels, cv=folds)
    scores = dict(zip(CLASSES, f1_score(labels, guess, labels=CLASSES, average=None), strict=True))
    assert 0.80 < f1_score(labels, guess, average="weighted") < 0.90
    assert min(scores["NV"], scores["LPV"]) > 0.85
    assert 0.70 < scores["QSO"] < 0.97
    assert max(scores["RRL"], scores["EB"]) < 0.65


def test_the_same_seed_gives_the_same_field_bit_for_bit():
    first, second = (simulate_field(600, seed=9, light_curves=True) for _ in range(2))
    for name, table in tables(first).items():
        assert table.arrow.equals(tables(second)[name].arrow)
    other = simulate_field(600, seed=10)
    assert not other.macho.arrow.equals(first.macho.arrow)


def test_light_curves_do_not_change_the_catalogs():
    with_curves = tables(simulate_field(300, seed=3, light_curves=True))
    without = tables(simulate_field(300, seed=3))
    assert set(with_curves) - set(without) == {"light_curves"}
    assert all(without[name].arrow.equals(with_curves[name].arrow) for name in without)


def test_parts_of_one_field_share_no_object_and_no_identifier():
    parts = [simulate_field(500, seed=4, part=part) for part in range(3)]
    names = [name for part in parts for name in part.macho.column("id").to_pylist()]
    assert len(set(names)) == 1500
    places = np.concatenate([part.truth.numbers("ra") for part in parts])
    assert len(np.unique(places)) == 1500


@pytest.mark.parametrize("n", [0, 1, 7])
def test_any_number_of_objects_will_do(n, tmp_path):
    field = simulate_field(n, light_curves=True)
    assert len(field.macho) == len(field.truth) == len(join_by_truth(field)) == n
    files = write_field(field, tmp_path)
    assert len(read_table(files["macho"])) == n


def test_shares_of_the_classes_can_be_chosen():
    field = simulate_field(4000, fractions={"QSO": 1, "RRL": 3})
    counts = Counter(field.truth.column("class").to_pylist())
    assert set(counts) == {"QSO", "RRL"}
    assert counts["RRL"] / 4000 == pytest.approx(0.75, abs=0.03)


def test_negative_numbers_are_refused():
    with pytest.raises(DataError, match="n_objects is -1"):
        simulate_field(-1)
    with pytest.raises(DataError, match="seed is -3"):
        simulate_training_set(seed=-3)


@pytest.mark.parametrize("name", SURVEYS)
def test_what_is_not_detected_is_beyond_the_limit(field, name):
    """Limits are five sigma: a star a magnitude below must gain three sigma to be seen."""
    joined = join_by_truth(field)
    plain = np.array(field.truth.column("class").to_pylist()) == "NV"
    plain &= ~np.array(field.truth.column("blended").to_pylist())
    for band, nominal in zip(SURVEYS[name].bands, SURVEYS[name].limits, strict=True):
        true = field.truth.numbers(f"true_{band}")[:, 0]
        measured, limit = joined.numbers(band, f"{band}_limit").T
        lost = np.array(joined.reasons(band).to_pylist(), dtype=object) == Reason.UNDETECTED
        assert np.isfinite(limit[lost]).all()
        assert np.isnan(limit[~lost]).all()
        assert (true - limit)[lost & plain].min(initial=0.0) > -1.0
        faint = (true > nominal + 1) & plain
        assert np.isfinite(measured[faint]).sum() <= 0.01 * faint.sum()


@pytest.mark.parametrize("name", SURVEYS)
def test_every_survey_misses_what_is_too_faint_for_it(field, name):
    joined = join_by_truth(field)
    faintest = SURVEYS[name].bands[0] if name == "ubvi" else SURVEYS[name].bands[-1]
    reasons = Counter(joined.reasons(faintest).to_pylist())
    assert reasons[Reason.UNDETECTED] > 1000


@pytest.mark.parametrize("name", SURVEYS)
def test_errors_grow_towards_the_limit_and_describe_the_scatter(field, name):
    joined = join_by_truth(field)
    quiet = np.array(field.truth.column("class").to_pylist()) == "NV"
    quiet &= ~np.array(field.truth.column("blended").to_pylist())
    band, limit = SURVEYS[name].bands[0], SURVEYS[name].limits[0]
    measured, error, true = np.hstack(
        [joined.numbers(band, f"e_{band}"), field.truth.numbers(f"true_{band}")]
    )[quiet].T
    bright, faint = true < limit - 3, np.abs(true - limit + 0.7) < 0.2
    assert np.nanmedian(error[bright]) < 0.04
    assert 0.08 < np.nanmedian(error[faint]) < 0.2
    pull = ((measured - true) / error)[true < limit - 1.5]
    assert np.nanstd(pull) == pytest.approx(1.0, abs=0.05)
    assert abs(np.nanmean(pull)) < 0.05


def test_every_gap_has_a_reason_and_nothing_else_has_one(field):
    joined = join_by_truth(field)
    for band in BANDS:
        lost = pc.is_null(joined.column(band)).to_numpy()
        reasoned = pc.is_valid(joined.reasons(band)).to_numpy(zero_copy_only=False)
        assert np.array_equal(lost, reasoned)


def test_uncovered_objects_lie_outside_the_footprint(field):
    joined = join_by_truth(field)
    inside = SURVEYS["ubvi"].footprint.contains(*field.truth.numbers("ra", "dec").T)
    reasons = np.array(joined.reasons("V").to_pylist(), dtype=object)
    assert 0.5 < inside.mean() < 0.9
    # Measured positions differ from the true ones by a fraction of an arcsec.
    assert (inside == (reasons != Reason.UNCOVERED)).mean() > 0.999


def test_footprints_and_their_mocs_agree():
    pytest.importorskip("mocpy")
    from astropy import units

    rng = np.random.default_rng(0)
    ra, dec = rng.uniform(68, 92, 4000), rng.uniform(-73, -65, 4000)
    for survey in SURVEYS.values():
        moc = survey.footprint.to_moc()
        by_moc = moc.contains_lonlat(ra * units.deg, dec * units.deg)
        assert (by_moc == survey.footprint.contains(ra, dec)).mean() > 0.99


def test_a_footprint_of_an_eighth_of_the_sphere_holds_an_eighth_of_the_positions():
    octant = Polygons((((0.0, 0.0), (90.0, 0.0), (0.0, 90.0)),))
    ra, dec = np.array([10.0, 80.0, 100.0, 10.0]), np.array([10.0, 5.0, 10.0, -1.0])
    assert octant.contains(ra, dec).tolist() == [True, True, False, False]
    rng = np.random.default_rng(1)
    everywhere = rng.uniform(0, 360, 20_000), np.rad2deg(np.arcsin(rng.uniform(-1, 1, 20_000)))
    assert octant.contains(*everywhere).mean() == pytest.approx(1 / 8, abs=0.01)
    assert Polygons((box(10, 12, -1, 1),)).contains(np.array([11.0]), np.array([0.0])).all()


def test_identifiers_are_unique_in_each_catalog(field):
    for name in ("macho", "sage", "two_mass", "ubvi", "truth"):
        names = tables(field)[name].column("id")
        assert pc.count_distinct(names).as_py() == len(names)


def test_positions_scatter_about_the_truth_by_less_than_an_arcsec(field):
    alone = ~np.array(field.truth.column("blended").to_pylist())
    for name, survey in SURVEYS.items():
        catalog = tables(field)[name]
        rows = pc.index_in(field.truth.column(f"id_{name}"), catalog.column("id").combine_chunks())
        keep = pc.is_valid(rows).to_numpy() & alone
        seen = catalog.numbers("ra", "dec")[rows.filter(keep).to_numpy().astype(int)]
        true = field.truth.numbers("ra", "dec")[keep]
        east = (seen - true)[:, 0] * np.cos(np.deg2rad(true[:, 1])) * 3600
        assert east.mean() == pytest.approx(survey.offset_arcsec[0], abs=0.02)
        assert east.std() == pytest.approx(survey.scatter_arcsec, rel=0.05)


def test_neighbors_within_the_beam_brighten_and_others_are_entries_of_their_own(field):
    blended = np.array(field.truth.column("blended").to_pylist())
    assert blended.mean() == pytest.approx(0.10, abs=0.01)
    steady = np.array(field.truth.column("class").to_pylist()) == "NV"
    excess = (field.macho.numbers("V") - field.truth.numbers("true_V"))[:, 0]
    assert excess[blended & steady].mean() < -0.1
    assert abs(excess[~blended & steady].mean()) < 0.01
    known = set(field.truth.column("id_ubvi").to_pylist())
    assert sum(i not in known for i in field.ubvi.column("id").to_pylist()) > 500


def test_candidates_hold_most_quasars_and_some_stars():
    field = simulate_field(5000, seed=2, fractions={"QSO": 1, "BE": 1, "NV": 3})
    truth = dict(zip(*(field.truth.column(n).to_pylist() for n in ("id", "class")), strict=True))
    kinds = np.array([truth[name] for name in field.candidates.column("id").to_pylist()])
    strong = np.array(field.candidates.column("strong").to_pylist())
    quasars = list(truth.values()).count("QSO")
    assert (kinds == "QSO").sum() / quasars == pytest.approx(0.8, abs=0.05)
    assert (kinds == "BE").sum() > 50
    assert (kinds[strong] == "QSO").mean() > 0.9


def test_no_column_of_the_truth_can_be_taken_for_a_feature(field):
    assert field.truth.names_with(Role.FEATURE) == ()
    assert field.truth.names_with(Role.LABEL) == ("class",)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    field = simulate_field(600, seed=6, light_curves=True)
    return field, write_field(field, tmp_path_factory.mktemp("field"))


@pytest.mark.parametrize(
    "name", ["macho", "sage", "two_mass", "truth", "candidates", "light_curves"]
)
def test_written_catalogs_read_back_as_they_were(written, name):
    field, files = written
    table, back = tables(field)[name], read_table(files[name])
    assert back.names == table.names
    assert '"seed": 6' in back.meta["provenance"]
    for column in table.names:
        assert back.info(column) == table.info(column)
        assert back.column(column).to_pylist() == table.column(column).to_pylist()


def test_ubvi_is_published_with_sentinels(written):
    field, files = written
    back = read_table(files["ubvi"])
    assert not back.names_with(Role.REASON)
    for band in "UBVI":
        lost = np.isnan(field.ubvi.numbers(band)[:, 0])
        magnitude, error = back.numbers(band, f"e_{band}").T
        assert np.array_equal(magnitude == 99.999, lost)
        assert np.array_equal(error == 9.999, lost)
        assert magnitude[~lost] == pytest.approx(field.ubvi.numbers(band)[~lost, 0], abs=6e-4)
    assert (back.numbers("U") == 99.999).mean() > 0.2


def test_the_schema_beside_it_turns_the_sentinels_of_ubvi_into_gaps(written):
    field, files = written
    back = read_table(files["ubvi"], schema=files["ubvi_schema"])
    for name in ("U", "B", "V", "I", "e_U", "e_I"):
        assert back.column(name).null_count == field.ubvi.column(name).null_count
    assert set(back.reasons("U").drop_null().to_pylist()) == {Reason.REJECTED}


def test_the_files_have_different_formats(written):
    _, files = written
    suffixes = {name: files[name].suffix for name in ("macho", "sage", "two_mass", "truth")}
    assert suffixes == {"macho": ".ecsv", "sage": ".fits", "two_mass": ".vot", "truth": ".parquet"}


def test_a_larger_field_takes_no_more_python_calls():
    """All objects are drawn at once: only the arrays grow."""
    few, many = (python_calls(lambda n=n: simulate_field(n)) for n in (1000, 25_000))
    assert many < 1.05 * few
    assert len(simulate_field(100_000).macho) == 100_000
