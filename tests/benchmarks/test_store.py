"""The result store: records whole or not there, corrupt, foreign, older and newer ones."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks import store as store_module
from benchmarks.errors import UnknownName
from benchmarks.store import (
    InvalidRecord,
    NewerRecord,
    RecordError,
    Store,
    StoreError,
    serialise,
    slug,
    upgrade,
)
from tests.benchmarks import fakes

FIXTURE = Path(__file__).parent / "fixtures" / "schema-1"


def record(seed: int = 0, value: float = 0.5) -> dict:
    curves = {
        "roc": {"x": [0.0, 0.1, 1.0], "y": [0.0, 1 / 3, 1.0]},
        "entropy": {"edges": [0, 1], "counts": [7]},
    }
    return fakes.store("").make(
        fakes.config(seed), [fakes.metric(value)], curves, {"commit": "c", "dirty": False, "seconds": 1.5}
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fakes.store(tmp_path / "results")


def files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


def test_what_is_written_is_read(store):
    path = store.write(record(value=1 / 3))
    assert path.relative_to(store.root).as_posix() == f"digits/map/{record()['key']}.json"
    read = store.read(path)
    read.pop("sha256")
    assert read == record(value=1 / 3)
    assert store.status(fakes.config(0)) == "done" and store.status(fakes.config(1)) is None
    assert list(store.paths()) == [read["key"]] and len(list(store.records())) == 1


def test_writing_is_canonical(store):
    text = serialise(record())
    shuffled = json.loads(json.dumps(record()))
    shuffled["config"] = dict(reversed(shuffled["config"].items()))
    shuffled["curves"] = dict(reversed(shuffled["curves"].items()))
    assert serialise(shuffled) == text
    assert text.count("\n") < 50
    assert '"roc": {"x": [0.0, 0.1, 1.0], "y": [0.0, 0.3333333333333333, 1.0]}' in text.splitlines()


def test_numbers_of_numpy_are_written(store):
    made = record(value=np.float32(0.5))
    made["metrics"][0]["n"] = np.int64(10)
    assert store.read(store.write(made))["metrics"][0] == fakes.metric(0.5)


@pytest.mark.parametrize("value", [math.nan, math.inf, np.float32("nan")])
def test_a_metric_that_is_not_finite_is_refused(store, value):
    with pytest.raises(InvalidRecord, match="accuracy of digits is"):
        store.write(record(value=value))
    assert files(store.root) == []


def test_nan_in_a_curve_and_a_record_without_metrics_are_refused(store):
    broken = record()
    broken["curves"]["roc"]["y"][0] = math.nan
    with pytest.raises(InvalidRecord, match="not finite"):
        store.write(broken)
    with pytest.raises(InvalidRecord, match="no metrics"):
        store.write({**record(), "metrics": []})
    assert files(store.root) == []


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda text: text[: len(text) // 2], "not a whole record"),
        (lambda text: "", "not a whole record"),
        (lambda text: text.replace('"metrics": [', "<<<<<<< HEAD\n"), "not a whole record"),
        (lambda text: "[1, 2]", "no schema"),
        (lambda text: '{"accuracy": 1}', "no schema"),
        (lambda text: text.replace('"curves"', '"bends"'), "curves missing"),
        (lambda text: text.replace('"value"', '"worth"'), "metric row missing"),
        (
            lambda text: text.replace(f'"key": "{record()["key"]}"', '"key": "0000000000000000"'),
            "not of its name",
        ),
        (lambda text: text.replace('"schema": 1,\n"metric_', '"schema": 99,\n"metric_'), "update the code"),
    ],
)
def test_a_damaged_record_is_named_and_never_done(store, damage, message):
    path = store.write(record())
    path.write_text(damage(path.read_text()))
    for read in (store.read, lambda _: store.status(fakes.config(0)), lambda _: store.get(fakes.config(0))):
        with pytest.raises(RecordError, match=message) as caught:
            read(path)
        assert str(path) in str(caught.value)
    assert [type(found) for found in store.records()] in ([RecordError], [NewerRecord])


def test_one_damaged_digit_is_seen(store):
    path = store.write(record())
    assert store_module.untouched(path.read_bytes())
    path.write_text(path.read_text().replace('"value": 0.5', '"value": 0.6'))
    assert not store_module.untouched(path.read_bytes())
    assert store.status(fakes.config(0)) == "done"


def test_a_record_of_schema_1_stays_readable():
    (path,) = fakes.store(FIXTURE).paths().values()
    read = fakes.store(FIXTURE).read(path)
    assert read["schema"] == store_module.SCHEMA and read["metric_versions"] == {"accuracy": 1, "nll": 1}
    assert [(row["metric"], row["value"]) for row in read["metrics"]] == [("accuracy", 0.9375), ("nll", 0.25)]
    assert read["curves"]["roc"]["y"] == [0.0, 0.75, 1.0] and read["provenance"]["seconds"] == 12.5


def test_upgrades_follow_one_another():
    def second(old):
        return {**old, "schema": 2, "steps": [*old.get("steps", []), 2]}

    def third(old):
        return {**old, "schema": 3, "steps": [*old["steps"], 3]}

    upgraded = upgrade(record(), Path("r.json"), schema=3, upgrades={1: second, 2: third})
    assert upgraded["schema"] == 3 and upgraded["steps"] == [2, 3]


def test_a_record_of_older_metrics_is_stale(store, monkeypatch):
    path = store.write(record())
    assert store.status(fakes.config(0)) == "done"
    monkeypatch.setattr(fakes.METRICS["accuracy"], "version", 2)
    assert store.status(fakes.config(0)) == "stale"
    path.write_text(json.dumps(json.loads(path.read_text())))  # the same by the slow way
    assert store.status(fakes.config(0)) == "stale"


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    store = fakes.store(tmp_path / "file" / "results")
    with pytest.raises(StoreError, match="cannot be written .*--results"):
        store.check_writable()
    with pytest.raises(StoreError, match="cannot be written .*same command again"):
        store.write(record())
    assert store.status(fakes.config(0)) is None
    assert files(tmp_path) == ["file"]


def test_looking_whether_a_folder_can_be_written_leaves_other_lookers_alone(store):
    store.root.mkdir(parents=True)
    other = store.root / "..writable.123.tmp"
    with open(other, "wb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        store.check_writable()
        assert other.exists(), "its process may be about to rename it"
    store.check_writable()
    assert os.listdir(store.root) == [], "that of a killed process is not kept for ever"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_record_and_no_other_file(store, monkeypatch, call):
    store.write(record(value=0.25))
    before = store.paths()[record()["key"]].read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(StoreError, match="No space left on device"):
        store.write(record(value=0.75))
    assert files(store.root) == [f"{record()['key']}.json"]
    assert store.paths()[record()["key"]].read_bytes() == before


def test_what_a_killed_writer_left_is_removed(store):
    path = store.path(fakes.config(0))
    path.parent.mkdir(parents=True)
    (path.parent / f".{path.name}.123.tmp").write_text('{"half')
    assert store.paths() == {}
    store.write(record())
    assert files(store.root) == [path.name]


def test_find_by_prefix(store):
    paths = [store.write(record(seed)) for seed in range(20)]
    assert store.find(paths[3].stem[:12]) == paths[3]
    with pytest.raises(UnknownName, match="unknown key 'zz'"):
        store.find("zz")
    with pytest.raises(RecordError, match="give more digits"):
        store.find("")


def test_slug():
    assert slug("FSVI (rudner2022)") == "fsvi-rudner2022"
    assert slug("../x") == "x" and slug("??") == "unnamed"
