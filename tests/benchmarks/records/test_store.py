"""The result store: records whole or not there, corrupt, foreign, older and newer ones."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.records import stamp
from benchmarks.records import store as store_module
from benchmarks.records.form import InvalidRecord, NewerRecord, RecordError, parse, serialise, slug
from benchmarks.records.store import Store, StoreError
from tests.benchmarks import fakes


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
    assert read == record(value=1 / 3)
    assert store.status(fakes.config(0)) == ("done", "") and store.status(fakes.config(1)) == (None, "")
    assert list(store.paths()) == [read["key"]] and len(list(store.records())) == 1


def test_curves_are_parsed_when_they_are_looked_up(store):
    path = store.write(record())
    found = store.curves(path)
    assert dict(found) == record()["curves"] and len(found) == 2 and "none" not in found
    assert dict(store.curves(store.write(record(1) | {"curves": {}}))) == {}
    text = path.read_text().replace("[0.0, 0.1, 1.0]", "[0.0, NaN, 1.0]")
    body = text[: text.rindex('"sha256"')]
    path.write_text(f'{body}"sha256": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n')
    found = store.curves(path)
    assert found["entropy"] == record()["curves"]["entropy"] and "roc" in found
    with pytest.raises(ValueError, match="NaN"):
        found["roc"]
    path.write_text(text)
    with pytest.raises(RecordError, match="changed since it was written"):
        store.curves(path)
    path.unlink()
    with pytest.raises(RecordError, match="no such file"):
        store.curves(path)


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


def signed(text: str) -> str:
    """Return a record's text with the SHA-256 of its changed body."""
    body = text.rpartition('"sha256": ')[0]
    return f'{body}"sha256": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n'


def replaced(old: str, new: str):
    """Return a change of records: one text in place of another, signed again."""

    def change(text: str) -> str:
        assert old in text
        return signed(text.replace(old, new))

    return change


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda text: text[: len(text) // 2], "not a whole record"),
        (lambda text: "", "not a whole record"),
        (lambda text: text.replace('"metrics": [', "<<<<<<< HEAD\n"), "changed since it was written"),
        (lambda text: text.replace('"value": 0.5', '"value": 0.6'), "changed since it was written"),
        (lambda text: "[1, 2]", "not a whole record"),
        (lambda text: signed("[1, 2," + text), "not a record"),
        (replaced('"schema": 2,\n"metric', '"scheme": 2,\n"metric'), "no schema"),
        (replaced('"schema": 2,\n"metric', '"schema": true,\n"metric'), "no schema"),
        (replaced('"schema": 2,\n"metric', '"schema": -1,\n"metric'), "schema -1, expected 2"),
        (replaced('"curves"', '"bends"'), "curves missing"),
        (replaced('"value"', '"worth"'), "no 'value'"),
        (replaced('"value": 0.5', '"value": "0.5"'), "a metric row has value '0.5'"),
        (replaced('"value": 0.5', '"value": NaN'), "it holds NaN"),
        (replaced('"value": 0.5', '"value": 1e999'), "accuracy is inf"),
        (replaced('"value": 0.5', '"value": 1' + 400 * "0"), "not a record"),
        (replaced('"value": 0.5', '"value": 1' + 5000 * "0"), "not a record"),
        (replaced('"value": 0.5', '"value": ' + 100_000 * "["), "nested|recursion"),
        (replaced('"metric": "accuracy"', '"metric": 7'), "a metric row has metric 7"),
        (replaced('"metric_versions": {', '"metric_versions": {"x": null, '), "metric_versions malformed"),
        (replaced('"seed": 0', '"seed": 1'), "its configuration has the key"),
        (replaced('"samples": 1', '"samples": 2'), "its configuration has the key"),
        (
            replaced('"parts": {', '"parts": [], "other": {'),
            "configuration: missing|expected a dict|not expected \\['other'\\]",
        ),
        (replaced(f'"key": "{record()["key"]}"', '"key": "0000000000000000-00000000"'), "it says '0000000000000000-0"),
        (lambda text: text.replace('"schema": 2,\n"metric_', '"schema": 99,\n"metric_'), "update the code"),
    ],
)
def test_a_damaged_record_is_named_and_never_done(store, damage, message):
    path = store.write(record())
    path.write_text(damage(path.read_text()))
    with pytest.raises(RecordError, match=message) as caught:
        store.read(path)
    assert str(path) in str(caught.value)
    assert [type(found) for found in store.records()] in ([RecordError], [NewerRecord])


def test_what_fails_is_named_once_and_read_once(store, monkeypatch):
    paths = [store.write(record(seed)) for seed in range(3)]
    paths[1].write_text(paths[1].read_text().replace('"value": 0.5', '"value": 0.6'))
    stamp.code(*stamp.ROOMS)  # once in a process, which reads the code
    seen = []
    read = store_module.files.read
    monkeypatch.setattr(store_module.files, "read", lambda path: seen.append(path) or read(path))
    look = Store(store.root, store.metrics, remember=store.root / "none" / "checked.json")
    assert look.status(fakes.config(0)) == ("done", "")
    assert list(look.problems()) == [str(paths[1].relative_to(store.root))]
    assert look.status(fakes.config(2)) == ("done", "")
    assert sorted(seen) == sorted(paths)
    store.write(record(0, value=0.25) | {"metric_versions": {"accuracy": 0}})
    assert look.status(fakes.config(0))[0] == "stale", "a file that has changed since is read again"


