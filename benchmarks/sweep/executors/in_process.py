"""Run groups trained one after another by the present process: nothing to set up, and a debugger works."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.sweep.executors.work import perform
from benchmarks.sweep.groups import Executor, Report, RunGroup, RunOutcome


class InProcess(Executor):
    """Trains run groups here, in the order given."""

    def __init__(self) -> None:
        self.queue: deque[RunGroup] = deque()

    def submit(self, groups: Sequence[RunGroup]) -> None:
        self.queue.extend(groups)

    def outcomes(self, report: Report) -> Iterator[tuple[RunGroup, list[RunOutcome]]]:
        while self.queue:
            group = self.queue.popleft()
            report(group, 0.0, "")
            yield group, perform(group, partial(report, group))

    def close(self) -> None:
        self.queue.clear()
