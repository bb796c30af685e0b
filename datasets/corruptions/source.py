"""Corrupted test images of CIFAR-10 and CIFAR-100: the published images if available, else generated ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from ..fetch import Folder, cache_folder
from .cache import Say, SeverityFile
from .generator import CORRUPTIONS, VERSION, check_name, corrupt
from .upstream import ARCHIVES, find_arrays, find_prepared, read_array, read_prepared


def published(name: str, root: Folder = None) -> bool:
    """Return whether the published images are available, in either form."""
    return bool(find_arrays(name, root) or find_prepared(name, root))


def corrupted(
    name: str,
    corruption: str | None,
    severity: int,
    test_images: np.ndarray,
    test_labels: np.ndarray,
    root: Folder = None,
    *,
    rows: np.ndarray | None = None,
    say: Say = lambda done, lacking: None,
    own: str = "",
) -> tuple[np.ndarray, str]:
    """Return corrupted test images of `name` ("cifar10", "cifar100") at a severity, and their source in words.

    corruption None: all 19, one after another; severity 0 returns the clean images once. Severities are 0 (none) to 5.
    test_images uint8 [N, 3, 32, 32], test_labels [N]; rows: only these images, equal to those among all; own: what
    the images are, in words, if not the published test images. Generated images are stored in the file cache (584 MB
    for 10,000 at one severity) and mapped from it, so that a machine makes each once; `say(corruptions made, missing at
    first)` reports progress. Raises KeyError for another data set, ValueError for another corruption or severity,
    BadData if published images are damaged or in another order, DataNotFound for frost without its files.
    """
    check_name(corruption or CORRUPTIONS[0], severity)
    archive, first = ARCHIVES[name], CORRUPTIONS.index(corruption) if corruption else 0
    chosen = range(first, first + 1 if corruption else len(CORRUPTIONS))
    clean = test_images if rows is None else test_images[rows]
    if severity == 0:
        return clean, f"{name}, {own or 'test part'}"
    path = None if own else find_arrays(name, root)
    if path is None and not own and (folder := find_prepared(name, root)):
        each = [read_prepared(folder, CORRUPTIONS[i], severity, test_labels, rows) for i in chosen]
        return np.concatenate(each).transpose(0, 3, 1, 2), f"{archive}, prepared by tensorflow-datasets"
    if path is None:
        numbers = np.arange(len(clean)) if rows is None else rows
        images = _generated(name, severity, chosen, clean, numbers, root, say)
        return images, f"{archive}, generated from the {own or 'test part'}, version {VERSION}"
    all_clean = test_images.transpose(0, 2, 3, 1)
    arrays = (read_array(path, CORRUPTIONS[i], severity, all_clean, test_labels) for i in chosen)
    images = np.concatenate([(each if rows is None else each[rows]).transpose(0, 3, 1, 2) for each in arrays])
    return images, f"{archive}, published arrays"


def _generated(
    name: str,
    severity: int,
    chosen: range,
    images: np.ndarray,
    numbers: np.ndarray,
    root: Folder,
    say: Say,
) -> np.ndarray:
    """Corrupt images [n, 3, 32, 32] of these numbers by each chosen corruption, [len(chosen) n, 3, 32, 32]."""
    channels_last = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    digest = hashlib.sha256(channels_last.data)
    if not np.array_equal(numbers, np.arange(len(numbers))):
        digest.update(np.ascontiguousarray(numbers, np.int64).data)
    folder = cache_folder(root) / f"{name}_c" / f"generated-{VERSION}-{digest.hexdigest()[:12]}"

    def make(i: int) -> np.ndarray:
        return corrupt(channels_last, CORRUPTIONS[i], severity, numbers=numbers, root=root).transpose(0, 3, 1, 2)

    file = SeverityFile(Path(folder, f"severity-{severity}.npy"), (len(CORRUPTIONS), *images.shape))
    return file.images(chosen, make, say).reshape(-1, *images.shape[1:])
