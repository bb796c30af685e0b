"""Standardise images pixel by pixel, as in the code of the first author of cinquin2024."""

from __future__ import annotations

import numpy as np

EPSILON = 1e-10
LEVELS = 256


def standardised(images: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
    """Return images uint8 [N, C, H, W] as float32 `(x - m) / (s + 1e-10)`, x in [0, 1].

    m and s [C, H, W] are mean and standard deviation (ddof 0) of each pixel over the images `of` (default: `images`).
    A pixel that is constant over `of` becomes 0 where an image has the same value, and of order 1e9 elsewhere.
    """
    mean, std = pixel_moments(images if of is None else of)
    levels = np.arange(LEVELS)[:, None] / (LEVELS - 1)
    table = ((levels - mean.reshape(-1)) / (std.reshape(-1) + EPSILON)).astype(np.float32)
    return table[images.reshape(len(images), -1), np.arange(table.shape[1])].reshape(images.shape)


def pixel_moments(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation [C, H, W] of pixels / 255, from exact sums of whole numbers."""
    n, first = len(images), images.sum(0, dtype=np.int64)
    second = np.einsum("nchw,nchw->chw", images, images, dtype=np.int64)
    scale = n * (LEVELS - 1)
    return first / scale, np.sqrt(n * second - first**2) / scale
