"""Cost of a sweep, estimated from records of the same or similar kinds of runs, and from checkpoints."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.experiment.code import CODE
from benchmarks.records import provenance
from benchmarks.records.config import by_training, fixed, kind_key, run_key, stack_key, training_key
from benchmarks.records.form import slug
from benchmarks.records.store import Store
from benchmarks.shapes import Record, RunConfig
from benchmarks.state import kept
from benchmarks.state.checkpoints import Progress, progress
from benchmarks.sweep.plan import MEANINGLESS, RunGroup
from benchmarks.sweep.similar import SIMILAR, Clock, Cost, Recorded, evaluation, low, paces, similar, stops_early
from benchmarks.sweep.threads import threads
from fvi_core.telling import duration, plural

LONGEST = 24 * 3600.0  # longest sweep, in seconds, that starts on this machine without confirmation
RECORDS, ELSEWHERE, CHECKPOINT = "records", "records of another processor", "a checkpoint"


@dataclass
class Estimate:
    """Estimated seconds of what is left to do, on one idle core. groups: by the keys of a run group, where known.

    saved: by the same keys, the fraction of training that checkpoints or stored parameters have saved;
    ends: by the same keys, the fraction after which training is expected to end;
    sources: runs by the source of their estimate; untried: runs without a record or checkpoint showing that they work;
    unknown: runs without an estimate; trained_only: runs whose evaluation is not included; early: runs that cost at
    most their estimate, since training may end before its last epoch, and no similar one shows where.
    """

    groups: dict[tuple[str, ...], float] = field(default_factory=dict)
    saved: dict[tuple[str, ...], float] = field(default_factory=dict)
    ends: dict[tuple[str, ...], float] = field(default_factory=dict)
    sources: Counter[str] = field(default_factory=Counter)
    unknown: list[RunConfig] = field(default_factory=list)
    untried: list[RunConfig] = field(default_factory=list)
    trained_only: int = 0
    early: int = 0
    runs: int = 0

    @property
    def seconds(self) -> float:
        """Sum over all runs whose cost is known."""
        return sum(self.groups.values())

    def wall(self, workers: int) -> float:
        """Least wall time of so many workers for the runs whose cost is known."""
        return max(self.seconds / workers, max(self.groups.values(), default=0.0))

    @property
    def bound(self) -> str:
        """Kind of bound that the sum is: "at least" where runs have no estimate, "at most", or neither."""
        return "at least" if self.unknown else "at most" if self.early else ""

    @property
    def core_hours(self) -> str:
        """The sum in core-hours, in words: "at least" also where evaluations have no estimate."""
        if len(self.unknown) == self.runs:
            return "not known"
        return hours(self.seconds, "at least" if self.trained_only else self.bound)

    def lines(self, workers: int | None) -> list[str]:
        """Describe the estimate and its sources. workers: how many there are on this machine, if it trains."""
        if not self.runs:
            return []
        lines = [f"estimate: none for {plural(self.runs, 'run')}"]
        if len(self.unknown) < self.runs:
            wall = f", {duration(self.wall(workers))} here with {plural(workers, 'worker')}" if workers else ""
            runs = f"{self.runs - len(self.unknown)} of " * bool(self.unknown) + plural(self.runs, "run")
            cost = hours(self.seconds, "at most" if self.early else "about")
            lines = [f"estimate: {runs}, {cost} core-hours{wall} on otherwise idle cores"]
            details = [f"{plural(count, 'run')} by {source}" for source, count in self.sources.items()]
            details += [f"{self.trained_only} of them without their evaluation"] * bool(self.trained_only)
            details += [f"training may end early in {self.early}"] * bool(self.early)
            lines.append(f"  {', '.join(details)}")
        if self.unknown:
            kinds = list(dict.fromkeys(f"{config['method']} on {config['dataset']['name']}" for config in self.unknown))
            some = ", ".join(kinds[:3]) + (", ..." if len(kinds) > 3 else "")
            runs = f"  not estimated: {plural(len(self.unknown), 'run')} ({some})"
            lines.append(f"{runs}: no record of these methods on a CPU or GPU as here")
        return lines


def hours(seconds: float, bound: str = "") -> str:
    """Return a duration in hours, with two digits where it is short; the bound precedes all but "less than 0.01"."""
    if 0 < seconds < 36:
        return "less than 0.01"
    number = f"{seconds / 3600:.2g}" if seconds < 36_000 else f"{seconds / 3600:,.0f}"
    return f"{bound} {number}".lstrip()


def estimate(groups: Sequence[RunGroup], known: Known) -> Estimate:
    """Return the cost of run groups. A training is counted once for all runs that share it."""
    stacks: dict[str, list[RunGroup]] = defaultdict(list)
    for group in groups:
        stacks[stack_key(group.configs[0])].append(group)
    costs: dict[str, Cost | None] = {}
    for alike in stacks.values():
        same, stack = [config for group in alike for config in group.configs], len(by_training(alike[0].configs))
        for kind, config in {kind_key(config): config for config in same}.items():
            costs[kind] = known.cost(config, same, stack)
    total = Estimate()
    for group in groups:
        total.runs += len(group.runs)
        run_costs = {run.key: costs[kind_key(run.config)] for run in group.runs}
        total.untried += [
            run.config for run in group.runs if (cost := run_costs[run.key]) is None or cost.source == SIMILAR
        ]
        known_costs = {key: cost for key, cost in run_costs.items() if cost is not None}
        if len(known_costs) < len(run_costs):
            total.unknown += group.configs
            continue
        seconds = sum(cost.evaluation or 0.0 for cost in known_costs.values())
        trainings = by_training(group.configs).values()
        saved = {run_key(runs[0]): known.done(runs[0]) for runs in trainings if not all(map(known.measurable, runs))}
        ends = {key: end_after(known_costs[key].share, done) for key, done in saved.items()}
        seconds += sum(
            known_costs[key].training / known_costs[key].share * (ends[key] - done) for key, done in saved.items()
        )
        for run, cost in zip(group.runs, known_costs.values()):
            total.trained_only += cost.evaluation is None
            total.sources[cost.source] += 1
            total.early += cost.source in (CHECKPOINT, SIMILAR) and cost.share == 1 and stops_early(run.config)
        total.groups[group.keys], total.saved[group.keys] = seconds, sum(saved.values()) / len(trainings)
        total.ends[group.keys] = max(ends.values(), default=1.0)
    return total


def end_after(share: float, done: float) -> float:
    """Fraction after which a training ends that is expected to end after a share and has come so far; where that is
    near the share or past it, a quarter more than it has."""
    return min(1.0, max(share, 1.25 * done))


class Known:
    """Costs of runs on this machine, from records and checkpoints."""

    def __init__(self, store: Store, state: Path | str) -> None:
        self.store, self.state = store, state
        self.cpu, self.device, self.threads = provenance.cpu(), provenance.expected_device(), threads()
        self.clock = Clock(self.cpu, own=True)  # whose seconds estimates are
        self._records: dict[Path, list[Recorded]] = {}

    def cost(self, config: RunConfig, same: Sequence[RunConfig], stack: int) -> Cost | None:
        """Return the cost of a run, or None. same: runs of the same training but for seed and split; stack: how many
        trainings are made at once.

        The first of these sources that has it: records of its kind on this processor, checkpoints, records of its kind
        on other processors, records of its method on any data (:func:`benchmarks.sweep.similar.similar`).
        """
        folder, kind = self.store.path(config).parent, stack_key(config)
        recorded = [one for one in self.records(folder) if stack_key(one.config) == kind]
        here = [one for one in recorded if self._here(one)]
        if here:
            return self._recorded(config, [one for one in here if one.clock.own] or recorded, RECORDS)
        if interrupted := next(filter(None, map(self._checkpoint, same)), None):
            return Cost(interrupted, None, CHECKPOINT)
        if recorded:
            return self._recorded(config, recorded, ELSEWHERE)
        return similar(config, map(self.scaled, self._alike(config["method"])), stack)

    def done(self, config: RunConfig) -> float:
        """Fraction of a run's training that is saved: all of it by its parameters, or a part by a checkpoint."""
        if self._made_here(kept.made_with(self.state, training_key(config))):
            return 1.0
        saved = self._usable(config)
        return saved.epoch / saved.epochs if saved and saved.epochs else 0.0

    def measurable(self, config: RunConfig) -> bool:
        """Whether a run has a stale record that can be measured again from stored predictions."""
        return self.store.path(config).exists() and kept.predictions_path(self.state, run_key(config)).exists()

    def records(self, folder: Path) -> list[Recorded]:
        """Return the records of a method on a data set, made on this machine's kind of device."""
        if folder not in self._records:
            self._records[folder] = list(filter(None, map(self._read, self.store.beside(folder))))
        return self._records[folder]

    def _usable(self, config: RunConfig) -> Progress | None:
        """Return a checkpoint that training could resume from, judged without loading the data."""
        saved = progress(self.state, training_key(config))
        return saved if saved and self._made_here(saved.about) else None

    def _made_here(self, about: Mapping[str, Any]) -> bool:
        """Whether what the state folder holds was made by this code and torch, on such a device and threads."""
        wanted = {"code": CODE, "device": "cpu" if self.device == "cpu" else "cuda", "threads": self.threads}
        versions = str(about.get("torch")), provenance.versions().get("torch", "")  # only torch itself tells its build
        same = len({version.partition("+")[0] for version in versions}) == 1
        return same and all(about.get(name) == value for name, value in wanted.items())

    def _checkpoint(self, config: RunConfig) -> float | None:
        """Seconds of a training, extrapolated from its checkpoint."""
        saved = self._usable(config)
        if not saved or saved.about.get("cpu") != self.cpu or not saved.epoch or not saved.trainings:
            return None
        return saved.seconds / saved.epoch * saved.epochs / saved.trainings

    def _alike(self, method: str) -> Iterator[Recorded]:
        """Yield the records of a method, of all processors, since these differ less than methods' settings do. Those of
        protocol smoke do not count: they measure little but start-up."""
        for folder in sorted(self.store.root.glob(f"*/{slug(method)}")):
            yield from self._meant(folder)

    def _meant(self, folder: Path) -> list[Recorded]:
        return [one for one in self.records(folder) if one.config["protocol"] != MEANINGLESS]

    def _recorded(self, config: RunConfig, recorded: Sequence[Recorded], source: str) -> Cost:
        """Cost of a run by records of its kind: the lower quartile."""
        training = [self.scaled(one) for one in recorded]
        known = [one for one in training if kind_key(one.config) == kind_key(config)] or training
        seconds, share = low([one.cost.training for one in known]), low([one.share for one in known])
        return Cost(seconds, evaluation(config, known), source, share)

    @cached_property
    def paces(self) -> dict[Clock, float]:
        """How slow each clock is, by all records: :func:`benchmarks.sweep.similar.paces`."""
        return paces(one for folder in sorted(self.store.root.glob("*/*")) for one in self._meant(folder))

    def scaled(self, one: Recorded) -> Recorded:
        """Return a record with its seconds as this processor would need them, not beside other work."""
        if one.clock == self.clock:
            return one
        pace = self.paces.get(self.clock, median([each for clock, each in self.paces.items() if clock.own] or [0.0]))
        times = math.exp(pace - self.paces.get(one.clock, 0.0))
        evaluated = one.cost.evaluation and one.cost.evaluation * times
        cost = replace(one.cost, training=one.cost.training * times, evaluation=evaluated)
        return replace(one, cost=cost, fit=one.fit * times)

    def _here(self, one: Recorded) -> bool:
        """Whether a record's processor costs what this one does: the same name, and the same numbers if both have
        them."""
        names = {cpu.partition(" (family ")[0] for cpu in (one.clock.cpu, self.cpu)}
        numbers = [cpu for cpu in (one.clock.cpu, self.cpu) if "(family" in cpu]
        return one.clock.cpu == self.cpu or (len(names) == 1 and len(numbers) < 2)

    def _read(self, record: Record) -> Recorded | None:
        """Return what a record says of costs, or None: it has no time, or was made on another kind of device."""
        about, planned = record["provenance"], _number(record["config"]["parts"]["training"], "epochs")
        training, epochs = _number(about, "seconds"), _number(about, "epochs")
        if training is None or about.get("device") != self.device or about.get("threads") != 1:
            return None
        # Fit and evaluation follow at once, beside the same work.
        busy, fit = min(1.0, _number(about, "busy") or 1.0), _number(about, "fit_seconds") or 0.0
        cost = Cost((training + fit) * busy, (_number(about, "evaluate_seconds") or 0.0) * busy or None, RECORDS)
        share = min(1.0, epochs / planned) if planned and epochs else 1.0
        clock = Clock(str(about.get("cpu")), own=bool(_number(about, "busy")))
        return Recorded(fixed(record["config"]), cost, share, clock, _number(about, "stack") or 1.0, fit * busy)


def _number(about: Mapping[str, Any], name: str) -> float | None:
    value = about.get(name)
    return float(value) if isinstance(value, int | float) and value >= 0 else None
