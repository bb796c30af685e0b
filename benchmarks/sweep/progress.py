"""Progress of a sweep: a forecast of the time left, and its display, live on a terminal and plain lines elsewhere.

The forecast corrects estimated costs by the times that runs really take.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.experiment.alone import WAITING
from benchmarks.records.config import kind_key
from benchmarks.sweep.estimate import Estimate, end_after
from benchmarks.sweep.plan import Plan, RunGroup, RunOutcome, counts_text
from benchmarks.sweep.similar import stops_early
from fvi_core.telling import duration

SEEN = 1.0  # seconds of work before any extrapolation
BEGUN = 0.01  # fraction of a group's work below which its progress is not extrapolated


@dataclass
class Running:
    """Run group in training: its start, the finished fraction, and what it does."""

    group: RunGroup
    since: float
    fraction: float = 0.0
    text: str = ""


class Forecast:
    """Time left for run groups trained by so many workers at once. Times are seconds of one clock.

    A group without an estimate counts as the mean of the others, per run. Without any estimate all runs count alike,
    and only observed times are used.
    """

    def __init__(self, groups: Sequence[RunGroup], estimate: Estimate | None = None, workers: int = 1) -> None:
        self.workers, self.groups = workers, {group.keys: group for group in groups}
        estimate = estimate or Estimate()
        known, self.saved, self.ends = estimate.groups, estimate.saved, estimate.ends
        runs = sum(len(keys) for keys in self.groups if keys in known)
        self.estimated = bool(runs)
        self.mean = sum(known.get(keys, 0.0) for keys in self.groups) / runs if runs else 1.0
        self.costs = {keys: known.get(keys, self.mean * len(keys)) for keys in self.groups}
        self.running: dict[tuple[str, ...], Running] = {}
        self.over: set[tuple[str, ...]] = set()
        # Seconds by kind of run, of groups trained here to their end.
        self.spent: defaultdict[str, float] = defaultdict(float)
        self.expected: defaultdict[str, float] = defaultdict(float)

    def report(self, group: RunGroup, fraction: float, now: float, text: str = "") -> None:
        """Report progress of a run group. At its start, earlier groups that are not in training here count as made
        elsewhere."""
        if group.keys not in self.running:
            before = itertools.takewhile(lambda keys: keys != group.keys, self.groups)
            self.over |= {keys for keys in before if keys not in self.running}
        self.groups[group.keys] = group
        self.costs.setdefault(group.keys, self.mean * len(group.keys))
        self.over.discard(group.keys)  # another sweep may have given it up
        running = self.running.setdefault(group.keys, Running(group, now))
        running.fraction, running.text = fraction, text

    def end(self, group: RunGroup, trained: bool, now: float) -> None:
        """Report the end of a run group; its time counts only if it was trained here to its end."""
        running = self.running.pop(group.keys, None)
        self.over.add(group.keys)
        if running and trained:
            self.spent[_kind(group)] += now - running.since
            self.expected[_kind(group)] += self.costs[group.keys]

    def _made(self, keys: tuple[str, ...]) -> float:
        """Fraction of a group's work that is made here; what a checkpoint had saved is no part of it."""
        saved, end = self.saved.get(keys, 0.0), self._end(keys)
        running = self.running.get(keys)
        return max(0.0, running.fraction - saved) / (end - saved) if running and saved < end else 0.0

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
        done += sum(self._cost(keys) * self._made(keys) for keys in self.running)
        return min(1.0, done / whole) if whole else 1.0

    def left(self, now: float) -> float | None:
        """Return the seconds left, or None before anything is known."""
        spent, expected = self.spent.copy(), self.expected.copy()
        for keys, running in self.running.items():
            if (made := self._made(keys)) > BEGUN:
                spent[_kind(running.group)] += now - running.since
                expected[_kind(running.group)] += made * self._cost(keys)
        seen, foreseen = sum(spent.values()), sum(expected.values())
        if seen <= SEEN or not foreseen:
            if not self.estimated:
                return None
            seen, foreseen, expected = 1.0, 1.0, defaultdict(float)
        left = []
        for keys, group in self.groups.items():
            if keys not in self.over:
                kind, here, made = _kind(group), self.running.get(keys), self._made(keys)
                cost = self._cost(keys) * (spent[kind] / expected[kind] if expected[kind] else seen / foreseen)
                if made:
                    cost *= 1 - made
                elif here:
                    cost = max(0.0, cost - (now - here.since))
                left.append(cost)
        return max(sum(left) / self.workers, max(left, default=0.0))

    @property
    def bounded(self) -> bool:
        """Whether :meth:`left` is an upper bound: training may end early, and neither records nor a finished run show
        how early."""
        last = (keys for keys in self.groups if keys not in self.over and self.ends.get(keys, 1.0) == 1)
        waiting = (self.groups[keys] for keys in last)
        return not self.spent and any(stops_early(config) for group in waiting for config in group.configs)


def _kind(group: RunGroup) -> str:
    return kind_key(group.configs[0])


LINE_EVERY = 10.0  # seconds between plain lines
REDRAW = 0.1  # seconds between drawings of live bars


def groups_text(count: int) -> str:
    """Return a number of run groups, in words."""
    return f"{count} group{'s' * (count != 1)} of runs"


def brief(reason: str, length: int = 240) -> str:
    """Shorten a reason for a list; `show` prints all of it."""
    return reason if len(reason) <= length else reason[: length - 3].rstrip() + "..."


