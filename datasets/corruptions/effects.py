"""Noises, blurs, brightness, contrast, saturation, elastic deformation, pixelation and JPEG compression.

Here and in `weather`, images are float64 [n, 32, 32, 3] in [0, 1]; the caller clips values outside this range.
"""

from __future__ import annotations

import io
from functools import cache

import numpy as np
from scipy import ndimage, sparse

from .filters import Draws, smooth, truncated, zoom_matrix
from .filters import motion_blur as blur_along


def gaussian_noise(x: np.ndarray, draws: Draws, std: float) -> np.ndarray:
    """x + N(0, std^2) at every value."""
    return x + std * draws.normal(*x.shape[1:])


def shot_noise(x: np.ndarray, draws: Draws, photons: float) -> np.ndarray:
    """Poisson(photons x) / photons: a value is counted in `photons` at full intensity."""
    return draws.poisson(x * photons) / photons


def impulse_noise(x: np.ndarray, draws: Draws, share: float) -> np.ndarray:
    """A share of the values (each channel for itself) becomes 0 or 1, both equally likely."""
    chance = draws.uniform(0, 1, *x.shape[1:])
    return np.where(chance < share / 2, 0.0, np.where(chance < share, 1.0, x))


def speckle_noise(x: np.ndarray, draws: Draws, std: float) -> np.ndarray:
    """x + x N(0, std^2) at every value."""
    return x + x * std * draws.normal(*x.shape[1:])


def brightness(x: np.ndarray, draws: Draws, more: float) -> np.ndarray:
    """V + more, at most 1, in hue, saturation and value: the three channels grow by the same factor."""
    value = x.max(-1, keepdims=True)
    brighter = np.minimum(value + more, 1)
    return np.where(value > 0, x * brighter / np.where(value > 0, value, 1), brighter)


def contrast(x: np.ndarray, draws: Draws, factor: float) -> np.ndarray:
    """Distances from each channel's mean over the image, times the factor."""
    mean = x.mean((1, 2), keepdims=True)
    return (x - mean) * factor + mean


def saturate(x: np.ndarray, draws: Draws, factor: float, more: float) -> np.ndarray:
    """S factor + more, at most 1, in hue, saturation and value. Grey has hue 0: `more` makes it reddish."""
    value = x.max(-1, keepdims=True)
    below = value - x
    chroma = below.max(-1, keepdims=True)
    saturation = chroma / np.where(value > 0, value, 1)
    # value - channel is proportional to the saturation; grey is treated as pure red.
    shape = np.where(chroma > 0, below / np.where(chroma > 0, chroma, 1), np.array([0.0, 1.0, 1.0]))
    return value - value * np.minimum(saturation * factor + more, 1) * shape


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


def elastic_transform(x: np.ndarray, draws: Draws, amount: float, sigma: float, affine: float) -> np.ndarray:
    """A random affine map, then a smooth random displacement; `amount`, `sigma` and `affine` in pixels.

    The affine map takes three points to places up to `affine` away in both directions, uniformly. Displacements
    are uniform noise on [-1, 1], smoothed, times `amount`. Bilinear; mirrored about the border pixels, then
    about the border.
    """
    side = x.shape[1]
    centre, arm = side // 2, side // 3
    corners = centre + arm * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])  # as (x, y)
    moved = corners + draws.uniform(-affine, affine, 3, 2)
    ones = np.ones((len(x), 3, 1))
    back = np.linalg.solve(np.concatenate([moved, ones], -1), np.broadcast_to(corners, moved.shape))
    rows, columns = np.mgrid[:side, :side]
    grid = np.stack([columns, rows, np.ones_like(rows)], -1).reshape(-1, 3)
    source = (grid @ back).reshape(len(x), side, side, 2)
    x = sampled(x, source[..., 1], source[..., 0], about_centres=True)
    noise = draws.uniform(-1, 1, 2, side, side)
    right, down = (amount * smooth(noise[:, i], sigma, "reflect", truncate=3.0) for i in (0, 1))
    return sampled(x, rows + down, columns + right, about_centres=False)


def sampled(x: np.ndarray, rows: np.ndarray, columns: np.ndarray, about_centres: bool) -> np.ndarray:
    """Images at `rows`, `columns` [n, H, W], bilinearly; mirrored about the centres or the edges of border pixels."""
    import torch

    side = x.shape[1]
    places = np.stack([columns, rows], -1)
    scaled = 2 * places / (side - 1) - 1 if about_centres else (2 * places + 1) / side - 1
    images = torch.from_numpy(np.moveaxis(x, 3, 1).copy())
    result = torch.nn.functional.grid_sample(images, torch.from_numpy(scaled), "bilinear", "reflection", about_centres)
    return np.moveaxis(result.numpy(), 1, 3)


def pixelate(x: np.ndarray, draws: Draws, factor: float) -> np.ndarray:
    """Reduced to `factor` of its side and enlarged again, both by box averages."""
    from PIL import Image

    side, box = x.shape[1], Image.Resampling.BOX
    small = int(side * factor)
    reduced = [Image.fromarray(image).resize((small, small), box) for image in truncated(x)]
    return np.stack([np.asarray(image.resize((side, side), box)) for image in reduced]) / 255


def jpeg_compression(x: np.ndarray, draws: Draws, quality: int) -> np.ndarray:
    """Written and read as JPEG of the quality."""
    return np.stack([_through_jpeg(image, quality) for image in truncated(x)]) / 255


def _through_jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    with Image.open(file) as compressed:
        return np.asarray(compressed)
