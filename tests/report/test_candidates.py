"""Candidate lists: ranking, evidence, published lists found again, missing entries with reasons."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.errors import CatalogError, DataError
from skyfill.report.candidates import Selection, evidence, name_evidence, with_evidence
from skyfill.report.published_lists import (
    Published,
    Search,
    check_list_names,
    choose_key,
    missing_entries,
    report_on,
    with_lists,
)


def results(n=6):
    p = np.array([0.95, 0.1, 0.85, 0.6, 0.3, 0.9])[:n]
    return Table.from_columns(
        {
            "ID": [f"s{i}" for i in range(n)],
            "ra": 80.0 + 0.01 * np.arange(n),
            "dec": np.full(n, -69.0),
            "p_BE": (1 - p) * 0.25,
            "p_QSO": p,
            "p_RRL": (1 - p) * 0.75,
        }
    )


def gathered(table, least=0.8, batches=1):
    selection = Selection("QSO", least)
    step = -(-len(table) // batches)
    for start in range(0, len(table), step):
        selection.add(Table(table.arrow.slice(start, step)))
    return selection.ranked()


def test_candidates_are_ranked_by_probability():
    table, rows = gathered(results())
    assert table.names[:3] == ("ID", "sf_rank", "sf_probability")
    assert table.column("ID").to_pylist() == ["s0", "s5", "s2"]
    assert table.column("sf_rank").to_pylist() == [1, 2, 3]
    assert rows.tolist() == [0, 5, 2]
    assert table.info("sf_probability").ucd == "stat.probability;src.class"


def test_a_candidate_at_exactly_the_threshold_is_kept():
    assert len(gathered(results(), 0.85).rows) == 3


def test_rows_without_a_probability_are_no_candidates():
    table = Table.from_columns({"p_QSO": [None, 0.9]})
    assert gathered(table).rows.tolist() == [1]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(1, 5))
def test_batches_give_what_the_whole_gives(p, batches):
    table = Table.from_columns({"id": np.arange(len(p)), "p_QSO": p})
    whole, parts = gathered(table, 0.5), gathered(table, 0.5, batches)
    assert whole.rows.tolist() == parts.rows.tolist()
    assert whole.table.arrow.equals(parts.table.arrow)


def test_evidence_in_a_naive_model_is_the_likelihood_ratio():
    # Independent features: hiding one takes exactly its log-likelihood ratio from the odds.
    def naive(X):
        ratio = np.nansum(X, axis=1)
        p = 1 / (1 + 2.0**-ratio)
        return np.column_stack([p, 1 - p])

    X = np.array([[1.5, -0.5, np.nan], [0.0, 2.0, 1.0]])
    np.testing.assert_allclose(evidence(naive, X, 0), X, atol=1e-9)
    np.testing.assert_allclose(evidence(naive, X, 1), -X, atol=1e-9)


def test_evidence_leaves_the_table_alone_and_certainty_is_finite():
    X = np.array([[1.0, 2.0]])
    kept = X.copy()
    bits = evidence(lambda X: np.column_stack([np.ones(len(X)), np.zeros(len(X))]), X, 0)
    assert bits.tolist() == [[0, 0]]
    np.testing.assert_array_equal(X, kept)


def test_the_strongest_features_are_named_with_their_bits():
    bits = np.array([[2.04, -1.0, 0.01, 0.6, np.nan], [np.nan] * 5])
    names = ["Color", "Std", "Mean", "Eta", "Rcs"]
    assert name_evidence(bits, names, sign=1) == ["Color +2.0, Eta +0.6", ""]
    assert name_evidence(bits, names, sign=-1) == ["Std -1.0", ""]
    table = with_evidence(Table.from_columns({"ID": ["a", "b"]}), bits, names)
    assert table.column("sf_evidence_against").to_pylist() == ["Std -1.0", ""]


def test_mission_16_matches_with_a_list_by_identifier():
    table = results()
    published = Published("kim", Table.from_columns({"ID": ["s0", " s2", "s3", "s4", "zz"]}), "ID")
    search = Search(published, "QSO")
    search.add(table)
    found = gathered(table)
    report = report_on(search, 0.8, found.rows)
    assert (report.entries, report.matched, report.below) == (5, 2, 1)
    assert (report.other_class, report.absent) == (1, 1)
    assert (report.candidates, report.known, report.new) == (3, 2, 1)
    assert "2 among the candidates (40.0 %)" in str(report)
    marked = with_lists(found.table, [search], found.rows)
    assert marked.column("sf_in_kim").to_pylist() == [True, False, True]
    assert marked.column("sf_new").to_pylist() == [False, True, False]


def test_the_missing_have_their_reasons():
    published = Published("kim", Table.from_columns({"ID": ["s0", "s3", "s4", "zz"]}), "ID")
    search = Search(published, "QSO")
    search.add(results())
    rows = missing_entries([search], 0.8).arrow.to_pylist()
    assert [(row["identifier"], row["reason"]) for row in rows] == [
        ("s3", "below"),
        ("s4", "other class"),
        ("zz", "absent"),
    ]
    assert rows[1]["best_class"] == "RRL"
    assert rows[1]["best_probability"] == pytest.approx(0.525)
    assert rows[1]["probability"] == pytest.approx(0.3)
    assert rows[2]["probability"] is rows[2]["best_class"] is None
    assert rows[2]["entry"] == 4


def test_a_list_without_missing_entries_gives_an_empty_table():
    search = Search(Published("kim", Table.from_columns({"ID": ["s0"]}), "ID"), "QSO")
    search.add(results())
    assert len(missing_entries([search], 0.8)) == 0


@given(st.integers(1, 6))
def test_a_list_by_position_is_found_in_any_batches(batches):
    # 0.4 arcsec off the first; 5 arcsec off the third, beyond the radius; one far away.
    entries = Table.from_columns(
        {"RAJ2000": [80.0, 80.02, 10.0], "DEJ2000": [-69 + 0.4 / 3600, -69 + 5 / 3600, 10.0]}
    )
    search = Search(Published("old", entries), "QSO", 1.0)
    table = results()
    step = -(-len(table) // batches)
    for start in range(0, len(table), step):
        search.add(Table(table.arrow.slice(start, step)))
    assert search.found.rows.tolist() == [0, -1, -1]
    assert search.found.separation[0] == pytest.approx(0.4, abs=1e-3)
    assert [str(f) for f in search.fates(0.8)] == ["candidate", "absent", "absent"]


def test_the_nearest_object_counts_also_across_batches():
    entry = Table.from_columns({"ra": [80.0], "dec": [-69.0]})
    near = Table.from_columns({"ra": [80.0], "dec": [-69.0 + 0.2 / 3600], "p_QSO": [0.9]})
    far = Table.from_columns({"ra": [80.0], "dec": [-69.0 + 0.8 / 3600], "p_QSO": [0.1]})
    for order in ([near, far], [far, near]):
        search = Search(Published("old", entry), "QSO", 1.0)
        for batch in order:
            search.add(batch)
        assert search.found.probability.tolist() == [0.9]


def test_identifiers_match_whatever_their_type():
    table = Table.from_columns({"ID": [7, 8], "p_QSO": [0.9, 0.1]})
    search = Search(Published("old", Table.from_columns({"ID": ["7", None]}), "ID"), "QSO")
    search.add(table)
    assert search.found.rows.tolist() == [0, -1]


def test_the_key_is_what_both_call_an_identifier():
    ours = Table.from_columns({"plate": ["a"], "p_QSO": [0.9]})
    theirs = Table.from_columns({"plate": ["a"], "name": ["x"]})
    assert choose_key(ours, theirs) is None
    named = ours.with_info("plate", role=Role.IDENTIFIER)
    assert choose_key(named, theirs.with_info("plate", role=Role.IDENTIFIER)) == "plate"
    assert choose_key(ours, theirs, "plate") == "plate"
    with pytest.raises(CatalogError, match="no column 'name'"):
        choose_key(ours, theirs, "name")


def test_mistakes_are_named():
    with pytest.raises(CatalogError, match="no class 'AGN' in the results; the classes are BE"):
        Selection("AGN", 0.8).add(results())
    with pytest.raises(CatalogError, match="no class 'AGN' in the results; there are no prob"):
        Selection("AGN", 0.8).add(Table.from_columns({"J": [1.0]}))
    with pytest.raises(DataError, match="least probability is 80"):
        Selection("QSO", 80)
    twice = Published("old", results(), "ID")
    with pytest.raises(CatalogError, match="two lists are called 'old'"):
        check_list_names([twice, twice])


def test_metadata_of_the_results_stays():
    table = results().with_info("ra", unit="deg").with_meta(citation="Someone 2020")
    ranked = gathered(table).table
    assert ranked.info("ra") == ColumnInfo(unit="deg")
    assert ranked.meta["citation"] == "Someone 2020"
