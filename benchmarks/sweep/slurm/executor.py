"""Jobs done by a SLURM cluster, as arrays that submitit submits."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.records.config import is_large
from benchmarks.state.claims import Claims
from benchmarks.state.failures import Failures
from benchmarks.sweep.executors.work import recorded
from benchmarks.sweep.jobs import Executor, Job, Report, RunOutcome
from benchmarks.sweep.slurm import ledger, queue, snapshot
from benchmarks.sweep.slurm.options import Options
from benchmarks.sweep.slurm.task import Task

LOOK_EVERY = 2.0  # seconds between looks at queue and records
SHORT = 20  # runs that share a task if nothing is said
ENVIRONMENT = {  # one thread a process, freed memory kept between steps, and no waiting for a network that nodes lack
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_TRIM_THRESHOLD_": "2000000000",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "FVI_OFFLINE": "1",
}


class SubmissionError(BenchmarkError):
    """SLURM did not take the jobs."""

    exit_code = 2  # nothing was begun


class Slurm(Executor):
    """Does jobs on the cluster. submissions: what was submitted. ``keep``: jobs outlive this process."""

    def __init__(self, options: Options | None = None, keep: bool = False) -> None:
        self.options, self.keep = options or Options(), keep
        self.submissions: list[ledger.Submission] = []
        self.jobs: list[Job] = []
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
        tasks = sum(len(submission.entries) for submission in self.submissions)
        return [
            f"submitted {runs} runs as {tasks} tasks: SLURM job {', '.join(ids)}",
            "  follow:  make status   (or: squeue --me)",
            f"  logs:    {state}/logs/<run>.log, and of tasks {self.submissions[-1].log_folder}",
            f"  cancel:  scancel {' '.join(ids)}",
            "  collect: nothing to do: each run writes its record into results/ as it ends; make the table when you like",
            "  again:   the same command submits only what is neither done nor queued nor running",
        ]

    def submit(self, jobs: Sequence[Job]) -> None:
        """Submit jobs of one state folder. Raises QueueError, SubmissionError, LedgerError, SnapshotError."""
        self.jobs += jobs
        for job in jobs:
            for config, key, tried in zip(job.configs, job.keys, job.attempts):
                outcome = _told(job, config, key, tried)
                if outcome:
                    self.known[key] = replace(outcome, status="found") if outcome.status == "done" else outcome
        left = [job for job in jobs if not self.known.keys() >= set(job.keys)]
        if left:
            queue.tasks("fvi-")  # raises if the controller does not answer, before anything is written
            tasks, largest = pack(left, self.options.runs_per_task), queue.largest_array()
            for start in range(0, len(tasks), largest):
                self._submit_array(Path(left[0].state), tasks[start : start + largest])

    def outcomes(self, report: Report) -> Iterator[tuple[Job, list[RunOutcome]]]:
        while self.jobs:
            pending = ledger.pending(self.jobs[0].state)
            for job in list(self.jobs):
                found = [self.known.get(key) or _outcome(job, config, key, tried, pending)
                         for config, key, tried in zip(job.configs, job.keys, job.attempts)]  # fmt: skip
                outcomes = [outcome for outcome in found if outcome]
                if len(outcomes) == len(found):
                    self.jobs.remove(job)
                    yield job, outcomes
                else:
                    report(job, len(outcomes) / len(found), pending.get(job.keys[found.index(None)], "running"))
            if self.jobs:
                time.sleep(LOOK_EVERY)

    def close(self) -> None:
        """Cancel what is not yet done, unless jobs outlive this process."""
        self.jobs.clear()
        if self.keep:
            return
        ids = [entry.id for submission in self.submissions for entry in submission.entries if entry.id]
        self.submissions.clear()
        with contextlib.suppress(queue.QueueError):  # they may all be over
            waiting = queue.tasks("fvi-")
            queue.cancel(id_ for id_ in ids if id_ in waiting)
            while any(id_ in queue.tasks("fvi-") for id_ in ids):
                time.sleep(0.2)

    def _submit_array(self, state: Path, tasks: list[list[Job]]) -> None:
        from submitit import SlurmExecutor  # here, since it is only needed by those who have a cluster

        lines = [f"export {name}={value}" for name, value in ENVIRONMENT.items()]
        if self.options.snapshot:
            lines += snapshot.lines(snapshot.take(state / "snapshots"))
        submission = ledger.begin(state, tasks, self.options.time)
        try:
            asked = self.options.parameters(submission.name, lines)
            executor = SlurmExecutor(
                submission.log_folder, max_num_timeout=self.options.requeues, python=self.options.python
            )
            executor.update_parameters(**asked)
            limits = self.options.workers, self.options.time * 60.0, asked["signal_delay_s"]
            with executor.batch():
                made = [executor.submit(Task(str(submission.task_file(i)), *limits)) for i in range(len(tasks))]
        except Exception as error:  # submitit raises RuntimeError, ValueError and its own, each for a refusal of sbatch
            submission.entries = [ledger.Entry(entry.keys, over=True) for entry in submission.entries]
            submission.save()
            raise SubmissionError(
                f"SLURM did not take the jobs: {' '.join(str(error).split())}; check the options (file or --slurm) "
                f"and the script in {submission.log_folder}"
            ) from error
        for entry, job in zip(submission.entries, made):
            entry.id = job.job_id
        submission.save()
        self.submissions.append(submission)


def pack(jobs: Sequence[Job], runs_per_task: int | None) -> list[list[Job]]:
    """Jobs as tasks of at most so many runs (a job that trains more than that together is a task of its own).

    Without a number, a job that trains alone because it is large is a task, and others share one of up to 20 runs.
    """
    tasks: list[list[Job]] = []
    room = 0
    for job in jobs:
        limit = runs_per_task or (1 if is_large(job.configs[0]) else SHORT)
        if len(job.configs) > room:
            tasks.append([])
            room = limit
        tasks[-1].append(job)
        room -= len(job.configs)
    return tasks


def _outcome(job: Job, config: dict[str, Any], key: str, tried: int, pending: dict[str, str]) -> RunOutcome | None:
    """What became of a run, or None while it may still be made."""
    found = _told(job, config, key, tried)
    if key in pending and found and found.status == "failed" and Failures(job.state).guessed(key):
        return None  # the end of its task may tell more
    if found or key in pending:
        return found
    if Claims(Path(job.state) / "claims").holder(key):
        return RunOutcome(key, "elsewhere")
    return RunOutcome(key, "failed", "its task left the queue before it was begun")


def _told(job: Job, config: dict[str, Any], key: str, tried: int) -> RunOutcome | None:
    """What is on disk of a run since its job was planned."""
    if recorded(job, config):
        return RunOutcome(key, "done")
    failure = Failures(job.state).get(key)
    return RunOutcome(key, "failed", failure["reason"]) if failure and failure["attempt"] > tried else None
