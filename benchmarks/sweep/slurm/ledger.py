"""Submissions on disk: which runs went to which array task, and what became of the array tasks.

    <state>/slurm/<submission>/submission.json    array tasks with the keys of their runs
    <state>/slurm/<submission>/task-<i>.json      the run groups of an array task

The ledger says only who was asked to make a run. Whether it is made is told by its record, as everywhere.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from benchmarks import files
from benchmarks.errors import BenchmarkError
from benchmarks.records.store import Store
from benchmarks.state.checkpoints import peek
from benchmarks.state.failures import Failures
from benchmarks.suite import resolve
from benchmarks.sweep.executors.work import log_path, recorded
from benchmarks.sweep.groups import Run, RunGroup
from benchmarks.sweep.slurm import queue
from fvi_core.printing import message

T = TypeVar("T")
FOLDER = "slurm"
LAST = 60.0  # seconds before the end of an array task in which a death belongs to it


class LedgerError(BenchmarkError):
    """The notes on submitted jobs cannot be read or written."""

    exit_code = 2  # nothing was begun


@dataclass
class Entry:
    """One array task: the keys of its runs, its id in SLURM (None until sbatch has answered), whether it is over."""

    keys: list[str]
    id: str | None = None
    over: bool = False


@dataclass
class Submission:
    """The array tasks of one array; name is their name in the queue, minutes the time limit of each."""

    folder: Path
    name: str
    entries: list[Entry] = field(default_factory=list)
    minutes: float = 0.0

    @property
    def job(self) -> str:
        """The id of the array."""
        return str(self.entries[0].id).partition("_")[0]

    @property
    def log_folder(self) -> Path:
        """Where submitit keeps scripts and logs of the array tasks."""
        return self.folder / "logs"

    def errors(self, id_: str) -> Path:
        """The error file of an array task."""
        return self.log_folder / f"{id_}_0_log.err"

    def task_file(self, index: int) -> Path:
        """The run groups of an array task."""
        return self.folder / f"task-{index}.json"

    def save(self) -> None:
        """Write the list of array tasks. Raises LedgerError."""
        told = {"name": self.name, "minutes": self.minutes, "tasks": [asdict(entry) for entry in self.entries]}
        write(self.folder / "submission.json", told)


def begin(state: Path, array_tasks: Sequence[Sequence[RunGroup]], minutes: float = 0.0) -> Submission:
    """Note what is about to be submitted, before it is: a death in between loses nothing. Raises LedgerError."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    submission = Submission(Path(state) / FOLDER / stamp, f"fvi-{stamp}", minutes=minutes)
    submission.entries = [Entry([key for group in groups for key in group.keys]) for groups in array_tasks]
    for earlier in files.listdir(Path(state) / FOLDER):
        files.clear(Path(state) / FOLDER / earlier)
    for index, groups in enumerate(array_tasks):
        write(submission.task_file(index), [asdict(group) for group in groups])
    submission.save()
    return submission


def groups_of(file: Path | str) -> list[RunGroup]:
    """The run groups of an array task. Raises LedgerError."""
    try:
        groups = [_group(told) for told in files.parse(files.read(file))]
    except Exception as error:  # whatever comes of damage
        reason = f"{type(error).__name__}: {message(error)}"
        raise LedgerError(f"{file}: expected the run groups of an array task, found {reason}; submit again") from error
    if not groups:
        raise LedgerError(f"{file}: expected the run groups of an array task, found none; submit again")
    return groups


def open_submissions(state: Path | str) -> list[Submission]:
    """The submissions of which an array task may not be over; one that cannot be read is left out."""
    found = []
    for path in sorted((Path(state) / FOLDER).glob("*/submission.json")):
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            read = files.parse(files.read(path))
            entries = [_entry(told) for told in read["tasks"]]
            if not all(entry.over for entry in entries):
                found.append(
                    Submission(path.parent, _typed(read["name"], str), entries, float(read.get("minutes", 0.0)))
                )
    return found


