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
