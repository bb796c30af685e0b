"""Cost of a sweep, estimated from records of the same or similar kinds of runs and from checkpoints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.records.config import by_training, kind_key
from benchmarks.shapes import RunConfig
from benchmarks.sweep.groups import RunGroup
from benchmarks.sweep.known import SIMILAR, Known
from benchmarks.sweep.similar import AT_LEAST, AT_MOST, EXACT, Cost

LONGEST = 24 * 3600.0  # longest sweep, in seconds, that starts on this machine without confirmation


@dataclass
class Estimate:
    """Estimated seconds on one core. groups: by the keys of a run group, where the cost is known.

    sources: runs by the source of their estimate; untried: runs without a record or checkpoint showing that they work;
    unknown: runs without an estimate; trained_only: runs whose evaluation is not included; bounds: runs by kind of
    bound.
    """

    groups: dict[tuple[str, ...], float] = field(default_factory=dict)
    sources: Counter[str] = field(default_factory=Counter)
    unknown: list[RunConfig] = field(default_factory=list)
    untried: list[RunConfig] = field(default_factory=list)
    trained_only: int = 0
    bounds: Counter[str] = field(default_factory=Counter)
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
        if self.unknown:
            return AT_LEAST
        return AT_MOST if self.bounds[AT_MOST] else EXACT


def estimate(groups: Sequence[RunGroup], known: Known) -> Estimate:
    """Return the cost of run groups. A training is counted once for all runs that share it."""
    costs: dict[str, tuple[Cost, str]] = {}
    kinds: dict[str, RunConfig] = {}
    for group in groups:
        for config in group.configs:
            kinds.setdefault(kind_key(config), config)
            if kind_key(config) not in costs and (recorded := known.cost(group, config)):
                costs[kind_key(config)] = recorded
    for kind, config in kinds.items():
        if kind not in costs and (alike := known.alike(config)):
            costs[kind] = alike, SIMILAR
    found = Estimate()
    for group in groups:
        found.runs += len(group.configs)
        told = {kind: costs[kind] for kind in map(kind_key, group.configs) if kind in costs}
        found.untried += [
            config for config in group.configs if kind_key(config) not in told or told[kind_key(config)][1] == SIMILAR
        ]
        if any(kind_key(config) not in told for config in group.configs):
            found.unknown += group.configs
            continue
        seconds = sum(
            told[kind_key(runs[0])][0].training * (1 - known.done(runs[0]))
            for runs in by_training(group.configs).values()
            if not all(known.measurable(config) for config in runs)
        )
        for config in group.configs:
            cost, source = told[kind_key(config)]
            seconds += cost.evaluation or 0.0
            found.trained_only += cost.evaluation is None
            found.sources[source] += 1
            found.bounds[cost.bound] += 1
        found.groups[group.keys] = seconds
    return found
