"""Headers of .npy arrays: what an array is, before any memory is taken for it."""

from __future__ import annotations

import math
from typing import IO, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

READERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}


class Header(NamedTuple):
    """start: bytes before the values; by_column: whether the first index runs fastest."""

    shape: tuple[int, ...]
    by_column: bool
    dtype: np.dtype
    start: int

    @property
    def size(self) -> int:
        """Bytes of the whole array, as promised."""
        return self.start + math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"


def read_header(stream: IO[bytes]) -> Header:
    """Leaves the stream where the values begin. Raises what numpy raises, or ValueError for what it lets pass."""
    before = stream.tell()
    version = npy_format.read_magic(stream)
    if version not in READERS:
        raise ValueError(f"version {version} of the format; those of numbers are {', '.join(map(str, READERS))}")
    shape, by_column, dtype = READERS[version](stream)
    if any(length < 0 for length in shape):
        raise ValueError(f"an axis of negative length: {list(shape)}")
    return Header(shape, by_column, dtype, stream.tell() - before)
