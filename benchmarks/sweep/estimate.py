"""What a sweep costs, before it begins: from what is known of its kinds of runs, else from a few timed steps.

A kind that no time was left to time is taken to cost what similar kinds do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.records.config import by_training, kind_key, stack_key
from benchmarks.shapes import RunConfig
from benchmarks.state.costs import AT_LEAST, AT_MOST, EXACT, Cost
from benchmarks.sweep.groups import RunGroup, Timed
from benchmarks.sweep.known import TIMED, Known, stops_early
from benchmarks.sweep.similar import passes, similar
from benchmarks.sweep.where import Place

SIMILAR = "similar runs"
LATE = "no time was left to time it"
LONGEST = 24 * 3600.0  # seconds that a sweep may take on this machine if nobody says that it may take more
BUDGET = 10.0  # seconds after which no further kind is timed
SHARE = 0.01  # of what the sweep takes by what is timed so far: so many seconds may go into timing, if they are more,
MOST = 60.0  # but not more than these, and none more where it is already too long to begin by itself
SURE = 3.0  # times LONGEST by records of other settings alone: then nothing is timed
PATIENCE = (
    60.0  # seconds without a word after which a kind is given up: where even a step is long, its cost matters most
)


@dataclass
class Estimate:
    """Seconds on one core. groups: by the keys of a run group, of those whose cost is known.

    sources: runs by what tells their cost; timed: those whose cost a few steps or similar runs tell; unknown: by
    reason, the runs of which nothing is known; trained_only: runs whose evaluation is not counted; bounds: runs by the
    bound that their cost is, "at most" or "at least".
    """

    groups: dict[tuple[str, ...], float] = field(default_factory=dict)
    sources: Counter[str] = field(default_factory=Counter)
    unknown: dict[str, list[RunConfig]] = field(default_factory=dict)
    timed: list[RunConfig] = field(default_factory=list)
    trained_only: int = 0
    bounds: Counter[str] = field(default_factory=Counter)
    runs: int = 0

    @property
    def seconds(self) -> float:
        """Of all that is known."""
        return sum(self.groups.values())

    def wall(self, workers: int) -> float:
        """Seconds that so many workers need at least for what is known."""
        return max(self.seconds / workers, max(self.groups.values(), default=0.0))

    @property
    def not_known(self) -> list[RunConfig]:
        """The runs of which nothing is known."""
        return [config for configs in self.unknown.values() for config in configs]

    @property
    def bound(self) -> str:
        """What the sum is: at least this, where something is not known or not timed to an end; at most this;
        neither.
        """
        if self.unknown or self.bounds[AT_LEAST]:
            return AT_LEAST
        return AT_MOST if self.bounds[AT_MOST] else EXACT


def estimate(
    groups: Sequence[RunGroup],
    known: Known,
    executor: Place,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Estimate:
    """What run groups cost. A kind of which nothing is known is timed by the executor; failing at that stops nothing.

    ``progress`` hears how many kinds are timed, of how many. Timing ends when its time is up: see BUDGET and SHARE.
    Where records of other settings tell that a sweep is far too long to begin here, nothing is timed: see SURE.
    """
    costs: dict[str, tuple[Cost, str]] = {}
    for group in groups:
        for config in group.configs:
            if kind_key(config) not in costs and (told := known.cost(group, config)):
                costs[kind_key(config)] = told
    if not executor.outlives:
        guessed = costs | _alike(groups, costs, known)
        if _sum(groups, guessed, {}, known).wall(max(1, executor.size)) > SURE * LONGEST:
            late = dict.fromkeys(_kinds(groups), LATE)
            guess_late(groups, guessed, late)
            return _sum(groups, guessed, late, known)
    reasons: dict[str, str] = {}
    spent, todo = 0.0, _unknown(groups, costs)
    for done, group in enumerate(todo):
        progress(done, len(todo))
        so_far = _sum(groups, costs, reasons, known).wall(max(1, executor.size))
        if spent >= (BUDGET if so_far > LONGEST else max(BUDGET, min(MOST, SHARE * so_far))):
            reasons = dict.fromkeys(_kinds(todo[done:]), LATE) | reasons
            break
        found = executor.timed(group, PATIENCE) if group.timing else Timed(reason="this suite times nothing")
        spent += found.seconds - found.told.get("once", 0.0)  # what is loaded now need not be loaded for training
        for config in group.configs:
            kind, cost = kind_key(config), _cost(config, found)
            if cost:
                costs[kind] = cost, TIMED
                known.costs.put(kind, cost)
            else:
                reasons[kind] = found.reason or "nothing was told"
    guess_late(groups, costs, reasons)
    return _sum(groups, costs, reasons, known)


def _alike(groups: Sequence[RunGroup], costs: dict[str, tuple[Cost, str]], known: Known) -> dict[str, tuple[Cost, str]]:
    """What records of other settings tell of the kinds whose cost is not known, by kind."""
    found = {kind: known.alike(config) for kind, config in _kinds(groups).items() if kind not in costs}
    return {kind: (cost, SIMILAR) for kind, cost in found.items() if cost}


def guess_late(groups: Sequence[RunGroup], costs: dict[str, tuple[Cost, str]], reasons: dict[str, str]) -> None:
    """Add what similar runs tell of kinds that no time was left for."""
    every = _kinds(groups)
    known = [(config, costs[kind][0]) for kind, config in every.items() if kind in costs]
    for kind, config in every.items():
        if kind not in costs and reasons.get(kind) == LATE and (cost := similar(config, known)):
            costs[kind] = cost, SIMILAR


def _kinds(groups: Sequence[RunGroup]) -> dict[str, RunConfig]:
    """A run of every kind."""
    return {kind_key(config): config for group in groups for config in group.configs}


def _unknown(groups: Sequence[RunGroup], costs: dict[str, Any]) -> list[RunGroup]:
    """A group of every kind of training of which something is not known: the longest of most runs first, but one of
    each method before any other, since similar kinds tell of one another.
    """
    found: dict[str, RunGroup] = {}
    runs: Counter[str] = Counter()
    for group in groups:
        if any(kind_key(config) not in costs for config in group.configs):
            kind = stack_key(group.configs[0])
            found.setdefault(kind, group)
            runs[kind] += len(group.configs)
    turns: Counter[str] = Counter()
    order: list[tuple[bool, int, str]] = []
    for kind in sorted(found, key=lambda kind: -passes(found[kind].configs[0]) * runs[kind]):
        method = found[kind].configs[0]["method"]
        order.append((turns[method] > 0, len(order), kind))
        turns[method] += 1
    return [found[kind] for *_, kind in sorted(order)]


def _cost(config: RunConfig, found: Timed) -> Cost | None:
    """A cost from what timing told."""
    told = found.told
    if "training" in told:
        evaluation = told.get("evaluation", {}).get(kind_key(config))
        return Cost(told["training"], evaluation, AT_MOST if stops_early(config) else EXACT)
    if "steps" in told and found.silent:  # it was given up
        step = told.get("first_step", found.silent)
        bound = EXACT if "first_step" in told else AT_LEAST  # not even one was over
        return Cost((told["setup"] + told["steps"] * step) / told["trainings"], None, bound)
    return None


def _sum(
    groups: Sequence[RunGroup], costs: dict[str, tuple[Cost, str]], reasons: dict[str, str], known: Known
) -> Estimate:
    found = Estimate()
    for group in groups:
        found.runs += len(group.configs)
        lacking = [config for config in group.configs if kind_key(config) not in costs]
        if lacking:
            reason = reasons.get(kind_key(lacking[0]), "not timed yet")
            found.unknown.setdefault(reason, []).extend(group.configs)
            continue
        seconds = 0.0
        for runs in by_training(group.configs).values():
            if all(known.measurable(config) for config in runs):
                continue
            seconds += costs[kind_key(runs[0])][0].training * (1 - known.done(runs[0]))
        for config in group.configs:
            cost, source = costs[kind_key(config)]
            seconds += cost.evaluation or 0.0
            found.trained_only += cost.evaluation is None
            found.sources[source] += 1
            if source in (TIMED, SIMILAR):
                found.timed.append(config)
            found.bounds[cost.bound] += 1
        found.groups[group.keys] = seconds
    return found
