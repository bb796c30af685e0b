"""Preprocess fundus photographs and cache them as bytes in files: several processes make them once, in batches.

The eye's box becomes a square, from which Graham's (2015) local averages are subtracted.

RETINA scales an image to an eye of radius 300 pixels, subtracts a Gaussian blur of a thirtieth of the radius,
4 x - 4 blur + 128, greys out pixels outside 90 % of the radius, and crops the image to the rest
(tensorflow-datasets, "btgraham-300"). Here the eye's box is first stretched to a square, half of whose side is the
radius; a grey rim of a twentieth of the side remains; images are not compressed as JPEG of quality 72 in between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..fetch import Folder, cache_folder
from ..image_transforms import DARK, outlines
from . import sources
from .source import Source

if TYPE_CHECKING:
    from PIL import Image

VERSION = "1"
BATCH = 64
OUTLINE, FROM = 16, 64  # side of an outline in pixels, and of the images it is computed from
GREY = 128
_SHARE = 0.02
_LEAST = 0.1  # least share of an image's sides that an eye has


def images(source: Source, side: int, root: Folder = None) -> np.ndarray:
    """Return squares [N, 3, side, side] after Graham's preprocessing, mapped from the cache. Raises BadData."""
    return _cached(source, f"graham-{side}", (3, side, side), lambda rows: graham(_squares(source, side, rows)), root)


def eye_outlines(source: Source, root: Folder = None) -> np.ndarray:
    """Return the share of the eye in each block of the image, [N, 1, 16, 16]. Raises BadData."""
    make = lambda rows: outlines(_squares(source, FROM, rows), OUTLINE)
    return _cached(source, "outline", (1, OUTLINE, OUTLINE), make, root)


def eye_box(image: np.ndarray) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the eye in an image [H, W, 3], or of the image if no eye is found.

    A row or column belongs to the eye if more than a fiftieth of its pixels exceed a tenth of the image's mean.
    """
    bright = image.sum(-1, dtype=np.int64)
    eye = bright * DARK > bright.mean()
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
    from PIL import Image

    whole = image.convert("RGB")
    whole = whole.crop(eye_box(np.asarray(whole))) if cut else whole
    resized = whole.resize((side, side), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(resized).transpose(2, 0, 1))


def graham(images: np.ndarray) -> np.ndarray:
    """Subtract local averages from squares [N, 3, S, S], bytes to bytes."""
    from scipy.ndimage import gaussian_filter  # here, since scipy takes a second to load

    side = images.shape[-1]
    x = images.astype(np.float32)
    blurred = gaussian_filter(x, (0, 0, side / 60, side / 60), mode="mirror", truncate=3.0)
    enhanced = np.clip(np.rint(4 * (x - blurred) + GREY), 0, 255).astype(np.uint8)
    at = np.arange(side) - (side - 1) / 2
    enhanced[..., np.hypot(at[:, None], at) > 0.9 * side / 2] = GREY
    return enhanced


def _squares(source: Source, side: int, rows: range) -> np.ndarray:
    return np.stack([square(source.image(i), side, source.cut) for i in rows])


def _cached(
    source: Source,
    what: str,
    shape: tuple[int, ...],
    make: Callable[[range], np.ndarray],
    root: Folder,
) -> np.ndarray:
    from ..corruptions.cache import SeverityFile  # here, since scipy takes a second to load

    n = len(source.ids)
    batches = -(-n // BATCH)

    def batch(i: int) -> np.ndarray:
        filled = np.zeros((BATCH, *shape), np.uint8)
        rows = range(i * BATCH, min((i + 1) * BATCH, n))
        filled[: len(rows)] = make(rows)
        return filled

    about = source.digest or hashlib.sha256("\0".join(source.ids).encode()).hexdigest()[:16]
    path = cache_folder(root) / "retinopathy" / f"{source.name}-{about}-{VERSION}" / f"{what}.npy"
    images = SeverityFile(path, (batches, BATCH, *shape)).images(range(batches), batch)
    sources.forget()
    return images.reshape(-1, *shape)[:n]
