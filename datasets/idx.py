"""Read images and labels from idx files (MNIST and similar sets)."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np

from .checks import GET_AGAIN, BadData, reading

UNSIGNED_BYTE = 0x08


def read(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Return the uint8 array [*shape] of a gzipped idx file.

    Format: two zero bytes, type, number of axes, each axis's length as a big-endian int32, then the values.
    Raises BadData for another header or shape, and for a file that is truncated, damaged or too long.
    """
    header, size = 4 + 4 * len(shape), math.prod(shape)
    with reading(path, "a whole gzip file"), gzip.open(path) as stream:
        content = stream.read(header + size + 1)  # one byte more: gzip compares the checksum at the end
    magic = bytes([0, 0, UNSIGNED_BYTE, len(shape)])
    if content[:4] != magic:
        raise BadData(
            f"{path}: expected the idx header {magic.hex()} (bytes in {len(shape)} axes), "
            f"found {content[:4].hex() or 'nothing'}; {GET_AGAIN}"
        )
    found = tuple(np.frombuffer(content[4:header], dtype=">i4").tolist()) if len(content) >= header else ()
    if found != shape:
        raise BadData(f"{path}: expected shape {shape}, found {found}; {GET_AGAIN}")
    if len(content) != header + size:
        fault = "is truncated" if len(content) < header + size else "continues after its end"
        raise BadData(f"{path}: expected {size} values, found {len(content) - header}: the file {fault}; {GET_AGAIN}")
    return np.frombuffer(bytearray(content), dtype=np.uint8, offset=header).reshape(shape)
