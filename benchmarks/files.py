"""Files that several processes share: written whole or not at all, and changed by one process at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
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
"""Bytes of a record or a file of the state folder, above which it is none that this project wrote."""
LOCK = ".lock"
SUFFIX = ".tmp"  # of files that are being written: .<name>.<random digits>.tmp, locked by their writer
PATIENCE = 30.0  # seconds: what is done under a lock takes milliseconds, so who has it that long was stopped
NOTICE = 5.0  # seconds after which waiting for a lock is told
OLD = 3600.0  # seconds after which nobody is still at writing a file, where locks cannot tell
UNABLE = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)  # of file systems that do not sync folders


@contextlib.contextmanager
def locked(folder: Path, patience: float = PATIENCE) -> Iterator[bool]:
    """Between processes: what is done in here to the files of a folder is one step. Raises OSError.

    Says whether that is so: it is not if another process has had the lock for all of ``patience`` seconds. Waiting for
    it is told on stderr.
    """
    with open_lock(folder) as file:
        begun = _lock(file, min(patience, NOTICE))
        if begun is False and patience > NOTICE:
            print(f"waiting for {holder(folder) or 'another process'}, which has locked {folder}", file=sys.stderr)
            begun = _lock(file, patience - NOTICE)
        # Some network file systems have no locks: the step is then short.
        yield begun is not False


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
    """Say which process has the lock of a folder; empty where the system does not tell, as of another machine."""
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
    """A new file to write, which takes the place of ``path`` at the end, whole, and there to stay after a power cut.

    After an exception nothing has changed. ``around`` is entered directly before the file takes its place, where it may
    raise, and left directly after. The folder is made if need be. Raises OSError.
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
        if isinstance(error, OSError) and error.errno and error.filename is None:  # as of a full disk
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
    """Remove what killed writers have left in a folder, of one file or of all. Raises nothing.

    A writer that lives, though it may be stopped, has its file locked.
    """
    prefix = f".{name}." if name else "."
    for left in listdir(folder):
        if left.startswith(prefix) and left.endswith(SUFFIX):
            with contextlib.suppress(OSError), open(folder / left, "r+b") as file:
                mine = _lock(file, 0)
                if mine or (mine is None and time.time() - os.fstat(file.fileno()).st_mtime > OLD):
                    (folder / left).unlink()


def read(path: Path | str, most: int = MOST) -> bytes:
    """Return what a regular file holds. Raises OSError for anything else: a pipe or a device could have no end."""
    handle = regular(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(handle).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"{size} bytes, expected at most {most}", str(path))
        parts, left = [], most
        while left > 0 and (part := os.read(handle, min(left, size + 1))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def tail(path: Path | str, most: int = 1_000_000) -> str:
    """Return the end of a text file, at most so many bytes of it; empty where it cannot be read."""
    with contextlib.suppress(OSError), open(path, "rb", opener=regular) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most).decode(errors="replace")
    return ""


def regular(path: Path | str, flags: int, mode: int = 0o666) -> int:
    """An opener for ``open``, of regular files alone. Raises OSError."""
    handle = os.open(path, flags | os.O_NONBLOCK, mode)  # a pipe at whose other end is nobody does not block
    found = os.fstat(handle).st_mode
    if not stat.S_ISREG(found):
        os.close(handle)
        if stat.S_ISDIR(found):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return handle


def make_folder(folder: Path) -> None:
    """Make a folder that may be there, and those above it, to stay after a power cut. Raises OSError."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync(folder.parent)


def listdir(folder: Path) -> list[str]:
    """The names in a folder; none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def parse(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError for whatever is none."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _begin(path: Path) -> tuple[Path, IO[bytes]]:
    """A new file beside a path, and locked: so others can tell a living writer from a killed one."""
    while True:
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:16]}{SUFFIX}")
        file = open(temporary, "xb")  # noqa: SIM115  (it stays open for the caller)
        if _lock(file, 0) is not False and temporary.exists():
            return temporary, file
        file.close()  # between its making and its locking it was taken for a leftover


def _lock(file: IO[bytes], patience: float) -> bool | None:
    """Whether an open file's lock is ours, or None where there are no locks. It ends with the file or its process."""
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
    """Put the names in a folder on disk: syncing a file does not cover the name that it was given."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNABLE:
            raise
    finally:
        os.close(handle)
