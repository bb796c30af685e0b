"""CIFAR-10-C as tensorflow-datasets prepares it: data set `cifar10_corrupted`, a configuration for each corruption and
severity.

It holds the authors' images, ordered by a hash of each image's number, salted with the name of the split.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..checks import GET_AGAIN, BadData, reading
from ..fetch import Folder, cache_folder, mirror_folders
from ..prepared import latest, opened, shards
from .generator import SHAPE

BUILDER, SPLIT = "cifar10_corrupted", "test"
VARIABLE = "TFDS_DATA_DIR"  # where tensorflow-datasets itself prepares
NAMES = {"elastic_transform": "elastic", "glass_blur": "frosted_glass_blur"}
"""Corruptions that have another name there."""


def find(name: str, root: Folder = None) -> Path | None:
    """Return the folder cifar10_corrupted in `<cache or mirror>/cifar10_c/` or in $TFDS_DATA_DIR; None if absent or for
    another data set."""
    if name != "cifar10":
        return None
    places = [place / "cifar10_c" for place in (cache_folder(root), *mirror_folders())]
    places += [Path(own)] if (own := os.environ.get(VARIABLE)) else []
    return next((place / BUILDER for place in places if (place / BUILDER).is_dir()), None)


def read(folder: Path, corruption: str, severity: int, labels: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
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
