"""Submission to SLURM: a job array whose tasks share one list of run groups."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import files
from benchmarks.sweep.groups import RunGroup
from benchmarks.sweep.progress import duration
from benchmarks.sweep.slurm import jobs, queue, snapshot
from benchmarks.sweep.slurm.jobs import FOLDER, PREFIX, SubmissionError
from benchmarks.sweep.slurm.loop import Loop
from benchmarks.sweep.slurm.options import Options
from benchmarks.sweep.threads import LIBRARIES, VARIABLE, threads
from fvi_core.printing import message

ENVIRONMENT = {  # one thread a process, freed memory held between steps, and no waiting for a network that nodes lack
    **dict.fromkeys(LIBRARIES, "1"),
    "MALLOC_TRIM_THRESHOLD_": "2000000000",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "FVI_OFFLINE": "1",
}


def exports() -> list[str]:
    """Return the lines of an array task's script that set its environment. Raises UsageError."""
    return [f"export {name}={value}" for name, value in {**ENVIRONMENT, VARIABLE: threads()}.items()]


def submit(todo: Sequence[RunGroup], options: Options, state: Path) -> list[str]:
    """Submit an array for run groups; return lines that say how to follow, cancel and collect it.

    Raises QueueError, SubmissionError, SnapshotError.
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
        with executor.batch():
            made = [executor.submit(Loop(str(folder), *limits)) for _ in range(min(largest, options.array(todo)))]
    except Exception as error:  # submitit raises RuntimeError, ValueError or its own errors where sbatch refuses
        jobs.close(folder)
        raise SubmissionError(
            f"SLURM did not take the jobs: {message(error)}; check the options (file or --slurm) "
            f"and the script in {folder / 'logs'}"
        ) from error
    job = made[0].job_id.partition("_")[0]
    tasks = f"{len(made)} array task{'s' * (len(made) != 1)}"
    return [
        f"submitted {sum(len(group.keys) for group in todo)} runs to {tasks}: SLURM job {job}",
        "  follow:  make status   (or: squeue --me)",
        f"  logs:    {state}/logs/<run>.log, and of array tasks {folder / 'logs'}",
        f"  cancel:  scancel {job}",
        "  collect: not needed: every run writes its record into results/ when it ends",
        "  again:   the same command submits only what is neither done nor queued nor running",
    ]


def preview(todo: Sequence[RunGroup], options: Options, state: Path) -> list[str]:
    """Return the array that :func:`submit` would submit, its limits and its script, in lines; nothing is written."""
    from submitit.slurm.slurm import _make_sbatch_string

    folder, tasks = state / FOLDER / "SUBMISSION", options.array(todo)
    copied = [f"# PYTHONPATH: the code as it is now, copied into {state / 'snapshots'}"] if options.snapshot else []
    asked = options.parameters(f"{PREFIX}SUBMISSION", [*exports(), *copied])
    command = f"{options.python or shlex.quote(sys.executable)} -u -m submitit.core._submit {folder / 'logs'}"
    script = _make_sbatch_string(command, folder / "logs", map_count=tasks, **asked)
    each = f"{options.workers} process{'es' * (options.workers != 1)}" + ", one for each GPU" * bool(options.gpus)
    return [
        f"would submit {sum(len(group.runs) for group in todo)} runs to an array of {tasks} array "
        f"task{'s' * (tasks != 1)} of {each}, each for at most {duration(options.time * 60)}, with this script:",
        *("  " + line for line in script.splitlines() if line.strip()),
    ]
