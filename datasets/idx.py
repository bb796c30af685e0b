"""Images and labels in the idx files of MNIST and of the sets made in its likeness."""
from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np

from .checks import GET_AGAIN, BadData

UNSIGNED_BYTE = 0x08


def read(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """The uint8 array [*shape] of a gzipped idx file.

    Two zero bytes, type, number of axes, each axis's length as a big-endian int32, then the values.
    Raises BadData on another header or shape, and on a file that is cut off, damaged, or longer than it says.
    """
    try:
        with gzip.open(path) as stream:
            content = stream.read()
    except (OSError, EOFError, zlib.error) as error:
        raise BadData(f"{path}: expected a whole gzip file, found: {error}; {GET_AGAIN}") from error
    header = 4 + 4 * len(shape)
    magic = bytes([0, 0, UNSIGNED_BYTE, len(shape)])
    if content[:4] != magic:
        raise BadData(f"{path}: expected the idx header {magic.hex()} (bytes in {len(shape)} axes), "
                      f"found {content[:4].hex() or 'nothing'}; {GET_AGAIN}")
    found = tuple(np.frombuffer(content[4:header], dtype=">i4").tolist()) if len(content) >= header else ()
    if found != shape:
        raise BadData(f"{path}: expected shape {shape}, found {found}; {GET_AGAIN}")
    if len(content) - header != np.prod(shape):
        fault = "is truncated" if len(content) - header < np.prod(shape) else "goes on after its end"
        raise BadData(f"{path}: expected {np.prod(shape)} values, found {len(content) - header}: "
                      f"the file {fault}; {GET_AGAIN}")
    return np.frombuffer(bytearray(content), dtype=np.uint8, offset=header).reshape(shape)
