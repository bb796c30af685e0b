"""Cache corrupted images: one file for each severity, which several processes may fill, one corruption at a time.

`severity-3.npy` is uint8 [19, N, 3, 32, 32], followed by the SHA-256 of each corruption's images, or zeros while they
are missing. Images whose digest does not match are made again, so that a killed process or a damaged file costs no
more than the affected corruptions.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np

DIGEST = 32  # bytes
PATIENCE = 60.0  # seconds; a corruption takes one or two, so a process that holds it longer was stopped
PAUSE = 0.05

Make = Callable[[int], np.ndarray]
Say = Callable[[int, int], None]


class SeverityFile:
    """File of one severity: images of K corruptions, shape [K, ...]."""

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self.path, self.shape = path, shape
        self.header, self.bytes = _header(shape), math.prod(shape[1:])

    def images(self, wanted: range, make: Make, say: Say = lambda done, lacking: None) -> np.ndarray:
        """Return images of some corruptions [len(wanted), ...], mapped from the file; `make(i)` makes missing ones.

        Several processes share the work; `say(corruptions made here, missing at first)` is called after each. If the
        file cannot be written, a warning says so and the images are made for this process alone.
        """
        lacking = self._lacking(wanted)
        if lacking:
            try:
                self._fill(lacking, make, say)
            except Unwritable as error:
                warnings.warn(NotStored(f"{self.path}: cannot be written ({error})"), stacklevel=2)
                return np.stack([make(i) for i in wanted])
        # Copy on write: PyTorch makes tensors only of writable memory.
        mapped = np.memmap(self.path, np.uint8, "c", len(self.header), self.shape)
        return mapped[wanted.start : wanted.stop]

    def _lacking(self, wanted: range) -> list[int]:
        """Return the corruptions whose images are missing or damaged."""
        try:
            with open(self.path, "rb") as file:
                return [i for i in wanted if not self._whole(file) or not self._there(file, i)]
        except OSError:
            return list(wanted)

    def _fill(self, lacking: list[int], make: Make, say: Say) -> None:
        """Make images that no other process is making, then images that another process left unfinished."""
        done, first = 0, len(lacking)
        with unwritable():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered, to see what other processes write meanwhile.
            file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644), "r+b", 0)
        with file:
            with unwritable(), _turn(file, 0, PATIENCE):
                self._begin(file)
            for patience in (0.0, PATIENCE):
                for i in list(lacking):
                    with _turn(file, 1 + i, patience) as mine:
                        with unwritable():
                            there = self._there(file, i)
                        if not there and (mine or patience):
                            images = np.ascontiguousarray(make(i))
                            with unwritable():
                                _write(file, len(self.header) + i * self.bytes, images.data.cast("B"))
                                _write(file, self._digest(i), hashlib.sha256(images.data).digest())
                            done += 1
                            say(done, first)
                        if there or mine or patience:
                            lacking.remove(i)

    def _begin(self, file: IO[bytes]) -> None:
        """Write header and length of a file that is new or of another form."""
        if not self._whole(file):
            file.truncate(0)
            _write(file, 0, self.header)
            file.truncate(self._size)

    def _whole(self, file: IO[bytes]) -> bool:
        file.seek(0)
        return file.read(len(self.header)) == self.header and os.fstat(file.fileno()).st_size == self._size

    def _there(self, file: IO[bytes], i: int) -> bool:
        file.seek(self._digest(i))
        digest = file.read(DIGEST)
        if not any(digest):
            return False
        file.seek(len(self.header) + i * self.bytes)
        return hashlib.sha256(file.read(self.bytes)).digest() == digest

    def _digest(self, i: int) -> int:
        return len(self.header) + len(self) * self.bytes + i * DIGEST

    @property
    def _size(self) -> int:
        return self._digest(len(self))

    def __len__(self) -> int:
        return self.shape[0]


class NotStored(UserWarning):
    """Warning that images are not in the cache."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; these images will be made again next time")
        self.why = why


class Unwritable(Exception):
    """The file cannot be written."""


@contextmanager
def unwritable() -> Iterator[None]:
    """Turn OSError into Unwritable; errors of the function that makes images stay as they are."""
    try:
        yield
    except OSError as error:
        raise Unwritable(error.strerror or str(error)) from error


def _write(file: IO[bytes], place: int, content: bytes | memoryview) -> None:
    """Write `content` at `place`. Raises OSError, also if only a part was written."""
    file.seek(place)
    if file.write(content) != len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _header(shape: tuple[int, ...]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": np.lib.format.dtype_to_descr(np.dtype(np.uint8)), "fortran_order": False, "shape": shape}
    )
    return stream.getvalue()


@contextmanager
def _turn(file: IO[bytes], place: int, patience: float) -> Iterator[bool]:
    """Lock byte `place` of the file between processes; yield whether this process holds the lock.

    A process waits at most `patience` seconds. On a file system without locks every process holds it.
    """
    limit = time.monotonic() + patience
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            mine = True
        except (BlockingIOError, PermissionError):
            mine = False
        except OSError:
            mine = True
        if mine or time.monotonic() >= limit:
            break
        time.sleep(PAUSE)
    try:
        yield mine
    finally:
        if mine:
            with suppress(OSError):
                fcntl.lockf(file, fcntl.LOCK_UN, 1, place)
