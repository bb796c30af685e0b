"""What runs cost on this machine, as far as that is known: from records, checkpoints, earlier timings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.experiment.code import CODE
from benchmarks.records import provenance
from benchmarks.records.config import kind_key, run_key, stack_key, training_key
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.state import kept
from benchmarks.state.checkpoints import Progress, progress
from benchmarks.state.costs import AT_MOST, EXACT, Cost, Costs
from benchmarks.sweep.groups import RunGroup

RECORDS, CHECKPOINT, TIMED = "records", "a checkpoint", "timed steps"


class Known:
    """Costs by kind of run. ``threads``: of a process that trains."""

    def __init__(self, store: Store, state: Path, threads: int = 1) -> None:
        self.store, self.state = store, state
        device = provenance.expected_device()
        self.machine: dict[str, Any] = {"code": CODE, "cpu": provenance.cpu(), "device": device, "threads": threads}
        self.costs = Costs(state, self.machine)
        self._read: dict[Path, dict[str, list[tuple[float, float | None]]]] = {}

    def cost(self, group: RunGroup, config: RunConfig) -> tuple[Cost, str] | None:
        """What a run of a group costs, and what tells it."""
        found = self._recorded(config)
        if found:
            return found, RECORDS
        checkpoints = (self._checkpoint(each) for each in group.configs)
        interrupted = next((cost for cost in checkpoints if cost), None)
        timed = self.costs.get(kind_key(config))
        if interrupted:
            evaluation = timed.evaluation if timed else None
            return Cost(interrupted, evaluation, AT_MOST if stops_early(config) else EXACT), CHECKPOINT
        return (timed, TIMED) if timed else None

    def done(self, config: RunConfig) -> float:
        """How much of a run's training a checkpoint spares."""
        found = progress(self.state, training_key(config))
        return found.epoch / found.epochs if found and found.epochs and self._usable(found) else 0.0

    def measurable(self, config: RunConfig) -> bool:
        """Whether a run has a record, a stale one then, and predictions that it can be measured again from."""
        return self.store.path(config).exists() and kept.predictions_path(self.state, run_key(config)).exists()

    def _usable(self, found: Progress) -> bool:
        """Whether training would go on from a checkpoint, as far as can be told without the data."""
        device = "cpu" if self.machine["device"] == "cpu" else "cuda"
        wanted = {"code": CODE, "device": device, "threads": self.machine["threads"]}
        return all(found.made.get(name) == value for name, value in wanted.items())

    def _checkpoint(self, config: RunConfig) -> float | None:
        """Seconds of a training, as its checkpoint tells."""
        found = progress(self.state, training_key(config))
        if not found or not self._usable(found) or found.made.get("cpu") != self.machine["cpu"]:
            return None
        return found.seconds / found.epoch * found.epochs / found.trainings if found.epoch and found.trainings else None

    def _recorded(self, config: RunConfig) -> Cost | None:
        folder = self.store.path(config).parent
        if folder not in self._read:
            self._read[folder] = self._costs_in(config)
        found = self._read[folder]
        same = found.get(kind_key(config)) or found.get(stack_key(config)) or []
        evaluations = [seconds for _, seconds in found.get(kind_key(config), []) if seconds is not None]
        if not same:
            return None
        return Cost(median(seconds for seconds, _ in same), median(evaluations) if evaluations else None)

    def _costs_in(self, config: RunConfig) -> dict[str, list[tuple[float, float | None]]]:
        """Seconds of training and evaluation in a method's records on a data set, by kind and by stack key."""
        found: dict[str, list[tuple[float, float | None]]] = defaultdict(list)
        for record in self.store.beside(config):
            about = record["provenance"]
            same = about.get("device") == self.machine["device"] and about.get("threads") == self.machine["threads"]
            training = _seconds(about, "seconds")
            if training is None or not same or not _one_model(str(about.get("cpu")), self.machine["cpu"]):
                continue
            cost = training + (_seconds(about, "fit_seconds") or 0.0), _seconds(about, "evaluate_seconds")
            for kind in (kind_key(record["config"]), stack_key(record["config"])):
                found[kind].append(cost)
        return found


def stops_early(config: RunConfig) -> bool:
    """Whether training may end before its last epoch."""
    training = config["parts"]["training"]
    return bool(training.get("early_stopping")) or "min_lr" in (training.get("schedule") or {})


def _one_model(one: str, other: str) -> bool:
    """Whether two processors cost alike: of one name, and of other numbers only where one of them has none."""
    names = {one.partition(" (family ")[0], other.partition(" (family ")[0]}
    return one == other or (len(names) == 1 and not ("(family" in one and "(family" in other))


def _seconds(about: Mapping[str, Any], name: str) -> float | None:
    value = about.get(name)
    return float(value) if isinstance(value, int | float) and value >= 0 else None
