"""Submissions to SLURM: job arrays that share one list of run groups, and their outcomes.

    <state>/slurm/<submission>/todo          the SHA-256 of what follows, and the run groups as JSON
    <state>/slurm/<submission>/<job>.json    the runs in training in an array task: null before the first, [] at its end
    <state>/slurm/<submission>/over          present once no array task is left
    <state>/slurm/<submission>/logs/         scripts and logs of the array tasks, as submitit writes them

These files describe the array tasks only. Whether a run is done is decided by its record, as everywhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import files
from benchmarks.state.checkpoints import progress
from benchmarks.suite import Suite
from benchmarks.sweep.plan import PlannedRun, RunGroup
from benchmarks.sweep.slurm import queue
from benchmarks.sweep.slurm.queue import SlurmError
from fvi_core.printing import message

FOLDER, TODO, OVER = "slurm", "todo", "over"
PREFIX = "fvi-"  # prefix of array names in the queue
ERRORS = "_0_log.err"  # suffix that submitit appends to a job's id
PATIENCE = 300.0  # seconds to wait for another submission
LINES = 3  # lines quoted from the end of a log


def read(folder: Path | str) -> list[RunGroup]:
    """Return the run groups of a submission. Raises SlurmError."""
    file = Path(folder) / TODO
    try:
        digest, _, text = files.read(file).partition(b"\n")
        if hashlib.sha256(text).hexdigest().encode() != digest:
            raise ValueError("a text without its SHA-256")
        return [_group(**fields) for fields in json.loads(text)]
    except Exception as error:  # damage, or another version of the code
        reason = f"{type(error).__name__}: {message(error)}"
        raise SlurmError(f"{file}: expected the run groups of a submission, found {reason}; submit again") from error


def _group(runs: list[dict[str, Any]], suite: dict[str, Any], **where: str) -> RunGroup:
    known = tuple(PlannedRun(**run | {"asked": tuple(run["asked"])}) for run in runs)
    return RunGroup(suite=Suite(**suite | {"also": tuple(suite["also"])}), runs=known, **where)


def write(folder: Path, todo: Sequence[RunGroup]) -> None:
    """Write the run groups of a submission behind the SHA-256 of their text. Raises SlurmError."""
    text = json.dumps([asdict(group) for group in todo])
    try:
        files.write(folder / TODO, f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}")
    except OSError as error:
        raise SlurmError(
            f"{folder / TODO}: cannot be written ({error.strerror or error}): make room or make the folder writable, "
            "or choose another with --state"
        ) from error


def opened(state: Path | str) -> list[Path]:
    """Return the folders of submissions with array tasks that may still run."""
    folder = Path(state) / FOLDER
    folders = [folder / name for name in files.listdir(folder)]
    return [path for path in folders if (path / TODO).is_file() and not (path / OVER).exists()]


def pending(state: Path | str, held: bool = False) -> dict[str, str]:
    """Return the runs that array tasks in the queue will make, with their state in the queue, by key.

    A submission that has left the queue is closed: runs that its array tasks had started and not finished have failed,
    with the end that SLURM reports as the reason. If the queue does not answer, all runs of submissions not known to be
    over count as pending, so that nothing is submitted twice. ``held``: the caller holds the lock; otherwise nothing is
    closed while another process submits.
    """
    if not opened(state):
        return {}
    with contextlib.nullcontext(True) if held else _lock(state, patience=0) as mine:
        notes: dict[str, str] = {}
        submissions = opened(state)
        try:
            waiting = queue.array_tasks([PREFIX + folder.name for folder in submissions])
            silent = ""
        except SlurmError as error:
            waiting, silent = {}, f"submitted to SLURM; {error}"
        for folder in submissions:
            try:
                groups = read(folder)
            except SlurmError:
                continue
            tasks = [task for task in waiting.values() if task.name == PREFIX + folder.name]
            if mine is not False and not tasks and not silent:
                if mine:  # else the folder is read-only
                    _explain(folder, groups)
                    close(folder)
                continue
            note = _tasks_text(tasks) if tasks else silent or "is being submitted to SLURM"
            for group in groups:
                notes |= {run.key: note for run in group.runs if not group.failures.since(run.key, run.attempts)}
        return notes


def _tasks_text(tasks: list[queue.QueuedTask]) -> str:
    """Describe the array tasks in the queue: how many run and how many wait, and why."""
    waits = [task for task in tasks if task.status == "PENDING"]
    reasons = ", ".join(Counter(task.why for task in waits if task.why not in ("", "None")))
    counts = [(len(tasks) - len(waits), "running", ""), (len(waits), "waiting", f" ({reasons})" if reasons else "")]
    job = tasks[0].id.partition("_")[0]
    return f"SLURM job {job}: array tasks: " + ", ".join(f"{n} {what}{why}" for n, what, why in counts if n)


def close(folder: Path) -> None:
    """Mark a submission as over."""
    with contextlib.suppress(OSError):  # on a read-only folder the next call retries
        folder.mkdir(parents=True, exist_ok=True)
        (folder / OVER).touch()


def _explain(folder: Path, groups: list[RunGroup]) -> None:
    """Record failures of unfinished runs whose array tasks have all left the queue."""
    left = {run.key: (group, run) for group in groups for run in group.runs if not group.recorded(run)}
    in_training = _in_training(folder)
    groups[0].claims.clear_dead(lambda holder: holder.job in in_training)
    for job, keys in in_training.items():
        here = [left[key] for key in keys or () if key in left]
        if here:
            _record_end(here, job, folder)
    errors = sorted((folder / "logs").glob(f"*{ERRORS}"), key=lambda path: path.stat().st_mtime)
    if errors and all(
        keys is None for keys in in_training.values()
    ):  # submitted again unchanged, they would not start either
        _record_end(list(left.values()), errors[-1].name.removesuffix(ERRORS), folder, begun=False)


def _in_training(folder: Path) -> dict[str, list[str] | None]:
    """Return the runs in training in each array task by its last note; None for a task that had not started any."""
    training: dict[str, list[str] | None] = {}
    for path in folder.glob("*.json"):
        with contextlib.suppress(OSError, ValueError):
            keys = files.parse(files.read(path))
            if keys is None or (isinstance(keys, list) and all(isinstance(key, str) for key in keys)):
                training[path.stem] = keys
    return training


def _record_end(runs: list[tuple[RunGroup, PlannedRun]], job: str, folder: Path, begun: bool = True) -> None:
    """Record the end of an array task as the failure of its runs; runs of a cancelled task become missing again."""
    errors = folder / "logs" / f"{job}{ERRORS}"
    end = queue.end(job, errors)
    label = f"SLURM job {job}"
    reason = f"its array task, {label}, {end.words}"
    if not begun:
        reason += f" before its first run: {last_lines(errors)}"
    elif end.status == "TIMEOUT":
        reason = time_is_up(0.0, ", ".join(filter(None, (label, end.status, end.node))))
    for group, run in runs:
        failure = group.failures.get(run.key)
        guessed = failure is not None and failure["attempt"] > run.attempts and failure["guess"]
        if end.status in ("CANCELLED", "COMPLETED"):  # cancelled, or its runs were made elsewhere
            if guessed:
                group.failures.clear(run.key)
        elif guessed or not group.failures.since(run.key, run.attempts):
            note_end(group, run, reason, errors, same=guessed)


def time_is_up(minutes: float, about: str) -> str:
    """Return the reason for a run whose array task reached its time limit, for all who report it."""
    limit = f"its time limit of {minutes:.0f} min" if minutes else "its time limit"
    return f"its array task reached {limit} ({about}); give it more, as in --slurm time=8:00:00"


def last_lines(file: Path) -> str:
    """Return the last non-empty lines of a log."""
    lines = [line.strip() for line in files.tail(file).splitlines()]
    return "; ".join([line for line in lines if line and not line.startswith("srun:")][-LINES:]) or "its log is empty"


def note_end(group: RunGroup, run: PlannedRun, reason: str, log: Path, same: bool = False) -> None:
    """Record that a run ended with its array task, and whether it can resume; ``same``: replace a guessed reason."""
    if progress(group.state, run.key):
        reason += "; the next attempt resumes from its checkpoint"
    try:
        group.failures.write(run.config, run.key, reason, log=str(log), same=same)
    except OSError as error:
        print(f"{group.title}: {reason} (and this could not be noted: {error})", file=sys.stderr)


@contextlib.contextmanager
def locked(state: Path | str) -> Iterator[None]:
    """Hold the submission lock, so that no other process submits between looking and submitting. Raises
    SlurmError."""
    folder = Path(state) / FOLDER
    with _lock(state, patience=PATIENCE) as mine:
        if not mine:
            who = files.holder(folder) or "another process"
            raise SlurmError(
                f"{folder}: it has been locked for {PATIENCE:.0f} s by {who}: wait until that has submitted, or end it"
                if mine is False
                else f"{folder}: cannot be written: make room, make it writable, or choose another with --state"
            )
        yield


@contextlib.contextmanager
def _lock(state: Path | str, patience: float) -> Iterator[bool | None]:
    """Try to take the lock for so many seconds. Yields whether it is held; None where the folder cannot be written."""
    folder = Path(state) / FOLDER
    with contextlib.ExitStack() as stack:
        mine = None
        with contextlib.suppress(OSError):
            files.make_folder(folder)
            mine = stack.enter_context(files.locked(folder, patience=patience))
        yield mine
