"""Read the published images of CIFAR-10-C and CIFAR-100-C: arrays, in an archive or unpacked, or as prepared by tfds.

`<corruption>.npy` is uint8 [5 N, 32, 32, 3]: the N test images at severity 1, then at severity 2, and so on;
`labels.npy` repeats the N labels five times. Files are found in the cache or the mirrors and mapped in place: nothing
is unpacked, and only the pages in use are read.

tensorflow-datasets prepares CIFAR-10-C alone, as data set `cifar10_corrupted` with a configuration for each corruption
and severity. It holds the authors' images, ordered by a hash of each image's number, salted with the name of the split.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..checks import GET_AGAIN, WHOLE, BadData, reading, stamped
from ..fetch import Folder, cache_folder, mirror_folders
from ..npy import read_header
from ..prepared import latest, opened, shards
from .generator import GROWING, SEVERITIES, SHAPE

ARCHIVES = {"cifar10": "CIFAR-10-C", "cifar100": "CIFAR-100-C"}
LABELS = "labels.npy"
COMPARED = 1000  # images for which the order of the severities is checked
BUILDER, SPLIT = "cifar10_corrupted", "test"
VARIABLE = "TFDS_DATA_DIR"  # where tensorflow-datasets itself prepares
NAMES = {"elastic_transform": "elastic", "glass_blur": "frosted_glass_blur"}
"""Corruptions that have another name there."""


class Member(NamedTuple):
    """Location of the bytes of one .npy file."""

    path: Path
    start: int
    size: int


def find_arrays(name: str, root: Folder = None) -> Path | None:
    """Return the tar archive of data set `name`, or the folder of its unpacked files, or None.

    `<cache or mirror>/<name>_c/` holds CIFAR-10-C.tar, or a folder CIFAR-10-C, or the arrays themselves.
    """
    archive = ARCHIVES[name]
    for place in (cache_folder(root), *mirror_folders()):
        folder = place / f"{name}_c"
        if os.path.lexists(folder / f"{archive}.tar"):
            return folder / f"{archive}.tar"
        for unpacked in (folder / archive, folder):
            if any(unpacked.glob("*.npy")):
                return unpacked
    return None


def read_array(path: Path, corruption: str, severity: int, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the images [N, 32, 32, 3] of one severity, mapped from `path`, the result of `find_arrays`.

    images [N, 32, 32, 3] and labels [N]: the clean test set. Raises BadData for a damaged archive, a missing
    array, another shape or type, labels in another order, or severities that are not in the order of their
    distance from the clean images.
    """
    n, where = len(images), f"{path}, {corruption}.npy"
    stored = _array(path, LABELS)
    expected = (len(SEVERITIES) * n,)
    if stored.shape != expected or stored.dtype.kind not in WHOLE:
        raise BadData(
            f"{path}, {LABELS}: expected whole numbers {list(expected)}, each test label five times, "
            f"found {stored.dtype} {list(stored.shape)}; {GET_AGAIN}"
        )
    wrong = np.argwhere(stored.reshape(-1, n) != labels)
    if len(wrong):
        block, row = wrong[0]
        at = block * n + row
        raise BadData(
            f"{path}, {LABELS}: expected the labels of the test images, five times over; found {stored[at]} "
            f"for {labels[row]} at row {at}: the test images at hand are in another order. Use those of the "
            f"binary version of the data set, or remove {path} and let the corruptions be generated"
        )
    array = _array(path, f"{corruption}.npy")
    shape = (len(SEVERITIES) * n, *SHAPE)
    if array.shape != shape or array.dtype != np.uint8:
        raise BadData(f"{where}: expected uint8 {list(shape)}, found {array.dtype} {list(array.shape)}; {GET_AGAIN}")
    _check_order(array, corruption, images, where)
    return array[(severity - 1) * n : severity * n]


def _check_order(array: np.ndarray, corruption: str, images: np.ndarray, where: str) -> None:
    n, order = len(images), GROWING[corruption]
    rows = np.unique(np.linspace(0, n - 1, COMPARED).astype(int))
    clean = images[rows].astype(float)
    distances = [((array[(severity - 1) * n + rows] - clean) ** 2).mean() for severity in order]
    if not all(nearer < further for nearer, further in pairwise(distances)):
        found = ", ".join(f"{distance:.1f}" for distance in distances)
        raise BadData(
            f"{where}: expected mean squared distances from the clean images that grow over severities "
            f"{', '.join(map(str, order))}, found {found}: severities or images are in another order; "
            f"{GET_AGAIN}"
        )


