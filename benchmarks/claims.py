"""Claims on runs, so that several sweeps share the work: one file per run that some process is making now.

A claim is a symbolic link whose target is its text (who holds it). A link is made whole or not at all and
fails where one exists, on local and network file systems alike, so a claim never lacks its holder. Its
modification time is the holder's heartbeat.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError

HEARTBEAT = 15.0  # seconds between heartbeats
LIMIT = 300.0  # seconds without a heartbeat after which a claim of another machine is taken over
LOCK, SPARE = ".lock", ".spare"  # files of the folder that are no claims


class ClaimError(BenchmarkError):
    """The folder of claims cannot be used."""


@dataclass(frozen=True)
class Holder:
    """A process: machine, where its process ids count (boot and pid namespace), id, and when it started.

    job and restart: the SLURM job that it belongs to, if any, and how often that was requeued before.
    """

    host: str
    space: str
    pid: int
    started: str
    job: str = field(default="", compare=False)
    restart: int = field(default=0, compare=False)

    @classmethod
    def me(cls) -> Holder:
        """The present process."""
        return replace(_process(os.getpid()), **_slurm_job())

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}" + (f" (SLURM job {self.job})" if self.job else "")


class Claims:
    """The claims in a folder. A context manager: beats while open, and gives up what it holds at the end."""

    def __init__(self, folder: Path | str, limit: float = LIMIT, heartbeat: float = HEARTBEAT) -> None:
        self.folder, self.limit, self.heartbeat = Path(folder), limit, heartbeat
        self.held: set[str] = set()
        self._over = threading.Event()

    def acquire(self, key: str) -> bool:
        """Claim a run; False while another live process holds it. Raises :class:`ClaimError`."""
        self.held.add(key)  # before the link is made: an interrupt between the two must not leave it behind
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self._link(key) or self._take_over(key):
                return True
        except OSError as error:
            self.held.discard(key)
            raise ClaimError(
                f"{self.folder}: a run cannot be claimed ({error.strerror or error}); "
                "the folder must be writable and know symbolic links: choose another with --state"
            ) from error
        self.held.discard(key)
        return False

    def release(self, key: str) -> None:
        """Give up a claim; one that another process has taken over is left alone."""
        with contextlib.suppress(OSError), locked(self.folder):
            if self._target(key) == _text():
                (self.folder / key).unlink()
        self.held.discard(key)

    def holder(self, key: str) -> Holder | None:
        """The live process that holds a run, or None."""
        target = self._target(key)
        return None if target is None or self._stale(key, target) else _holder(target)

    def live(self) -> dict[str, Holder]:
        """Every run that a live process holds."""
        names = [name for name in listdir(self.folder) if not name.startswith(".")]
        return {key: holder for key in names if (holder := self.holder(key))}

    def clear_dead(self) -> None:
        """Remove the claims that nobody holds any more."""
        names = listdir(self.folder)
        if SPARE in names:  # of a take-over that was killed
            with contextlib.suppress(OSError), locked(self.folder):
                (self.folder / SPARE).unlink(missing_ok=True)
        for key in names:
            target = None if key.startswith(".") else self._target(key)
            if target is not None and self._stale(key, target):
                with contextlib.suppress(OSError), locked(self.folder):
                    if self._target(key) == target:
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
                    if self._target(key) == _text():
                        os.utime(self.folder / key, follow_symlinks=False)

    def _link(self, key: str) -> bool:
        try:
            os.symlink(_text(), self.folder / key)
        except FileExistsError:
            return self._target(key) == _text()
        return True

    def _take_over(self, key: str) -> bool:
        target = self._target(key)
        if target is None:
            return self._link(key)
        if not self._stale(key, target):
            return False
        with locked(self.folder):
            if self._target(key) != target:
                return False
            spare = self.folder / SPARE
            spare.unlink(missing_ok=True)
            os.symlink(_text(), spare)
            os.replace(spare, self.folder / key)
        return True

    def _stale(self, key: str, target: str) -> bool:
        holder, me = _holder(target), Holder.me()
        if holder and holder.job and holder.job == me.job and holder.restart < me.restart:
            return True  # an earlier life of the present job, wherever that was
        if holder and holder.space == me.space:
            return _process(holder.pid) != holder  # the id may have passed to another process
        try:
            # The clock may have been set back since: a holder that lives beats soon, and then is at most that far off.
            return abs(self._now() - (self.folder / key).lstat().st_mtime) > self.limit
        except FileNotFoundError:
            return False

    def _now(self) -> float:
        """The time by the clock that stamps heartbeats, which on a shared folder is not this machine's."""
        try:
            with open(self.folder / LOCK, "a") as file:
                os.utime(file.fileno())
                return os.fstat(file.fileno()).st_mtime
        except OSError:
            return time.time()

    def _target(self, key: str) -> str | None:
        try:
            return os.readlink(self.folder / key)
        except OSError:
            return None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Between processes: what is done in here to the files of a folder is one step."""
    with open(folder / LOCK, "w") as file:
        with contextlib.suppress(OSError):  # some network file systems have no locks: the step is then short
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def listdir(folder: Path) -> list[str]:
    """The names in a folder; none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _text() -> str:
    return json.dumps(asdict(Holder.me()))


def _holder(target: str) -> Holder | None:
    try:
        return Holder(**json.loads(target))
    except (ValueError, TypeError):
        return None


def _slurm_job() -> dict[str, Any]:
    """What a claim says of the SLURM job that this process belongs to."""
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    job = f"{array}_{task}" if array and task else os.environ.get("SLURM_JOB_ID", "")
    restart = os.environ.get("SLURM_RESTART_COUNT", "")
    return {"job": job, "restart": int(restart) if restart.isdecimal() else 0}


def _process(pid: int) -> Holder | None:
    """The process that has this id on this machine now, or None."""
    try:
        # The command's name stands in brackets and may hold anything; the start is the 20th field after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        started = fields[19] if fields[0] not in "ZX" else None
    except OSError:
        started = None if os.path.exists("/proc/self/stat") or not _exists(pid) else "unknown"
    return Holder(socket.gethostname(), _space(), pid, started) if started else None


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
    """What two process ids must share to be comparable: this boot of this machine, this pid namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()
