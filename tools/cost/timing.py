"""Timing in turns, and the numbers that come of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import torch

from fvi_core.training import Trained

Work = Callable[[], Callable[[], list[Trained]]]
"""Makes fresh trainers, which is not timed, and returns the training, which is."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one step, or of one whole training: medians over the turns."""

    wall: float
    process: float


@dataclass(frozen=True)
class Measurement:
    """One number by either clock, in ``unit``; ``times``: what it was made of, wall and process, in ms.

    ``goal`` bounds it from above, or from below (``at_least``); None where none was set.
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
        """The goal in words; empty where there is none."""
        return "" if self.goal is None else f"{'>=' if self.at_least else '<='} {self.goal:g} {self.unit}"

    @property
    def verdict(self) -> str:
        """By wall time; where process time says otherwise, that too."""
        said = {None: "", True: "yes", False: "no"}
        wall, process = said[self.met(self.wall)], said[self.met(self.process)]
        return wall if wall == process else f"{wall} (process: {process})"


def interleave(works: dict[str, Work], repeats: int, steps: int = 1) -> dict[str, Timing]:
    """Each work in turn, ``repeats`` times after one turn that is not counted; seconds divided by ``steps``.

    Raises RuntimeError if a training fails, since it would then be short.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, make in works.items():
            train = make()
            wall, process = time.perf_counter(), time.process_time()
            trained = train()
            spent = time.perf_counter() - wall, time.process_time() - process
            reasons = [result.reason for result in trained if result.reason]
            if reasons:
                raise RuntimeError(f"{name} failed while it was timed: {reasons[0]}")
            if turn:
                times[name].append(spent)
    return {
        name: Timing(*(median(clock) / steps for clock in zip(*spent, strict=True))) for name, spent in times.items()
    }


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Torch works with that many threads."""
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
    """How many times ``bottom`` goes into ``top``, by both clocks, on ``count`` threads."""
    a, b = times[top], times[bottom]
    made_of = {name: (1e3 * times[name].wall, 1e3 * times[name].process) for name in (top, bottom)}
    wall, process = a.wall / b.wall, a.process / b.process
    return Measurement(benchmark, f"{top} / {bottom}", count, "x", wall, process, made_of, goal, at_least)
