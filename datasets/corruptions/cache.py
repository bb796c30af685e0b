"""Generated images in the file cache: a file for each severity, filled by any number of processes, a corruption at a
time.

`severity-3.npy` is uint8 [19, N, 3, 32, 32]. Behind the array stands the SHA-256 of each corruption's images, or zeros
while there are none. Images whose digest is right are there, all others are made: a process that was killed while it
wrote, or a file that was damaged since, costs no more than these images.
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
PATIENCE = 60.0  # seconds; images of a corruption take one or two, so who has them that long was stopped
PAUSE = 0.05

Make = Callable[[int], np.ndarray]
Say = Callable[[int, int], None]


class SeverityFile:
    """The file of one severity: K corruptions' images, shape [K, ...]."""

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self.path, self.shape = path, shape
        self.header, self.bytes = _header(shape), math.prod(shape[1:])

    def images(self, wanted: range, make: Make, say: Say = lambda made, lacking: None) -> np.ndarray:
        """The images of some corruptions [len(wanted), ...], mapped from the file; `make(i)` makes those that it lacks.

        Several processes share what is to be made; `say(corruptions made here, lacking at first)` is called after each.
        Where the file cannot be written, a warning says so, and the images are made for this process alone.
        """
        lacking = self._lacking(wanted)
        if lacking:
            try:
                self._fill(lacking, make, say)
            except Unwritable as error:
                warnings.warn(f"{self.path}: cannot be kept ({error}), and will be made again", stacklevel=2)
                return np.stack([make(i) for i in wanted])
        # Copied where it is written to, since tensors are made of it and PyTorch knows of no memory that is not
        # written.
        mapped = np.memmap(self.path, np.uint8, "c", len(self.header), self.shape)
        return mapped[wanted.start : wanted.stop]

    def _lacking(self, wanted: range) -> list[int]:
        """Those that are not there, or not as they were written."""
        try:
            with open(self.path, "rb") as file:
                return [i for i in wanted if not self._whole(file) or not self._there(file, i)]
        except OSError:
            return list(wanted)

    def _fill(self, lacking: list[int], make: Make, say: Say) -> None:
        """Make those that nobody else is making, then those that another process has begun and not finished."""
        done, first = 0, len(lacking)
        with unwritable():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered: what other processes write meanwhile is to be seen.
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
                            made = np.ascontiguousarray(make(i))
                            with unwritable():
                                _write(file, len(self.header) + i * self.bytes, made.data.cast("B"))
                                _write(file, self._digest(i), hashlib.sha256(made.data).digest())
                            done += 1
                            say(done, first)
                        if there or mine or patience:
                            lacking.remove(i)

    def _begin(self, file: IO[bytes]) -> None:
        """Give a new file, or one that is no such file, its header and its length."""
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


class Unwritable(Exception):
    """The file cannot be written."""


@contextmanager
def unwritable() -> Iterator[None]:
    """Makes Unwritable of the errors of the system; what makes images has errors of its own."""
    try:
        yield
    except OSError as error:
        raise Unwritable(error.strerror or str(error)) from error


def _write(file: IO[bytes], place: int, content: bytes | memoryview) -> None:
    """Raises OSError also for what was written in part."""
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
    """Between processes: whether this one has a place, a byte of the file that is locked, for as long as it is in here.

    Nobody waits longer than `patience` seconds. Where the file system has no locks, everybody has it.
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