def test_a_record_under_another_name_or_in_another_folder_is_named(store):
    path = store.write(record())
    moved = path.with_name("0123456789abcdef-01234567.json")
    path.rename(moved)
    with pytest.raises(RecordError, match="not of its name"):
        store.read(moved)
    elsewhere = store.root / "digits" / "mfvi" / path.name
    elsewhere.parent.mkdir()
    moved.rename(elsewhere)
    (reason,) = store.problems().values()
    assert "is in the wrong folder, expected digits/map: move it there, or " in reason
    assert store.status(fakes.config(0)) == (None, "")


def test_what_cannot_be_read_is_named(store):
    path = store.path(fakes.config(0))
    path.mkdir(parents=True)
    with pytest.raises(RecordError, match="cannot be read .*Is a directory"):
        store.status(fakes.config(0))
    path.rmdir()
    path.symlink_to(path)
    with pytest.raises(RecordError, match="cannot be read .*symbolic links"):
        store.status(fakes.config(0))
    path.unlink()
    path.symlink_to("nothing")
    with pytest.raises(RecordError, match="a link to nothing"):
        store.status(fakes.config(0))


def test_sections_that_are_not_wanted_are_left_out(store):
    path = store.write(record())
    read = store.read(path, curves=False)
    assert read == {**record(), "curves": {}} and store.get(fakes.config(0), curves=False) == read
    path.write_text(signed(path.read_text().replace('"curves": {\n', '"curves": {')))
    assert store.read(path, curves=False)["metrics"] == record()["metrics"]


@settings(max_examples=1000)
@given(data=st.data())
def test_no_bytes_in_the_folder_are_more_than_named_or_harmless(data):
    """Each of 1,000 mutated records is refused by name or still holds what was written."""
    original = serialise(record(value=1 / 3)).encode()
    where = data.draw(st.integers(0, len(original) - 1))
    how = data.draw(st.sampled_from(["cut", "flip", "insert", "delete", "swap", "digit"]))
    some = data.draw(st.binary(min_size=1, max_size=8))
    mutated = {
        "cut": original[:where],
        "flip": original[:where] + bytes([original[where] ^ (some[0] or 1)]) + original[where + 1 :],
        "insert": original[:where] + some + original[where:],
        "delete": original[:where] + original[where + len(some) :],
        "swap": original[where:] + original[:where],
        "digit": re.sub(
            rb"\d", lambda found: bytes([48 + (found[0][0] + some[0]) % 10]), original, count=where % 40 + 1
        ),
    }[how]
    again = data.draw(st.booleans())
    if again:  # as by somebody who signs what was changed
        mutated = signed(mutated.decode("utf-8", "replace")).encode()
    path = Path(f"digits/map/{record()['key']}.json")
    try:
        read, _, _ = parse(mutated, path)
    except RecordError as error:
        assert str(path) in str(error)
    else:
        assert again or read == record(value=1 / 3)
        assert read["key"] == record()["key"] and all(math.isfinite(row["value"]) for row in read["metrics"])


def test_a_record_of_another_schema_is_refused_by_its_number(store):
    path = store.write(record())
    path.write_text(signed(path.read_text().replace('"schema": 2', '"schema": 1', 1)))
    with pytest.raises(RecordError, match="schema 1, expected 2"):
        store.read(path)


def test_a_record_of_older_metrics_is_stale(store, monkeypatch):
    store.write(record())
    assert store.status(fakes.config(0)) == ("done", "")
    monkeypatch.setattr(fakes.METRICS["accuracy"], "version", 2)
    assert store.status(fakes.config(0)) == ("stale", "its record has an older version of accuracy")


def test_a_record_is_stale_for_whoever_asks_for_a_metric_that_was_not_known_yet(store, monkeypatch):
    store.write(record())
    monkeypatch.setitem(fakes.METRICS, "brier", SimpleNamespace(version=1))
    assert store.status(fakes.config(0), {"accuracy", "nll"}) == (
        "done",
        "",
    )  # nll is known, and not defined for this run
    assert store.status(fakes.config(0), {"accuracy", "brier"}) == ("stale", "its record lacks brier")


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    store = fakes.store(tmp_path / "file" / "results")
    with pytest.raises(StoreError, match="cannot be written .*--results"):
        store.check_writable()
    with pytest.raises(StoreError, match="cannot be written .*same command again"):
        store.write(record())
    assert store.status(fakes.config(0)) == (None, "")
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

    monkeypatch.setattr(os, call, fakes.full_disk)
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


def test_slug():
    assert slug("FSVI (rudner2022)") == "fsvi-rudner2022"
    assert slug("../x") == "x" and slug("??") == "unnamed" and len(slug("中" * 100)) <= 200
    names = ("FSVI", "FSVI+", "Σ-VI", "Δ-VI", "Rényi VI")
    assert [slug(name) for name in names] == ["fsvi", "fsvi+", "sigma-vi", "delta-vi", "re-nyi-vi"]
