"""Metrics made again from stored predictions are those made right after training."""

from __future__ import annotations

import pytest

from benchmarks import kept, predictions
from benchmarks.config import run_key
from benchmarks.experiment.execute import execute
from benchmarks.experiment.measure import measure
from benchmarks.store import Store
from tests.benchmarks.test_execute import CURVE, MOONS, config

CASES = [
    config("MFVI", dataset=MOONS, sets=("test", "grid")),
    config("MFVI", dataset=CURVE, sets=("test", "grid")),
]


@pytest.fixture
def trained(tmp_path):
    """A store with the record of each case, the state folder, and the records as they were made."""
    store, records = Store(tmp_path / "results"), []
    for outcome in execute_all(tmp_path / "state"):
        records.append(store.make(outcome.config, outcome.metrics, outcome.curves, outcome.provenance))
        store.write(records[-1])
    return store, tmp_path / "state", records


def execute_all(state):
    return [execute([case], state=state)[0] for case in CASES]


def test_records_that_are_up_to_date_are_left_alone(trained):
    store, state, records = trained
    before = [store.path(case).read_bytes() for case in CASES]
    seen = []
    counts = measure(CASES, store, state, lambda done, outcome: seen.append((done, outcome)))
    assert counts["unchanged"] == len(CASES) == counts.total() and seen == [(1, "unchanged"), (2, "unchanged")]
    assert [store.path(case).read_bytes() for case in CASES] == before


def test_a_missing_metric_a_stale_one_and_a_missing_curve_come_back(trained):
    store, state, records = trained
    for record in records:
        name = next(row["metric"] for row in record["metrics"])
        old = dict(record, metrics=[row for row in record["metrics"] if row["metric"] != name], curves={
            "train/points": record["curves"]["train/points"]})
        store.write(store.make(old["config"], old["metrics"], old["curves"], old["provenance"]))
    assert measure(CASES, store, state) == {
        "changed": 2, "unchanged": 0, "without predictions": 0, "without a record": 0}
    for case, record in zip(CASES, records, strict=True):
        again = store.get(case)
        about = again["provenance"].pop("measured")
        assert set(about) == {"commit", "dirty", "time"}
        assert {**again, "sha256": ""} == {**record, "sha256": "", "provenance": again["provenance"]}
        assert again["provenance"] == record["provenance"]


def test_runs_without_predictions_or_record_are_counted_and_left(trained):
    store, state, _ = trained
    kept.predictions_path(state, run_key(CASES[0])).unlink()
    store.path(CASES[1]).unlink()
    counts = measure(CASES, store, state)
    assert counts["without predictions"] == counts["without a record"] == 1 and counts.total() == 2
    assert not store.path(CASES[1]).exists()


def test_damaged_predictions_are_an_error_and_leave_the_record(trained):
    store, state, _ = trained
    path, before = kept.predictions_path(state, run_key(CASES[0])), store.path(CASES[0]).read_bytes()
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(predictions.PredictionsError, match=f"{path.name}.*perhaps truncated"):
        measure(CASES, store, state)
    assert store.path(CASES[0]).read_bytes() == before
