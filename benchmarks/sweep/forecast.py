"""Forecast of the time that a sweep still takes: estimated costs, corrected by the times that runs really take."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.records.config import kind_key
from benchmarks.sweep.estimate import Estimate, end_after
from benchmarks.sweep.plan import RunGroup
from benchmarks.sweep.similar import stops_early
from fvi_core.telling import Message

SEEN = 1.0  # seconds of work before any extrapolation
APART = 3.0  # factor by which estimates of one kind are off at most, for nine of ten kinds (docs/cluster.md)
NOTHING = Message("")
BEGUN = 0.01  # fraction of a group's work below which its progress is not extrapolated


@dataclass
class Running:
    """Run group in training: its start, the finished fraction, when it was reached and by what step (0 for the first,
    which holds the start-up or a checkpoint), and what it does since ``told``."""

    group: RunGroup
    since: float
    at: float
    fraction: float = 0.0
    step: float = 0.0
    message: Message = NOTHING
    told: float = 0.0


class Forecast:
    """Time left for run groups trained by so many workers at once. Times are seconds of one clock.

    A group without an estimate counts as the mean of the others, per run. Without any estimate all runs count alike,
    and only observed times are used.
    """

    def __init__(self, groups: Sequence[RunGroup], estimate: Estimate | None = None, workers: int = 1) -> None:
        self.workers, self.groups = workers, {group.keys: group for group in groups}
        estimate = estimate or Estimate()
        known, self.saved, self.ends = estimate.groups, dict(estimate.saved), estimate.ends
        runs = sum(len(keys) for keys in self.groups if keys in known)
        self.estimated = bool(runs)
        self.mean = sum(known.get(keys, 0.0) for keys in self.groups) / runs if runs else 1.0
        self.costs = {keys: known.get(keys, self.mean * len(keys)) for keys in self.groups}
        self.running: dict[tuple[str, ...], Running] = {}
        self.over: set[tuple[str, ...]] = set()
        # Seconds by kind of run, of groups trained here to their end.
        self.spent: defaultdict[str, float] = defaultdict(float)
        self.expected: defaultdict[str, float] = defaultdict(float)

    def report(self, group: RunGroup, fraction: float, now: float, message: Message = NOTHING) -> None:
        """Report progress of a run group. At its start, earlier groups that are not in training here count as made
        elsewhere."""
        if group.keys not in self.running:
            before = itertools.takewhile(lambda keys: keys != group.keys, self.groups)
            self.over |= {keys for keys in before if keys not in self.running}
        self.groups[group.keys] = group
        self.costs.setdefault(group.keys, self.mean * len(group.keys))
        self.over.discard(group.keys)  # another sweep may have given it up
        running = self.running.setdefault(group.keys, Running(group, now, now))
        if fraction != running.fraction:
            running.step = fraction - running.fraction if running.fraction else 0.0
            running.fraction, running.at = fraction, now
        if message != running.message:  # reports are repeated in a long silence
            running.message, running.told = message, now

    def lost(self, group: RunGroup) -> None:
        """Report that the checkpoint of a run group is not used: what it had saved is trained again."""
        saved, end = self.saved.pop(group.keys, 0.0), self.ends.get(group.keys, 1.0)
        if saved < end:
            self.costs[group.keys] *= end / (end - saved)

    def end(self, group: RunGroup, trained: bool, now: float) -> None:
        """Report the end of a run group; its time counts only if it was trained here to its end."""
        running = self.running.pop(group.keys, None)
        self.over.add(group.keys)
        if running and trained:
            self.spent[_kind(group)] += now - running.since
            self.expected[_kind(group)] += self.costs[group.keys]

    def _done_here(self, keys: tuple[str, ...]) -> float:
        """Fraction of a group's work that is done here; what a checkpoint had saved is no part of it."""
        saved, end = self.saved.get(keys, 0.0), self._end(keys)
        running = self.running.get(keys)
        return max(0.0, running.fraction - saved) / (end - saved) if running and saved < end else 0.0

    def _done_by(self, keys: tuple[str, ...], now: float) -> float:
        """Fraction done by now if the pace since the last report was kept, up to one step more than reported."""
        done, running = self._done_here(keys), self.running.get(keys)
        if running is None or not done or running.step <= 0:
            return done
        step = running.step / (self._end(keys) - self.saved.get(keys, 0.0))
        return min(1.0, done + min(step, done * (now - running.at) / (running.at - running.since)))

    def _end(self, keys: tuple[str, ...]) -> float:
        """Fraction after which a group is expected to end, which moves on when training does not end there."""
        return end_after(self.ends.get(keys, 1.0), self.running[keys].fraction if keys in self.running else 0.0)

    def _cost(self, keys: tuple[str, ...]) -> float:
        """Expected seconds of a group, up to its expected end."""
        saved, first = self.saved.get(keys, 0.0), self.ends.get(keys, 1.0)
        return self.costs[keys] * ((self._end(keys) - saved) / (first - saved) if saved < first else 1.0)

    @property
    def fraction(self) -> float:
        """Finished fraction of all work."""
        whole = sum(map(self._cost, self.costs))
        done = sum(cost for keys, cost in self.costs.items() if keys in self.over)
        done += sum(self._cost(keys) * self._done_here(keys) for keys in self.running)
        return min(1.0, done / whole) if whole else 1.0

    def left(self, now: float) -> float | None:
        """Return the seconds left, or None before anything is known."""
        spent, expected = self.spent.copy(), self.expected.copy()
        for keys, running in self.running.items():
            if (done := self._done_by(keys, now)) > BEGUN:
                spent[_kind(running.group)] += now - running.since
                expected[_kind(running.group)] += done * self._cost(keys)
        observed, foreseen = sum(spent.values()), sum(expected.values())
        if observed <= SEEN or not foreseen:
            if not self.estimated:
                return None
            observed, foreseen, expected = 1.0, 1.0, defaultdict(float)
        pace = observed / foreseen
        if self.estimated:  # one kind far from its estimate says little of the others
            pace = min(max(pace, 1 / APART), APART)
        remaining = []
        for keys, group in self.groups.items():
            if keys not in self.over:
                kind, here, done = _kind(group), self.running.get(keys), self._done_by(keys, now)
                cost = self._cost(keys) * (spent[kind] / expected[kind] if expected[kind] else pace)
                if here and here.fraction == 1 and (left := here.message.left) is not None:
                    cost = max(0.0, left - (now - here.told))  # training is over
                elif done:
                    cost *= 1 - done
                elif here:
                    cost = max(0.0, cost - (now - here.since))
                remaining.append(cost)
        return max(sum(remaining) / self.workers, max(remaining, default=0.0))

    @property
    def bounded(self) -> bool:
        """Whether :meth:`left` is an upper bound: training may end early, and neither records nor a finished run show
        how early."""
        untrained = (keys for keys in self.groups if keys not in self.over and self.saved.get(keys, 0.0) < 1)
        last = (self.groups[keys] for keys in untrained if self.ends.get(keys, 1.0) == 1)
        return not self.spent and any(stops_early(config) for group in last for config in group.configs)


def _kind(group: RunGroup) -> str:
    return kind_key(group.configs[0])
