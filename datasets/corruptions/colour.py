"""Brightness, contrast and saturation."""

from __future__ import annotations

import numpy as np

from .draws import Draws


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
