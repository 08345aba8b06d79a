"""Files are looked for in the right order and never taken unverified."""

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pooch
import pytest

from skyfill.datasets.store import Entry, cache_folder, find_entry, registry
from skyfill.errors import CatalogError

CONTENT = b"id,J\n1,14.2\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """An empty data folder and an empty cache."""
    monkeypatch.setenv("SKYFILL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_folder().is_relative_to(tmp_path)
    return tmp_path / "data", cache_folder()


def put(folder: Path, content: bytes = CONTENT) -> Path:
    target = folder / "survey" / "table.csv"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return target


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a web server that offers the table, and a damaged one."""
    offered = tmp_path / "offered"
    put(offered)
    (offered / "survey" / "damaged.csv").write_bytes(b"something else")
    handler = partial(SilentHandler, directory=str(offered))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}/survey"
        httpd.shutdown()


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def entry(address: str | None = None) -> Entry:
    return Entry(DIGEST, "survey/table.csv", address)


def test_the_users_folder_comes_before_the_cache(folders):
    data, cached = folders
    in_cache = put(cached)
    assert find_entry(entry()) == in_cache
    own = put(data)
    assert find_entry(entry()) == own


def test_a_damaged_file_is_named_and_not_taken(folders):
    for folder in folders:
        damaged = put(folder, b"id,J\n1,99\n")
        with pytest.raises(CatalogError, match="checksum") as error:
            find_entry(entry())
        assert str(damaged) in str(error.value)
        damaged.unlink()


def test_a_file_without_an_address_says_where_to_put_it(folders):
    with pytest.raises(CatalogError, match=r"survey/table\.csv.*SKYFILL_DATA"):
        find_entry(entry())


def test_a_missing_file_is_downloaded_once_into_the_cache(folders, server):
    found = find_entry(entry(server + "/table.csv"))
    assert found == folders[1] / "survey" / "table.csv"
    assert found.read_bytes() == CONTENT
    assert find_entry(entry(server + "/lost.csv")) == found


def test_a_download_with_a_wrong_checksum_is_not_kept(folders, server):
    with pytest.raises(CatalogError, match=r"survey/table\.csv.*not have the expected checksum"):
        find_entry(entry(server + "/damaged.csv"))
    assert not list(folders[1].rglob("*.csv"))


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}/table.csv", "{server}/lost.csv"])
def test_a_failed_download_says_what_to_do(folders, server, closed_port, address):
    with pytest.raises(CatalogError, match=r"cannot be downloaded.*SKYFILL_DATA"):
        find_entry(entry(address.format(port=closed_port, server=server)))


def test_the_registry_has_a_checksum_for_every_file():
    assert len(registry()) == 15
    for known in registry().values():
        assert len(known.sha256) == 64
        assert known.address is None or known.address.startswith("https://")
    assert pooch.os_cache("skyfill")
