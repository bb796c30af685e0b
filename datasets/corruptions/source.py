"""Corrupted test images of CIFAR-10 and CIFAR-100: the published arrays if they are at hand, else generated ones."""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np

from ..fetch import cache_folder
from . import upstream
from .generator import VERSION, check_name, corrupt


def corrupted(
    name: str,
    corruption: str,
    severity: int,
    test_images: np.ndarray,
    test_labels: np.ndarray,
    root: str | os.PathLike | None = None,
) -> tuple[np.ndarray, str]:
    """Test images of `name` ("cifar10", "cifar100") with a corruption at a severity, and in words whose they are.

    Severities go from 0 (none) to 5. test_images uint8 [N, 3, 32, 32], test_labels [N]; the result has the form of
    test_images. Generated images are kept in the file cache (30 MB for 10,000), so that each is made once on a
    machine. Raises KeyError for another data set, ValueError for another corruption or severity, BadData if
    published arrays are there but damaged or in another order, DataNotFound for frost without its files.
    """
    check_name(corruption, severity)
    archive = upstream.ARCHIVES[name]
    if severity == 0:
        return test_images, f"{name}, test part"
    images = test_images.transpose(0, 2, 3, 1)
    path = upstream.find(name, root)
    if path is not None:
        found = upstream.read(path, corruption, severity, images, test_labels)
        source = f"{archive}, published arrays"
    else:
        found = _generated(f"{name}_c", corruption, severity, np.ascontiguousarray(images), root)
        source = f"{archive}, generated from the test part, version {VERSION}"
    return np.ascontiguousarray(found.transpose(0, 3, 1, 2)), source


def _generated(
    folder: str, corruption: str, severity: int, images: np.ndarray, root: str | os.PathLike | None
) -> np.ndarray:
    digest = hashlib.sha256(images.data).hexdigest()[:12]
    path = cache_folder(root) / folder / f"generated-{VERSION}-{digest}" / f"{corruption}-{severity}.npy"
    try:
        kept = np.load(path, mmap_mode="r", allow_pickle=False)
        if kept.shape == images.shape and kept.dtype == np.uint8:
            return kept
    except Exception:  # not there, or whatever numpy raises for what is no array
        pass
    made = corrupt(images, corruption, severity, root=root)
    _keep(path, made)
    return made


def _keep(path: Path, images: np.ndarray) -> None:
    """Write by rename: whole or not at all, whoever else writes the same file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            whole = Path(folder) / path.name
            np.save(whole, images)
            whole.replace(path)
    except OSError as error:
        warnings.warn(f"{path}: cannot be kept ({error.strerror}), and will be made again", stacklevel=2)
