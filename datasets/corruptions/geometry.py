"""Elastic deformation, pixelation and JPEG compression."""

from __future__ import annotations

import io

import numpy as np

from .draws import Draws
from .filters import smooth, truncated


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

    side = x.shape[1]
    small = int(side * factor)
    return (
        np.stack(
            [
                np.asarray(
                    Image.fromarray(image)
                    .resize((small, small), Image.Resampling.BOX)
                    .resize((side, side), Image.Resampling.BOX)
                )
                for image in truncated(x)
            ]
        )
        / 255
    )


def jpeg_compression(x: np.ndarray, draws: Draws, quality: int) -> np.ndarray:
    """Written and read as JPEG of the quality."""
    return np.stack([_through_jpeg(image, quality) for image in truncated(x)]) / 255


def _through_jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    with Image.open(file) as compressed:
        return np.asarray(compressed)
