"""Images that users bring as arrays: `<folder>/<data set>/<part>.npz`, with FVI_ARRAYS naming the folder.

They take the place of the data set's own files. Records tell them apart by the fingerprint of the data.
"""
from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np

from .checks import BadData

VARIABLE = "FVI_ARRAYS"


def find(name: str, part: str) -> Path | None:
    """The file of arrays for a part of a data set, if the user brought one."""
    folder = os.environ.get(VARIABLE)
    path = Path(folder).expanduser() / name / f"{part}.npz" if folder else None
    return path if path and path.is_file() else None


def how(name: str, part: str, shape: tuple[int, int, int]) -> str:
    """What to bring, in words."""
    return (f"bring arrays: set {VARIABLE} to a folder with {name}/{part}.npz that holds "
            f"{_forms(shape)} and labels [N]")


def read(path: Path, shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 [N, C, H, W] and labels int64 [N]; shape is C, H, W, and channels may also come last in the file.

    Raises BadData.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, OSError, EOFError, ValueError) as error:
        raise BadData(f"{path}: expected an npz file of plain arrays, found: {error}; "
                      "write it with numpy.savez") from error
    if not {"images", "labels"} <= set(arrays):
        raise BadData(f"{path}: expected the arrays images and labels, found {', '.join(arrays) or 'none'}")
    images, labels = arrays["images"], arrays["labels"]
    channels, height, width = shape
    if images.dtype != np.uint8 or images.shape[1:] not in _shapes(shape):
        raise BadData(f"{path}: expected {_forms(shape)}, found {images.dtype} {list(images.shape)}")
    if labels.shape != (len(images),) or not np.issubdtype(labels.dtype, np.integer):
        raise BadData(f"{path}: expected whole-number labels [{len(images)}], one for each image, "
                      f"found {labels.dtype} {list(labels.shape)}")
    if images.shape[1:] == (height, width, channels) != shape:
        images = images.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(images.reshape(-1, *shape)), labels.astype(np.int64)


def _shapes(shape: tuple[int, int, int]) -> tuple[tuple[int, ...], ...]:
    channels, height, width = shape
    return (shape, (height, width, channels), *(((height, width),) if channels == 1 else ()))


def _forms(shape: tuple[int, int, int]) -> str:
    return "images uint8 " + " or ".join(f"[N, {', '.join(map(str, form))}]" for form in _shapes(shape))
