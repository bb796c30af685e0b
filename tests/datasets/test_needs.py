"""Tests of the list of missing data: it names files, and counts only those that a run reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import datasets
from datasets import fetch, needs
from datasets.images import SOURCES
from datasets.needs import Lack, get, lacking

GREY = [
    file
    for name in ("mnist", "fashion_mnist", "kmnist", "notmnist")
    for f in SOURCES[name].files.values()
    for file in f
]
COLOUR = [SOURCES[name].files[subset][0] for name in ("cifar10", "cifar100", "svhn") for subset in SOURCES[name].files]
FROST = [f"frost/frost{i}.png" for i in range(3)]
UCI = "uci/yacht/data.txt"
NAMES = dict.fromkeys([*GREY, *COLOUR, *FROST, UCI])


@pytest.fixture
def at_hand(places, register, write):
    """at_hand(names): these files of small registered ones are in the cache, the rest is nowhere."""
    register({name: name.encode() for name in NAMES})

    def put(*names: str) -> None:
        for name in names:
            write(places[0], name, name.encode())

    return put


def lacks(*arguments, **options):
    return {lack.dataset: lack.files for lack in lacking(*arguments, **options)}


def test_data_that_are_generated_or_come_along_lack_nothing(places):
    assert lacking("digits") == lacking("two_moons_cinquin") == []


def test_a_table_lacks_its_file_until_it_is_there(at_hand):
    assert lacks("yacht", "pequignot2020") == {"yacht": (UCI,)}
    assert lacking("yacht", "pequignot2020")[0].megabytes == len(UCI) / 1e6
    at_hand(UCI)
    assert lacking("yacht", "pequignot2020") == []


def test_a_file_of_other_bytes_is_lacking(at_hand, places, write):
    write(places[1], UCI, b"x" * len(UCI))
    with pytest.warns(UserWarning, match="wrong checksum"):
        assert lacks("yacht", "pequignot2020") == {"yacht": (UCI,)}


def test_image_sets_lack_what_a_run_reads_and_no_more(at_hand):
    sets = ["test", "ood-svhn", "cifar10_c-0", "rotation-30", "fgsm-0.1"]
    assert lacks("cifar10", "rudner2022", sets) == {
        "cifar10": SOURCES["cifar10"].files["train"],
        "svhn": SOURCES["svhn"].files["test"],
    }
    at_hand(*COLOUR)
    assert lacking("cifar10", "rudner2022", sets, ["cifar100"]) == []
    assert lacks("cifar10", "rudner2022", ["cifar10_c-2"]) == {"cifar10": tuple(FROST)}
    assert lacks("cifar10", "rudner2022", ["cifar10_c-frost-1-of-100"]) == {"cifar10": tuple(FROST)}
    assert lacking("cifar10", "rudner2022", ["cifar10_c-fog-1"]) == []
    at_hand(*FROST)
    assert lacking("cifar10", "rudner2022", ["cifar10_c-2"]) == []


def test_published_corrupted_images_need_no_frost(at_hand, places):
    at_hand(*COLOUR)
    (places[1] / "cifar10_c").mkdir()
    (places[1] / "cifar10_c" / "CIFAR-10-C.tar").touch()
    assert lacking("cifar10", "rudner2022", ["cifar10_c-2"]) == []


def test_pools_of_contexts_count_and_may_be_test_images_unless_these_are_scored(at_hand):
    own = [file for files in SOURCES["fashion_mnist"].files.values() for file in files]
    train, test = SOURCES["kmnist"].files["train"], SOURCES["kmnist"].files["test"]
    at_hand(*own)
    assert lacks("fashion_mnist", "rudner2022", ["test"], ["kmnist"]) == {"kmnist": train}
    at_hand(*test)
    assert lacking("fashion_mnist", "rudner2022", ["test"], ["kmnist"]) == []
    assert lacks("fashion_mnist", "rudner2022", ["ood-kmnist"], ["kmnist"]) == {"kmnist": train}
    at_hand(*train)
    assert lacking("fashion_mnist", "rudner2022", ["ood-kmnist"], ["kmnist"]) == []


def test_the_users_arrays_need_no_files(at_hand, bring):
    for name, subset in (("cifar10", "train"), ("cifar10", "test"), ("svhn", "test")):
        bring(name, subset)
    assert lacking("cifar10", "rudner2022", ["test", "ood-svhn"]) == []
    assert lacks("cifar10", "rudner2022", ["test"], ["cifar100"]) == {"cifar100": SOURCES["cifar100"].files["train"]}


def test_a_subset_without_any_file_says_how_to_give_it(at_hand):
    at_hand(*SOURCES["notmnist"].files["test"])
    (lack,) = lacking("notmnist")
    assert lack.files == () and "no file of a train subset is known" in lack.reason and "FVI_ARRAYS" in lack.reason
    assert get(lack, print) == lack


def test_a_users_file_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.registry, "ENTRIES", dict(datasets.registry.ENTRIES))
    datasets.add_table("bikes", tmp_path / "bikes.csv")
    (lack,) = lacking("bikes")
    assert lack.files == () and "bikes.csv" in lack.reason


def test_getting_says_what_it_gets_and_why_it_cannot(at_hand, places, monkeypatch, write):
    def download(url: str, sha256: str, target: Path) -> str | None:
        if target.parent.name == "mnist":
            write(target.parent, target.name, f"mnist/{target.name}".encode())
            return None
        return "ConnectionError: no network"

    urls = dict.fromkeys(NAMES, ("https://example.org/x",))
    known = {name: fetch.File(name, file.sha256, file.size, urls[name]) for name, file in fetch.registry().items()}
    monkeypatch.setattr(fetch, "registry", lambda: known)
    monkeypatch.setattr(fetch, "retrieve", download)
    monkeypatch.setattr(fetch, "reachable", lambda url: True)
    monkeypatch.setenv(fetch.OFFLINE_VARIABLE, "0")
    said: list[str] = []
    (lack,) = lacking("mnist", "dirichlet2022")
    assert len(lack.files) == 4 and get(lack, said.append) is None and lacking("mnist", "dirichlet2022") == []
    assert said[0].startswith("fetching mnist/train-images") and said[0].endswith("MB)") and len(said) == 4
    left = get(Lack("yacht", (UCI,)), said.append)
    assert left.files == (UCI,) and left.reason == "https://example.org/x: ConnectionError: no network"
    monkeypatch.setenv(fetch.OFFLINE_VARIABLE, "1")
    assert "FVI_OFFLINE" in get(Lack("yacht", (UCI,)), said.append).reason


def test_files_that_cannot_be_downloaded_are_named_by_their_host_alone(at_hand, places, monkeypatch):
    def nowhere(*_):
        raise OSError("Name or service not known")

    fetch._known.cache_clear()
    known = {UCI: replace(fetch.registry()[UCI], urls=("https://one.example/x", "https://two.example/x"))}
    monkeypatch.setattr(fetch, "registry", lambda: known)
    monkeypatch.setattr(fetch.socket, "getaddrinfo", nowhere)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.delenv(fetch.OFFLINE_VARIABLE, raising=False)
    said: list[str] = []
    assert get(Lack("yacht", (UCI,)), said.append).reason == "two.example cannot be reached" and said == []
    fetch._known.cache_clear()


def test_unknown_names_are_refused():
    with pytest.raises(datasets.UnknownDataset):
        needs.lacking("mnst")
    with pytest.raises(datasets.UnknownSplit):
        needs.lacking("mnist", "rudner2")
