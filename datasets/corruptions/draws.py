"""Random numbers of corruptions: one stream for every image, so that no result depends on the batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import numpy as np


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