def _array(path: Path, file: str) -> np.ndarray:
    if path.is_dir():
        members = {each.name: Member(each, 0, size) for each, size, _ in map(stamped, path.glob("*.npy"))}
    else:
        members = _archived(*stamped(path))
    if file not in members:
        known = ", ".join(sorted(members)) or "no .npy file"
        raise BadData(f"{path}: expected the file {file}, found {known}; {GET_AGAIN}")
    return _mapped(members[file], f"{path}, {file}")


@lru_cache(maxsize=8)
def _archived(path: Path, size: int, modified: int) -> dict[str, Member]:
    """Return the .npy files of a tar archive by name, cached by the archive's size and time of change."""
    with reading(path, "a whole, uncompressed tar archive"), tarfile.open(path, "r:") as archive:
        entries = [entry for entry in archive if entry.isfile() and not entry.issparse()]
    return {
        entry.name.split("/")[-1]: Member(path, entry.offset_data, entry.size)
        for entry in entries
        if entry.name.endswith(".npy")
    }


def _mapped(member: Member, where: str) -> np.ndarray:
    """The array as a read-only map of the file. An array of Python objects is refused."""
    with reading(where, "a .npy array"), open(member.path, "rb") as stream:
        stream.seek(member.start)
        header = read_header(stream)
    if header.dtype.hasobject:
        raise BadData(f"{where}: expected an array of numbers, found {header.dtype}; {GET_AGAIN}")
    if header.size != member.size or not header.shape:
        fault = "truncated: " if header.size > member.size else ""
        raise BadData(f"{where}: {fault}expected {header.size} bytes for {header}, found {member.size}; {GET_AGAIN}")
    with reading(where, "a .npy array"):
        return np.memmap(
            member.path, header.dtype, "r", member.start + header.start, header.shape, "F" if header.by_column else "C"
        )


def find_prepared(name: str, root: Folder = None) -> Path | None:
    """Return the folder cifar10_corrupted in `<cache or mirror>/cifar10_c/` or in $TFDS_DATA_DIR; None if absent or for
    another data set."""
    if name != "cifar10":
        return None
    places = [place / "cifar10_c" for place in (cache_folder(root), *mirror_folders())]
    places += [Path(own)] if (own := os.environ.get(VARIABLE)) else []
    return next((place / BUILDER for place in places if (place / BUILDER).is_dir()), None)


def read_prepared(
    folder: Path, corruption: str, severity: int, labels: np.ndarray, rows: np.ndarray | None
) -> np.ndarray:
    """Return images [n, 32, 32, 3] of one severity, at these rows of the test set (default: all).

    labels [N]: of the clean test set. Raises BadData where this corruption is not prepared, damaged, or has other
    labels than the test set.
    """
    home = folder / f"{NAMES.get(corruption, corruption)}_{severity}"
    where = latest(home)
    if where is None:
        raise BadData(
            f"{home}: expected the folder of a version with dataset_info.json in it, found none: prepare every "
            f"corruption and severity of {BUILDER}, or remove {folder} and let the corruptions be generated"
        )
    source, files = opened(where, SPLIT), shards(where, SPLIT)
    if len(source) != len(labels):
        raise BadData(f"{files}: expected {len(labels)} images, found {len(source)}; {GET_AGAIN}")
    wanted = range(len(labels)) if rows is None else rows.tolist()
    places, images = _places(len(labels)), np.empty((len(wanted), *SHAPE), np.uint8)
    for i, number in enumerate(wanted):
        with reading(files, f"image {places[number]} of split {SPLIT}"):
            row = source[places[number]]
            image, label = np.asarray(row["image"]), int(row["label"])
        if image.shape != SHAPE or image.dtype != np.uint8:
            raise BadData(
                f"{files}: expected images uint8 {list(SHAPE)}, found {image.dtype} {list(image.shape)}; {GET_AGAIN}"
            )
        if label != labels[number]:
            raise BadData(
                f"{files}: expected label {labels[number]} of test image {number} at place "
                f"{places[number]}, found {label}: the images are not in the order that tensorflow-datasets gives them"
            )
        images[i] = image
    return images


@lru_cache(maxsize=2)
def _places(n: int) -> list[int]:
    """Where each of n images, numbered as in the authors' arrays, lies in the prepared split."""
    hashed = sorted(range(n), key=lambda number: hashlib.md5(f"{SPLIT}{number}".encode()).digest())
    places = [0] * n
    for place, number in enumerate(hashed):
        places[number] = place
    return places
