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
from benchmarks.shapes import Provenance, RunConfig
from benchmarks.state import kept
from benchmarks.state.checkpoints import Progress, progress
from benchmarks.state.costs import AT_MOST, EXACT, Cost, Costs
from benchmarks.sweep.groups import RunGroup
from benchmarks.sweep.plan import MEANINGLESS
from benchmarks.sweep.similar import similar

RECORDS, CHECKPOINT, TIMED = "records", "a checkpoint", "timed steps"


class Known:
    """Costs by kind of run."""

    def __init__(self, store: Store, state: Path) -> None:
        self.store, self.state = store, state
        device = provenance.expected_device()
        self.machine: dict[str, Any] = {"code": CODE, "cpu": provenance.cpu(), "device": device, "threads": 1}
        self.costs = Costs(state, self.machine)
        self._read: dict[Path, list[tuple[RunConfig, Cost, str]]] = {}
        self._kinds: dict[Path, dict[str, list[Cost]]] = {}

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

    def alike(self, config: RunConfig) -> Cost | None:
        """What a run costs by its method's records on its data set, whatever their settings, in proportion to their
        work: those of this machine's like, without any those of other processors. Those of smoke tell nothing, since
        they cost little but their start.
        """
        meant = [one for one in self._records(config) if one[0]["protocol"] != MEANINGLESS]
        here = [(other, cost) for other, cost, cpu in meant if _one_model(cpu, self.machine["cpu"])]
        return similar(config, here or [(other, cost) for other, cost, _ in meant])

    def _recorded(self, config: RunConfig) -> Cost | None:
        folder = self.store.path(config).parent
        if folder not in self._kinds:
            kinds: dict[str, list[Cost]] = defaultdict(list)
            self._kinds[folder] = kinds
            for recorded, cost, cpu in self._records(config):
                if not _one_model(cpu, self.machine["cpu"]):
                    continue
                for kind in (kind_key(recorded), stack_key(recorded)):
                    kinds[kind].append(cost)
        found = self._kinds[folder]
        same = found.get(kind_key(config)) or found.get(stack_key(config)) or []
        evaluations = [cost.evaluation for cost in found.get(kind_key(config), []) if cost.evaluation is not None]
        if not same:
            return None
        return Cost(median(cost.training for cost in same), median(evaluations) if evaluations else None)

    def _records(self, config: RunConfig) -> list[tuple[RunConfig, Cost, str]]:
        """What a method's records on a data set cost that were made on this machine's kind of device, and the processor
        of each.
        """
        folder = self.store.path(config).parent
        if folder not in self._read:
            self._read[folder] = [
                (record["config"], cost, str(record["provenance"].get("cpu")))
                for record in self.store.beside(config)
                if (cost := self._cost_of(record["provenance"]))
            ]
        return self._read[folder]

    def _cost_of(self, about: Provenance) -> Cost | None:
        same = about.get("device") == self.machine["device"] and about.get("threads") == self.machine["threads"]
        training = _seconds(about, "seconds")
        if training is None or not same:
            return None
        return Cost(training + (_seconds(about, "fit_seconds") or 0.0), _seconds(about, "evaluate_seconds"))


def stops_early(config: RunConfig) -> bool:
    """Whether training may end before its last epoch."""
    training = config["parts"]["training"]
    return bool(training.get("early_stopping")) or (training.get("schedule") or {}).get("name") == "plateau"


def _one_model(one: str, other: str) -> bool:
    """Whether two processors cost alike: of one name, and of other numbers only where one of them has none."""
    names = {one.partition(" (family ")[0], other.partition(" (family ")[0]}
    return one == other or (len(names) == 1 and not ("(family" in one and "(family" in other))


def _seconds(about: Mapping[str, Any], name: str) -> float | None:
    value = about.get(name)
    return float(value) if isinstance(value, int | float) and value >= 0 else None