class Ticker:
    """Counter that prints a line every ten seconds or so: how many are done, and the time left."""

    def __init__(self, total: int, what: str) -> None:
        self.total, self.what = total, what
        self.start = self.last = time.monotonic()

    def __call__(self, done: int, *_: object) -> None:
        """Report that so many are done."""
        now = time.monotonic()
        if now - self.last >= LINE_EVERY and done < self.total:
            self.last = now
            left = duration((now - self.start) / done * (self.total - done))
            print(f"{done}/{self.total} {self.what}, about {left} left", flush=True)


class Display:
    """Base class of progress displays; shows nothing."""

    def begin(self, plan: Plan, forecast: Forecast) -> None:
        """Start the display; called once, before the first run group."""

    def report(self, group: RunGroup, fraction: float, text: str) -> None:
        """Report the progress of a run group."""

    def end(self, group: RunGroup, outcomes: list[RunOutcome]) -> None:
        """Report the end of a run group."""

    def say(self, text: str) -> None:
        """Show a message."""

    def close(self) -> None:
        """End the display; called once, also after an error."""


class Plain(Display):
    """Plain display: one line at the start, for every failure, every ten seconds or so, and at the end."""

    def __init__(self, every: float = LINE_EVERY) -> None:
        self.file, self.every = sys.stdout, every  # runs trained in this process redirect stdout to their logs
        self.total = 0
        self.known: set[str] = set()  # keys of finished runs; two workers may report the same one
        self.failed: set[str] = set()
        self.forecast = Forecast([])
        self.reasons: set[str] = set()
        self.start = self.last = time.monotonic()

    def begin(self, plan: Plan, forecast: Forecast) -> None:
        self.forecast, groups = forecast, forecast.groups
        self.total = sum(map(len, groups))
        for problem in plan.problems:
            self.say(problem)
        todo = f"{groups_text(len(groups))} to train" if groups else "nothing to do"
        self.say(f"{len(plan.runs)} runs: {counts_text(plan.counts)}; {todo}")

    def report(self, group: RunGroup, fraction: float, text: str) -> None:
        self.forecast.report(group, fraction, time.monotonic(), text)
        self._show()

    def end(self, group: RunGroup, outcomes: list[RunOutcome]) -> None:
        trained = any(outcome.status in ("done", "unsaved") for outcome in outcomes)
        self.forecast.end(group, trained, time.monotonic())
        self.known |= {outcome.key for outcome in outcomes}
        failed = [o for o in outcomes if o.status in ("failed", "unsaved") and o.key not in self.failed]
        for reason in dict.fromkeys(o.reason for o in failed):
            keys = [o.key for o in failed if o.reason == reason]
            self.failed.update(keys)
            told = "for the same reason" if reason in self.reasons else brief(reason)
            self.reasons.add(reason)
            self.say(f"failed: {group.title}: {told} ({' '.join(keys)})")
        self._show(now=len(self.known) >= self.total)

    def say(self, text: str) -> None:
        print(text, file=self.file, flush=True)

    def left(self) -> str:
        """Return the time left, in words."""
        seconds = self.forecast.left(time.monotonic())
        if seconds is None:
            return "time left not known"
        return f"{'at most' if self.forecast.bounded else 'about'} {duration(seconds)} left"

    def _show(self, now: bool = False) -> None:
        if now or time.monotonic() - self.last >= self.every:
            self.last = time.monotonic()
            self._draw()

    def _draw(self) -> None:
        working = []
        for each in self.forecast.running.values():
            trains = 0 < each.fraction < 1 and WAITING not in each.text
            text = "" if trains else each.text  # during training the percentage says enough
            working.append(f"{each.group.title} {each.fraction:.0%} {text}".rstrip())
        failed = f", {len(self.failed)} failed" if self.failed else ""
        over = len(self.known) >= self.total
        tail = f" in {duration(self.last - self.start)}" if over else f", {self.left()}"
        now_at = f" [{'; '.join(working)}]" if working else ""
        self.say(f"{len(self.known)}/{self.total} runs{failed}{tail}{now_at}")


class Live(Plain):
    """Live display: a bar for the sweep and one for every run group in training, with failures printed above."""

    def __init__(self) -> None:
        super().__init__(every=REDRAW)
        from rich.console import Console
        from rich.live import Live as Region

        self.region = Region(
            console=Console(file=self.file),
            get_renderable=self._bars,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def begin(self, plan: Plan, forecast: Forecast) -> None:
        super().begin(plan, forecast)
        if forecast.groups:
            self.region.start()

    def say(self, text: str) -> None:
        self.region.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        self.region.stop()

    def _draw(self) -> None:
        self.region.refresh()

    def _bars(self) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        bars = Table.grid(padding=(0, 1))
        whole = f"{len(self.known)}/{self.total}, {len(self.failed)} failed, {self.left()}"
        rows = [("all runs", self.forecast.fraction, whole)]
        rows += [(each.group.title, each.fraction, each.text) for each in self.forecast.running.values()]
        for title, fraction, text in rows:
            bars.add_row(Text(title), ProgressBar(1.0, fraction, width=30), f"{fraction:>4.0%}", Text(text))
        return bars


def display(every: float = LINE_EVERY) -> Plain:
    """Return a live display on a terminal, elsewhere a plain one with a line every so many seconds."""
    return Live() if sys.stdout.isatty() else Plain(every=every)
