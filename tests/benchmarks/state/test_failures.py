"""Failures of runs: noted, counted and forgotten, and always of one form, whatever a file holds."""

from __future__ import annotations

import json
import os

import pytest

from benchmarks.commands import inspection
from benchmarks.records.config import run_key
from benchmarks.state.failures import Failures
from tests.benchmarks import fakes

CONFIG = fakes.config()
KEY = run_key(CONFIG)
UNREADABLE = "unknown: its failure file cannot be read"


@pytest.fixture
def failures(tmp_path) -> Failures:
    return Failures(tmp_path)


def test_a_failure_is_noted_counted_and_forgotten(failures):
    assert failures.get(KEY) is None and failures.attempts(KEY) == 0 and failures.keys() == []
    for attempt in (1, 2):
        failures.write(CONFIG, KEY, "it diverged", "Traceback", "run.log")
        found = failures.get(KEY)
        assert found.pop("time").endswith("Z")
        assert found == {"key": KEY, "reason": "it diverged", "attempt": attempt, "traceback": "Traceback",
                         "log": "run.log", "guess": False, "death": False, "config": CONFIG}  # fmt: skip
    (failures.folder / f".{KEY}.json.0123.tmp").write_text("half")
    assert failures.keys() == [KEY]
    failures.clear(KEY)
    assert os.listdir(failures.folder) == [] and failures.get(KEY) is None
    failures.clear(KEY)


VALUES = {
    "reason": [(None, UNREADABLE), (["a"], UNREADABLE), ("", UNREADABLE), ("lone \ud800", "lone ?")],
    "attempt": [(None, 1), ("3", 1), (True, 1), (0, 1), (-7, 1), (2.0, 1), (float("inf"), 1), ({}, 1), (3, 3)],
    "time": [(None, ""), (7, "")],
    "log": [(None, ""), ([], ""), ("\ud800", "?"), ("a\0b", "a\0b")],
    "traceback": [(None, ""), ({}, "")],
    "guess": [(None, False), (1, False), (True, True)],
    "death": [(None, False), (1, False), (True, True)],
    "config": [(None, None), ([], None), ({}, None), (fakes.config(1), None), (CONFIG | {"seed": float("nan")}, None)],
    "more": [(1, None)],
}


@pytest.mark.parametrize(("name", "value", "read"), [(name, *case) for name, cases in VALUES.items() for case in cases])
def test_a_wrong_value_spoils_nothing_else(failures, name, value, read):
    failures.write(CONFIG, KEY, "it diverged", "Traceback", "run.log")
    path = failures.folder / f"{KEY}.json"
    whole = failures.get(KEY)
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    assert failures.get(KEY) == whole | ({name: read} if name != "more" else {})
    assert inspection.failure_text(failures.get(KEY)).encode()
    failures.write(CONFIG, KEY, "again")
    assert failures.attempts(KEY) == failures.get(KEY)["attempt"] == (read if name == "attempt" else 1) + 1


@pytest.mark.parametrize("text", [b"", b"[]", b"7", b'"text"', b"null", b"{", b"\xff\xfe", b"[" * 10**5])
def test_what_is_no_failure_is_one_attempt_of_unknown_reason(failures, text):
    failures.folder.mkdir(parents=True)
    (failures.folder / f"{KEY}.json").write_bytes(text)
    assert failures.get(KEY) == {
        "key": KEY, "reason": UNREADABLE, "attempt": 1, "time": "", "log": "", "traceback": "",
        "guess": False, "death": False, "config": None,
    }  # fmt: skip


def test_other_things_in_the_place_of_failures(failures, tmp_path):
    (failures.folder / f"{KEY}.json").mkdir(parents=True)
    assert failures.get(KEY)["reason"] == UNREADABLE and failures.keys() == [KEY]
    (failures.folder / f"{KEY}.json").rmdir()
    (failures.folder / f"{KEY}.json").symlink_to("gone")
    assert failures.get(KEY) is None and failures.attempts(KEY) == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "failures").touch()
    other = Failures(tmp_path / "other")
    assert other.get(KEY) is None and other.keys() == [] and other.clear(KEY) is None


def test_the_death_of_a_process_that_had_a_run_is_an_attempt_but_no_failure_yet(tmp_path):
    failures = Failures(tmp_path)
    failures.write(CONFIG, KEY, "it cost its process", guess=True, death=True)
    assert failures.attempts(KEY) == 1 and failures.since(KEY, 0) is None
    failures.write(CONFIG, KEY, "it cost another one", guess=True)
    assert failures.since(KEY, 0)["attempt"] == 2 and failures.since(KEY, 2) is None
