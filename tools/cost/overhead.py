"""Benchmarks of the runner without training: runs that train nothing, and a plan of ten thousand recorded runs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.experiment.execute import Outcome
from benchmarks.metrics.registry import METRICS
from benchmarks.records.config import fixed
from benchmarks.records.form import serialise
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.suite import Suite
from benchmarks.sweep import runner
from benchmarks.sweep.plan import make_plan
from fvi_core.training import ReplicaResult
from tools.cost.timing import Measurement, Work, duration, interleave, threads

RUNS, RECORDS = 50, 10_000
SUITE = Suite(execute=f"{__name__}:train_nothing", limit=f"{__name__}:alone")


def alone(config: RunConfig) -> int:
    """Return the size of a run group: 1, so that runs share none of the runner's work."""
    return 1


def train_nothing(configs: list[RunConfig], *, state: Path, report: Callable[[float, str], None]) -> list[Outcome]:
    """Return outcomes with all metrics, without training."""
    about = {"dataset": configs[0]["dataset"]["name"], "condition": "part=test", "n": 1}
    rows: list[Any] = [
        {"metric": name, **about, "value": min(0.5, metric.range[1])} for name, metric in METRICS.items()
    ]
    return [Outcome(config, "done", rows, provenance={"fingerprint": "", "seconds": 0.0}) for config in configs]


def some_runs() -> Iterator[RunConfig]:
    """Yield runs of every method and data set of table ``uci``, with ever more seeds."""
    firsts = tables.get("uci").runs("paper", (0,))
    return (fixed({**config, "seed": seed}) for seed in count() for config in firsts)


def running(folder: Path, configs: list[RunConfig]) -> Work:
    """Return a sweep over missing runs as timed work, each time in new folders."""
    turns = count()

    def make() -> Callable[[], list[ReplicaResult]]:
        own = folder / str(next(turns))

        def sweep() -> list[ReplicaResult]:
            found = runner.run(make_plan(configs, own / "results", own / "state", SUITE))
            return [ReplicaResult({}, 0, [], reason) for reason in found.failed.values()]

        return sweep

    return make


def planning(folder: Path, configs: list[RunConfig]) -> Work:
    """Return a plan of recorded runs as timed work."""
    results, state = folder / "results", folder / "state"
    store = Store(results, SUITE.metrics)
    for config in configs:
        (outcome,) = train_nothing([config], state=state, report=lambda *_: None)
        path = store.path(config)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(serialise(store.make(config, outcome.metrics, {}, outcome.provenance)))

    def plan() -> list[ReplicaResult]:
        left = make_plan(configs, results, state, SUITE).groups
        return [ReplicaResult({}, 0, [], f"{len(left)} groups are left")] if left else []

    return lambda: plan


def overhead(repeats: int) -> list[Measurement]:
    """Measure the runner's own time for each run, and for a plan of many."""
    with tempfile.TemporaryDirectory() as folder, threads(1):
        run = interleave({"run": running(Path(folder) / "run", list(islice(some_runs(), RUNS)))}, repeats, RUNS)
        plan = interleave({"plan": planning(Path(folder) / "plan", list(islice(some_runs(), RECORDS)))}, repeats)
    return [
        duration("overhead", "a run without training", run["run"], goal=50.0),
        duration("overhead", f"plan of {RECORDS} recorded runs", plan["plan"], goal=2.0, unit="s", scale=1.0),
    ]
