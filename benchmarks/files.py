"""Files that several processes share: written whole or not at all, and changed by one process at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import stat
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, Any

MOST = 64_000_000
"""Largest size in bytes of a record or a file of the state folder."""
LOCK = ".lock"
SUFFIX = ".tmp"  # suffix of files that are being written: .<name>.<random digits>.tmp, locked by their writer
PATIENCE = 30.0  # seconds: steps under a lock take milliseconds, so a process holding it that long is suspended
NOTICE = 5.0  # seconds of waiting for a lock before a message
OLD = 3600.0  # seconds after which no process still writes a file, where locks do not work
UNABLE = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)  # errors of file systems that cannot sync folders


@contextlib.contextmanager
def locked(folder: Path, patience: float = PATIENCE) -> Iterator[bool]:
    """Make the changes to a folder's files in this context one step between processes. Raises OSError.

    Yields whether it is one: not if another process held the lock for ``patience`` seconds. Waiting is reported on
    stderr.
    """
    with open_lock(folder) as file:
        acquired = _lock(file, min(patience, NOTICE))
        if acquired is False and patience > NOTICE:
            print(f"waiting for {holder(folder) or 'another process'}, which has locked {folder}", file=sys.stderr)
            acquired = _lock(file, patience - NOTICE)
        # Some network file systems have no locks: the step is then short, but unprotected.
        yield acquired is not False


def open_lock(folder: Path) -> IO[bytes]:
    """Open the lock of a folder, which only those may open who may write in the folder. Raises OSError."""
    file = open(folder / LOCK, "ab", opener=lambda path, flags: regular(path, flags, 0o600))  # noqa: SIM115
    about = os.fstat(file.fileno())
    mode = 0o600 | folder.stat().st_mode & 0o022
    mode |= (mode & 0o022) << 1
    if stat.S_IMODE(about.st_mode) != mode and about.st_uid == os.geteuid():
        with contextlib.suppress(OSError):
            os.fchmod(file.fileno(), mode)
    return file


def holder(folder: Path) -> str:
    """Describe the process that has the lock of a folder; empty if unknown, as for another machine."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        about = (folder / LOCK).stat()
        for line in Path("/proc/locks").read_text().splitlines():
            _, kind, *_, pid, place, _, _ = line.split()
            major, minor, inode = place.split(":")
            where = int(major, 16), int(minor, 16), int(inode)
            if kind == "FLOCK" and where == (os.major(about.st_dev), os.minor(about.st_dev), about.st_ino):
                with contextlib.suppress(OSError, KeyError):
                    return f"process {pid} of {Path('/proc', pid).owner()}"
                return f"process {pid}"
    return ""


@contextlib.contextmanager
def replacing(path: Path, around: AbstractContextManager[Any] = nullcontext()) -> Iterator[IO[bytes]]:
    """Write a new file that replaces ``path`` at the end: whole, and safe against a power cut.

    After an exception nothing has changed. ``around`` is entered directly before the replacement, where it may raise,
    and left directly after. The folder is created if necessary. Raises OSError.
    """
    make_folder(path.parent)
    clear(path.parent, path.name)
    temporary, file = _begin(path)
    try:
        with file:  # it stays locked until it has its name
            yield file
            file.flush()
            os.fsync(file.fileno())
            with around:
                os.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno and error.filename is None:  # such as a full disk
            error.filename = str(path)
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def write(path: Path, text: str, around: AbstractContextManager[Any] = nullcontext()) -> None:
    """Write a text file as :func:`replacing` does. Raises OSError."""
    data = text.encode()
    with replacing(path, around) as file:
        file.write(data)


def clear(folder: Path, name: str = "") -> None:
    """Remove files that killed writers left in a folder, of one name or all. Raises nothing.

    Files of living writers, even suspended ones, are locked and stay.
    """
    prefix = f".{name}." if name else "."
    for entry in listdir(folder):
        if entry.startswith(prefix) and entry.endswith(SUFFIX):
            with contextlib.suppress(OSError), open(folder / entry, "r+b") as file:
                acquired = _lock(file, 0)
                if acquired or (acquired is None and time.time() - os.fstat(file.fileno()).st_mtime > OLD):
                    (folder / entry).unlink()


def read(path: Path | str, most: int = MOST) -> bytes:
    """Return the content of a regular file. Raises OSError for anything else: a pipe or a device could have no end."""
    handle = regular(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(handle).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"{size} bytes, expected at most {most}", str(path))
        parts, remaining = [], most
        while remaining > 0 and (part := os.read(handle, min(remaining, size + 1))):
            parts.append(part)
            remaining -= len(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def digest_or_reason(path: Path | str) -> str:
    """Return the SHA-256 of a regular file, or the reason why it cannot be read."""
    try:
        return hashlib.sha256(read(path)).hexdigest()
    except OSError as error:
        return error.strerror or str(error)


def tail(path: Path | str, most: int = 1_000_000) -> str:
    """Return the end of a text file, at most so many bytes of it; empty where it cannot be read."""
    with contextlib.suppress(OSError, ValueError), open(path, "rb", opener=regular) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most).decode(errors="replace")
    return ""


def regular(path: Path | str, flags: int, mode: int = 0o666) -> int:
    """An opener for ``open``, of regular files alone. Raises OSError."""
    handle = os.open(path, flags | os.O_NONBLOCK, mode)  # a pipe at whose other end is nobody does not block
    file_mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(file_mode):
        os.close(handle)
        if stat.S_ISDIR(file_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return handle


def make_folder(folder: Path) -> None:
    """Create a folder and its parents if absent, safe against a power cut. Raises OSError."""
    if not folder.is_dir():
        if folder.exists():
            raise NotADirectoryError(errno.ENOTDIR, "expected a folder, found a file", str(folder))
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync(folder.parent)


def listdir(folder: Path) -> list[str]:
    """Return the names in a folder; none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def parse(text: str | bytes) -> Any:
    """Parse JSON text. Raises ValueError for any invalid text."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _begin(path: Path) -> tuple[Path, IO[bytes]]:
    """Create a new file beside a path, locked, so that others can tell a living writer from a killed one."""
    while True:
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:16]}{SUFFIX}")
        try:
            file = open(temporary, "xb")  # noqa: SIM115  (it stays open for the caller)
        except OSError as error:
            error.filename = str(path)  # the name that the user knows
            raise
        if _lock(file, 0) is not False and temporary.exists():
            return temporary, file
        file.close()  # another process removed it as a leftover before it was locked


def _lock(file: IO[bytes], patience: float) -> bool | None:
    """Take an open file's lock; None where there are no locks. It ends with the file or its process."""
    limit, pause = time.monotonic() + patience, 0.001
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= limit:
                return False
        except OSError:
            return None
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _sync(folder: Path) -> None:
    """Sync the names in a folder to disk: syncing a file does not cover its name."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNABLE:
            raise
    finally:
        os.close(handle)
