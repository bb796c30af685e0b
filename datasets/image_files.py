"""Read files of image sets: idx (MNIST and similar sets), CIFAR's binary version, and MATLAB files of SVHN.

CIFAR's Python version holds the same images in pickles, which run code when they are read; it is not used.
"""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .checks import reading

UNSIGNED_BYTE = 0x08
SIDE = 32
COLOUR = (3, SIDE, SIDE)
CHUNK = 2**20


def read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Return the uint8 array [*shape] of a gzipped idx file.

    Format: two zero bytes, type, number of axes, each axis's length as a big-endian int32, then the values.
    Raises BadData for another header, and for a file that is truncated, damaged or too long.
    """
    header = bytes([0, 0, UNSIGNED_BYTE, len(shape)]) + np.array(shape, ">i4").tobytes()
    with reading(path, f"a gzipped idx file of bytes {list(shape)}"), gzip.open(path) as stream:
        if (found := stream.read(len(header))) != header:
            raise ValueError(f"the header {found.hex() or 'of no byte'} in place of {header.hex()}")
        return np.frombuffer(bytearray(stream.read()), np.uint8).reshape(shape)


def read_cifar(path: Path, members: Sequence[str], records: int, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images uint8 [N, 3, 32, 32] and labels int64 [N] of members of a tar.gz archive, one after another.

    records: in each member, of label bytes and an image; labels: bytes before each image, the last of which is the
    label (CIFAR-100: coarse, fine). Nothing is unpacked to disk. Raises BadData on a damaged archive, a missing member,
    a member of another length.
    """
    size = labels + int(np.prod(COLOUR))
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
    return rows[:, labels:].reshape(-1, *COLOUR), rows[:, labels - 1].astype(np.int64)


def read_svhn(path: Path, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images uint8 [n, 3, 32, 32] and labels int64 [n] of a file with X [32, 32, 3, n] and y [n, 1].

    The digit 0 is labelled 10 in the file and 0 here. Raises BadData.
    """
    from scipy.io import loadmat  # here, since it takes a while to load

    with reading(path, f"a MATLAB file of bytes X {[SIDE, SIDE, 3, n]} and y {[n, 1]} from 1 to 10"):
        content = loadmat(path, variable_names=("X", "y"))
        images, labels = content["X"], content["y"]
        shapes = images.shape == (SIDE, SIDE, 3, n) and labels.shape == (n, 1)
        if not shapes or {images.dtype, labels.dtype} != {np.dtype(np.uint8)} or labels.min() < 1 or labels.max() > 10:
            raise ValueError(f"X {images.dtype} {list(images.shape)} and y {labels.dtype} {list(labels.shape)}")
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), labels[:, 0].astype(np.int64) % 10
