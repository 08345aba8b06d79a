"""Light curves from tables and files of any layout: all give the same curves."""

import tarfile
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from skyfill.catalog import ColumnInfo, Table, write_table
from skyfill.catalog.schema import Layout as TextLayout
from skyfill.errors import CatalogError
from skyfill.lightcurve import (
    CurveColumns,
    Request,
    choose_features,
    curve_files,
    extract_features,
    from_table,
    open_light_curves,
    stream_features,
)

BANDS = ("B", "R")


@pytest.fixture
def long():
    """Five objects of 3 to 40 epochs in two bands, sorted by object."""
    rng = np.random.default_rng(0)
    n = 140
    columns = {
        "id": np.sort(rng.choice(["a", "b", "c", "d", "e"], n)),
        "band": rng.choice(list(BANDS), n),
        "mjd": rng.uniform(50_000, 50_100, n),
        "mag": rng.normal(18, 0.3, n),
        "err": rng.uniform(0.01, 0.1, n),
    }
    return Table.from_columns(columns)


def as_dict(curves):
    """The clean points of each object."""
    found = {}
    for row, name in enumerate(curves.ids.to_pylist()):
        points = [(c.time, c.value, c.error) for c in curves.star(row)[0].curves]
        found[name] = [np.array(band).tolist() for band in points]
    return found


def read(path, request=None):
    return {
        name: points
        for part in open_light_curves(path, request).parts
        for name, points in as_dict(part).items()
    }


def nested(long, kind):
    """The same light curves in a row per object."""
    rows: dict[str, list] = {}
    for row in long.arrow.to_pylist():
        point = {key: row[key] for key in ("mjd", "mag", "err", "band")}
        rows.setdefault(row["id"], []).append(point)
    keys = ("mjd", "mag", "err", "band")
    columns = {"id": list(rows)}
    if kind == "lists":
        columns |= {key: [[p[key] for p in points] for points in rows.values()] for key in keys}
    elif kind == "list of structs":
        columns["lc"] = list(rows.values())
    elif kind == "struct of lists":
        columns["lc"] = [{k: [p[k] for p in points] for k in keys} for points in rows.values()]
    else:
        columns |= {
            f"{key}_{band}": [
                [p[key] for p in points if p["band"] == band] for points in rows.values()
            ]
            for key in keys[:3]
            for band in BANDS
        }
    return Table.from_columns(columns)


@pytest.mark.parametrize("name", ["c.parquet", "c.csv", "c.fits", "c.ecsv", "c.vot", "c.csv.gz"])
def test_a_long_file_of_any_format_gives_the_curves_of_the_table(long, tmp_path, name):
    write_table(long, tmp_path / name)
    assert read(tmp_path / name) == as_dict(from_table(long))


@pytest.mark.parametrize("kind", ["lists", "list of structs", "struct of lists", "bands"])
def test_nested_columns_give_the_curves_of_the_long_table(long, tmp_path, kind):
    request = None
    if kind == "bands":
        request = Request(CurveColumns(time="mjd_{band}", value="mag_{band}", error="err_{band}"))
    table = nested(long, kind)
    assert as_dict(from_table(table, request)) == as_dict(from_table(long))
    write_table(table, tmp_path / "c.parquet")
    assert read(tmp_path / "c.parquet", request) == as_dict(from_table(long))
    assert open_light_curves(tmp_path / "c.parquet", request).n_objects == 5


def test_a_wide_table_has_columns_for_each_band():
    table = Table.from_columns(
        {"id": ["x", "x"], "t": [1.0, 2.0], "mag_B": [15.0, None], "mag_R": [14.0, 14.5]}
    )
    curves = from_table(table, Request(CurveColumns(value="mag_{band}")))
    star, counts = curves.star(0)
    assert [curve.value.tolist() for curve in star.curves] == [[15.0], [14.0, 14.5]]
    assert [count.bad for count in counts] == [1, 0]


def test_a_folder_has_a_file_per_object(long, tmp_path):
    for name in "abcde":
        rows = long.arrow.filter(pa.compute.equal(long.arrow["id"], name)).drop(["id"])
        write_table(Table(rows), tmp_path / f"{name}.csv")
    (tmp_path / ".hidden").write_text("not a light curve")
    assert read(tmp_path) == as_dict(from_table(long))


