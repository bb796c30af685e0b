"""Fake tables, methods and training that cost nothing, under the names of the real ones; and their command line.

What a run does is written in its configuration: parts["training"]["do"] is "work", "raise", "mute", "exit", "nan",
"die", "partial", "wait" (until a file called go appears in the state folder), "see" (which GPU, then wait), "save"
(until a stop is requested), "hog" (take memory until killed), "warn" or "once" (raise at the first attempt only).
"""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from benchmarks import tables
from benchmarks.errors import unknown
from benchmarks.records.config import canonical_json, run_key
from benchmarks.records.store import Store
from benchmarks.state.checkpoints import stop_requested
from benchmarks.suite import Suite
from benchmarks.sweep import runner
from benchmarks.sweep.estimate import CHECKPOINT
from benchmarks.sweep.plan import PlannedRun, make_plan
from benchmarks.sweep.similar import Cost
from fvi_core.telling import Message

HERE = "tests.benchmarks.fakes"
SUITE = Suite(
    tables=HERE,
    methods=f"{HERE}:catalogue",
    execute=f"{HERE}:execute",
    limit=f"{HERE}:stack_limit",
    metrics=f"{HERE}:METRICS",
    measure="",
    fits=f"{HERE}:misfits",
    reports="",
)


def config(
    seed: int = 0, method: str = "MAP", dataset: str = "digits", do: str = "work", **training: Any
) -> dict[str, Any]:
    """Return the configuration of a run."""
    return {
        "schema": 2,
        "method": method,
        "dataset": {"name": dataset, "version": "fake", "scheme": "", "split": seed, "content": {}},
        "protocol": "smoke",
        "seed": seed,
        "parts": {
            "network": {"name": "mlp"},
            "family": {"name": "point"},
            "divergence": None,
            "prior": None,
            "context": None,
            "fit": None,
            "likelihood": {"name": "categorical"},
            "weight": {"scaling": "elbo", "factor": 1.0},
            "training": {"name": "fake", "do": do, "stack": 1, **training},
        },
        "sources": {},
        "evaluation": {"samples": 1, "sets": ["test"], "content": {}},
    }


@dataclass
class Outcome:
    """Result of one run, as execute returns it."""

    config: dict[str, Any]
    status: str = "done"
    metrics: list[dict] = field(default_factory=list)
    curves: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    reason: str | None = None


METRICS = {"accuracy": SimpleNamespace(version=1), "nll": SimpleNamespace(version=1)}


def store(root: Path | str) -> Store:
    """Return a store of records with the fake metrics."""
    return Store(root, SUITE.metrics)


def sweep(configs: list[dict], workers=None, *, results, state, suite=SUITE, display=None) -> Any:
    """Sweep over configurations."""
    return runner.run(make_plan(configs, results, state, suite), workers, display)


def pending(config: dict[str, Any], **about: Any) -> PlannedRun:
    """Return a planned run that has no record."""
    return PlannedRun(run_key(config), config, **about)


def number(run: dict[str, Any]) -> float:
    """Return the metric of a run, which depends on the configuration alone."""
    return int(hashlib.sha256(canonical_json(run).encode()).hexdigest()[:8], 16) / 2**32


def metric(value: float, dataset: str = "digits") -> dict[str, Any]:
    """Return one row of metrics."""
    return {"dataset": dataset, "condition": "", "metric": "accuracy", "value": value, "n": 10}


