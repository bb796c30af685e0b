"""One array task of SLURM: a sweep over its runs, which saves itself when its time ends."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.records.store import Store
from benchmarks.state.checkpoints import Checkpoints
from benchmarks.state.failures import Failures
from benchmarks.suite import Suite
from benchmarks.sweep import progress, runner
from benchmarks.sweep.executors.pool import Pool
from benchmarks.sweep.executors.work import log_path
from benchmarks.sweep.groups import RunGroup
from benchmarks.sweep.slurm import ledger
from benchmarks.sweep.stopping import interrupt
from fvi_core.printing import message

STOPPED = 128 + signal.SIGTERM
MOMENT = 5.0  # seconds in which SLURM's signal has reached every process of an array task
EARLY = 65.0  # seconds by which SLURM's signal may come too early: it looks at limits every half a minute


class ArrayTask:
    """What submitit calls on the node. file: its run groups; seconds: its time limit; notice: how long before we know.

    Only these are pickled, as plain text and numbers, with the name of this class.
    """

    pool: Pool | None = None  # until it has begun

    def __init__(self, file: str, workers: int, seconds: float, notice: float) -> None:
        self.file, self.workers, self.seconds, self.notice = file, workers, seconds, notice

    def __call__(self) -> str:
        """Make the runs that nobody has made meanwhile; what became of them."""
        from submitit.core.utils import UncompletedJobError

        self.started = time.monotonic()
        self.begun = Path(f"{self.file}.begun")  # its time is by the clock that stamps records and checkpoints
        self.begun.touch()
        signal.signal(signal.SIGTERM, interrupt)  # submitit would ignore it; it comes before a requeue and a cancel
        self.groups = ledger.groups_of(self.file)
        self.pool = Pool(self.workers, MOMENT)
        where = self.groups[0]
        try:
            summary = runner.run(
                [config for group in self.groups for config in group.configs],
                self.pool,
                results=where.results,
                state=where.state,
                suite=Suite(metrics=where.metrics),
                display=progress.Plain(),
                groups=[group for group in map(_untried, self.groups) if group.runs],
            )
        except UncompletedJobError as error:  # raised by submitit after `checkpoint`, in place of a requeue
            told = message(error)
            about = told if self.progress else f"no checkpoint was written; {told}"
            self._note(ledger.time_is_up(self.seconds / 60, about), self.pool.stopped)
            raise
        if summary.interrupted:
            sys.exit(STOPPED)
        for record in summary.unsaved.values():
            self._note(summary.unsaved_reason, {record["key"]})
        return json.dumps({"made": summary.made, "failed": sorted(summary.failed), "elsewhere": summary.elsewhere})

    def checkpoint(self):
        """Called by submitit at the signal before the time limit or a preemption: save, and be requeued.

        An array task that had most of its time and used it for nothing is not requeued: None.
        """
        from submitit.helpers import DelayedSubmission

        if self.pool is None:
            return DelayedSubmission(self)
        spent = time.monotonic() - self.started
        self.pool.stop(grace=max(1.0, min(self.notice, self.seconds - spent) * 0.7))
        self.progress = self._progress()
        return DelayedSubmission(self) if self.progress or spent < self.seconds - self.notice - EARLY else None

    def _progress(self) -> bool:
        """Whether a record or a checkpoint of one of the runs was written in this life of the array task."""
        begun = self.begun.stat().st_mtime
        for group in self.groups:
            store, checkpoints = Store(group.results, group.metrics), Checkpoints(group.state)
            for run in group.runs:
                for path in (store.path(run.config), checkpoints.path(run.key)):
                    with contextlib.suppress(OSError):
                        if path.stat().st_mtime >= begun:
                            return True
        return False

    def _note(self, reason: str, keys: set[str]) -> None:
        for group in self.groups:
            for run in group.runs:
                if run.key in keys:
                    ledger.note_end(group, run, reason, log_path(group, run.key))

    def __getstate__(self) -> dict:
        return {name: self.__dict__[name] for name in ("file", "workers", "seconds", "notice")}


def _untried(group: RunGroup) -> RunGroup:
    """A group without the runs that have failed since it was planned, perhaps in an earlier life of this array task."""
    failures = Failures(group.state)
    return replace(group, runs=tuple(run for run in group.runs if failures.attempts(run.key) <= run.attempts))
