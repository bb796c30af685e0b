"""Files come whole and verified from cache, mirror or URL, in this order; a bad one is passed over."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from datasets import DataNotFound, UnknownDataset, __main__, fetch
from tests.plugins import forgotten

NAME = "uci/small/data.txt"
CONTENT = b"1 2 3\n"
Places = tuple[Path, Path]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the address under which a server on this machine offers it."""
    folder = tmp_path / "server"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as http:
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        yield folder, f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def all_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_cache_comes_before_mirror(places: Places, register: Callable, write: Callable) -> None:
    register({NAME: CONTENT})
    cache, mirror = places
    write(mirror, NAME, CONTENT)
    assert fetch.locate(NAME) == mirror / NAME
    assert not cache.exists()
    write(cache, NAME, CONTENT)
    assert fetch.locate(NAME) == cache / NAME


def test_root_replaces_the_cache(places: Places, tmp_path: Path, register: Callable, write: Callable) -> None:
    register({NAME: CONTENT})
    write(tmp_path / "mine", NAME, CONTENT)
    assert fetch.locate(NAME, root=tmp_path / "mine") == tmp_path / "mine" / NAME


def test_a_read_only_mirror_is_used_in_place(places: Places, register: Callable, write: Callable) -> None:
    register({NAME: CONTENT})
    path = write(places[1], NAME, CONTENT)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        assert fetch.locate(NAME) == path
    finally:
        path.parent.chmod(0o755)
    assert not places[0].exists()


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (b"9 9 9\n", "wrong checksum: expected SHA-256 [0-9a-f]{64}, found [0-9a-f]{64}"),
        (b"1 2", "truncated: expected 6 bytes, found 3"),
        (b"1 2 3\n4 5 6\n", "another file: expected 6 bytes, found 12"),
    ],
)
def test_a_bad_file_is_reported_and_the_next_place_used(
    places: Places,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    register: Callable,
    write: Callable,
    bad: bytes,
    fault: str,
) -> None:
    register({NAME: CONTENT})
    second = tmp_path / "second"
    monkeypatch.setenv(fetch.MIRROR_VARIABLE, os.pathsep.join([str(places[1]), str(second)]))
    write(places[1], NAME, bad)
    write(second, NAME, CONTENT)
    with pytest.warns(UserWarning, match=f"{NAME}: {fault}; trying the next place"):
        assert fetch.locate(NAME) == second / NAME


def test_a_changed_file_is_noticed(places: Places, register: Callable, write: Callable) -> None:
    register({NAME: CONTENT})
    path = write(places[1], NAME, CONTENT)
    assert fetch.locate(NAME) == path
    write(places[1], NAME, b"3 2 1\n")
    os.utime(path, ns=(0, 0))
    with pytest.warns(UserWarning, match="wrong checksum"), pytest.raises(DataNotFound, match="wrong check"):
        fetch.locate(NAME)


def test_nowhere_found_lists_every_place_and_what_to_do(places: Places, register: Callable) -> None:
    register({NAME: CONTENT}, ("http://127.0.0.1:9/data.txt",))
    with pytest.raises(DataNotFound) as caught:
        fetch.locate(NAME)
    message = str(caught.value)
    for place in (f"{places[0] / NAME}: not there", f"{places[1] / NAME}: not there", "http://127.0.0.1:9/"):
        assert place in message
    assert "make data" in message and f"set {fetch.MIRROR_VARIABLE} to a folder that holds {NAME}" in message
    assert all_files(places[0]) == []


def test_downloads_into_the_cache(
    places: Places, server: tuple[Path, str], register: Callable, write: Callable
) -> None:
    folder, address = server
    register({NAME: CONTENT}, (f"{address}/missing.txt", f"{address}/{NAME}"))
    write(folder, NAME, CONTENT)
    assert fetch.locate(NAME) == places[0] / NAME
    assert (places[0] / NAME).read_bytes() == CONTENT
    assert all_files(places[0]) == ["uci", "uci/small", NAME]
    (folder / NAME).unlink()
    assert fetch.locate(NAME) == places[0] / NAME


def test_a_bad_file_in_the_cache_is_replaced(
    places: Places, server: tuple[Path, str], register: Callable, write: Callable
) -> None:
    folder, address = server
    register({NAME: CONTENT}, (f"{address}/{NAME}",))
    write(places[0], NAME, b"half")
    write(folder, NAME, CONTENT)
    with pytest.warns(UserWarning, match="truncated"):
        assert fetch.locate(NAME).read_bytes() == CONTENT


