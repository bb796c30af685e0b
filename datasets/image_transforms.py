"""Rotate images as the papers do, standardise them pixel by pixel, and outline the eye in fundus photographs."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse

METHODS = ("bilinear", "cubic", "nearest", "spline")
EPSILON = 1e-10
LEVELS = 256
DARK = 10  # pixels darker than a tenth of the image's mean brightness are background (Graham 2015)


def rotate(images: np.ndarray, angle: int, method: str) -> np.ndarray:
    """Rotate images [N, C, H, H] counter-clockwise about the centre by `angle` degrees; uncovered pixels are 0.

    "bilinear" interpolates within the frame. "cubic" is the cubic spline of Ovadia et al. (2019), on an enlarged
    canvas cut to its centre; values may leave 0 to 255. "spline" is that spline within the frame, as scipy's
    reshape=False. These return float32 in the images' units. "nearest" only moves pixels, as Pillow and torchvision by
    default, and so does a multiple of 90 degrees by any method: both keep the type. Raises ValueError for another
    method.
    """
    if method not in METHODS:
        raise ValueError(f"rotation by {method!r}: expected one of {', '.join(METHODS)}")
    if angle % 90 == 0:
        return np.ascontiguousarray(np.rot90(images, angle // 90 % 4, (2, 3)))
    side = images.shape[-1]
    if method == "nearest":
        black = np.zeros((*images.shape[:2], 1), images.dtype)
        pixels = np.concatenate([images.reshape(*images.shape[:2], -1), black], axis=2)
        return pixels[..., _sources(side, angle % 360)].reshape(images.shape)
    if method == "bilinear":
        pixels = images.reshape(-1, side * side).astype(np.float32)
        return (pixels @ _bilinear(side, angle % 360)).reshape(images.shape)
    # Not as a matrix: its product, of many weights a pixel, has other last digits on other processors.
    from scipy.ndimage import rotate as rotate_array  # here, since scipy takes a second to load

    pixels = images.reshape(-1, side, side).astype(np.float64)
    turned = rotate_array(pixels, angle, (1, 2), reshape=method == "cubic")
    row, column = (size // 2 - side // 2 for size in turned.shape[1:])
    return turned[:, row : row + side, column : column + side].astype(np.float32).reshape(images.shape)


def interpolated(images: np.ndarray, angle: float, background: float = 0.0) -> np.ndarray:
    """Rotate images [..., H, H] counter-clockwise about the centre, bilinearly within the frame, keeping their type."""
    from scipy.ndimage import rotate as rotate_array  # here, since scipy takes a second to load

    axes = (images.ndim - 2, images.ndim - 1)
    return rotate_array(images, angle, axes, reshape=False, order=1, mode="grid-constant", cval=background)


@lru_cache(maxsize=64)
def _sources(side: int, angle: int) -> np.ndarray:
    """Return the source pixel of each pixel in Pillow's rotation, [H * H]; side * side if uncovered."""
    from PIL import Image  # here, since most sets need none

    numbers = Image.fromarray(np.arange(side * side, dtype=np.int32).reshape(side, side))
    return np.asarray(numbers.rotate(angle, Image.Resampling.NEAREST, fillcolor=side * side)).reshape(-1)


@lru_cache(maxsize=64)
def _bilinear(side: int, angle: int) -> sparse.csc_array:
    """Return bilinear rotation as a matrix [H * H, H * H] over pixels, of few weights each: one product turns all
    images."""
    from scipy import sparse  # here, since scipy takes a second to load

    turned = interpolated(np.eye(side * side).reshape(-1, side, side), angle)
    return sparse.csc_array(turned.reshape(side * side, -1).astype(np.float32))


def standardised(images: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
    """Return images uint8 [N, C, H, W] as float32 `(x - m) / (s + 1e-10)`, x in [0, 1], as cinquin2024's first author.

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


def outlines(images: np.ndarray, side: int) -> np.ndarray:
    """Return the share of the eye in each block of pixels, bytes [N, 1, side, side], for images [N, 3, H, H].

    A pixel brighter than a tenth of its image's mean belongs to the eye. H must be a multiple of side.
    """
    n, _, height, width = images.shape
    bright = images.sum(1, dtype=np.uint32)
    eye = bright * np.uint64(DARK * height * width) > bright.sum((1, 2), dtype=np.uint64)[:, None, None]
    blocks = eye.reshape(n, side, height // side, side, width // side).sum((2, 4), dtype=np.uint32)
    return (blocks * 255 // (height // side * (width // side))).astype(np.uint8)[:, None]
