"""The five blurs: Gaussian, defocus, glass, motion and zoom."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy import ndimage, sparse

from .draws import Draws
from .filters import motion_blur as blur_along
from .filters import smooth, truncated, zoom_matrix


def gaussian_blur(x: np.ndarray, draws: Draws, sigma: float) -> np.ndarray:
    """Gaussian of standard deviation sigma; the border is repeated."""
    return smooth(x, sigma)


def defocus_blur(x: np.ndarray, draws: Draws, radius: float, sigma: float) -> np.ndarray:
    """A disc of the radius, itself smoothed by a 3x3 Gaussian; images are mirrored about their border pixels."""
    kernel = disc(radius, sigma)
    return ndimage.correlate(x, kernel[None, :, :, None], mode="mirror")


def disc(radius: float, sigma: float) -> np.ndarray:
    """Kernel [k, k] of sum one: pixels at most `radius` from the centre, smoothed over their 3x3 neighbourhoods."""
    reach = int(radius) + 1
    at = np.arange(-reach, reach + 1)
    inside = (at[:, None] ** 2 + at**2 <= radius**2).astype(float)
    bell = np.exp(-np.array([1, 0, 1]) / (2 * sigma**2))
    bell /= bell.sum()
    return ndimage.convolve(inside / inside.sum(), np.outer(bell, bell), mode="constant")


def glass_blur(x: np.ndarray, draws: Draws, sigma: float, reach: int, repeats: int) -> np.ndarray:
    """Smoothed, pixels displaced, smoothed again.

    Displaced: pixel (h, w) takes the value at (h - a, w - b), a and b whole and uniform on 0 to `reach`, except
    in the first reach + 1 rows and columns. The published arrays were meant to swap the two pixels, but the
    swap of array views only copies, and their random range leaves out the displacements to the other side.
    """
    x = truncated(smooth(x, sigma))
    image = np.arange(len(x))[:, None, None]
    inner = np.arange(reach + 1, x.shape[1] - reach + 1)
    for _ in range(repeats):
        up, left = np.moveaxis(draws.integers(0, reach + 1, 2, len(inner), len(inner)), 1, 0)
        moved = x.copy()
        moved[:, reach + 1 :, reach + 1 :] = x[image, inner[:, None] - up, inner - left]
        x = moved
    return smooth(x / 255, sigma)


def motion_blur(x: np.ndarray, draws: Draws, radius: int, sigma: float) -> np.ndarray:
    """Blur along a half line at a uniform angle from -45 to 45 degrees."""
    return blur_along(x, radius, sigma, draws.uniform(-45, 45))


def zoom_blur(x: np.ndarray, draws: Draws, largest: int) -> np.ndarray:
    """Mean of the image and its enlargements by 0, 1, 2, ... `largest` per cent."""
    side, channels = x.shape[1], x.shape[3]
    pixels = np.moveaxis(x.reshape(-1, side * side, channels), 1, 0).reshape(side * side, -1)
    blurred = _zoom_operator(side, largest) @ pixels
    return np.moveaxis(blurred.reshape(side * side, -1, channels), 0, 1).reshape(x.shape)


@cache
def _zoom_operator(side: int, largest: int) -> sparse.csr_array:
    """Zoom blur as a matrix over the pixels of one channel."""
    total = sparse.eye_array(side * side)
    for per_cent in range(largest + 1):
        # Not 1 + per_cent / 100: the published arrays used this step, whose rounding errors determine a crop's size.
        matrix = sparse.csr_array(zoom_matrix(side, 1 + per_cent * (1.01 - 1)))
        total = total + sparse.kron(matrix, matrix)
    return (total / (largest + 2)).tocsr()
