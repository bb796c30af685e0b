"""Jobs done one after another by the present process: nothing to set up, and a debugger works."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.sweep.executors.work import perform
from benchmarks.sweep.jobs import Executor, Job, Report, RunOutcome


class InProcess(Executor):
    """Does jobs here, in the order given."""

    def __init__(self) -> None:
        self.queue: deque[Job] = deque()

    def submit(self, jobs: Sequence[Job]) -> None:
        self.queue.extend(jobs)

    def outcomes(self, report: Report) -> Iterator[tuple[Job, list[RunOutcome]]]:
        while self.queue:
            job = self.queue.popleft()
            report(job, 0.0, "")
            yield job, perform(job, partial(report, job))

    def close(self) -> None:
        self.queue.clear()
