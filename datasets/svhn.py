"""Street View House Numbers, cropped digits, in their MATLAB files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .checks import GET_AGAIN, BadData, reading

SIDE = 32


def read(path: Path, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images uint8 [n, 3, 32, 32] and labels int64 [n] of a file with X [32, 32, 3, n] and y [n, 1].

    The digit 0 is labelled 10 in the file and 0 here. Raises BadData.
    """
    from scipy.io import loadmat  # here, since it takes a while to load

    with reading(path, "a MATLAB file"):
        content = loadmat(path, variable_names=("X", "y"))
    shapes = {"X": (SIDE, SIDE, 3, n), "y": (n, 1)}
    for name, shape in shapes.items():
        found = getattr(content.get(name), "shape", "no such variable")
        if found != shape:
            raise BadData(f"{path}, {name}: expected shape {shape}, found {found}; {GET_AGAIN}")
        if content[name].dtype != np.uint8:
            raise BadData(f"{path}, {name}: expected bytes, found {content[name].dtype}; {GET_AGAIN}")
    labels = content["y"][:, 0].astype(np.int64)
    if labels.min() < 1 or labels.max() > 10:
        raise BadData(f"{path}, y: expected labels from 1 to 10, found {labels.min()} to {labels.max()}; {GET_AGAIN}")
    return np.ascontiguousarray(content["X"].transpose(3, 2, 0, 1)), labels % 10
