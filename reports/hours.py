"""Cost of a table's runs and of missing ones, from records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from benchmarks.records.config import kind_key, run_key, stack_key, training_key
from benchmarks.shapes import RunConfig
from fvi_core.telling import plural
from reports.records import Recorded


@dataclass(frozen=True)
class Hours:
    """Hours of a table. runs: recorded; spent: their hours, each training counted once; lacking: runs without a record;
    known: those of them whose training is recorded with another seed or split; wanted: hours that these would take;
    device: whether a GPU took part."""

    runs: int = 0
    spent: float = 0.0
    lacking: int = 0
    known: int = 0
    wanted: float = 0.0
    device: bool = False

    @property
    def sentence(self) -> str:
        """Return a sentence for a table's caption; empty where nothing is recorded."""
        if not self.runs:
            return ""
        unit = "hours of a core or a GPU" if self.device else "core-hours"
        spent = f"Cost, by their records: {plural(self.runs, 'run')} took {_amount(self.spent)} {unit}"
        if not self.lacking:
            return f"{spent}."
        unknown = self.lacking - self.known
        costs = [f"{self.known} would take {_amount(self.wanted)}"] if self.known else []
        costs += [f"the cost of {unknown} is not known, as none of their kind is recorded"] if unknown else []
        return f"{spent}. Without a record: {plural(self.lacking, 'run')}; {', '.join(costs)}."


def hours(planned: Iterable[tuple[RunConfig, Recorded | None]]) -> Hours:
    """Sum hours over runs and their records (None: missing); a missing run costs the median of its kind."""
    runs = {run_key(config): (config, record) for config, record in planned}.values()
    recorded = [(config, record) for config, record in runs if record]
    trainings = {training_key(config): record.seconds[0] or 0.0 for config, record in recorded}
    spent = sum(trainings.values()) + sum(record.seconds[1] or 0.0 for _, record in recorded)
    device = any(record.accelerated for _, record in recorded)
    lacking = [config for config, record in runs if not record]
    if not lacking:
        return Hours(len(recorded), spent / 3600, device=device)
    training: dict[str, list[float]] = defaultdict(list)
    evaluation: dict[str, list[float]] = defaultdict(list)
    sought = {_method_and_data(config) for config in lacking}
    for config, record in (each for each in recorded if _method_and_data(each[0]) in sought):  # keys take long
        for costs, key, value in zip((training, evaluation), (stack_key(config), kind_key(config)), record.seconds):
            if value is not None:
                costs[key].append(value)
    known, wanted = 0, 0.0
    for config in lacking:
        if like := training.get(stack_key(config)):
            known += 1
            # Another run may have or need this very training too.
            wanted += 0.0 if training_key(config) in trainings else median(like)
            trainings[training_key(config)] = 0.0
            wanted += median(evaluation.get(kind_key(config), [0.0]))
    return Hours(len(recorded), spent / 3600, len(lacking), known, wanted / 3600, device)


def _method_and_data(config: RunConfig) -> tuple[str, str]:
    """Return method and data set: equal for equal stack keys, and found much faster than these."""
    return config["method"], config["dataset"]["name"]


def _amount(hours: float) -> str:
    """Format hours with two digits."""
    if hours < 0.005:
        return "less than 0.01"
    return f"{hours:.2f}" if hours < 1 else f"{hours:.1f}" if hours < 10 else f"{hours:,.0f}"
