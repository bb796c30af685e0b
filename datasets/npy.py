"""Read headers of .npy arrays, before any memory is allocated for the values."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

READERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}


LARGE, RATIO = 256 * 2**20, 100


class Header(NamedTuple):
    """Header of an array. start: bytes before the values; by_column: whether the first index runs fastest."""

    shape: tuple[int, ...]
    by_column: bool
    dtype: np.dtype
    start: int

    @property
    def size(self) -> int:
        """Bytes of header and values."""
        return self.start + math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"


def read_header(stream: IO[bytes]) -> Header:
    """Read a header and leave the stream at the values. Raises ValueError, also for what numpy accepts."""
    before = stream.tell()
    version = npy_format.read_magic(stream)
    if version not in READERS:
        raise ValueError(f"version {version} of the format; those of numbers are {', '.join(map(str, READERS))}")
    shape, by_column, dtype = READERS[version](stream)
    if any(length < 0 for length in shape):
        raise ValueError(f"an axis of negative length: {list(shape)}")
    return Header(shape, by_column, dtype, stream.tell() - before)


@contextmanager
def member(archive: zipfile.ZipFile, name: str) -> Iterator[IO[bytes]]:
    """Open the array `name` of an npz file as a stream.

    Raises ValueError, before unpacking, for a small member that unpacks into a huge array, or into another number of
    bytes than its header says."""
    about = archive.getinfo(f"{name}.npy")
    if about.file_size > max(LARGE, RATIO * about.compress_size):
        raise ValueError(
            f"the array {name} unpacks from {about.compress_size} to {about.file_size} bytes, more than {RATIO} times "
            "as many; if this is meant, save it uncompressed, with numpy.savez"
        )
    with archive.open(about) as stream:
        header = read_header(stream)
    if header.size != about.file_size and not header.dtype.hasobject:
        raise ValueError(f"the array {name} has {about.file_size} bytes, and {header.size} belong to {header}")
    with archive.open(about) as stream:
        yield stream


def array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """Return the array `name` of an npz file. Raises ValueError as `member`, and for Python objects."""
    with member(archive, name) as stream:
        if read_header(stream).dtype.hasobject:
            raise ValueError(f"Python objects in the array {name}, which are never unpickled; save numbers or text")
        stream.seek(0)
        return npy_format.read_array(stream, allow_pickle=False)
