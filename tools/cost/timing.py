"""Timing in turns, and measurements made of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch

Work = Callable[[], Callable[[], Any]]
"""Function that makes fresh trainers, untimed, and returns the training, or another call, to be timed."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one step, or of one whole training: medians over the turns."""

    wall: float
    process: float


@dataclass(frozen=True)
class Measurement:
    """Number by either clock, in ``unit``; ``times``: the timings behind it, wall and process, in ms.

    ``goal`` bounds the number from above, or from below (``at_least``); None without a goal.
    """

    benchmark: str
    name: str
    threads: int
    unit: str
    wall: float
    process: float
    times: dict[str, tuple[float, float]]
    goal: float | None = None
    at_least: bool = False

    def met(self, value: float) -> bool | None:
        """Whether a value of this measurement reaches the goal."""
        if self.goal is None:
            return None
        return value >= self.goal if self.at_least else value <= self.goal

    @property
    def aim(self) -> str:
        """Goal in words; empty without a goal."""
        return "" if self.goal is None else f"{'>=' if self.at_least else '<='} {self.goal:g} {self.unit}"

    @property
    def verdict(self) -> str:
        """Verdict by wall time, and by process time where it differs."""
        said = {None: "", True: "yes", False: "no"}
        wall, process = said[self.met(self.wall)], said[self.met(self.process)]
        return wall if wall == process else f"{wall} (process: {process})"


def interleave(works: dict[str, Work], repeats: int, steps: int = 1) -> dict[str, Timing]:
    """Time each work in turn, ``repeats`` times after a discarded turn; seconds are divided by ``steps``.

    Raises RuntimeError if a training fails, since its time would be too short.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, make in works.items():
            train = make()
            wall, process = time.perf_counter(), time.process_time()
            trained = train()
            spent = time.perf_counter() - wall, time.process_time() - process
            if reasons := [each.reason for each in trained if each.reason] if isinstance(trained, list) else ():
                raise RuntimeError(f"{name} failed while it was timed: {reasons[0]}")
            if turn:
                times[name].append(spent)
    return {
        name: Timing(*(median(clock) / steps for clock in zip(*spent, strict=True))) for name, spent in times.items()
    }


def ready(call: Callable[[], Any]) -> Work:
    """Return work that needs no preparation."""
    return lambda: call


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use ``count`` threads in the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def ratio(
    benchmark: str,
    top: str,
    bottom: str,
    times: dict[str, Timing],
    count: int,
    goal: float | None = None,
    at_least: bool = False,
) -> Measurement:
    """Return the ratio of ``top`` to ``bottom``, by both clocks, on ``count`` threads."""
    a, b = times[top], times[bottom]
    made_of = {name: (1e3 * times[name].wall, 1e3 * times[name].process) for name in (top, bottom)}
    wall, process = a.wall / b.wall, a.process / b.process
    return Measurement(benchmark, f"{top} / {bottom}", count, "x", wall, process, made_of, goal, at_least)


def duration(
    benchmark: str,
    name: str,
    took: Timing,
    count: int = 1,
    goal: float | None = None,
    unit: str = "ms",
    scale: float = 1e3,
) -> Measurement:
    """Return a time on ``count`` threads: its seconds times ``scale`` in ``unit``."""
    return Measurement(benchmark, name, count, unit, scale * took.wall, scale * took.process, {}, goal)
