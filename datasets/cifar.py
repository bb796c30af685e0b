"""CIFAR-10 and CIFAR-100 in their binary version: records of label bytes and a 32x32 image.

The Python version holds the same images in pickles, which run code when they are read; it is not used.
"""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .checks import reading

IMAGE = (3, 32, 32)
CHUNK = 2**20


def read(path: Path, members: Sequence[str], records: int, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images uint8 [N, 3, 32, 32] and labels int64 [N] of members of a tar.gz archive, one after another.

    records: in each member; labels: bytes before each image, the last of which is the label (CIFAR-100: coarse, fine).
    Nothing is unpacked to disk. Raises BadData on a damaged archive, a missing member, a member of another length.
    """
    size = labels + int(np.prod(IMAGE))
    found: dict[str, np.ndarray] = {}
    with (
        reading(path, f"a whole tar.gz archive with {records} records of {size} bytes in each of {', '.join(members)}"),
        gzip.open(path) as stream,
        tarfile.open(fileobj=stream, mode="r:") as archive,
    ):
        for entry in archive:
            if entry.isfile() and entry.name in members:
                content = archive.extractfile(entry)
                assert content is not None  # it is a file
                found[entry.name] = np.frombuffer(content.read(), np.uint8).reshape(records, size)
        while stream.read(CHUNK):  # gzip compares the checksum at the end
            pass
        rows = np.concatenate([found[member] for member in members])
    return rows[:, labels:].reshape(-1, *IMAGE), rows[:, labels - 1].astype(np.int64)
