"""The time that a sweep will still take: what is left of the estimated costs, corrected by what runs really take."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.records.config import kind_key
from benchmarks.sweep.estimate import Estimate
from benchmarks.sweep.groups import RunGroup
from benchmarks.sweep.known import stops_early

SEEN = 1.0  # seconds of work without which nothing is concluded from it
BEGUN = 0.01  # of a group, below which its progress says nothing of its cost


@dataclass
class Running:
    """A run group at work: since when, and how much of it is done."""

    group: RunGroup
    since: float
    fraction: float = 0.0


class Forecast:
    """Of run groups trained by so many workers at once. Times are those of one clock, in seconds.

    A group without an estimate counts as the mean of the others, for each of its runs; if there is no other, only what
    is seen counts, and all runs are alike.
    """

    def __init__(self, groups: Sequence[RunGroup], estimate: Estimate | None = None, workers: int = 1) -> None:
        self.workers, self.groups = workers, {group.keys: group for group in groups}
        known = estimate.groups if estimate else {}
        runs = sum(len(group.keys) for group in groups if group.keys in known)
        self.estimated = bool(runs)
        self.mean = sum(known.get(keys, 0.0) for keys in self.groups) / runs if runs else 1.0
        self.costs = {keys: known.get(keys, self.mean * len(keys)) for keys in self.groups}
        self.running: dict[tuple[str, ...], Running] = {}
        self.over: set[tuple[str, ...]] = set()
        self.spent: dict[str, float] = defaultdict(float)
        self.expected: dict[str, float] = defaultdict(float)

    def report(self, group: RunGroup, fraction: float, now: float) -> None:
        """A group has come so far. As it begins, those before it that are not at work here are made elsewhere."""
        if group.keys not in self.running:
            before = itertools.takewhile(lambda keys: keys != group.keys, self.groups)
            self.over |= {keys for keys in before if keys not in self.running}
        self.groups[group.keys] = group
        self.costs.setdefault(group.keys, self.mean * len(group.keys))
        self.over.discard(group.keys)  # it may have come back from another sweep that gave it up
        running = self.running.setdefault(group.keys, Running(group, now))
        running.fraction = fraction

    def end(self, group: RunGroup, trained: bool, now: float) -> None:
        """A group is over; unless it was trained here to its end, that says nothing of its cost."""
        running = self.running.pop(group.keys, None)
        self.over.add(group.keys)
        if running and trained:
            kind = kind_key(group.configs[0])
            self.spent[kind] += now - running.since
            self.expected[kind] += self.costs[group.keys]

    @property
    def fraction(self) -> float:
        """How much of all work is done."""
        whole = sum(self.costs.values())
        done = sum(cost for keys, cost in self.costs.items() if keys in self.over)
        done += sum(self.costs[keys] * running.fraction for keys, running in self.running.items())
        return min(1.0, done / whole) if whole else 1.0

    def left(self, now: float) -> float | None:
        """Seconds that are left, or None where nothing is known yet."""
        spent, expected = dict(self.spent), dict(self.expected)
        for keys, running in self.running.items():
            if running.fraction > BEGUN:
                kind = kind_key(running.group.configs[0])
                spent[kind] = spent.get(kind, 0.0) + now - running.since
                expected[kind] = expected.get(kind, 0.0) + running.fraction * self.costs[keys]
        seen, foreseen = sum(spent.values()), sum(expected.values())
        if seen <= SEEN or not foreseen:
            if not self.estimated:
                return None
            spent, expected, overall = {}, {}, 1.0
        else:
            overall = seen / foreseen
        left = []
        for keys, group in self.groups.items():
            if keys not in self.over:
                kind = kind_key(group.configs[0])
                ratio = spent[kind] / expected[kind] if expected.get(kind) else overall
                left.append(self._rest(keys, self.costs[keys] * ratio, now))
        return max(sum(left) / self.workers, max(left, default=0.0))

    @property
    def bounded(self) -> bool:
        """Whether :meth:`left` is a bound: training may end early, and nothing has ended here that would say when."""
        waiting = (group for keys, group in self.groups.items() if keys not in self.over)
        return not self.spent and any(stops_early(config) for group in waiting for config in group.configs)

    def _rest(self, keys: tuple[str, ...], cost: float, now: float) -> float:
        """What is left of a group of this cost."""
        running = self.running.get(keys)
        if running is None:
            return cost
        return cost * (1 - running.fraction) if running.fraction else max(0.0, cost - (now - running.since))
