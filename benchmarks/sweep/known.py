"""Costs of runs on this machine, from records and checkpoints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.experiment.code import CODE
from benchmarks.records import provenance
from benchmarks.records.config import kind_key, run_key, stack_key, training_key
from benchmarks.records.form import slug
from benchmarks.records.store import Store
from benchmarks.shapes import Provenance, Record, RunConfig
from benchmarks.state import kept
from benchmarks.state.checkpoints import Progress, progress
from benchmarks.sweep.groups import RunGroup
from benchmarks.sweep.plan import MEANINGLESS
from benchmarks.sweep.similar import AT_MOST, EXACT, Cost, Recorded, similar, stops_early

RECORDS, ELSEWHERE, CHECKPOINT, SIMILAR = (
    "records",
    "records of another processor",
    "a checkpoint",
    "records of similar runs, in proportion to the work",
)


class Known:
    def __init__(self, store: Store, state: Path) -> None:
        self.store, self.state = store, state
        device = provenance.expected_device()
        self.machine: dict[str, Any] = {"cpu": provenance.cpu(), "device": device, "threads": 1}
        self._read: dict[Path, list[Recorded]] = {}
        self._kinds: dict[Path, dict[str, list[Recorded]]] = {}

    def cost(self, group: RunGroup, config: RunConfig) -> tuple[Cost, str] | None:
        """Return the cost of a run of a group and the source of this estimate."""
        recorded = self._recorded(config, here=True)
        if recorded:
            return recorded, RECORDS
        checkpoints = (self._checkpoint(each) for each in group.configs)
        if interrupted := next((seconds for seconds in checkpoints if seconds), None):
            return Cost(interrupted, None, AT_MOST if stops_early(config) else EXACT), CHECKPOINT
        elsewhere = self._recorded(config, here=False)
        return (elsewhere, ELSEWHERE) if elsewhere else None

    def done(self, config: RunConfig) -> float:
        """Fraction of a run's training that its checkpoint saves."""
        found = progress(self.state, training_key(config))
        return found.epoch / found.epochs if found and found.epochs and self._usable(found) else 0.0

    def measurable(self, config: RunConfig) -> bool:
        """Whether a run has a stale record that can be measured again from stored predictions."""
        return self.store.path(config).exists() and kept.predictions_path(self.state, run_key(config)).exists()

    def _usable(self, found: Progress) -> bool:
        """Whether training could resume from a checkpoint, judged without loading the data."""
        device = "cpu" if self.machine["device"] == "cpu" else "cuda"
        wanted = {"code": CODE, "device": device, "threads": self.machine["threads"]}
        return all(found.made.get(name) == value for name, value in wanted.items())

    def _checkpoint(self, config: RunConfig) -> float | None:
        """Seconds of a training, extrapolated from its checkpoint."""
        found = progress(self.state, training_key(config))
        if not found or not self._usable(found) or found.made.get("cpu") != self.machine["cpu"]:
            return None
        return found.seconds / found.epoch * found.epochs / found.trainings if found.epoch and found.trainings else None

    def alike(self, config: RunConfig) -> Cost | None:
        """Cost of a run by records of its method on any data: records of this machine's processor if there are any,
        else of other processors. Records of protocol smoke do not count: they measure little but start-up."""
        folders = sorted(self.store.root.glob(f"*/{slug(config['method'])}"))
        meant = [one for folder in folders for one in self.records(folder) if one.config["protocol"] != MEANINGLESS]
        return similar(config, [one for one in meant if self._here(one)] or meant)

    def _recorded(self, config: RunConfig, here: bool) -> Cost | None:
        """Cost of a run by records of its kind, on this processor or on others.

        It is the lower quartile, because times are longer for runs trained beside other work.
        """
        folder = self.store.path(config).parent
        if folder not in self._kinds:
            kinds: dict[str, list[Recorded]] = defaultdict(list)
            self._kinds[folder] = kinds
            for one in self.records(folder):
                for kind in (kind_key(one.config), stack_key(one.config)):
                    kinds[kind].append(one)
        same, training = (
            [one.cost for one in self._kinds[folder].get(key, []) if self._here(one) == here]
            for key in (kind_key(config), stack_key(config))
        )
        evaluations = [cost.evaluation for cost in same if cost.evaluation is not None]
        if not training:
            return None
        return Cost(low([cost.training for cost in same or training]), low(evaluations) if evaluations else None)

    def _here(self, one: Recorded) -> bool:
        return _one_model(one.cpu, self.machine["cpu"])

    def records(self, folder: Path) -> list[Recorded]:
        """Return the records of a method on a data set, made on this machine's kind of device."""
        if folder not in self._read:
            self._read[folder] = [
                Recorded(record["config"], cost, share_of_epochs(record), str(record["provenance"].get("cpu")))
                for record in self.store.beside(folder)
                if (cost := self._cost_of(record["provenance"]))
            ]
        return self._read[folder]

    def _cost_of(self, about: Provenance) -> Cost | None:
        same = about.get("device") == self.machine["device"] and about.get("threads") == self.machine["threads"]
        training = _number(about, "seconds")
        if training is None or not same:
            return None
        own = training * min(1.0, _number(about, "busy") or 1.0)
        return Cost(own + (_number(about, "fit_seconds") or 0.0), _number(about, "evaluate_seconds"))


def share_of_epochs(record: Record) -> float:
    """Return the fraction of epochs that a training took: 1 where it did not end early or the record has no number."""
    planned, made = record["config"]["parts"]["training"].get("epochs"), _number(record["provenance"], "epochs")
    return min(1.0, made / planned) if planned and made else 1.0


def low(seconds: list[float]) -> float:
    """Return the lower quartile, always one of the values."""
    return sorted(seconds)[(len(seconds) - 1) // 4]


def _one_model(one: str, other: str) -> bool:
    """Whether two processors cost alike: the same name, and the same numbers unless one of them has none."""
    names = {one.partition(" (family ")[0], other.partition(" (family ")[0]}
    return one == other or (len(names) == 1 and not ("(family" in one and "(family" in other))


def _number(about: Mapping[str, Any], name: str) -> float | None:
    value = about.get(name)
    return float(value) if isinstance(value, int | float) and value >= 0 else None
