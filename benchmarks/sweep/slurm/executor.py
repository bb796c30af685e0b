"""Run groups trained by a SLURM cluster, as arrays that submitit submits."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.records.config import is_large
from benchmarks.state.claims import Claims
from benchmarks.state.failures import Failures
from benchmarks.sweep.executors.work import THREAD_VARIABLES, recorded
from benchmarks.sweep.groups import Executor, Report, Run, RunGroup, RunOutcome
from benchmarks.sweep.slurm import ledger, queue, snapshot
from benchmarks.sweep.slurm.array_task import ArrayTask
from benchmarks.sweep.slurm.options import Options
from fvi_core.printing import message

LOOK_EVERY = 2.0  # seconds between looks at queue and records
SHORT = 20  # runs that share an array task if nothing is said
ENVIRONMENT = {  # one thread a process, freed memory kept between steps, and no waiting for a network that nodes lack
    **dict.fromkeys(THREAD_VARIABLES, "1"),
    "MALLOC_TRIM_THRESHOLD_": "2000000000",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "FVI_OFFLINE": "1",
}


class SubmissionError(BenchmarkError):
    """SLURM did not take the jobs."""

    exit_code = 2  # nothing was begun


class Slurm(Executor):
    """Trains run groups on the cluster. submissions: what was submitted. ``keep``: jobs outlive this process."""

    def __init__(self, options: Options | None = None, keep: bool = False) -> None:
        self.options, self.keep = options or Options(), keep
        self.submissions: list[ledger.Submission] = []
        self.groups: list[RunGroup] = []
        self.known: dict[str, RunOutcome] = {}  # what was known of runs before they were submitted

    @property
    def outlives(self) -> bool:  # type: ignore[override]  # a choice of each, where other classes have one for all
        return self.keep

    def pending(self, state: Path, held: bool = False) -> dict[str, str]:
        return ledger.pending(state, held)

    def turn(self, state: Path) -> AbstractContextManager[None]:
        return ledger.locked(state)

    def receipt(self, state: Path) -> list[str]:
        if not self.submissions:
            return []
        ids = [submission.job for submission in self.submissions]
        runs = sum(len(entry.keys) for submission in self.submissions for entry in submission.entries)
        count = sum(len(submission.entries) for submission in self.submissions)
        return [
            f"submitted {runs} runs as {count} array tasks: SLURM job {', '.join(ids)}",
            "  follow:  make status   (or: squeue --me)",
            f"  logs:    {state}/logs/<run>.log, and of array tasks {self.submissions[-1].log_folder}",
            f"  cancel:  scancel {' '.join(ids)}",
            "  collect: nothing to do: a run writes its record into results/ as it ends; make the table when you like",
            "  again:   the same command submits only what is neither done nor queued nor running",
        ]

    def submit(self, groups: Sequence[RunGroup]) -> None:
        """Submit run groups of one state folder. Raises QueueError, SubmissionError, LedgerError, SnapshotError."""
        self.groups += groups
        for group in groups:
            for run in group.runs:
                outcome = _told(group, run)
                if outcome:
                    self.known[run.key] = replace(outcome, status="found") if outcome.status == "done" else outcome
        left = [group for group in groups if not self.known.keys() >= set(group.keys)]
        if left:
            queue.array_tasks("fvi-")  # raises if the controller does not answer, before anything is written
            array_tasks, largest = pack(left, self.options.runs_per_task), queue.largest_array()
            for start in range(0, len(array_tasks), largest):
                self._submit_array(Path(left[0].state), array_tasks[start : start + largest])

    def outcomes(self, report: Report) -> Iterator[tuple[RunGroup, list[RunOutcome]]]:
        while self.groups:
            pending = ledger.pending(self.groups[0].state)
            for group in list(self.groups):
                found = [self.known.get(run.key) or _outcome(group, run, pending) for run in group.runs]
                outcomes = [outcome for outcome in found if outcome]
                if len(outcomes) == len(found):
                    self.groups.remove(group)
                    yield group, outcomes
                else:
                    report(group, len(outcomes) / len(found), pending.get(group.keys[found.index(None)], "running"))
            if self.groups:
                time.sleep(LOOK_EVERY)

    def close(self) -> None:
        """Cancel what is not yet done, unless jobs outlive this process."""
        self.groups.clear()
        if self.keep:
            return
        ids = [entry.id for submission in self.submissions for entry in submission.entries if entry.id]
        self.submissions.clear()
        with contextlib.suppress(queue.QueueError):  # they may all be over
            waiting = queue.array_tasks("fvi-")
            queue.cancel(id_ for id_ in ids if id_ in waiting)
            while any(id_ in queue.array_tasks("fvi-") for id_ in ids):
                time.sleep(0.2)

    def _submit_array(self, state: Path, array_tasks: list[list[RunGroup]]) -> None:
        from submitit import SlurmExecutor  # here, since it is only needed by those who have a cluster

        lines = [f"export {name}={value}" for name, value in ENVIRONMENT.items()]
        if self.options.snapshot:
            lines += snapshot.lines(snapshot.take(state / "snapshots"))
        submission = ledger.begin(state, array_tasks, self.options.time)
        try:
            asked = self.options.parameters(submission.name, lines)
            executor = SlurmExecutor(
                submission.log_folder, max_num_timeout=self.options.requeues, python=self.options.python
            )
            executor.update_parameters(**asked)
            limits = self.options.workers, self.options.time * 60.0, asked["signal_delay_s"]
            with executor.batch():
                made = [
                    executor.submit(ArrayTask(str(submission.task_file(i)), *limits)) for i in range(len(array_tasks))
                ]
        except Exception as error:  # submitit raises RuntimeError, ValueError and its own, each for a refusal of sbatch
            submission.entries = [ledger.Entry(entry.keys, over=True) for entry in submission.entries]
            submission.save()
            raise SubmissionError(
                f"SLURM did not take the jobs: {message(error)}; check the options (file or --slurm) "
                f"and the script in {submission.log_folder}"
            ) from error
        for entry, job in zip(submission.entries, made):
            entry.id = job.job_id
        submission.save()
        self.submissions.append(submission)


def pack(groups: Sequence[RunGroup], runs_per_task: int | None) -> list[list[RunGroup]]:
    """Run groups as array tasks of at most so many runs (a larger group is an array task of its own).

    Without a number, a large run is an array task of its own, and others share one of up to 20 runs.
    """
    array_tasks: list[list[RunGroup]] = []
    room = 0
    for group in groups:
        limit = runs_per_task or (1 if is_large(group.runs[0].config) else SHORT)
        if len(group.runs) > room:
            array_tasks.append([])
            room = limit
        array_tasks[-1].append(group)
        room -= len(group.runs)
    return array_tasks


def _outcome(group: RunGroup, run: Run, pending: dict[str, str]) -> RunOutcome | None:
    """What became of a run, or None while it may still be made."""
    found = _told(group, run)
    if run.key in pending and found and found.status == "failed" and Failures(group.state).guessed(run.key):
        return None  # the end of its array task may tell more
    if found or run.key in pending:
        return found
    if Claims(Path(group.state) / "claims").holder(run.key):
        return RunOutcome(run.key, "elsewhere")
    return RunOutcome(run.key, "failed", "its array task left the queue before it was begun")


def _told(group: RunGroup, run: Run) -> RunOutcome | None:
    """What is on disk of a run since its group was planned."""
    if recorded(group, run):
        return RunOutcome(run.key, "done")
    failure = Failures(group.state).get(run.key)
    return RunOutcome(run.key, "failed", failure["reason"]) if failure and failure["attempt"] > run.attempts else None
