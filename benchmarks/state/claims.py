"""Claims on runs, so that several sweeps share the work: one file per run in training.

A claim is a symbolic link whose target is its text (who holds it). A link is made whole or not at all and fails where
one exists, on local and network file systems alike, so a claim never lacks its holder. Its modification time is the
holder's heartbeat.

A holder that was suspended for long loses its claims. On resuming it must check that they are still its own before it
writes anything of a run.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.files import listdir, locked, make_folder, open_lock, parse

HEARTBEAT = 15.0  # seconds between heartbeats
# Seconds without a heartbeat after which a claim is taken over, also on this machine: its process or its machine is
# suspended. Heartbeats come from a thread of their own; only a single call that holds the interpreter's lock could
# delay them, and none does for more than a few seconds. If one did, the run would only be made in vain: a process that
# has lost its claim writes nothing.
LIMIT = 300.0
SPARE = ".spare"  # temporary name of a claim before it replaces another


class ClaimError(BenchmarkError):
    """Error: the folder of claims cannot be used."""


class Overtaken(Exception):
    """Another process has the claim: it was first, or this one was suspended for too long."""


@dataclass(frozen=True)
class Holder:
    """Process: machine name, scope of its process ids (boot and pid namespace), id, and start time.

    The name is for people: it may change, and is not unique. job and restart: the SLURM job of the process, if any, and
    its number of requeues so far.
    """

    host: str = field(compare=False)
    space: str
    pid: int
    started: str
    job: str = field(default="", compare=False)
    restart: int = field(default=0, compare=False)

    @classmethod
    def me(cls) -> Holder:
        """Return the present process."""
        return replace(_self(os.getpid()), **_slurm_job())

    def __str__(self) -> str:
        if self == UNKNOWN:
            return "an unknown process (its claim is of another version of the code)"
        return f"process {self.pid} on {self.host}" + (f" (SLURM job {self.job})" if self.job else "")


UNKNOWN = Holder("", "", 0, "")  # holder of a claim whose text this code cannot read; later code may have written it


class Claims:
    """Claims in a folder. A context manager that sends heartbeats while open and releases all claims at the end."""

    def __init__(self, folder: Path | str, limit: float = LIMIT, heartbeat: float = HEARTBEAT) -> None:
        self.folder, self.limit, self.heartbeat = Path(folder), limit, heartbeat
        self.held: set[str] = set()
        self._over = threading.Event()

    def acquire(self, key: str) -> bool:
        """Claim a run; return False while another live process holds it.

        A file in its place that is no claim is removed. Raises :class:`ClaimError`.
        """
        self.held.add(key)  # before the link is made, so that an interrupt between the two leaves no claim behind
        try:
            make_folder(self.folder)
            if self._link(key) or self._take_over(key):
                return True
        except OSError as error:
            self.held.discard(key)
            raise ClaimError(
                f"{self.folder / key}: the run cannot be claimed ({error.strerror or error}{_of(error, key)}); "
                "the folder must be writable and know symbolic links: choose another with --state"
            ) from error
        except ClaimError:
            self.held.discard(key)
            raise
        self.held.discard(key)
        return False

    def take(self, key: str) -> None:
        """Replace a child's claim by one of this process."""
        self.held.add(key)
        with contextlib.suppress(OSError), locked(self.folder):
            self._put(key)

    def release(self, key: str) -> None:
        """Release a claim, unless another process has taken it over."""
        with contextlib.suppress(OSError), locked(self.folder):
            if self._is_mine(key):
                (self.folder / key).unlink()
        self.held.discard(key)

    def holder(self, key: str) -> Holder | None:
        """Return the live process that holds a run, or None."""
        target = self._target(key)
        return None if target is None or self._stale(key, target) else _holder(target)

    def dead(self, key: str) -> Holder | None:
        """Return the lost process that left its claim on a run.

        None for an earlier start of the present job, and for a process that lives on this machine: it was suspended, or
        the clock was set.
        """
        target = self._target(key)
        holder = None if target is None or not self._stale(key, target) else _holder(target)
        if holder is None or holder == UNKNOWN or _earlier_life(holder) or _lives(holder):
            return None
        return holder

    def taken(self, key: str) -> bool:
        """Whether another process holds the claim on a run."""
        target = self._target(key)
        return target is not None and _holder(target) != Holder.me()

    def live(self) -> dict[str, Holder]:
        """Return the holders of all runs claimed by live processes."""
        names = [name for name in listdir(self.folder) if not name.startswith(".")]
        return {key: holder for key in names if (holder := self.holder(key))}

    def clear_dead(self, is_lost: Callable[[Holder], bool] = lambda holder: False) -> None:
        """Remove claims of lost processes; ``is_lost``: whether a holder, here or elsewhere, is known to be lost."""

        def dead(key: str, target: str) -> bool:
            holder = _holder(target)
            return self._stale(key, target) or (holder is not None and is_lost(holder))

        names = listdir(self.folder)
        if SPARE in names:  # left by a take-over that was killed
            with contextlib.suppress(OSError), locked(self.folder):
                (self.folder / SPARE).unlink(missing_ok=True)
        for key in names:
            target = None if key.startswith(".") else self._target(key)
            if target is not None and dead(key, target):
                with contextlib.suppress(OSError), locked(self.folder):
                    if self._target(key) == target and dead(key, target):
                        (self.folder / key).unlink()

    def __enter__(self) -> Claims:
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for key in list(self.held):
            self.release(key)

    def _beat(self) -> None:
        while not self._over.wait(self.heartbeat):
            for key in list(self.held):
                with contextlib.suppress(OSError):
                    if self._is_mine(key):
                        self._touch(key)

    def _touch(self, key: str) -> None:
        try:
            os.utime(self.folder / key, follow_symlinks=False)
        except (OSError, NotImplementedError):  # some file systems keep the time at which a link was made
            with locked(self.folder):
                if self._is_mine(key):
                    self._put(key)

    def _put(self, key: str) -> None:
        """Replace a claim; the folder must be locked."""
        spare = self.folder / SPARE
        _clear_way(spare)
        spare.unlink(missing_ok=True)
        os.symlink(_text(), spare)
        os.replace(spare, self.folder / key)

    def _link(self, key: str) -> bool:
        try:
            os.symlink(_text(), self.folder / key)
        except FileExistsError:
            return self._is_mine(key)
        return True

    def _take_over(self, key: str) -> bool:
        """Replace the claim of a lost process, or a file that is no claim."""
        target = self._target(key)
        if target is not None and not self._stale(key, target):
            return False
        with locked(self.folder):
            if target is None:  # it was just released, or is no link
                _clear_way(self.folder / key)
                return self._link(key)
            if self._target(key) != target or not self._stale(key, target):
                return False  # another process was faster, or the holder has resumed
            self._put(key)
        return True

    def _stale(self, key: str, target: str) -> bool:
        holder = _holder(target)
        if holder is None or _earlier_life(holder) or _lives(holder) is False:
            return True
        try:
            # The clock may have been set back since: a live holder beats soon, and then is at most that far off.
            return abs(self._now() - (self.folder / key).lstat().st_mtime) > self.limit
        except FileNotFoundError:
            return False

    def _now(self) -> float:
        """Return the time by the clock that stamps heartbeats: on a shared folder not this machine's."""
        try:
            with open_lock(self.folder) as file:
                os.utime(file.fileno())
                return os.fstat(file.fileno()).st_mtime
        except OSError:
            return time.time()

    def _target(self, key: str) -> str | None:
        try:
            return os.readlink(self.folder / key)
        except OSError:
            return None

    def _is_mine(self, key: str) -> bool:
        target = self._target(key)
        return target is not None and _holder(target) == Holder.me()


