"""Findings of graded fundus photographs, and the outline of the eye in an image."""

from __future__ import annotations

import numpy as np

FINDINGS = {"moderate": 2, "mild": 1}
"""Lowest grade of each finding: 2, retinopathy that threatens sight; 1, any retinopathy."""
_DARK = 10  # pixels darker than a tenth of the image's mean brightness are background (Graham 2015)


def outlines(images: np.ndarray, side: int) -> np.ndarray:
    """Return the share of the eye in each block of pixels, bytes [N, 1, side, side], for images [N, 3, H, H].

    A pixel brighter than a tenth of its image's mean belongs to the eye. H must be a multiple of side.
    """
    n, _, height, width = images.shape
    bright = images.sum(1, dtype=np.uint32)
    eye = bright * np.uint64(_DARK * height * width) > bright.sum((1, 2), dtype=np.uint64)[:, None, None]
    blocks = eye.reshape(n, side, height // side, side, width // side).sum((2, 4), dtype=np.uint32)
    return (blocks * 255 // (height // side * (width // side))).astype(np.uint8)[:, None]
