"""Sweeps of small real trainings in processes that are killed; loaded once by the server that forks them."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch

import benchmarks.experiment.execute  # noqa: F401  (heavy: loaded here, so that what is forked begins at once)
from benchmarks.records import provenance
from benchmarks.records.store import Store
from benchmarks.state import checkpoints
from benchmarks.suite import Suite
from benchmarks.sweep import runner
from benchmarks.sweep.plan import make_plan
from benchmarks.tables import Recipe
from tests.configs import make_config

SUITE = Suite(limit=f"{__name__}:stack_limit")
TOUCHES = ("open", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.symlink", "os.utime")
PLATEAU = {"name": "plateau", "factor": 0.3, "patience": 0, "min_lr": 0.03, "threshold": 0.02}

provenance.collect()  # asks git, which must not be killed within the checkout
torch.broadcast_shapes((1,), (2,))  # loads what it needs when it is first called


def stack_limit(config: dict[str, Any]) -> int:
    """Return the number of runs that are trained together."""
    return 3


def table() -> list[dict[str, Any]]:
    """Return runs that form stacks of three and of two; replicas of the last stack end at different epochs."""
    rows = (("MAP", 3, {}), ("FSVI", 3, {}), ("MFVI", 3, {"epochs": 9, "schedule": PLATEAU}))
    found = []
    for method, epochs, training in rows:
        common = {
            "network": {"name": "mlp", "hidden": [6], "activation": "tanh"},
            "likelihood": {"name": "gaussian"},
            "training": {"epochs": epochs, "batch_size": 50, "optimiser": {"name": "adam", "lr": 0.3}, **training},
        }
        parts = common | ({"context": {"name": "uniform_box", "points": 5}} if method == "FSVI" else {})
        found += [make_config(method, "cinquin_1d", "smoke", Recipe(parts, (), samples=5), i, i) for i in range(5)]
    return found


def left(folder: Path) -> list[dict[str, Any]]:
    """Return the runs without a record."""
    store = Store(folder / "results", SUITE.metrics)
    return [config for config in table() if not store.path(config).exists()]


def sweep(folder: Path, event: str = "", fatal: int = 0) -> None:
    """Sweep with a checkpoint after every epoch; be killed before the ``fatal``-th event of a kind (any, if "") that
    touches a file of the folder. A process that lives writes the number of events and the keys of its runs."""
    os.environ[checkpoints.VARIABLE] = "0"
    runner.LOOK_AGAIN = 0.02
    touched: Counter[str] = Counter()

    def touch(found: str, arguments: tuple) -> None:
        if found in TOUCHES and any(str(argument).startswith(str(folder)) for argument in arguments[:2]):
            touched.update((found, ""))
            if touched[event] == fatal:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(touch)
    folders = {"results": folder / "results", "state": folder / "state"}
    summary = runner.run(make_plan(table(), **folders, suite=SUITE))
    (folder / f"made-{os.getpid()}.json").write_text(json.dumps({"made": summary.made, "touched": touched}))
    assert summary.complete, summary
