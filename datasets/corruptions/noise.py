"""The four noises: Gaussian, shot (Poisson), impulse (salt and pepper) and speckle.

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
