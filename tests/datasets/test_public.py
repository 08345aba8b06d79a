"""The public tables have the rows, classes and gaps that their publishers describe."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skyfill.catalog import Reason, Role, read_table, write_table
from skyfill.datasets import (
    DATASETS,
    PAPER_FEATURES,
    dataset_files,
    load_dataset,
    load_network,
    load_sage_spec,
)
from skyfill.datasets.networks import NETWORK_FILES
from skyfill.datasets.store import places, registry
from skyfill.errors import CatalogError


def counts(table, name="class"):
    return Counter(table.column(name).to_pylist())


def missing_percent(table, name):
    return 100 * table.column(name).null_count / len(table)


def test_macho_has_the_published_classes(public):
    table = public("macho")
    assert len(table) == 6060
    assert counts(table) == {
        "NV": 3963,
        "RRL": 610,
        "MICROLENSING": 580,
        "LPV": 365,
        "EB": 255,
        "BE": 127,
        "CEPH": 101,
        "QSO": 59,
    }
    assert len(table.names_with(Role.FEATURE)) == 35
    assert set(PAPER_FEATURES) < set(table.names_with(Role.FEATURE))
    assert pc.count_distinct(table.column("ID")).as_py() == 6060
    assert not np.isnan(table.numbers(*table.names_with(Role.FEATURE))).any()


def test_macho_classes_follow_the_stars_not_the_rows(public):
    table = public("macho")
    is_lpv = np.array(table.column("class").to_pylist()) == "LPV"
    color = table.numbers("Color")[:, 0]
    assert np.median(color[is_lpv]) > np.median(color[~is_lpv]) + 0.3


def test_macho_variables_are_in_radians_over_the_lmc(public):
    table = public("macho-variables")
    assert len(table) == 21474
    assert len([n for n in table.names if n not in ("class", "period_reqb_gap")]) == 31
    assert table.info("rarad").unit == "rad"
    degrees = np.rad2deg(table.numbers("rarad", "decrad"))
    assert np.allclose(degrees.mean(axis=0), [79.7, -69.6], atol=0.1)
    assert counts(table) == {"RRL": 7405 + 1765 + 315 + 237, "EB": 6835, "CEPH": 1868, "LPV": 3049}


def test_undefined_macho_periods_are_declared_gaps(public):
    table = public("macho-variables")
    lost = np.isnan(table.numbers("period_reqb")[:, 0])
    assert lost.mean() == pytest.approx(0.66, abs=0.01)
    reasons = np.array(table.reasons("period_reqb").to_pylist(), dtype=object)
    assert set(reasons[lost]) == {Reason.REJECTED}
    assert set(reasons[~lost]) == {None}


def test_eros_has_the_published_types_and_positions(public):
    table = public("eros")
    assert len(table) == 3641
    assert counts(table) == {"EB": 439, "CEPH": 736, "RRL": 2231, "LPV": 235}
    first = table.numbers("ra", "dec")[0]
    assert first == pytest.approx(
        [15 * (5 + 40 / 60 + 51.37 / 3600), -(70 + 13 / 60 + 58.78 / 3600)]
    )


def test_what_a_person_set_is_no_feature_of_eros(public):
    table = public("eros")
    for name in ("div_period", "quality", "period_divided", "type", "patch_id", "asc_d"):
        assert table.info(name).role is Role.OTHER
    assert table.names_with(Role.POSITION) == ("ra", "dec")
    rrl = np.array(table.column("class").to_pylist()) == "RRL"
    assert 0.2 < np.median(table.numbers("period_divided")[rrl]) < 0.8


def test_eros_light_curves_are_lists_of_equal_length_that_agree_with_the_table(public):
    curves, table = public("eros-lightcurves"), public("eros")
    assert curves.column("id").to_pylist() == table.column("id").to_pylist()
    for band in "br":
        lengths = {
            tuple(pc.list_value_length(curves.column(f"{kind}_points_{band}")).to_pylist())
            for kind in ("time", "light", "error")
        }
        assert len(lengths) == 1
        lists = curves.column(f"light_points_{band}").to_pylist()
        medians = np.array([np.median(values) for values in lists])
        offset = medians - table.numbers(f"magnitude_{band}")[:, 0]
        assert abs(np.median(offset)) < 0.1
    assert pa.types.is_list(curves.column("time_points_b").type)


def test_chandra_has_the_published_classes_and_gaps(public):
    table = public("chandra")
    assert (len(table), len(table.names)) == (3126, 42)
    assert counts(table, "Class") == {
        "AGN": 1596,
        "LM-STAR": 826,
        "YSO": 352,
        "HM-STAR": 108,
        "NS": 100,
        "LMXB": 64,
        "CV": 46,
        "HMXB": 34,
    }
    percent = {"Gmag": 24, "Jmag": 46, "W1mag": 14, "W3mag": 24, "powlaw_gamma_mean": 72}
    for name, expected in percent.items():
        assert missing_percent(table, name) == pytest.approx(expected, abs=1)


def test_chandra_roles_keep_positions_and_the_match_out_of_the_features(public):
    table = public("chandra")
    for name in ("significance", "p_any", "p_i", "MW_MW"):
        assert table.info(name).role is Role.OTHER
    assert table.info("e_Jmag").of == "Jmag"
    assert len(table.names_with(Role.FEATURE)) + len(table.names_with(Role.ERROR)) == 42 - 8


def test_sage_spec_has_the_published_gaps(public):
    table = public("sage-spec")
    assert len(table) == 792
    assert len(load_sage_spec(duplicates=True)) == 862
    assert len(counts(table, "SpClass")) == 25
    percent = (27, 19, 16, 22, 17, 16, 21, 14)
    names = table.names_with(Role.FEATURE)
    assert tuple(round(missing_percent(table, name)) for name in names) == percent
    assert set(table.reasons("J2mag").drop_null().to_pylist()) == {Reason.REJECTED}
    assert np.nanmax(table.numbers(*names)) < 30


def test_debosscher_light_curves_belong_to_the_labels(public):
    labels, curves = public("debosscher"), public("debosscher-lightcurves")
    assert (len(labels), len(curves), len(counts(labels))) == (1392, 263_608, 26)
    assert set(curves.column("id").unique().to_pylist()) == set(labels.column("id").to_pylist())


def network_or_skip(name):
    if not any(place.is_file() for place in places(NETWORK_FILES[name])):
        pytest.skip(f"the file of the network {name!r} is not in SKYFILL_DATA nor in the cache")
    return load_network(name)


@pytest.mark.parametrize(("name", "nodes", "arcs"), [("ecoli70", 46, 70), ("magic-niab", 44, 66)])
def test_known_networks_have_their_arcs(name, nodes, arcs):
    network = network_or_skip(name)
    assert len(network.names) == nodes
    assert sum(map(len, network.parents)) == arcs


def test_the_coefficients_of_a_known_network_are_the_published_ones():
    network = network_or_skip("ecoli70")
    child, parent = network.names.index("aceB"), network.names.index("icdA")
    assert network.parents[child] == (parent,)
    assert network.weights[child] == (1.0464,)
    assert (network.intercepts[child], network.variances[child]) == (0.1324, 0.0853)


def test_draws_of_a_known_network_have_its_regression(public):
    table = public("gaussian-test")
    a, b, c = table.numbers("A", "B", "C").T
    design = np.column_stack([np.ones_like(a), a, b])
    # bnlearn documents C = 2 + 2 A + 2 B + N(0, 0.5).
    assert np.linalg.lstsq(design, c)[0] == pytest.approx([2.0, 2.0, 2.0], abs=0.05)
    assert len(public("marks")) == 88


@pytest.mark.parametrize("name", DATASETS)
def test_every_table_says_what_it_is_and_whom_to_cite(public, name):
    table = public(name)
    assert table.meta["name"] == name
    assert len(table.meta["citation"]) > 20
    for column in table.names_with(Role.ERROR):
        assert table.info(column).of in table.names


@pytest.mark.parametrize("name", ["macho", "eros", "chandra", "sage-spec"])
def test_public_tables_survive_a_file(public, name, tmp_path):
    table = public(name)
    write_table(table, tmp_path / "table.fits")
    back = read_table(tmp_path / "table.fits")
    numbers = table.names_with(Role.FEATURE)
    assert np.array_equal(back.numbers(*numbers), table.numbers(*numbers), equal_nan=True)
    assert [back.info(n).role for n in numbers] == [Role.FEATURE] * len(numbers)
    assert back.meta["citation"] == table.meta["citation"]


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(CatalogError, match=r"no data set 'mach'.*macho-variables"):
        load_dataset("mach")
    with pytest.raises(CatalogError, match=r"no network 'ecoli'.*ecoli70"):
        load_network("ecoli")


def test_every_table_names_files_that_the_registry_knows():
    named = {path for name in DATASETS for path in dataset_files(name)}
    assert named | set(NETWORK_FILES.values()) == set(registry())