def test_plain_text_files_with_blanks_are_read_by_position(tmp_path):
    (tmp_path / "1.3442.172.dat").write_text("# mjd mag err\n1.5 18.1 0.1\n2.5 18.2 0.1\n")
    assert read(tmp_path) == {"1.3442.172": [[[1.5, 2.5], [18.1, 18.2], [0.1, 0.1]]]}


@pytest.mark.parametrize("rows", [1, 7, 64, 1000])
def test_the_size_of_batches_does_not_matter(long, tmp_path, monkeypatch, rows):
    write_table(long, tmp_path / "c.parquet")
    monkeypatch.setattr(curve_files, "BATCH_ROWS", rows)
    opened = open_light_curves(tmp_path / "c.parquet")
    tables = list(stream_features(opened.parts, choose_features("macho14")))
    assert opened.n_objects == 5
    found = pa.concat_tables([table.arrow for table in tables])
    assert found.equals(extract_features(from_table(long), "macho14").arrow)


def test_objects_that_are_scattered_over_the_file_are_gathered(long, tmp_path):
    by_time = Table(long.arrow.sort_by("mjd"))
    write_table(by_time, tmp_path / "c.parquet")
    opened = open_light_curves(tmp_path / "c.parquet")
    assert opened.n_objects == 5
    assert read(tmp_path / "c.parquet") == as_dict(from_table(long))


def test_objects_in_any_order_are_streamed_as_long_as_they_stand_together(long, tmp_path):
    backwards = Table(long.arrow.sort_by([("id", "descending")]))
    write_table(backwards, tmp_path / "c.parquet")
    assert open_light_curves(tmp_path / "c.parquet").n_objects == 5
    assert list(read(tmp_path / "c.parquet")) == list("edcba")


def test_too_many_scattered_measurements_are_refused(long, tmp_path, monkeypatch):
    write_table(Table(long.arrow.sort_by("mjd")), tmp_path / "c.parquet")
    monkeypatch.setattr(curve_files, "MOST_ROWS_IN_MEMORY", 100)
    with pytest.raises(
        CatalogError, match=r"c\.parquet: the 140 measurements are not sorted by 'id'"
    ):
        open_light_curves(tmp_path / "c.parquet")


def test_bands_stand_in_the_order_of_light_or_as_asked(long):
    assert from_table(long).about.bands == ("B", "R")
    turned = from_table(long, Request(bands=("R", "B")))
    assert turned.about.bands == ("R", "B")
    colors = [extract_features(c, "color").numbers("color") for c in (from_table(long), turned)]
    assert colors[0] == pytest.approx(-colors[1])
    only = from_table(long, Request(bands=("R",)))
    assert len(only.star(0)[0].curves) == 1


def test_columns_are_found_by_ucd_unit_and_name():
    info = {
        "when": ColumnInfo(unit="h", ucd="time.epoch"),
        "light": ColumnInfo(unit="nJy", ucd="phot.flux"),
        "light_unc": ColumnInfo(ucd="stat.error;phot.flux"),
    }
    table = Table.from_columns(
        {"Source_ID": [3, 3], "when": [24.0, 48.0], "light": [5.0, 6.0], "light_unc": [1.0, 1.0]},
        info=info,
    )
    curves = from_table(table)
    assert curves.star(0)[0].curves[0].time.tolist() == [1.0, 2.0]
    features = extract_features(curves, "mean,linear_trend,car_sigma")
    assert features.info("mean").unit == "nJy"
    assert features.info("mean").ucd == "phot.flux;stat.mean"
    assert features.info("car_sigma").unit == "nJy / d(1/2)"
    assert features.names[0] == "Source_ID"
    assert features.column("Source_ID").to_pylist() == [3]


def test_dates_become_days():
    times = pa.array([0, 36 * 3600], pa.timestamp("s"))
    table = Table.from_columns({"id": ["x", "x"], "time": times, "mag": [1.0, 2.0]})
    assert from_table(table).star(0)[0].curves[0].time.tolist() == [0.0, 1.5]


ONE = {"id": [1], "t": [1.0], "mag": [1.0]}
MISTAKES = [
    ({"id": [1], "x": [1.0], "mag": [1.0]}, {}, "hold the time; name it .--time COLUMN"),
    ({"t": [1.0], "mag": [1.0]}, {}, "hold the id; name it .--id COLUMN"),
    (ONE, {"value": "magg"}, "no column 'magg'; did you mean 'mag'"),
    (ONE, {"value": "m_{band}"}, "no column fits 'm_{band}'"),
    ({"id": [1, None], "t": [1.0, 2.0], "mag": [1.0, 2.0]}, {}, "column 'id', row 2: no ident"),
    (ONE | {"mag": ["faint"]}, {}, "column 'mag', row 1: 'faint' is not a number"),
    (ONE | {"band": [None]}, {}, "'band', value 1: no band"),
    ({"id": [1], "t": [[1.0, 2.0]], "mag": [[1.0]]}, {}, "column 't', row 1: a list of 2 next to"),
    (ONE | {"mag": [[1.0]]}, {}, "column 't', row 1: no list next to a list"),
]


