"""UCDs that skyfill gives to columns are words of the IVOA, and VOTables have no others."""

import ast
import io
from pathlib import Path

import pytest
from astropy.io import votable
from astropy.io.votable.ucd import check_ucd

import skyfill
from skyfill.catalog import ColumnInfo, Role, Table, judge, read_table, write_table
from skyfill.lightcurve.registry import FEATURES
from skyfill.report.column_meanings import with_meanings

SOURCES = sorted(Path(skyfill.__file__).parent.rglob("*.py"))


def is_known(ucd):
    return check_ucd(ucd, check_controlled_vocabulary=True)


def given_ucds():
    """UCDs that are written out wherever a column is described."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ColumnInfo":
                given = [word.value for word in node.keywords if word.arg == "ucd"]
                given += node.args[1:2]
                yield from (n.value for n in given if isinstance(n, ast.Constant) and n.value)


def test_all_words_are_those_of_the_ivoa():
    found = sorted(set(given_ucds()))
    assert len(found) > 15
    assert [ucd for ucd in found if not is_known(ucd)] == []
    assert [f.name for f in FEATURES.values() if not is_known(f.ucd)] == []


def validated(path):
    said = io.StringIO()
    return votable.validate(str(path), said, xmllint=False), said.getvalue()


FOREIGN = ["stat.min;phot.mag;em.IR.J", "PHOT_JHN_V", "no such thing", "phot.mag;meta.id"]


@pytest.mark.parametrize("ucd", [*FOREIGN, "phot.mag;em.IR.J", "arith.factor", "phot.color", None])
def test_a_published_votable_is_valid_whatever_is_said_of_its_columns(ucd, tmp_path):
    info = {
        "J": ColumnInfo("mag", ucd, "Brightness"),
        "e_J": ColumnInfo("mag", role=Role.ERROR, of="J"),
        "J_limit": ColumnInfo("mag", role=Role.LIMIT, of="J"),
        "old": ColumnInfo("mag", ucd, "Brightness before"),
    }
    table = Table.from_columns({name: [14.2] for name in info}, info=info)
    schema = with_meanings(table.arrow.schema)[0]
    table = Table(table.arrow.cast(schema))
    write_table(table, tmp_path / "t.vot")
    is_valid, said = validated(tmp_path / "t.vot")
    assert is_valid, said
    # What VOTable does not know is kept for us.
    found = read_table(tmp_path / "t.vot")
    assert [found.info(name) for name in table.names] == [table.info(n) for n in table.names]
    assert is_known(found.info("e_J").ucd)
    assert is_known(found.info("J_limit").ucd)


@pytest.mark.parametrize(
    ("name", "ucd", "role"),
    [
        ("J_limit", "phot.mag;em.IR.J;stat.min", Role.LIMIT),
        ("J_limit", "stat.min;phot.mag;em.IR.J", Role.LIMIT),
        ("faintest", "phot.mag;em.IR.J;stat.max", Role.FEATURE),
    ],
)
def test_a_limit_is_known_by_its_ucd_beside_the_column_of_its_name(name, ucd, role):
    info = {"J": ColumnInfo("mag", "phot.mag;em.IR.J"), name: ColumnInfo("mag", ucd)}
    table = Table.from_columns({"J": [14.2, 15.1], name: [16.0, 16.1]}, info=info)
    guess = judge(table)[name]
    assert guess.role is role
    assert guess.of == ("J" if role is Role.LIMIT else None)
