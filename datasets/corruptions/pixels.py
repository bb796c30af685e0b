"""Noises (Gaussian, shot, impulse and speckle), brightness, contrast and saturation.

Here and in the neighbouring modules, images are float64 [n, 32, 32, 3] in [0, 1]; the caller clips values outside this
range.
"""

from __future__ import annotations

import numpy as np

from .draws import Draws


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
