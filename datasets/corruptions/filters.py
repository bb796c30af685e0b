"""Filters over stacks of images [n, H, W] or [n, H, W, C], and random numbers, that several corruptions share."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable

import numpy as np
from scipy import ndimage

SOBEL = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]])


def truncated(x: np.ndarray) -> np.ndarray:
    """Values in [0, 1] as uint8, cut off below as in the published arrays, not rounded.

    The slack keeps 3 from becoming 2 where arithmetic has left 2.9999999.
    """
    return (np.clip(x, 0, 1) * 255 + 1e-6).astype(np.uint8)


def smooth(x: np.ndarray, sigma: float, mode: str = "nearest", truncate: float = 4.0) -> np.ndarray:
    """Gaussian blur over height and width."""
    return ndimage.gaussian_filter(x, (0, sigma, sigma, *(0,) * (x.ndim - 3)), mode=mode, truncate=truncate)


def zoom_matrix(side: int, factor: float) -> np.ndarray:
    """Return A [side, side] such that A image A^T is the middle of the image, enlarged bilinearly.

    The middle ceil(side / factor) pixels are spread over round(pixels * factor) points, the first and last pixel on the
    first and last point, and cut to the middle `side` points. Small factors therefore shift by up to half a pixel.
    """
    pixels = math.ceil(side / factor)
    points = round(pixels * factor)
    at = np.linspace(0, pixels - 1, points)[(points - side) // 2 :][:side] + (side - pixels) // 2
    return np.maximum(0, 1 - np.abs(at[:, None] - np.arange(side)))


def motion_blur(x: np.ndarray, radius: int, sigma: float, angle: np.ndarray) -> np.ndarray:
    """Blur along a half line, as ImageMagick's: each image at its own angle [n], in degrees clockwise.

    Pixel p becomes sum_i k_i x(p + i u), i = 0 to 2 radius, with k_i proportional to exp(-i^2 / (2 sigma^2)), u
    the unit vector of the angle, offsets rounded to whole pixels (halves down) and the border repeated. The
    result is rounded to levels of 1/255.
    """
    weights = np.exp(-(np.arange(2 * radius + 1) ** 2) / (2 * sigma**2))
    weights /= weights.sum()
    reach = np.arange(2 * radius + 1) * np.stack([np.sin(np.deg2rad(angle)), np.cos(np.deg2rad(angle))])[..., None]
    offsets = np.ceil(reach - 0.5).astype(int) + 2 * radius  # of [down, right], image and tap, in the padded image
    height, width = x.shape[1:3]
    padded = np.pad(x, ((0, 0), (2 * radius,) * 2, (2 * radius,) * 2, *((0, 0),) * (x.ndim - 3)), mode="edge")
    blurred = np.zeros_like(x)
    for image, around, downs, rights in zip(blurred, padded, *offsets.tolist(), strict=True):
        for weight, down, right in zip(weights, downs, rights, strict=True):
            image += weight * around[down : down + height, right : right + width]
    return np.rint(blurred * 255) / 255


def canny(levels: np.ndarray, low: float, high: float) -> np.ndarray:
    """Canny's edges of uint8 images [n, H, W] as booleans: Sobel gradients, |g_x| + |g_y|, thinning, hysteresis.

    As OpenCV's: a ridge along an axis may be equal to its later neighbour, a diagonal one to neither.
    """
    levels = levels.astype(np.int64)
    down, right = (ndimage.correlate(levels, kernel[None], mode="nearest") for kernel in (SOBEL, SOBEL.T))
    strength = np.abs(down) + np.abs(right)
    around = np.pad(strength, ((0, 0), (1, 1), (1, 1)))
    rows, columns = strength.shape[1:]

    def neighbour(dy: int, dx: int) -> np.ndarray:
        return around[:, 1 + dy : 1 + dy + rows, 1 + dx : 1 + dx + columns]

    slope = math.tan(math.pi / 8)
    across = np.abs(down) < slope * np.abs(right)
    along = np.abs(down) > np.abs(right) / slope
    falling = (down < 0) != (right < 0)
    diagonal = np.where(
        falling, np.maximum(neighbour(-1, 1), neighbour(1, -1)), np.maximum(neighbour(-1, -1), neighbour(1, 1))
    )
    ridge = np.where(
        across,
        (strength > neighbour(0, -1)) & (strength >= neighbour(0, 1)),
        np.where(along, (strength > neighbour(-1, 0)) & (strength >= neighbour(1, 0)), strength > diagonal),
    )
    weak = ridge & (strength > low)
    touching = np.zeros((3, 3, 3))
    touching[1] = 1
    label, n_labels = ndimage.label(weak, touching)
    strong = np.zeros(n_labels + 1, bool)
    strong[label[weak & (strength > high)]] = True
    return strong[label] & weak


class Draws:
    """Random streams of images, each seeded by `names` and its image's number alone.

    Every draw has shape [len(numbers), *shape].
    """

    def __init__(self, names: tuple[str | int, ...], numbers: Iterable[int]) -> None:
        text = "\x1f".join(str(name) for name in names)
        base = int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")
        self.generators = [np.random.default_rng([base, int(number)]) for number in numbers]

    def normal(self, *shape: int) -> np.ndarray:
        """Standard normal numbers."""
        return self._stack(lambda generator: generator.standard_normal(shape))

    def uniform(self, low: float, high: float, *shape: int) -> np.ndarray:
        """Uniform numbers on [low, high)."""
        return self._stack(lambda generator: generator.uniform(low, high, shape))

    def integers(self, low: int, high: int, *shape: int) -> np.ndarray:
        """Whole numbers from low to high - 1."""
        return self._stack(lambda generator: generator.integers(low, high, shape))

    def poisson(self, mean: np.ndarray) -> np.ndarray:
        """Poisson counts of the means [count, ...]."""
        return np.stack([generator.poisson(of) for generator, of in zip(self.generators, mean, strict=True)])

    def _stack(self, draw: Callable[[np.random.Generator], np.ndarray]) -> np.ndarray:
        return np.stack([draw(generator) for generator in self.generators])