def _earlier_life(holder: Holder) -> bool:
    """Whether a process, on whatever machine, belonged to the present SLURM job before its requeue."""
    me = Holder.me()
    return bool(holder.job) and holder.job == me.job and holder.restart < me.restart


def _lives(holder: Holder) -> bool | None:
    """Whether a process of this machine lives; None for one elsewhere, or hidden as another user's."""
    if holder.space != Holder.me().space:
        return None
    now = _process(holder.pid)
    if now is None:
        return False
    return now.started == holder.started if now.started else None  # its id may belong to another process now


def _clear_way(path: Path) -> None:
    """Remove a file in the place of a claim that is no link. Raises OSError, and ClaimError for a full folder."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            path.rmdir()
        elif not stat.S_ISLNK(mode):
            path.unlink()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ClaimError(
            f"{path}: expected the claim of a run or nothing, found something else that cannot be removed "
            f"({error.strerror}): delete it and run the same command again"
        ) from error


def _of(error: OSError, key: str) -> str:
    """Name the other file that an error is about, if any."""
    name = Path(error.filename2 or error.filename or key).name  # for a link, the second is its place
    return f": {name}" if name != key else ""


def _text() -> str:
    return json.dumps(asdict(Holder.me()))


def _holder(target: str) -> Holder | None:
    """Parse a claim's text; None if no code can have written it."""
    try:
        content = parse(target)
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    try:
        holder = Holder(**content)
    except TypeError:
        return UNKNOWN
    values = [(entry.type, getattr(holder, entry.name)) for entry in fields(Holder)]
    right = all(type(value).__name__ == kind and str(value).isprintable() for kind, value in values)
    return holder if right and 0 < holder.pid < 2**31 else UNKNOWN


def _slurm_job() -> dict[str, Any]:
    """Return the SLURM job and restart of this process."""
    array, index = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    job = f"{array}_{index}" if array and index else os.environ.get("SLURM_JOB_ID", "")
    restart = os.environ.get("SLURM_RESTART_COUNT", "")
    return {"job": job, "restart": int(restart) if restart.isdecimal() else 0}


@cache
def _self(pid: int) -> Holder:
    """Return the present process. Cached, so that it is the same when /proc cannot be read later."""
    return _process(pid) or Holder(socket.gethostname(), _space(), pid, "")


def _process(pid: int) -> Holder | None:
    """Return the process of this id on this machine, or None; its start is "" if unknown."""
    try:
        # The command's name stands in brackets and may hold anything; the start is the 20th field after it.
        words = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        started = words[19] if words[0] not in "ZX" else None
    except OSError:  # no such process, or no /proc, or hidden there as another user's
        started = "" if _exists(pid) else None
    return None if started is None else Holder(socket.gethostname(), _space(), pid, started)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


@cache
def _space() -> str:
    """Return the scope in which process ids are comparable: this boot of this machine, this pid namespace.

    Where it is unknown, no other process shares it, and only heartbeats count.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        shown = Path("/proc/self/stat").read_text(errors="replace").split()[0]
        if boot and shown == str(os.getpid()):  # otherwise /proc belongs to another namespace
            return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        pass
    return uuid.uuid4().hex
