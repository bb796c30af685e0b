"""Job arrays on SLURM: their submission, and the loop of an array task that saves checkpoints before the time limit."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import files
from benchmarks.state.checkpoints import Checkpoints
from benchmarks.state.claims import Holder
from benchmarks.sweep import hints, progress, runner
from benchmarks.sweep.forecast import Forecast
from benchmarks.sweep.plan import Plan, RunGroup, RunOutcome
from benchmarks.sweep.progress import duration
from benchmarks.sweep.slurm import jobs, queue, snapshot
from benchmarks.sweep.slurm.jobs import FOLDER, PREFIX
from benchmarks.sweep.slurm.options import Options
from benchmarks.sweep.slurm.queue import SlurmError
from benchmarks.sweep.stopping import interrupt
from benchmarks.sweep.threads import LIBRARIES, VARIABLE, environment, threads
from benchmarks.sweep.work import log_path
from benchmarks.sweep.workers import Workers
from fvi_core.printing import message
from fvi_core.telling import plural

ENVIRONMENT = {  # one thread a process, freed memory held between steps, and no waiting for a network that nodes lack
    **dict.fromkeys(LIBRARIES, "1"),
    "MALLOC_TRIM_THRESHOLD_": "2000000000",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "FVI_OFFLINE": "1",
}
STOPPED = 128 + signal.SIGTERM
MOMENT = 5.0  # seconds within which SLURM's signal has reached every process of an array task
EARLY = 65.0  # seconds by which SLURM's signal may come early: it checks limits every half minute


def exports() -> list[str]:
    """Return the lines of an array task's script that set its environment. Raises UsageError."""
    return [f"export {name}={value}" for name, value in {**ENVIRONMENT, VARIABLE: threads()}.items()]


OWN = ("job_name", "array_inx", "timelimit", "signal", "output", "error", "open_mode")
"""Options of the array itself, over which SBATCH_ variables would go."""


def submit(todo: Sequence[RunGroup], options: Options, state: Path) -> list[str]:
    """Submit an array for run groups; return lines that say how to follow, cancel and collect it.

    Raises SlurmError, PluginError.
    """
    from submitit import SlurmExecutor

    largest = queue.largest_array()  # raises before anything is written if the controller does not answer
    copied = snapshot.lines(snapshot.take(state / "snapshots")) if options.snapshot else []
    folder = state / FOLDER / datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    for earlier in files.listdir(state / FOLDER):
        files.clear(state / FOLDER / earlier)
    jobs.write(folder, todo)
    try:
        executor = SlurmExecutor(folder / "logs", max_num_timeout=options.requeues, python=options.python)
        executor.update_parameters(**options.parameters(PREFIX + folder.name, [*exports(), *copied]))
        limits = options.workers, options.time * 60.0, executor.parameters["signal_delay_s"]
        set_here = [name for name in ("partition", "account", "qos", "constraint") if getattr(options, name)]
        with environment({f"SBATCH_{name.upper()}": None for name in (*OWN, *set_here)}), executor.batch():
            submitted = [executor.submit(Loop(str(folder), *limits)) for _ in range(min(largest, options.array(todo)))]
    except Exception as error:  # submitit raises RuntimeError, ValueError or its own errors where sbatch refuses
        jobs.close(folder)
        raise SlurmError(
            f"SLURM did not take the jobs: {message(error)}; check the options (file or --slurm) "
            f"and the script in {folder / 'logs'}"
        ) from error
    job, where = submitted[0].job_id.partition("_")[0], hints.folders(results=todo[0].results, state=state)
    tasks = plural(len(submitted), "array task")
    return [
        f"submitted {plural(sum(len(group.keys) for group in todo), 'run')} to {tasks}: SLURM job {job}",
        f"  follow:  {hints.benchmarks('status', *where) if where else 'make status'}   (or: squeue --me)",
        f"  logs:    {state}/logs/<run>.log, and of array tasks {folder / 'logs'}",
        f"  cancel:  scancel {job}",
        f"  collect: not needed: every run writes its record into {todo[0].results} when it ends",
        "  again:   the same command submits only what is neither done nor queued nor running",
    ]


def preview(todo: Sequence[RunGroup], options: Options, state: Path) -> list[str]:
    """Return the array that :func:`submit` would submit, its limits and its script, in lines; nothing is written."""
    from submitit.slurm.slurm import _make_sbatch_string

    folder, tasks = state / FOLDER / "SUBMISSION", options.array(todo)
    copied = [f"# PYTHONPATH: the code as it is now, copied into {state / 'snapshots'}"] if options.snapshot else []
    parameters = options.parameters(f"{PREFIX}SUBMISSION", [*exports(), *copied])
    command = f"{options.python or shlex.quote(sys.executable)} -u -m submitit.core._submit {folder / 'logs'}"
    script = _make_sbatch_string(command, folder / "logs", map_count=tasks, **parameters)
    each = f"{options.workers} process{'es' * (options.workers != 1)}" + ", one for each GPU" * bool(options.gpus)
    return [
        f"would submit {plural(sum(len(group.runs) for group in todo), 'run')} to an array of "
        f"{plural(tasks, 'array task')} of {each}, each for at most {duration(options.time * 60)}, with this script:",
        *("  " + line for line in script.splitlines() if line.strip()),
    ]


class Diary(progress.Plain):
    """Display of an array task that also writes the file of runs in training.

    finished_any: whether it finished any run.
    """

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.notes, self.finished_any = file, False

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
        self.finished_any |= any(outcome.status == "done" for outcome in outcomes)
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
            reason = message(error)
            about = reason if self.progress else f"no checkpoint was written; {reason}"
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
        self.progress = self.diary.finished_any or self._saved()
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
