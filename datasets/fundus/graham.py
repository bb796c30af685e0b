"""Preprocessing of fundus photographs: the eye's box as a square, then Graham's (2015) local averages.

RETINA scales an image to an eye of radius 300 pixels, subtracts a Gaussian blur of a thirtieth of the radius,
4 x - 4 blur + 128, greys out pixels outside 90 % of the radius, and crops the image to the rest
(tensorflow-datasets, "btgraham-300"). Here the eye's box is first stretched to a square, half of whose side is the
radius; a grey rim of a twentieth of the side remains; images are not compressed as JPEG of quality 72 in between.
"""

from __future__ import annotations

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

GREY = 128
_DARK, _SHARE = 10, 0.02
_LEAST = 0.1  # least share of an image's sides that an eye has


def eye_box(image: np.ndarray) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the eye in an image [H, W, 3], or of the image if no eye is found.

    A row or column belongs to the eye if more than a fiftieth of its pixels exceed a tenth of the image's mean.
    """
    bright = image.sum(-1, dtype=np.int64)
    eye = bright * _DARK > bright.mean()
    height, width = eye.shape
    across, down = (np.flatnonzero(eye.mean(axis) > _SHARE) for axis in (0, 1))
    if not (len(across) and len(down)):
        return 0, 0, width, height
    left, top, right, bottom = int(across[0]), int(down[0]), int(across[-1]) + 1, int(down[-1]) + 1
    if right - left < _LEAST * width or bottom - top < _LEAST * height:
        return 0, 0, width, height
    return left, top, right, bottom


def square(image: Image.Image, side: int, cut: bool = True) -> np.ndarray:
    """Stretch the eye's box (or the whole image) to bytes [3, side, side]."""
    whole = image.convert("RGB")
    whole = whole.crop(eye_box(np.asarray(whole))) if cut else whole
    resized = whole.resize((side, side), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(resized).transpose(2, 0, 1))


def graham(images: np.ndarray) -> np.ndarray:
    """Subtract local averages from squares [N, 3, S, S], bytes to bytes."""
    side = images.shape[-1]
    x = images.astype(np.float32)
    blurred = gaussian_filter(x, (0, 0, side / 60, side / 60), mode="mirror", truncate=3.0)
    found = np.clip(np.rint(4 * (x - blurred) + GREY), 0, 255).astype(np.uint8)
    at = np.arange(side) - (side - 1) / 2
    found[..., np.hypot(at[:, None], at) > 0.9 * side / 2] = GREY
    return found