def full_disk(*_: Any, **__: Any) -> None:
    """Fail as a call that writes to a full disk does."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def misfits(configs: list[dict[str, Any]]) -> list[str]:
    """Return no misfits."""
    return []


def stack_limit(run: dict[str, Any]) -> int:
    """Return the number of runs that are trained together."""
    return run["parts"]["training"]["stack"]


class Mute(Exception):
    """Error whose message raises an error or cannot be printed."""

    def __str__(self) -> str:
        if self.args[0]:
            raise OSError
        return "lone \ud800"


def execute(configs: list[dict[str, Any]], *, state: Path, report) -> list[Outcome]:
    """Do what the configurations say. Every call adds a line for each run to <state>/trained."""
    todo = configs[0]["parts"]["training"]
    with open(Path(state) / "trained", "a") as file:
        file.write("".join(f"{c['method']} {c['seed']} {os.getpid()}\n" for c in configs))
    if todo["do"] == "see":
        (Path(state) / f"device-{os.getpid()}").write_text(os.environ["CUDA_VISIBLE_DEVICES"])
    print("training", len(configs), "runs")
    report(0.5, "half way")
    if todo["do"] == "warn":
        report(0.6, Message("a checkpoint is not used: it is old", "loss"))
        for run in configs:
            report(0.7, Message("the predictions cannot be written (No space left)", "warning", about=run_key(run)))
    if todo["do"] == "raise":
        raise RuntimeError("the loss\nexploded")
    if todo["do"] == "mute":
        print("lone \ud800")
        raise Mute(configs[0]["seed"])
    if todo["do"] == "exit":
        raise SystemExit(0)
    if todo["do"] == "die" and configs[0]["seed"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if todo["do"] == "once" and not (Path(state) / "tried").exists():
        (Path(state) / "tried").touch()
        raise MemoryError
    while todo["do"] == "save":
        if stop_requested():
            (Path(state) / "saved").touch()
            raise KeyboardInterrupt
        time.sleep(0.02)
    taken = []
    while todo["do"] == "hog":
        taken.append(b"x" * 2**24)
        time.sleep(0.02)
    while todo["do"] in ("see", "wait") and not (Path(state) / "go").exists():
        report(0.6, "waiting")
        time.sleep(0.02)
    time.sleep(todo.get("seconds", 0))
    outcomes = []
    for run in configs:
        if todo["do"] == "partial" and run["seed"] == 1:
            outcomes.append(Outcome(run, "failed", reason="diverged at step 3"))
        else:
            value = float("nan") if todo["do"] == "nan" else number(run)
            curves = {"roc": {"x": [0.0, 1.0], "y": [0.0, value]}} if todo["do"] != "nan" else {}
            outcomes.append(
                Outcome(
                    run,
                    metrics=[metric(value, run["dataset"]["name"])],
                    curves=curves,
                    provenance={"fingerprint": "f", "seconds": 0.1},
                )
            )
    return outcomes


def known_cost(known: Any, config: dict[str, Any], same: Any, stack: int) -> Cost | None:
    """Return the cost in parts["training"]["cost"]; takes the place of Known.cost."""
    training = config["parts"]["training"]
    if "cost" not in training:
        return None
    return Cost(training["cost"], training["cost"] / 10, CHECKPOINT)


@dataclass
class Column:
    """Column of a fake table, where no row has a condition of its own."""

    cell: Any
    label: str
    scale: float
    digits: int
    published: Any = None

    def cell_of(self, row: Any) -> Any:
        """Return the cell of a row."""
        return self.cell

    def published_key(self, row: Any) -> tuple[str, str, str, str] | None:
        """Return the key of a row's published number."""
        cell = self.published or self.cell
        return (cell.dataset, cell.condition, row.published, cell.metric) if row.published else None


class Table:
    """Table of five seeds of one method."""

    paper, number, title = None, None, "A table of nothing"
    protocols, default_protocol, aliases, gpu = ("paper", "smoke"), "smoke", (), ()
    check_protocol = tables.Table.check_protocol
    recorded: ClassVar[dict[str, str]] = {}
    recorded_as = tables.Table.recorded_as
    cell_runs, plans = tables.Table.cell_runs, tables.Table.plans
    runs, keys_of_rows = tables.Table.runs, tables.Table.keys_of_rows

    def __init__(self, name: str, do: str = "work", n: int = 5, **training: Any) -> None:
        self.name, self.n, self.training = name, n, {"do": do, **training}
        cell = SimpleNamespace(dataset="digits", condition="", metric="accuracy")
        self.rows = (
            SimpleNamespace(label="MAP", published=None, method="MAP", added=False),
            SimpleNamespace(label="Nobody's", published=None, method=None, added=False),
        )
        self.columns = (Column(cell=cell, label="accuracy", scale=100, digits=1),)

    datasets = ("digits",)

    def lacks(self, row: Any, dataset: str, protocol: str) -> str:
        """Return why a row cannot be planned; empty if it can."""
        return ""

    def replicates(self, protocol: str) -> int:
        """Return the number of runs of a cell."""
        return self.n

    def metrics_of_runs(self, protocol: str, seeds: list[int] | None = None) -> dict[str, set[str]]:
        """Return the metrics of each run by key."""
        return {run_key(run): {"accuracy"} for run in self.runs(protocol, seeds)}

    def row_runs(self, row, dataset: str, protocol: str, seeds: list[int] | None = None) -> list[dict[str, Any]]:
        """Return the runs of a row."""
        kept = [seed for seed in range(self.n) if row.method and (seeds is None or seed in seeds)]
        return [config(seed, **self.training) for seed in kept]


TABLES = {
    t.name: t
    for t in (
        Table("fake"),
        Table("fake-none", n=0),
        Table("fake-raise", "raise"),
        Table("fake-die", "die"),
        Table("fake-warn", "warn", n=2, stack=2),
        Table("fake-once", "once", n=1),
        Table("fake-wait", "wait", n=4),
        Table("fake-save", "save", n=2),
        Table("fake-slow", n=12, seconds=0.15),
        Table("fake-stacked", "partial", n=3, stack=3),
    )
}


def names() -> list[str]:
    """Return the names of the fake tables."""
    return list(TABLES)


def get(name: str) -> Table:
    """Return a fake table by its name."""
    if name not in TABLES:
        raise unknown("table", name, TABLES)
    return TABLES[name]


def catalogue() -> dict[str, Any]:
    """Return the fake methods."""
    return {"MAP": SimpleNamespace(name="MAP", description="one point", paper="none")}


if __name__ == "__main__":
    from benchmarks.commands.cli import build

    build(SUITE)(sys.argv[1:])
