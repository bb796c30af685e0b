"""Snow, frost and fog."""

from __future__ import annotations

from functools import cache

import numpy as np

from ..checks import reading
from ..fetch import locate
from .draws import Draws
from .filters import motion_blur, truncated, zoom_matrix

FROST_FILES = tuple(f"frost/frost{name}" for name in ("1.png", "2.png", "3.png", "4.jpg", "5.jpg"))
"""The sixth file of the benchmark is never drawn for its published arrays."""

LUMA = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601


def snow(
    x: np.ndarray,
    draws: Draws,
    mean: float,
    std: float,
    zoom: float,
    threshold: float,
    radius: int,
    sigma: float,
    keep: float,
) -> np.ndarray:
    """Whiten images and add flakes that fall in two opposite directions.

    Flakes are normal noise, enlarged by `zoom`, set to 0 below the threshold, blurred along a uniform angle
    from -135 to -45 degrees; the second layer is the first one turned by 180 degrees. The ground is
    keep x + (1 - keep) max(x, 1.5 grey + 0.5).
    """
    side = x.shape[1]
    matrix = zoom_matrix(side, zoom)
    flakes = matrix @ (mean + std * draws.normal(side, side)) @ matrix.T
    flakes = truncated(np.where(flakes < threshold, 0, flakes)) / 255
    flakes = motion_blur(flakes, radius, sigma, draws.uniform(-135, -45))
    white = np.maximum(x, 1.5 * (x @ LUMA)[..., None] + 0.5)
    return keep * x + (1 - keep) * white + (flakes + flakes[:, ::-1, ::-1])[..., None]


def frost(x: np.ndarray, draws: Draws, keep: float, amount: float, overlays: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return keep x + amount times a random window of a random overlay ([H, W, 3] in [0, 1])."""
    side = x.shape[1]
    which, place = draws.integers(0, len(overlays)), draws.uniform(0, 1, 2)
    windows = []
    for number, (down, right) in zip(which, place, strict=True):
        overlay = overlays[number]
        top, left = int(down * (overlay.shape[0] - side)), int(right * (overlay.shape[1] - side))
        windows.append(overlay[top : top + side, left : left + side])
    return keep * x + amount * np.stack(windows)


@cache
def frost_overlays(root: str | None = None) -> tuple[np.ndarray, ...]:
    """The overlays at a fifth of their size: every fifth pixel, from the third on. Raises DataNotFound, BadData."""
    from PIL import Image

    overlays = []
    for name in FROST_FILES:
        path = locate(name, root)
        with reading(path, "an image"), Image.open(path) as image:
            overlays.append(np.asarray(image.convert("RGB"))[2::5, 2::5] / 255)
    return tuple(overlays)


def fog(x: np.ndarray, draws: Draws, amount: float, decay: float) -> np.ndarray:
    """(x + amount plasma) max / (max + amount), max the image's largest value."""
    side = x.shape[1]
    largest = x.max((1, 2, 3), keepdims=True)
    thick = amount * plasma(draws.uniform(-1, 1, side, side), decay)[..., None]
    return (x + thick) * largest / (largest + amount)


def plasma(noise: np.ndarray, decay: float) -> np.ndarray:
    """Height maps in [0, 1] of the diamond-square algorithm on a torus, from noise [n, H, H] on [-1, 1], H = 2^k.

    Beginning with 0 at the corner, each round halves the grid: squares' centres, then the middles of their
    sides, are the mean of their four neighbours plus amplitude * noise. The amplitude is 100^2 and falls by
    decay^2 each round.
    """
    side = noise.shape[1]
    height = np.zeros_like(noise)
    step, amplitude = side, 100.0**2
    while step > 1:
        half = step // 2
        corners, centres = height[:, ::step, ::step], height[:, half::step, half::step]
        rows = corners + np.roll(corners, -1, 1)
        centres[:] = (rows + np.roll(rows, -1, 2)) / 4 + amplitude * noise[:, half::step, half::step]
        height[:, ::step, half::step] = (
            centres + np.roll(centres, 1, 1) + corners + np.roll(corners, -1, 2)
        ) / 4 + amplitude * noise[:, ::step, half::step]
        height[:, half::step, ::step] = (
            centres + np.roll(centres, 1, 2) + corners + np.roll(corners, -1, 1)
        ) / 4 + amplitude * noise[:, half::step, ::step]
        step, amplitude = half, amplitude / decay**2
    height -= height.min((1, 2), keepdims=True)
    return height / height.max((1, 2), keepdims=True)
