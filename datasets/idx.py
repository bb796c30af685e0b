"""Read images and labels from idx files (MNIST and similar sets)."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from .checks import reading

UNSIGNED_BYTE = 0x08


def read(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Return the uint8 array [*shape] of a gzipped idx file.

    Format: two zero bytes, type, number of axes, each axis's length as a big-endian int32, then the values.
    Raises BadData for another header, and for a file that is truncated, damaged or too long.
    """
    header = bytes([0, 0, UNSIGNED_BYTE, len(shape)]) + np.array(shape, ">i4").tobytes()
    with reading(path, f"a gzipped idx file of bytes {list(shape)}"), gzip.open(path) as stream:
        if (found := stream.read(len(header))) != header:
            raise ValueError(f"the header {found.hex() or 'of no byte'} in place of {header.hex()}")
        return np.frombuffer(bytearray(stream.read()), np.uint8).reshape(shape)
