"""Metrics made again from stored predictions are those made right after training."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from benchmarks.experiment.execute import execute
from benchmarks.experiment.measure import BROKEN, CHANGED, EVALUATED, UNCHANGED, UNKEPT, UNTRAINED, measure
from benchmarks.metrics.distances import GROWN
from benchmarks.records.config import run_key, training_key
from benchmarks.records.store import Store
from benchmarks.state import kept
from benchmarks.suite import Suite
from benchmarks.sweep import runner
from benchmarks.sweep.plan import make_plan
from tests.benchmarks.experiment.test_execute import CURVE, MOONS, config

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


def counts(found):
    return {what: count for what, count in found.counts.items() if count}


def test_records_that_are_up_to_date_are_left_alone(trained):
    store, state, _records = trained
    before = [store.path(case).read_bytes() for case in CASES]
    files = [kept.predictions_path(state, run_key(case)) for case in CASES]
    for path in files:
        os.utime(path, (1, 1))
    seen = []
    found = measure(CASES, store, state, lambda done, outcome: seen.append((done, outcome)))
    assert counts(found) == {UNCHANGED: 2} and seen == [(1, UNCHANGED), (2, UNCHANGED)]
    assert not found.lacking and not found.problems
    assert [store.path(case).read_bytes() for case in CASES] == before
    assert all(path.stat().st_mtime > 1 for path in files), "what was used is not the first to be removed"


def older(store, record):
    """Replace a record by one that lacks a metric and a curve."""
    name = record["metrics"][0]["metric"]
    metrics = [row for row in record["metrics"] if row["metric"] != name]
    old = store.make(record["config"], metrics, {}, record["provenance"])
    del old["metric_versions"][name]
    store.write(old)
    return name


def test_a_missing_metric_and_a_missing_curve_come_back(trained):
    store, state, records = trained
    for case, record in zip(CASES, records, strict=True):
        name = older(store, record)
        assert store.status(case, {name}) == ("stale", f"its record lacks {name}") and store.status(case) == (
            "done",
            "",
        )
    assert counts(measure(CASES, store, state)) == {CHANGED: 2}
    for case, record in zip(CASES, records, strict=True):
        again = store.get(case)
        assert set(again["provenance"].pop("measured")) == {"commit", "dirty", "time"}
        assert again == json.loads(json.dumps(record))


def test_without_predictions_the_parameters_do(trained):
    store, state, records = trained
    for case, record in zip(CASES, records, strict=True):
        older(store, record)
        kept.predictions_path(state, run_key(case)).unlink()
    store.path(CASES[1]).unlink()
    assert counts(measure(CASES, store, state)) == {EVALUATED: 2}
    for case, record in zip(CASES, records, strict=True):
        again = store.get(case)
        assert {"commit", "dirty", "time", "cpu"} <= set(again["provenance"].pop("evaluated"))
        for each in (again, record):
            each["provenance"].pop("evaluate_seconds")
        assert again == json.loads(json.dumps(record)), "the same functions are drawn again"


def test_other_draws_and_sets_need_no_training(trained, monkeypatch):
    store, state, _ = trained
    monkeypatch.setattr("fvi_core.training.Trainer", None)
    more = config("MFVI", dataset=MOONS, sets=("test", "grid"), samples=20)
    fewer = config("MFVI", dataset=MOONS, sets=("test",))
    assert training_key(more) == training_key(fewer) == training_key(CASES[0])
    assert counts(measure([more, fewer], store, state)) == {EVALUATED: 2}
    before, after = (({m["metric"]: m["value"] for m in store.get(case)["metrics"]}) for case in (CASES[0], fewer))
    assert after == {name: value for name, value in before.items() if name in after}
    assert store.get(more)["metrics"] != store.get(CASES[0])["metrics"]


def test_uncertainty_away_from_the_data_comes_from_the_curves_of_a_record(trained):
    store, state, (record, _) = trained
    for case in CASES:
        kept.predictions_path(state, run_key(case)).unlink()
        kept.parameters_path(state, run_key(case)).unlink()
    kept_rows = [row for row in record["metrics"] if row["metric"] not in GROWN]
    versions = {name: version for name, version in record["metric_versions"].items() if name not in GROWN}
    store.write({**record, "metrics": kept_rows, "metric_versions": versions})
    assert counts(measure(CASES, store, state)) == {CHANGED: 1, UNKEPT: 1}
    after = store.get(CASES[0])
    assert after["metric_versions"] == record["metric_versions"] and after["curves"] == record["curves"]
    assert after["metrics"][: len(kept_rows)] == kept_rows and "measured" in after["provenance"]
    before = {row["metric"]: row for row in record["metrics"]}
    assert {row["metric"] for row in after["metrics"]} == set(before)
    for row in after["metrics"][len(kept_rows) :]:
        assert row == {**before[row["metric"]], "value": pytest.approx(before[row["metric"]]["value"], abs=1e-5)}


def test_what_only_training_can_give_is_named(trained):
    store, state, _ = trained
    kept.predictions_path(state, run_key(CASES[0])).unlink()
    for case in CASES:
        kept.parameters_path(state, run_key(case)).unlink()
    store.path(CASES[1]).unlink()
    found = measure(CASES, store, state)
    assert counts(found) == {UNKEPT: 1, UNTRAINED: 1} and found.lacking == [run_key(case) for case in CASES]
    assert not store.path(CASES[1]).exists()


def test_a_damaged_file_is_named_and_stops_no_other(trained):
    store, state, records = trained
    path, before = kept.predictions_path(state, run_key(CASES[0])), store.path(CASES[0]).read_bytes()
    path.write_bytes(path.read_bytes()[:-100])
    older(store, records[1])
    found = measure(CASES, store, state)
    assert counts(found) == {BROKEN: 1, CHANGED: 1}
    (training_data,) = found.problems
    assert run_key(CASES[0]) in training_data and path.name in training_data and "perhaps truncated" in training_data
    assert store.path(CASES[0]).read_bytes() == before


def test_a_sweep_measures_stale_records_again_without_training(trained, monkeypatch):
    store, state, records = trained
    metrics = {run_key(case): {older(store, record)} for case, record in zip(CASES, records, strict=True)}
    kept.predictions_path(state, run_key(CASES[0])).unlink()
    monkeypatch.setattr("fvi_core.training.Trainer", None)
    done = runner.run(make_plan(CASES, store.root, state, Suite(), metrics))
    assert done.complete and sorted(done.made) == sorted(metrics) and done.plan.counts["stale"] == 2
    again = runner.run(make_plan(CASES, store.root, state, Suite(), metrics))
    assert again.plan.counts["done"] == 2


def other_training(store, record):
    """Replace a record by one of another training of the same configuration, as ``again`` does; stale, so that it is
    measured."""
    other = json.loads(json.dumps(record))
    for row in other["metrics"]:
        if row["metric"] in ("accuracy", "rmse"):
            row["value"] *= 0.5
    other["provenance"] |= {"started": "2001-01-01T00:00:00Z", "finished": "2001-01-01T00:00:01Z"}
    older(store, other)


def test_predictions_and_parameters_of_another_training_are_not_used(trained):
    store, state, records = trained
    for record in records:
        other_training(store, record)
    kept.predictions_path(state, run_key(CASES[1])).unlink()
    before = [store.path(case).read_bytes() for case in CASES]
    found = measure(CASES, store, state)
    assert counts(found) == {BROKEN: 2}
    assert all("of another training" in problem or "to another training" in problem for problem in found.problems)
    assert [store.path(case).read_bytes() for case in CASES] == before


def test_parameters_that_do_not_fit_the_network_stop_no_other_run(trained):
    store, state, _records = trained
    for case in CASES:
        kept.predictions_path(state, run_key(case)).unlink()
    path = kept.parameters_path(state, training_key(CASES[0]))
    with np.load(path) as file:
        arrays = {name: value if name == "about" else value[:, :1] for name, value in file.items()}
    np.savez(path, **arrays)
    found = measure(CASES, store, state)
    assert counts(found) == {BROKEN: 1, EVALUATED: 1} and run_key(CASES[0]) in found.problems[0]
