"""Spatter: drops of water on the lens, at higher severities splashes of mud."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from .draws import Draws
from .filters import canny, smooth

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