def test_of_two_processes_one_downloads(
    places: Places, server: tuple[Path, str], register: Callable, write: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pooch

    folder, address = server
    register({NAME: CONTENT}, (f"{address}/{NAME}",))
    write(folder, NAME, CONTENT)
    fetched, begun, usual = [], threading.Event(), pooch.HTTPDownloader.__call__

    def slow(self: Any, *arguments: Any, **options: Any) -> Any:
        fetched.append(arguments[0])
        begun.set()
        time.sleep(0.5)
        return usual(self, *arguments, **options)

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", slow)
    other = threading.Thread(target=fetch.locate, args=(NAME,))  # flock also keeps threads apart
    other.start()
    assert begun.wait(10)
    assert fetch.locate(NAME).read_bytes() == CONTENT
    other.join()
    assert len(fetched) == 1
    with monkeypatch.context() as patient, fetch._turn(places[0]):
        patient.setattr(fetch, "PATIENCE", 0.0)
        with fetch._turn(places[0]):
            pass


@pytest.mark.parametrize("served", [b"9 9 9\n", b"1 2", b"", b"<html>"])
def test_a_bad_download_leaves_nothing_behind(
    places: Places, server: tuple[Path, str], register: Callable, write: Callable, served: bytes
) -> None:
    folder, address = server
    register({NAME: CONTENT}, (f"{address}/{NAME}",))
    write(folder, NAME, served)
    with pytest.raises(DataNotFound, match=f"{address}/{NAME}: ValueError: .*hash"):
        fetch.locate(NAME)
    assert all_files(places[0]) == []


def test_an_interrupted_download_leaves_no_file(
    places: Places, register: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pooch

    def interrupted(self: object, url: str, output: str, pooch: object, **options: object) -> None:
        Path(output).write_bytes(CONTENT[:2])
        raise KeyboardInterrupt

    register({NAME: CONTENT}, ("http://127.0.0.1:9/data.txt",))
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch.locate(NAME)
    assert [path for path in places[0].rglob("*") if path.is_file()] == []


def test_the_part_of_a_killed_download_is_removed_after_a_day(
    places: Places, server: tuple[Path, str], register: Callable, write: Callable
) -> None:
    folder, address = server
    register({NAME: CONTENT}, (f"{address}/{NAME}",))
    write(folder, NAME, CONTENT)
    for name, age in (("tmpabcdefgh", 2 * fetch.ABANDONED), ("tmpijklmnop", 0), ("mine", 2 * fetch.ABANDONED)):
        part = write(places[0] / "uci/small", name, b"1")
        os.utime(part, (part.stat().st_mtime - age,) * 2)
    fetch.locate(NAME)
    assert sorted(os.listdir(places[0] / "uci/small")) == ["data.txt", "mine", "tmpijklmnop"]


def test_a_full_disk_is_said(places: Places, register: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    import pooch

    def full(self: object, url: str, output: str, pooch: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    register({NAME: CONTENT}, ("http://127.0.0.1:9/data.txt",))
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", full)
    with pytest.raises(DataNotFound, match="data.txt: OSError: .*No space left on device"):
        fetch.locate(NAME)
    assert all_files(places[0]) == []


def test_a_cache_that_cannot_be_made_is_said(places: Places, register: Callable, write: Callable) -> None:
    register({NAME: CONTENT}, ("http://127.0.0.1:9/data.txt",))
    write(places[0].parent, places[0].name, b"a file where the folder should be")
    with pytest.raises(DataNotFound, match="data.txt: (NotADirectoryError|FileExistsError)"):
        fetch.locate(NAME)


def test_works_without_pooch(
    places: Places, register: Callable, write: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    register({NAME: CONTENT}, ("http://127.0.0.1:9/data.txt",))
    with pytest.raises(DataNotFound, match="not tried, the package pooch is not installed"):
        fetch.locate(NAME)
    write(places[1], NAME, CONTENT)
    assert fetch.locate(NAME) == places[1] / NAME


def test_unregistered_files_are_refused() -> None:
    with pytest.raises(UnknownDataset, match="did you mean 'uci/yacht/data.txt'"):
        fetch.locate("uci/yatch/data.txt")


def test_every_registered_file_has_a_checksum_a_size_and_an_address() -> None:
    files = fetch.registry()
    assert Counter(name.split("/")[0] for name in files) == {
        "uci": 9 + 2 * (8 * 20 + 5),
        "snelson": 3,
        "frost": 5,
        "gulfdrifters": 2,
        "song": 1,
        "mnist": 4,
        "fashion_mnist": 4,
        "kmnist": 4,
        "notmnist": 2,
        "cifar10": 1,
        "cifar100": 1,
        "svhn": 2,
        "retina": 1,
    }
    for name, file in files.items():
        assert len(file.sha256) == 64 and int(file.sha256, 16) > 0 and file.size > 0
        assert bool(file.urls) == (name.split("/")[0] not in fetch.BY_HAND)
        for url in file.urls:
            assert url.startswith(("https://", "http://")) and url.endswith(f"/{name.split('/')[-1]}")


def test_command_fetches_and_reports(
    places: Places, server: tuple[Path, str], register: Callable, write: Callable, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, address = server
    files = ["data", *(f"index_{subset}_{i}" for subset in ("train", "test") for i in range(20))]
    names = [f"uci/{name}/{file}.txt" for name in ("yacht", "energy") for file in files]
    register(dict.fromkeys(names, CONTENT), (f"{address}/data.txt",))
    write(folder, "data.txt", CONTENT)
    assert __main__.main(["fetch", "yacht", "digits"]) == 0
    said = capsys.readouterr().out
    assert f"[1/2] yacht: 41 files in {places[0]}" in said and "[2/2] digits: nothing to fetch" in said
    assert "2 of 2 data sets are ready" in said
    (folder / "data.txt").unlink()
    assert __main__.main(["fetch", "yacht", "energy"]) == 1
    said = capsys.readouterr().out
    assert (
        "[2/2] energy: NOT AVAILABLE. " in said
        and "uci/energy/data.txt" in said
        and "(41 of its 41 files are missing)" in said
    )
    assert "1 of 2 data sets are ready; not available: energy" in said
    assert not list(places[0].glob("uci/energy"))


def test_what_can_be_had_is_fetched_when_another_file_cannot(
    places: Places, server: tuple[Path, str], register: Callable, write: Callable
) -> None:
    folder, address = server
    register({"set/a": CONTENT, "set/b": b"other", "set/c": CONTENT}, (f"{address}/data.txt",))
    write(folder, "data.txt", CONTENT)
    said: list[str] = []
    assert fetch.fetch({"set": ["set/a", "set/b", "set/c"]}, None, said.append) == ["set"]
    assert len(said) == 1 and "set/b" in said[0] and "files are missing" not in said[0]
    assert all_files(places[0]) == ["set", "set/a", "set/c"]


def test_command_lists_and_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["list"]) == 0
    assert "two_moons_rudner" in capsys.readouterr().out
    assert __main__.main(["list", "yacht", "digits"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["name", "yacht", "digits"]
    for command in ("fetch", "list"):
        assert __main__.main([command, "bostn"]) == 2
        assert "did you mean 'boston'" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["list cifar10 --images 100", "fetch digits --images 100", "list --cache /elsewhere"])
def test_options_that_a_command_would_ignore_are_refused(words: str, capsys) -> None:
    with pytest.raises(SystemExit) as stop:
        __main__.main(words.split())
    said = capsys.readouterr()
    assert stop.value.code == 2 and not said.out
    assert "error: unrecognized arguments: --" in said.err


def test_the_command_names_a_misspelt_variable(monkeypatch, capsys) -> None:
    monkeypatch.setenv("FVI_DATA_MIROR", "/mnt/data")
    assert __main__.main(["fetch", "digits"]) == 0
    assert "FVI_DATA_MIROR is set, and nothing reads it; did you mean 'FVI_DATA_MIRROR'" in capsys.readouterr().err


def test_the_list_has_the_sets_of_plug_ins(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "mine.py").write_text(
        "import datasets\n"
        "datasets.add_table('bikes_of_mine', 'bikes.csv', target='rentals')\n"
        "datasets.add_table('lost_of_mine', 'lost.csv', target='rentals')\n"
    )
    (tmp_path / "bikes.csv").write_text("wind,rentals\n" + "".join(f"{i},{2 * i}\n" for i in range(20)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FVI_PLUGINS", "mine.py")
    with forgotten():
        assert __main__.main(["list"]) == 0
        lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
        assert "regression" in lines["bikes_of_mine"] and "lost.csv" in lines["lost_of_mine"] and "digits" in lines
    (tmp_path / "mine.py").write_text("1 / 0\n")
    with forgotten():
        assert __main__.main(["list"]) == 1 and "mine.py, line 1: ZeroDivisionError" in capsys.readouterr().err


def account(monkeypatch, home):
    """Pretend that ``~`` is this folder; None: that the user has neither HOME nor an account."""
    monkeypatch.delenv("FVI_DATA_CACHE", raising=False)
    expand = os.path.expanduser
    monkeypatch.setattr(os.path, "expanduser", lambda path: str(path) if home is None else expand(path))
    if home is not None:
        monkeypatch.setenv("HOME", str(home))
    fetch._temporary.cache_clear()


@pytest.mark.parametrize("home", [None, "/proc/none/here"], ids=["no account", "a home that cannot be made"])
def test_without_a_home_folder_fetched_files_go_to_a_temporary_one_and_that_is_said_once(home, monkeypatch, tmp_path):
    account(monkeypatch, home)
    monkeypatch.setattr(os, "access", lambda path, mode: str(path).startswith(str(tmp_path)))  # also for root
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    with pytest.warns(UserWarning, match="set FVI_DATA_CACHE") as said:
        assert fetch.cache_folder() == fetch.cache_folder() == tmp_path / f"fvi-bench-{os.getuid()}"
    assert len(said) == 1
    assert fetch.cache_folder("~/here").name == "here", "a folder that is named is used, without a traceback"
    fetch._temporary.cache_clear()


def test_with_a_home_folder_fetched_files_are_kept_in_it(monkeypatch, tmp_path):
    account(monkeypatch, tmp_path)
    assert fetch.cache_folder() == tmp_path / ".cache" / "fvi-bench"
    assert fetch.cache_folder("~/here") == tmp_path / "here"
