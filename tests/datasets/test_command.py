"""`python -m datasets` counts as ready what a run can read, and names what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from datasets import __main__, fetch, user_arrays
from datasets.fundus import sources
from tests.plugins import forgotten

Capture = pytest.CaptureFixture[str]


def test_without_a_command_the_help_is_printed(capsys: Capture) -> None:
    assert __main__.main([]) == 0
    said = capsys.readouterr().out
    assert all(f"\n    {command} " in said for command in ("fetch", "list", "corrupt"))


def test_the_help_of_corrupt_names_its_data_sets(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        __main__.main(["corrupt", "--help"])
    assert "cifar10 or cifar100 (default: both)" in " ".join(capsys.readouterr().out.split())


def test_the_users_arrays_are_not_fetched_again(bring: Callable, capsys: Capture) -> None:
    for subset in ("train", "test"):
        bring("svhn", subset)
    assert __main__.main(["fetch", "svhn"]) == 0
    said = capsys.readouterr().out
    assert "your arrays (FVI_ARRAYS) replace the files of svhn/train, svhn/test" in said
    assert "[1/1] svhn: nothing to fetch" in said


def test_what_the_users_arrays_lack_is_fetched(bring: Callable, capsys: Capture) -> None:
    bring("svhn", "test")
    bring("cifar10", "test")  # whose archive has both subsets
    assert __main__.main(["fetch", "svhn", "cifar10"]) == 1
    said = capsys.readouterr().out
    assert "svhn/train_32x32.mat: not there" in said and "svhn/test_32x32.mat" not in said
    assert "cifar10/cifar-10-binary.tar.gz: not there" in said


@pytest.mark.parametrize("variable", [user_arrays.VARIABLE, sources.VARIABLE])
def test_a_folder_of_the_user_that_is_not_there_is_refused(
    places: tuple[Path, Path], variable: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv(variable, str(places[0] / "nowhere"))
    assert __main__.main(["fetch", "digits"]) == 1
    said = capsys.readouterr()
    assert f"{variable} is " in said.err and "expected a folder of your data, found none" in said.err and not said.out


def test_what_no_command_gets_is_not_counted_as_ready(
    places: tuple[Path, Path], register: Callable, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    register({})
    monkeypatch.setattr(__main__, "names", lambda: ["digits", "aptos"])
    assert __main__.main(["fetch"]) == 0
    said = capsys.readouterr().out
    assert "[2/2] aptos: NOT AVAILABLE. It is not fetched" in said and "nothing to fetch" not in said.split("[2/2]")[1]
    assert said.endswith("1 of 2 data sets are ready; to be got by hand: aptos\n")


def test_files_of_plug_ins_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    (tmp_path / "mine.py").write_text(
        "import datasets\n"
        "datasets.add_table('here_of_mine', 'here.csv', target='y')\n"
        "datasets.add_table('gone_of_mine', 'gone.csv', target='y')\n"
    )
    (tmp_path / "here.csv").write_text("x,y\n" + "".join(f"{i},{2 * i}\n" for i in range(20)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FVI_PLUGINS", "mine.py")
    with forgotten():
        assert __main__.main(["fetch", "here_of_mine", "gone_of_mine", "here_of_mine"]) == 1
    said = capsys.readouterr().out
    assert "[1/2] here_of_mine: nothing to fetch" in said
    assert f"[2/2] gone_of_mine: NOT AVAILABLE. {tmp_path}/gone.csv: expected a file of data set gone_of_mine" in said
    assert "1 of 2 data sets are ready; not available: gone_of_mine" in said


def test_a_mirror_that_is_no_folder_and_a_forbidden_network_are_named(
    tmp_path: Path, register: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    register({"set/a": b"1\n"}, ("http://127.0.0.1:9/a",))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(fetch.CACHE_VARIABLE, "cache")
    monkeypatch.setenv(fetch.MIRROR_VARIABLE, "miror")
    monkeypatch.setenv(fetch.OFFLINE_VARIABLE, "1")
    with pytest.raises(fetch.DataNotFound) as refused:
        fetch.locate("set/a")
    said = str(refused.value)
    assert f"{tmp_path}/cache/set/a: not there" in said
    assert f"{tmp_path}/miror: no such folder, though FVI_DATA_MIRROR names it" in said
    assert "the network: not used, since FVI_OFFLINE is set; unset it to download" in said
    for word, forbidden in (
        ("true", True),
        ("", False),
        ("0", False),
        ("False", False),
        (" off", False),
        ("no", False),
        ("On", True),
    ):
        monkeypatch.setenv(fetch.OFFLINE_VARIABLE, word)
        assert fetch.offline() == forbidden
    monkeypatch.setenv(fetch.OFFLINE_VARIABLE, "ture")
    with pytest.raises(ValueError, match="FVI_OFFLINE is 'ture', expected 1, true, yes or on, or 0, false, no or off"):
        fetch.locate("set/a")


def test_corrupted_images_that_cannot_be_stored_are_an_error(
    bring: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    bring("cifar10", "test", 20)
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert __main__.main(["corrupt", "cifar10", "--images", "11"]) == 1
    said = capsys.readouterr()
    assert "severity-1.npy: cannot be written (" in said.err and "pass --cache with another folder" in said.err
    assert not said.out
