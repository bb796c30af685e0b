"""Generate the 19 corruptions of Hendrycks and Dietterich (2019) at five severities, for 32x32 colour images.

Definitions and severities are those of CIFAR-10-C and CIFAR-100-C (script `make_cifar_c.py` of
hendrycks/robustness, commit ca36008), which are milder than ImageNet-C's, including behaviour that the paper does not
mention: values are truncated, not rounded; the sixth frost overlay is never drawn; glass blur copies where it means to
swap. Images differ from the published ones: their random numbers are not known, JPEG depends on the library's version,
and here truncation does not lose a level to floating-point noise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fvi_core.spelling import nearest

from ..fetch import Folder
from . import effects, weather
from .filters import Draws, truncated

VERSION = "1"
SIDE = 32
SHAPE = (SIDE, SIDE, 3)
SEVERITIES = (1, 2, 3, 4, 5)
CHUNK = 200  # images at once: more no longer fit the processor's cache


@dataclass(frozen=True)
class Corruption:
    """`apply(x, draws, *parameters)`, with the parameters of severities 1 to 5."""

    apply: Callable[..., np.ndarray]
    parameters: tuple[tuple, ...]


def _single(apply: Callable[..., np.ndarray], *values: float) -> Corruption:
    return Corruption(apply, tuple((value,) for value in values))


_CORRUPTIONS = {
    "gaussian_noise": _single(effects.gaussian_noise, 0.04, 0.06, 0.08, 0.09, 0.10),
    "shot_noise": _single(effects.shot_noise, 500, 250, 100, 75, 50),
    "impulse_noise": _single(effects.impulse_noise, 0.01, 0.02, 0.03, 0.05, 0.07),
    "defocus_blur": Corruption(effects.defocus_blur, ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))),
    "glass_blur": Corruption(effects.glass_blur, ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2))),
    "motion_blur": Corruption(effects.motion_blur, ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))),
    "zoom_blur": _single(effects.zoom_blur, 6, 11, 15, 20, 25),
    "snow": Corruption(
        weather.snow,
        (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
    ),
    "frost": Corruption(weather.frost, ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))),
    "fog": Corruption(weather.fog, ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))),
    "brightness": _single(effects.brightness, 0.05, 0.1, 0.15, 0.2, 0.3),
    "contrast": _single(effects.contrast, 0.75, 0.5, 0.4, 0.3, 0.15),
    "elastic_transform": Corruption(
        effects.elastic_transform,
        (
            (0, 0, SIDE * 0.08),
            (SIDE * 0.05, SIDE * 0.2, SIDE * 0.07),
            (SIDE * 0.08, SIDE * 0.06, SIDE * 0.06),
            (SIDE * 0.1, SIDE * 0.04, SIDE * 0.05),
            (SIDE * 0.1, SIDE * 0.03, SIDE * 0.03),
        ),
    ),
    "pixelate": _single(effects.pixelate, 0.95, 0.9, 0.85, 0.75, 0.65),
    "jpeg_compression": _single(effects.jpeg_compression, 80, 65, 58, 50, 40),
    "speckle_noise": _single(effects.speckle_noise, 0.06, 0.1, 0.12, 0.16, 0.2),
    "gaussian_blur": _single(effects.gaussian_blur, 0.4, 0.6, 0.7, 0.8, 1),
    "spatter": Corruption(
        weather.spatter,
        (
            (0.62, 0.1, 0.7, 0.7, 0.5, False),
            (0.65, 0.1, 0.8, 0.7, 0.5, False),
            (0.65, 0.3, 1, 0.69, 0.5, False),
            (0.65, 0.1, 0.7, 0.69, 0.6, True),
            (0.65, 0.1, 0.5, 0.68, 0.6, True),
        ),
    ),
    "saturate": Corruption(effects.saturate, ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2))),
}

CORRUPTIONS = tuple(_CORRUPTIONS)
"""Names, in the order of the benchmark: its fifteen, then the four that it keeps for validation."""

GROWING: dict[str, tuple[int, ...]] = dict.fromkeys(CORRUPTIONS, SEVERITIES) | {
    "glass_blur": (3, 2, 5),  # with more smoothing, displaced pixels count less
    "motion_blur": (1, 2, 3, 5),  # severities 3 and 4 differ by taps without weight
    "frost": (1, 5),  # darker images leave less to cover
    "elastic_transform": (5, 3, 1),  # the affine map shrinks, and it moves most pixels
    "spatter": (1, 2, 4, 5),  # water at severity 3 is more than mud at 4
    "saturate": (3, 1, 2, 4, 5),  # 1 and 2 take colour away, 3 to 5 add it
}
"""Severities by growing mean squared distance from the clean images: for six corruptions, the published
parameters give another order than 1 to 5. Severities that come close to each other are left out."""


def corrupt(
    images: np.ndarray,
    corruption: str,
    severity: int,
    seed: int = 0,
    *,
    numbers: Sequence[int] | np.ndarray | None = None,
    root: Folder = None,
) -> np.ndarray:
    """Return corrupted copies of uint8 images [N, 32, 32, 3]; severity 0 changes nothing.

    An image's random numbers are seeded by the seed, the corruption, the severity and the image's number (`numbers`,
    default 0, 1, ...), so that any image of a set can be made without the others. root: folder of the file cache
    instead of $FVI_DATA_CACHE, for frost. Raises ValueError for unsuitable images, corruption or severity, DataNotFound
    without the frost files.
    """
    check_name(corruption, severity)
    if images.dtype != np.uint8 or images.shape[1:] != SHAPE:
        raise ValueError(
            f"corruption {corruption}: expected uint8 images [N, {SIDE}, {SIDE}, 3], found {images.dtype} "
            f"{list(images.shape)}; the severities are those of 32x32 colour images"
        )
    if severity == 0:
        return images.copy()
    chosen = _CORRUPTIONS[corruption]
    parameters = chosen.parameters[severity - 1]
    if corruption == "frost":
        parameters += (weather.frost_overlays(None if root is None else os.fspath(root)),)
    result, numbers = np.empty_like(images), range(len(images)) if numbers is None else numbers
    for start in range(0, len(images), CHUNK):
        chunk = images[start : start + CHUNK]
        draws = Draws(("corruption", VERSION, seed, corruption, severity), numbers[start : start + CHUNK])
        result[start : start + CHUNK] = truncated(chosen.apply(chunk / 255, draws, *parameters))
    return result


def check_name(corruption: str, severity: int) -> None:
    """Raises ValueError unless there is such a corruption, and the severity is a whole number from 0 to 5."""
    if corruption not in _CORRUPTIONS:
        raise ValueError(f"no corruption '{corruption}'; {nearest(corruption, _CORRUPTIONS)}")
    if isinstance(severity, bool) or severity not in (0, *SEVERITIES):
        raise ValueError(f"corruption {corruption}: expected a severity from 0 (none) to 5, found {severity!r}")
