"""What the sets of graded fundus photographs share: the findings, and where the eye is in an image."""

from __future__ import annotations

import numpy as np

FINDINGS = {"moderate": 2, "mild": 1}
"""The lowest grade of the finding: 2, retinopathy that threatens sight, or 1, any."""
_DARK = 10  # an image's mean brightness by this is darkness (Graham 2015)


def outlines(images: np.ndarray, side: int) -> np.ndarray:
    """Which share of each block of pixels belongs to the eye, as bytes [N, 1, side, side], of images [N, 3, H, H].

    A pixel does where its brightness is more than a tenth of the image's mean. H must be a multiple of side.
    """
    n, _, height, width = images.shape
    bright = images.sum(1, dtype=np.uint32)
    eye = bright * np.uint64(_DARK * height * width) > bright.sum((1, 2), dtype=np.uint64)[:, None, None]
    blocks = eye.reshape(n, side, height // side, side, width // side).sum((2, 4), dtype=np.uint32)
    return (blocks * 255 // (height // side * (width // side))).astype(np.uint8)[:, None]
