"""Benchmarks, each a function of the number of turns: training steps, and the runner without training."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import datasets
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
from tools.cost import images, modules, trainings
from tools.cost.timing import Measurement, Work, duration, interleave, ratio, threads
from tools.cost.trainings import training_of

RUNS, RECORDS = 50, 10_000
SUITE = Suite(execute=f"{__name__}:train_nothing", limit=f"{__name__}:alone")


def fsvi(repeats: int) -> list[Measurement]:
    """Measure the ratio of an FSVI (last layer) step to a MAP step, on two threads."""
    steps, split = 2, trainings.random_split((1, 28, 28), 10, 256)
    works = {f"{name} step": training_of(trainings.fsvi_parts(name), [split]) for name in ("FSVI", "MAP")}
    with threads(2):
        return [ratio("fsvi", "FSVI step", "MAP step", interleave(works, repeats, steps), count=2, goal=1.5)]


def stacked(repeats: int) -> list[Measurement]:
    """Measure ten splits of boston trained one after another, over the ten as one stack, on one thread."""
    splits = [trainings.boston(i) for i in range(10)]
    found = []
    for method in ("MAP", "MC Dropout", "MFVI"):
        parts = trainings.uci_parts(method, epochs=2)
        looped = trainings.one_by_one([training_of(parts, [split]) for split in splits])
        apart, together = f"{method} looped", f"{method} stacked"
        with threads(1):
            times = interleave({apart: looped, together: training_of(parts, splits)}, repeats)
        found.append(ratio("stacked", apart, together, times, count=1, goal=3.0, at_least=True))
    return found


def hyvi(repeats: int) -> list[Measurement]:
    """Measure milliseconds of one HyVI step on boston, on one thread."""
    goals, split = {"FuNN-HyVI": 18.0, "NN-HyVI": 9.0}, trainings.boston()
    works = {name: training_of(trainings.uci_parts(name, epochs=1), [split]) for name in goals}
    steps = -(-len(split.train) // trainings.uci_parts("NN-HyVI", 1)["training"]["batch_size"])
    with threads(1):
        times = interleave(works, repeats, steps)
    return [duration("hyvi", f"{name} step", took, goal=goals[name]) for name, took in times.items()]


def catalogue(repeats: int) -> list[Measurement]:
    """Measure the ratio of each method's step to MAP's on the digits network, on one thread."""
    described = datasets.describe("digits")
    steps, split = 4, trainings.random_split(described.shape, described.n_outputs, 4 * 128)
    works = {name: training_of(parts, [split]) for name, parts in trainings.catalogue_parts().items()}
    with threads(1):
        times = interleave(works, repeats, steps)
    goals = {"GFSVI": 6.0}
    return [ratio("catalogue", name, "MAP", times, count=1, goal=goals.get(name)) for name in works if name != "MAP"]


def gfsvi(repeats: int) -> list[Measurement]:
    """Measure milliseconds of a GFSVI step on boston with cinquin2024's 500 context points, on one thread."""
    parts, split = trainings.gfsvi_parts(points=500, epochs=1), trainings.boston()
    with threads(1):
        times = interleave({"GFSVI step, 500 points": training_of(parts, [split])}, repeats)
    return [duration("gfsvi", name, took, goal=56.0) for name, took in times.items()]


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
            summary = runner.run(make_plan(configs, own / "results", own / "state", SUITE))
            return [ReplicaResult({}, 0, [], reason) for reason in summary.failed.values()]

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


BENCHMARKS = {
    "fsvi": fsvi,
    "stacked": stacked,
    "hyvi": hyvi,
    "catalogue": catalogue,
    "gfsvi": gfsvi,
    "overhead": overhead,
    "mlp": images.mlp,
    "cnn": images.cnn,
    "resnet": images.resnet,
    "linearised": images.linearised,
    "draws": images.draws,
    "modules": modules.modules,
    "small": modules.small,
}
