"""A record's commit can be looked up, or is listed with the one that stands for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.commands.inspection import record_text
from benchmarks.records import provenance
from benchmarks.records.provenance import ROOT, git, lost_commits, lost_remark
from benchmarks.records.store import Store


@pytest.fixture(scope="module")
def history() -> set[str]:
    if git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("no whole history here")
    return set((git("rev-list", "HEAD") or "").split())


def named(folder: Path) -> Iterator[str]:
    """Commits of trainings and of later measurements."""
    for file in folder.rglob("*.json"):
        about = json.loads(file.read_bytes())["provenance"]
        yield about["commit"]
        if "evaluated" in about:
            yield about["evaluated"]["commit"]


def test_commits_of_records_are_of_the_history_or_listed(history: set[str]) -> None:
    listed = lost_commits()
    assert set(named(ROOT / "results")) - history <= set(listed), "lost_commits.csv lacks some"
    assert not set(listed) & history and set(listed.values()) <= history


def test_what_is_said_of_a_lost_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = tmp_path / "lost_commits.csv"
    listed.write_text(f"commit,code\n{'a' * 40},{'b' * 40}\n")
    monkeypatch.setattr(provenance, "LOST", listed)
    lost_commits.cache_clear()
    try:
        assert lost_remark("a" * 40) == " (not in this history; its code came with bbbbbbb)"
        assert lost_remark("c" * 40) == ""
        store = Store(ROOT / "results")
        path = next(iter(store.paths().values()))
        record = store.read(path)
        record["provenance"]["commit"] = "a" * 40
        assert f"commit: {'a' * 40} (not in this history" in record_text(record, path)
    finally:
        lost_commits.cache_clear()