@pytest.mark.parametrize(("columns", "names", "words"), MISTAKES)
def test_mistakes_are_explained(columns, names, words):
    with pytest.raises(CatalogError, match=words):
        from_table(Table.from_columns(columns), Request(CurveColumns(**names)))


def test_an_unknown_band_and_a_unit_that_is_not_time_are_explained(long):
    with pytest.raises(CatalogError, match="no measurement in band 'I'; the bands are B, R"):
        from_table(long, Request(bands=("B", "I")))
    with pytest.raises(CatalogError, match="unit 'mag' is not one of time"):
        from_table(long.with_info("mjd", unit="mag"))


def test_an_empty_folder_and_a_null_identifier_name_the_file(tmp_path):
    with pytest.raises(CatalogError, match="holds no file"):
        open_light_curves(tmp_path)
    path = tmp_path / "c.csv"
    path.write_text("id,t,mag\n1,1,15\n,2,15\n")
    with pytest.raises(CatalogError, match=r"c\.csv: column 'id', row 2: no identifier"):
        open_light_curves(path)


def pack(folder, path):
    """Put the files of a folder into an archive, below a folder and beside hidden files."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("__MACOSX/._a.dat", b"none")
            for file in sorted(folder.iterdir()):
                archive.write(file, f"lmc/{file.name}")
    else:
        with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
            archive.add(folder, "./lmc")
    return path


@pytest.mark.parametrize("separator", [" ", ",", "\t"])
@pytest.mark.parametrize("kind", ["folder", "c.zip", "c.tar", "c.tar.gz", "c.tgz"])
def test_files_without_names_hold_time_value_and_error(tmp_path, separator, kind):
    folder = tmp_path / "stars"
    folder.mkdir()
    rows = {"a": [[1.5, 18.1, 0.1], [2.5, 18.2, 0.2]], "b": [[3.5, 17.0, 0.1]]}
    for name, points in rows.items():
        lines = (separator.join(map(str, point)) for point in points)
        (folder / f"{name}.dat").write_text("\n".join(lines) + "\n")
    if separator == ",":
        for file in folder.iterdir():
            file.rename(file.with_suffix(".csv"))
    path = folder if kind == "folder" else pack(folder, tmp_path / kind)
    assert read(path) == {name: [np.array(points).T.tolist()] for name, points in rows.items()}
    assert open_light_curves(path).n_objects == 2


def test_files_without_names_can_be_given_names(tmp_path):
    (tmp_path / "a.dat").write_text("18.1 B 1.5\n17.0 V 2.5\n")
    text = TextLayout(None, ("mag", "band", "mjd"))
    assert read(tmp_path, Request(text=text)) == {
        "a": [[[1.5], [18.1], [1.0]], [[2.5], [17.0], [1.0]]]
    }


def test_files_lie_in_folders_within_the_folder(tmp_path):
    for name in ("1/a.csv", "2/b.csv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("mjd,mag\n1,15\n")
    assert list(read(tmp_path)) == ["a", "b"]
    (tmp_path / "2" / "a.txt").write_text("mjd mag\n1 15\n")
    with pytest.raises(CatalogError, match=r"1/a.csv and .*2/a.txt are files of one object, 'a'"):
        read(tmp_path)


def test_a_damaged_file_of_an_archive_is_named(tmp_path):
    folder = tmp_path / "stars"
    folder.mkdir()
    (folder / "a.csv").write_text("mjd,mag\n1,15\n")
    (folder / "b.csv").write_text("mjd,mag\n1,15,7\n")
    path = pack(folder, tmp_path / "c.zip")
    with pytest.raises(CatalogError, match=r"c.zip, b.csv: line 2 has 3 cells"):
        read(path)
    (tmp_path / "none.tar").write_bytes(b"nothing" * 200)
    with pytest.raises(CatalogError, match="none.tar: not a readable archive"):
        read(tmp_path / "none.tar")
