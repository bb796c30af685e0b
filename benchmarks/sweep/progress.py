"""Display of a sweep's progress and time left, live on a terminal and as plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

from benchmarks.sweep.forecast import Forecast
from benchmarks.sweep.plan import Plan, RunGroup, RunOutcome, counts_text
from fvi_core.telling import Message, duration, plural, redraws

LINE_EVERY = 10.0  # seconds between plain lines
REDRAW = 0.1  # seconds between drawings of live bars
UNMADE = {"failed": "failed", "unsaved": "not saved yet"}  # words for outcomes; the sweep tries to save again


def groups_text(count: int) -> str:
    """Return a number of run groups, in words."""
    return f"{plural(count, 'group')} of runs"


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
        self.known: set[str] = set()  # keys of finished runs; two workers may report the same one
        self.failed: set[str] = set()
        self.forecast = Forecast([])
        self.reasons: set[str] = set()
        self.start = self.last = time.monotonic()

    def begin(self, plan: Plan, forecast: Forecast) -> None:
        self.forecast, groups = forecast, forecast.groups
        for problem in plan.problems:
            self.say(problem)
        todo = f"{groups_text(len(groups))} to train" if groups else "nothing to do"
        self.say(f"{plural(len(plan.runs), 'run')}: {counts_text(plan.counts)}; {todo}")

    def report(self, group: RunGroup, fraction: float, text: str) -> None:
        message = Message.of(text)
        self.forecast.report(group, fraction, time.monotonic(), message)
        if message.lasting and (remark := f"{group.title}: {text}") not in self.reasons:
            self.reasons.add(remark)  # reports are repeated in a long silence
            if message.kind == "loss":
                self.forecast.lost(group)
            self.say(remark)
        self._show()

    def end(self, group: RunGroup, outcomes: list[RunOutcome]) -> None:
        trained = any(outcome.status in ("done", "unsaved") for outcome in outcomes)
        self.forecast.end(group, trained, time.monotonic())
        self.known |= {outcome.key for outcome in outcomes}
        unmade = [o for o in outcomes if o.status in UNMADE and o.key not in self.failed]
        for status, reason in dict.fromkeys((o.status, o.reason) for o in unmade):
            keys = [o.key for o in unmade if (o.status, o.reason) == (status, reason)]
            if status == "failed":
                self.failed.update(keys)
            cause = "for the same reason" if reason in self.reasons else brief(reason)
            self.reasons.add(reason)
            runs = replace(group, runs=tuple(run for run in group.runs if run.key in keys))
            self.say(f"{UNMADE[status]}: {runs.title}: {cause} ({' '.join(keys)})")
        self._show(now=len(self.known) >= self.total)

    def say(self, text: str) -> None:
        print(text, file=self.file, flush=True)

    @property
    def total(self) -> int:
        """Number of runs to train, with those taken over from other sweeps so far."""
        return len({key for keys in self.forecast.groups for key in keys})

    def left(self) -> str:
        """Return the time left, in words."""
        seconds = self.forecast.left(time.monotonic())
        if not seconds:  # 0: training is over, and how long the evaluation takes is not known
            return "time left not known"
        return f"{'at most' if self.forecast.bounded else 'about'} {duration(seconds)} left"

    def _show(self, now: bool = False) -> None:
        if now or time.monotonic() - self.last >= self.every:
            self.last = time.monotonic()
            self._draw()

    def _draw(self) -> None:
        working = []
        for each in self.forecast.running.values():
            trains = 0 < each.fraction < 1 and each.message.kind != "wait"
            text = "" if trains else each.message  # during training the percentage says enough
            working.append(f"{each.group.title} {each.fraction:.0%} {text}".rstrip())
        failed = f", {len(self.failed)} failed" if self.failed else ""
        over = len(self.known) >= self.total
        tail = f" in {duration(self.last - self.start)}" if over else f", {self.left()}"
        now_at = f" [{'; '.join(working)}]" if working else ""
        self.say(f"{len(self.known)}/{plural(self.total, 'run')}{failed}{tail}{now_at}")


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
            self._draw()

    def say(self, text: str) -> None:
        self.region.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        self.region.stop()

    def _draw(self) -> None:
        self.region.start()  # nothing if it has begun
        self.region.refresh()

    def _bars(self) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        bars = Table.grid(padding=(0, 1))
        whole = f"{len(self.known)}/{self.total}, {len(self.failed)} failed, {self.left()}"
        rows = [("all runs", self.forecast.fraction, whole)]
        rows += [(each.group.title, each.fraction, each.message) for each in self.forecast.running.values()]
        for title, fraction, text in rows:
            bars.add_row(Text(title), ProgressBar(1.0, fraction, width=30), f"{fraction:>4.0%}", Text(text))
        return bars


def display(every: float = LINE_EVERY) -> Plain:
    """Return a live display on a terminal, elsewhere a plain one with a line every so many seconds."""
    return Live() if redraws(sys.stdout) else Plain(every=every)