def _group(told: dict[str, Any]) -> RunGroup:
    """A run group from a file. Raises what comes of damage."""
    runs = tuple(Run(**run | {"asked": tuple(run["asked"])}) for run in told["runs"])
    group = RunGroup(**told | {"runs": runs})
    for word in (group.execute, group.metrics, group.measure, group.timing, group.results, group.state):
        _typed(word, str)
    resolve(group.metrics)
    for run in group.runs:
        Store(group.results).path(run.config)  # what is no configuration has no place
        _typed(run.attempts, int)
        for name in run.asked:
            _typed(name, str)
    if not group.runs:
        raise ValueError("no runs")
    return group


def _entry(told: dict[str, Any]) -> Entry:
    """An array task from a file. Raises TypeError and ValueError for what is none."""
    entry = Entry(**told)
    for key in _typed(entry.keys, list):
        _typed(key, str)
    if entry.id is not None and not re.fullmatch(r"\d+(_\d+)?", entry.id):
        raise ValueError(f"{entry.id!r} is no id of an array task")
    _typed(entry.over, bool)
    return entry


def _typed(value: Any, kind: type[T]) -> T:
    """A value of this type. Raises TypeError for another."""
    if type(value) is not kind or (kind is str and "\0" in str(value)):
        raise TypeError(f"{value!r} in place of a value of type {kind.__name__}")
    return value


def pending(state: Path | str, held: bool = False) -> dict[str, str]:
    """The runs that array tasks in the queue are to make: key -> which array task, and its status.

    Array tasks that are no longer in the queue are closed: their runs that were begun and are not recorded have
    failed, with what SLURM tells of the end as the reason. If the queue cannot be asked, all runs of array tasks
    that were not seen to end count as pending, so that nothing is submitted twice. ``held``: the caller holds
    the lock; otherwise, while somebody else submits, nothing is closed.
    """
    if not (Path(state) / FOLDER).is_dir():
        return {}
    with contextlib.nullcontext(True) if held else _lock(state, wait=False) as mine:
        submissions = open_submissions(state)
        if not submissions:
            return {}
        try:
            waiting = queue.array_tasks("fvi-")
        except queue.QueueError as error:
            told = f"submitted to SLURM; {error}"
            return {key: told for s in submissions for entry in s.entries if not entry.over for key in entry.keys}
        found: dict[str, str] = {}
        for submission in submissions:
            found.update(_look(submission, waiting, mine))
        return found


def _look(submission: Submission, waiting: dict[str, queue.QueuedTask], close: bool) -> dict[str, str]:
    """The pending runs of one submission; with ``close``, array tasks that have left the queue are closed."""
    found = {}
    ids = [queued.id for queued in waiting.values() if queued.name == submission.name]
    for index, entry in enumerate(submission.entries):
        if entry.id is None:  # the submitting process is at it, or died before it could note the id
            entry.id = next((id_ for id_ in ids if id_.partition("_")[2] in ("", str(index))), None)
        if entry.id in ids:
            found.update(dict.fromkeys(entry.keys, str(waiting[entry.id])))
        elif entry.id is None and not close:
            found.update(dict.fromkeys(entry.keys, "is being submitted to SLURM"))
        elif close and not entry.over:
            _close(submission, index)
            entry.over = True
    if close:
        with contextlib.suppress(LedgerError):  # on a read-only folder the next look closes them again
            submission.save()
    return found


