"""The runner's own time is measured on what the runner does: all of it, and nothing else."""

from __future__ import annotations

import pytest

import datasets
from benchmarks.records.store import Store
from benchmarks.sweep.plan import make_plan
from tools.cost import measures
from tools.cost.timing import interleave


@pytest.fixture(autouse=True)
def few(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a cost benchmark reads no data set")

    monkeypatch.setattr(datasets, "load", refuse)
    monkeypatch.setattr(measures, "RUNS", 2)
    monkeypatch.setattr(measures, "RECORDS", 3)


def test_both_are_measured_in_the_units_of_their_goals():
    run, plan = measures.BENCHMARKS["overhead"](1)
    assert (run.name, run.unit, run.goal) == ("a run without training", "ms", 50.0)
    assert (plan.name, plan.unit, plan.goal) == ("plan of 3 recorded runs", "s", 2.0)
    assert run.process / 1e3 > 0 and plan.process > 0


def test_every_turn_makes_every_run(tmp_path):
    runs = [config for _, config in zip(range(3), measures.some_runs())]
    interleave({"run": measures.running(tmp_path, runs)}, repeats=2)
    folders = sorted(tmp_path.iterdir())
    assert len(folders) == 3
    for folder in folders:
        assert make_plan(runs, folder / "results", folder / "state", measures.SUITE).counts["done"] == 3


def test_a_run_that_fails_is_not_timed(tmp_path, monkeypatch):
    monkeypatch.setattr(measures, "train_nothing", lambda configs, **_: [])
    with pytest.raises(RuntimeError, match="run failed while it was timed: .* gave no outcome"):
        interleave({"run": measures.running(tmp_path, [next(measures.some_runs())])}, repeats=1)


def test_the_plan_finds_the_records_of_different_runs(tmp_path):
    runs = [config for _, config in zip(range(3), measures.some_runs())]
    work = measures.planning(tmp_path, runs)
    paths = list(Store(tmp_path / "results").paths().values())
    assert len(paths) == 3 and work()() == []
    paths[0].unlink()
    assert work()()[0].reason == "1 groups are left"
