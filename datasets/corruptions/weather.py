"""Snow, frost, fog and spatter: drops of water on the lens, at higher severities splashes of mud."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy import ndimage

from ..checks import reading
from ..fetch import locate
from .filters import Draws, canny, motion_blur, smooth, truncated, zoom_matrix

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


WATER = np.array([175, 238, 238]) / 255  # pale turquoise
MUD = np.array([63, 42, 20]) / 255
STEPS = {
    (dy, dx): {1: 1.0, 2: 1.4, 5: 2.1969}[dy * dy + dx * dx]
    for dy in range(-2, 3)
    for dx in range(-2, 3)
    if dy * dy + dx * dx in (1, 2, 5)
}
RELIEF = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])


def spatter(
    x: np.ndarray, draws: Draws, mean: float, std: float, sigma: float, threshold: float, amount: float, mud: bool
) -> np.ndarray:
    """Liquid where smoothed normal noise exceeds the threshold.

    Water: x + amount * (liquid times its relief, scaled to a maximum of 1) * turquoise.
    Mud: (1 - m) x + m brown, m the liquid's area smoothed by a Gaussian of standard deviation `amount`, and 0
    where that is below 0.8.
    """
    liquid = smooth(mean + std * draws.normal(*x.shape[1:3]), sigma)
    liquid = np.where(liquid < threshold, 0, liquid)
    if mud:
        cover = smooth((liquid > threshold).astype(float), amount)
        cover = np.where(cover < 0.8, 0, cover)[..., None]
        return x * (1 - cover) + MUD * cover
    levels = (np.floor(liquid * 255) % 256).astype(np.uint8)  # the published arrays wrap levels above 255 around
    water = levels * relief(levels)
    largest = water.max((1, 2), keepdims=True)
    water = water / np.where(largest > 0, largest, 1)
    return x + amount * water[..., None] * WATER


def relief(levels: np.ndarray) -> np.ndarray:
    """Light and shade of drops from the distance to their edges, [n, H, W] whole numbers from 0 to 255.

    Distance to the nearest Canny edge (50, 150), at most 20; box mean, cut to whole pixels, histogram
    equalised, embossed, box mean.
    """
    distance = chamfer_distance(canny(levels, 50, 150), 20.0)
    distance = ndimage.uniform_filter(distance, (1, 3, 3), mode="mirror")
    even = np.stack([equalised(image) for image in np.floor(distance + 1e-6).astype(np.int64)])
    embossed = np.clip(ndimage.correlate(even, RELIEF[None], mode="mirror"), 0, 255)
    return np.rint(ndimage.uniform_filter(embossed.astype(float), (1, 3, 3), mode="mirror"))


def chamfer_distance(edges: np.ndarray, most: float) -> np.ndarray:
    """Length, at most `most`, of the shortest path from an edge in straight, diagonal and knight's steps, [n, H, W].

    Their lengths 1, 1.4 and 2.1969 (Borgefors 1986) come within two per cent of the Euclidean distance.
    Equalisation makes such differences visible, so the exact distance would not give the published reliefs.
    """
    padded = np.full((len(edges), edges.shape[1] + 4, edges.shape[2] + 4), most)
    distance = padded[:, 2:-2, 2:-2]
    distance[edges] = 0
    while True:
        before = distance.copy()
        for (dy, dx), length in STEPS.items():
            shifted = padded[:, 2 + dy : 2 + dy + edges.shape[1], 2 + dx : 2 + dx + edges.shape[2]]
            np.minimum(distance, shifted + length, out=distance)
        if np.array_equal(before, distance):
            return before


def equalised(levels: np.ndarray) -> np.ndarray:
    """Levels 0 to 255 of one image spread so that their cumulative counts are even; a single level stays."""
    counts = np.bincount(levels.ravel(), minlength=256)
    lowest = counts[levels.min()]
    if lowest == levels.size:
        return levels
    return np.rint((np.cumsum(counts) - lowest) * 255 / (levels.size - lowest)).astype(np.int64)[levels]
