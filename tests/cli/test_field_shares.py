"""What `train --field` says of a field."""

import numpy as np

from skyfill.classify.prior import FieldShares
from skyfill.cli.field_shares import facts_of, mention_shares

SHARES = FieldShares(np.array([0.99, 0.01]), np.array([0.98, 0.0]), np.array([1.0, 0.02]), 0.5)


def test_the_class_that_a_field_has_taught_is_named(capsys):
    taught, classes = SHARES._replace(taught=0), ("NV", "QSO")
    assert facts_of(taught, classes)["taught"] == "NV"
    mention_shares(taught, classes, "field.parquet")
    assert (
        "field.parquet has also taught what objects of class NV look like"
        in capsys.readouterr().err
    )


def test_where_it_has_taught_none_nothing_is_said(capsys):
    assert facts_of(SHARES, ("NV", "QSO"))["taught"] is None
    mention_shares(SHARES, ("NV", "QSO"), "field.parquet")
    assert "taught" not in capsys.readouterr().err


def test_shares_that_explain_little_are_kept_with_a_warning(capsys):
    kept = SHARES._replace(explained=0.31)
    mention_shares(kept, ("NV", "QSO"), "field.parquet")
    said = " ".join(capsys.readouterr().err.split())
    assert "shares of the training set, kept (5 to 95 %): NV 0.99" in said
    assert "field.parquet: other shares of the classes explain only 31 %" in said
    assert "--prior CLASS=SHARE" in said
    assert facts_of(kept, ("NV", "QSO"))["explained"] == 0.31


def test_shares_that_explain_most_are_used_without_a_word(capsys):
    mention_shares(SHARES._replace(explained=0.9), ("NV", "QSO"), "field.parquet")
    said = capsys.readouterr().err
    assert "estimated shares" in said
    assert "explain" not in said


def test_shares_of_the_training_set_that_stay_are_called_so(capsys):
    agreeing = SHARES._replace(agree=True)
    mention_shares(agreeing, ("NV", "QSO"), "field.parquet")
    said = " ".join(capsys.readouterr().err.split())
    assert "shares of the training set, which may be those of these objects (5 to 95 %): NV" in said
    assert facts_of(agreeing, ("NV", "QSO"))["agree"] is True
