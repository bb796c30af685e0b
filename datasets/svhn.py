"""Street View House Numbers, cropped digits, in their MATLAB files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .checks import reading

SIDE = 32


def read(path: Path, n: int) -> tuple[np.ndarray, np.ndarray]:
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
