"""Records of runs on other files than those at hand: given where a run has none of its own, and named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.records.other_files import OtherFiles
from benchmarks.records.store import Store
from tests.benchmarks import fakes


def of_files(seed: int, training: dict[str, str], test: dict[str, str] | None = None) -> dict[str, Any]:
    config = fakes.config(seed)
    dataset = {**config["dataset"], "content": training}
    return {**config, "dataset": dataset, "evaluation": {**config["evaluation"], "content": test or {}}}


def write(folder: Path, config: dict[str, Any], value: float) -> Path:
    store = fakes.store(folder)
    return store.write(store.make(config, [fakes.metric(value)], {}, {}))


def value(store: Store, config: dict[str, Any]) -> float | None:
    record = store.get(config)
    return record["metrics"][0]["value"] if record else None


@pytest.fixture
def store(tmp_path: Path) -> OtherFiles:
    return OtherFiles(tmp_path, fakes.store("").metrics)


def test_a_run_of_other_files_stands_in_for_one_without_a_record(store: OtherFiles, tmp_path: Path) -> None:
    first = write(tmp_path, of_files(0, {"digits/train": "a" * 16}, {"digits/test": "b" * 16}), 0.25)
    write(tmp_path, of_files(1, {"digits/train": "a" * 16}), 0.5)
    assert fakes.store(tmp_path).get(of_files(0, {})) is None
    assert [value(store, of_files(seed, {})) for seed in range(3)] == [0.25, 0.5, None]
    assert store.status(of_files(0, {}))[0] == "done"
    assert set(store.used) == {f"digits/train {'a' * 16}", f"digits/test {'b' * 16}"}
    assert store.used[f"digits/test {'b' * 16}"] == {first} and len(store.used[f"digits/train {'a' * 16}"]) == 2


def test_a_record_of_the_files_at_hand_goes_first(store: OtherFiles, tmp_path: Path) -> None:
    write(tmp_path, of_files(0, {"digits/train": "a" * 16}), 0.25)
    write(tmp_path, of_files(0, {}), 0.75)
    assert value(store, of_files(0, {})) == 0.75 and not store.used
    assert value(store, of_files(0, {"digits/train": "c" * 16})) in (0.25, 0.75)


def test_who_has_own_files_sees_records_of_the_usual_ones(store: OtherFiles, tmp_path: Path) -> None:
    write(tmp_path, of_files(0, {}), 0.75)
    assert value(store, of_files(0, {"digits/train": "c" * 16})) == 0.75 and not store.used


@pytest.mark.parametrize("change", [{"protocol": "short"}, {"seed": 7}])
def test_nothing_else_may_differ(store: OtherFiles, tmp_path: Path, change: dict[str, Any]) -> None:
    write(tmp_path, of_files(0, {"digits/train": "a" * 16}) | change, 0.25)
    assert value(store, of_files(0, {})) is None and not store.used


def test_what_is_no_record_is_left_out(store: OtherFiles, tmp_path: Path) -> None:
    path = write(tmp_path, of_files(0, {"digits/train": "a" * 16}), 0.25)
    (path.parent / "damaged.json").write_bytes(path.read_bytes()[:-30])
    (path.parent / ".half.json").write_bytes(path.read_bytes())
    assert value(store, of_files(0, {})) == 0.25
