"""Random tables: every type, nulls, strange names, everything that a column can be said to be."""

import pyarrow as pa
from hypothesis import strategies as st

from skyfill.catalog import ColumnInfo, Reason, Role, Table

EXTENSIONS = ("parquet", "fits", "fits.gz", "vot", "vot.gz", "ecsv", "ecsv.gz")

# No lone surrogates (not text), no NUL (which VOTable cannot keep).
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
# XML has no control characters.
NOTES = st.text(st.characters(exclude_categories=["C"]), max_size=12)
# Quotes, slashes and ampersands, which FITS cards need for themselves, also in long texts.
CARDS = st.text("'/& a", max_size=200)
FACTS = st.none() | (WORDS | CARDS).filter(bool)
STRANGE = ["ra", "J mag", "[3.6]", "#x", " blank ", "a,b", 'quo"te', "J'", "back\\slash"]
NAMES = st.sampled_from(STRANGE) | st.text(
    st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8
)


def _integers(bits, signed):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.integers(low, high) | st.sampled_from([low, high])


VALUES = {
    pa.bool_(): st.booleans(),
    pa.string(): WORDS | st.sampled_from(["", " ", "nan", "NA", "-99", "007", "True"]),
    pa.float64(): st.floats(allow_nan=False),
    pa.float32(): st.floats(allow_nan=False, width=32),
    **{getattr(pa, f"int{bits}")(): _integers(bits, True) for bits in (8, 16, 32, 64)},
    **{getattr(pa, f"uint{bits}")(): _integers(bits, False) for bits in (8, 16, 32, 64)},
}


@st.composite
def columns(draw, n_rows):
    kind = draw(st.sampled_from(list(VALUES)))
    cells = st.none() | VALUES[kind] if draw(st.booleans()) else VALUES[kind]
    return pa.array(draw(st.lists(cells, min_size=n_rows, max_size=n_rows)), kind)


@st.composite
def infos(draw, names):
    role = draw(st.sampled_from(list(Role)))
    of = draw(st.none() | st.sampled_from(names))
    return ColumnInfo(draw(FACTS), draw(FACTS), draw(FACTS), role, of)


@st.composite
def tables(draw):
    n_rows = draw(st.integers(0, 6))
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    table = Table.from_columns(
        {name: draw(columns(n_rows)) for name in names},
        info={name: draw(infos(names)) for name in names},
        meta=draw(st.dictionaries(st.sampled_from(["citation", "name", "note"]), NOTES | CARDS)),
    )
    reasons = st.none() | st.sampled_from(list(Reason))
    words = draw(st.lists(reasons, min_size=n_rows, max_size=n_rows))
    return table.with_reasons(names[0], pa.array(words, pa.string()))