def _close(submission: Submission, index: int) -> None:
    """Note why runs that an array task had begun are not there."""
    entry = submission.entries[index]
    if entry.id is None:
        return
    try:
        groups = groups_of(submission.task_file(index))
    except LedgerError:
        return
    if {key for group in groups for key in group.keys} - set(entry.keys):  # the file was changed
        return
    asked, errors = submission.task_file(index), submission.errors(entry.id)
    unmade = [(group, run, _failed(group, run)) for group in groups for run in group.runs if not recorded(group, run)]
    left = [(group, run) for group, run, failed in unmade if not failed]
    guessed = [(group, run) for group, run, failed in unmade if failed and _guessed(group, run.key, errors)]
    if not left and not guessed:
        return
    how = queue.end(entry.id, errors)
    if how.status == "CANCELLED":  # by the user
        for group, run in guessed:
            Failures(group.state).clear(run.key)
    if how.status in ("CANCELLED", "COMPLETED"):  # or its runs were made or given up elsewhere
        return
    begun = [(group, run) for group, run in left if _begun(group, run.key, asked)]
    told = f"SLURM job {entry.id}"
    reason = f"its array task, {told}, {how.words}"
    if how.status == "TIMEOUT":
        reason = time_is_up(submission.minutes, ", ".join(filter(None, (told, how.status, how.node))))
    if (
        not begun
        and how.status == "FAILED"
        and not any(_begun(group, key, asked) for group in groups for key in group.keys)
    ):
        begun = left  # it could not even begin: asked again as it is, it would not either
        reason += f" before its first run: {last_line(errors)}"
    for group, run in begun + (guessed if how.status in queue.WORDS else []):
        note_end(group, run, reason, errors)


def _failed(group: RunGroup, run: Run) -> bool:
    """Whether a run has failed since its group was planned."""
    return Failures(group.state).attempts(run.key) > run.attempts


def _guessed(group: RunGroup, key: str, errors: Path) -> bool:
    """Whether a run failed as its array task ended, by the death of a process that nobody could explain."""
    failures = Failures(group.state)
    try:
        last = errors.stat().st_mtime - LAST  # SLURM writes there how it ends an array task
        return failures.guessed(key) and failures.path(key).stat().st_mtime >= last
    except OSError:
        return False


def time_is_up(minutes: float, about: str) -> str:
    """The reason of a run whose array task came to its time limit, whoever notices."""
    limit = f"its time limit of {minutes:.0f} min" if minutes else "its time limit"
    return f"its array task came to {limit} ({about}); give it more, as in --slurm time=8:00:00"


def last_line(file: Path) -> str:
    """The last line of a log that says something."""
    try:
        said = [line.strip() for line in file.read_text(errors="replace").splitlines()]
    except OSError:
        said = []
    return next((line for line in reversed(said) if line and not line.startswith("srun:")), "its log is empty")


def note_end(group: RunGroup, run: Run, reason: str, log: Path) -> None:
    """Note that a run ended with its array task, and whether it can go on; a guess at why makes room."""
    if peek(group.state, run.key):
        reason += "; asked again, it goes on from its checkpoint"
    failures = Failures(group.state)
    guessed = _failed(group, run) and failures.guessed(run.key)
    with contextlib.suppress(OSError):
        failures.write(run.config, run.key, reason, log=str(log), same=guessed)


def _begun(group: RunGroup, key: str, asked: Path) -> bool:
    """Whether a run was begun since it was submitted: its log is opened first of all."""
    try:
        return log_path(group, key).stat().st_mtime >= asked.stat().st_mtime
    except OSError:
        return False


@contextlib.contextmanager
def locked(state: Path | str) -> Iterator[None]:
    """One submission at a time: between looking and submitting nobody else submits. Raises LedgerError."""
    with _lock(state, wait=True) as mine:
        if not mine:
            raise LedgerError(
                f"{Path(state) / FOLDER}: cannot be written: make room or make the folder writable, "
                "or choose another with --state"
            )
        yield


@contextlib.contextmanager
def _lock(state: Path | str, wait: bool) -> Iterator[bool]:
    """Whether the lock is ours now; without ``wait`` it is not if somebody else has it."""
    folder = Path(state) / FOLDER
    with contextlib.ExitStack() as stack:
        try:
            files.make_folder(folder)
            mine = stack.enter_context(files.locked(folder, patience=math.inf if wait else 0))
        except OSError:
            mine = False
        yield mine


def write(path: Path, value: Any) -> None:
    """Write JSON whole or not at all. Raises LedgerError."""
    try:
        files.write(path, json.dumps(value))
    except OSError as error:
        raise LedgerError(
            f"{path}: cannot be written ({error.strerror or error}): make room or make the folder writable, "
            "or choose another with --state"
        ) from error
