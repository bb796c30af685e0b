"""Job of a SLURM array task: workers over the submission's list, which save checkpoints before the time limit."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from pathlib import Path

from benchmarks import files
from benchmarks.state.checkpoints import Checkpoints
from benchmarks.state.claims import Holder
from benchmarks.sweep import progress, runner
from benchmarks.sweep.groups import RunGroup, RunOutcome
from benchmarks.sweep.plan import Plan
from benchmarks.sweep.progress import Forecast
from benchmarks.sweep.slurm import jobs
from benchmarks.sweep.stopping import interrupt
from benchmarks.sweep.work import log_path
from benchmarks.sweep.workers import Workers
from fvi_core.printing import message

STOPPED = 128 + signal.SIGTERM
MOMENT = 5.0  # seconds within which SLURM's signal has reached every process of an array task
EARLY = 65.0  # seconds by which SLURM's signal may come early: it checks limits every half minute


class Diary(progress.Plain):
    """Display of an array task that also writes the file of runs in training. made: whether it finished any."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.notes, self.made = file, False

    def begin(self, plan: Plan, forecast: Forecast) -> None:
        super().begin(plan, forecast)
        self.write(None)
        self.begun = self.notes.stat().st_mtime  # by the clock that stamps records and checkpoints

    def report(self, group: RunGroup, fraction: float, text: str) -> None:
        begins = group.keys not in self.forecast.running
        super().report(group, fraction, text)
        if begins:
            self.write([key for keys in self.forecast.running for key in keys])

    def end(self, group: RunGroup, outcomes: list[RunOutcome]) -> None:
        self.made |= any(outcome.status == "done" for outcome in outcomes)
        super().end(group, outcomes)
        self.write([key for keys in self.forecast.running for key in keys])

    def write(self, keys: list[str] | None) -> None:
        """Write the file; if that fails, the end of the array task is only explained less well."""
        with contextlib.suppress(OSError):
            files.write(self.notes, json.dumps(keys))


class Loop:
    """Callable that submitit runs on the node. seconds: the time limit; notice: seconds before it at which SLURM warns.

    Only these are pickled, as plain text and numbers, with the name of this class.
    """

    workers: Workers | None = None  # None before the start

    def __init__(self, folder: str, count: int, seconds: float, notice: float) -> None:
        self.folder, self.count, self.seconds, self.notice = folder, count, seconds, notice

    def __call__(self) -> None:
        """Make the runs of the submission that no process is making, has made or has tried."""
        from submitit.core.utils import UncompletedJobError

        self.started = time.monotonic()
        signal.signal(signal.SIGTERM, interrupt)  # submitit would ignore this sign of a requeue
        groups = jobs.read(self.folder)
        self.diary = Diary(Path(self.folder) / f"{Holder.me().job or 'here'}.json")
        self.workers = Workers(self.count, MOMENT)
        runs = tuple(run for group in groups for run in group.runs)
        plan = Plan(groups[0].results, groups[0].state, groups[0].suite, runs)
        try:
            summary = runner.run(plan.look(), self.workers, self.diary, groups=groups)
        except UncompletedJobError as error:  # submitit raises it after `checkpoint`, in place of a requeue
            told = message(error)
            about = told if self.progress else f"no checkpoint was written; {told}"
            self._note(groups, jobs.time_is_up(self.seconds / 60, about), self.workers.stopped)
            raise
        if summary.interrupted:
            sys.exit(STOPPED)
        self._note(groups, summary.unsaved_reason, set(summary.unsaved))
        self.diary.write([])

    def checkpoint(self):
        """Save and requeue; submitit calls this at the signal before the time limit or a preemption.

        Returns None (no requeue) for an array task that used most of its time without progress.
        """
        from submitit.helpers import DelayedSubmission

        if self.workers is None:
            return DelayedSubmission(self)
        spent = time.monotonic() - self.started
        self.workers.stop(grace=max(1.0, min(self.notice, self.seconds - spent) * 0.7))
        self.progress = self.diary.made or self._saved()
        return DelayedSubmission(self) if self.progress or spent < self.seconds - self.notice - EARLY else None

    def _saved(self) -> bool:
        """Whether a stopped run wrote a checkpoint since the array task last started."""
        assert self.workers is not None, "it has begun"
        checkpoints = Checkpoints(Path(self.folder).parents[1])
        for key in self.workers.stopped:
            with contextlib.suppress(OSError):
                if checkpoints.path(key).stat().st_mtime >= self.diary.begun:
                    return True
        return False

    def _note(self, groups: list[RunGroup], reason: str, keys: set[str]) -> None:
        for group in groups:
            for run in group.runs:
                if run.key in keys:
                    jobs.note_end(group, run, reason, log_path(group, run.key))

    def __getstate__(self) -> dict:
        return {name: self.__dict__[name] for name in ("folder", "count", "seconds", "notice")}
