"""CIFAR-10 and CIFAR-100 in their binary version: records of label bytes and a 32x32 image.

The Python version holds the same images in pickles, which run code when they are read; it is not used.
"""
from __future__ import annotations

import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .checks import GET_AGAIN, BadData

IMAGE = (3, 32, 32)


def read(path: Path, members: Sequence[str], records: int, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 [N, 3, 32, 32] and labels int64 [N] of the members of the tar.gz archive, one after another.

    records: in each member; labels: bytes before each image, of which the last is the label (CIFAR-100: coarse, fine).
    Nothing is unpacked to disk. Raises BadData on a damaged archive, a missing member, a member of another length.
    """
    size = labels + int(np.prod(IMAGE))
    found = _contents(path, members)
    pieces = []
    for member in members:
        if member not in found:
            raise BadData(f"{path}: expected the file {member} in the archive, "
                          f"found {sorted(found) or 'none of its files'}; {GET_AGAIN}")
        if len(found[member]) != records * size:
            raise BadData(f"{path}, {member}: expected {records} records of {size} bytes, "
                          f"found {len(found[member])} bytes; {GET_AGAIN}")
        pieces.append(np.frombuffer(found[member], np.uint8).reshape(records, size))
    rows = np.concatenate(pieces)
    return rows[:, labels:].reshape(-1, *IMAGE), rows[:, labels - 1].astype(np.int64)


def _contents(path: Path, members: Sequence[str]) -> dict[str, bytes]:
    """The members' bytes in one pass over the archive."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(path, "r|gz") as archive:
            for entry in archive:
                if entry.isfile() and entry.name in members:
                    found[entry.name] = archive.extractfile(entry).read()
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise BadData(f"{path}: expected a whole tar.gz archive, found: {error}; {GET_AGAIN}") from error
    return found
