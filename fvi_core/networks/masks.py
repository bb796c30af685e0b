"""Masks of dropout, drawn for every input."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from fvi_core.networks.pooling import rectified
from fvi_core.random import Streams


@lru_cache(maxsize=16)
def _factor(keep: float, dtype: torch.dtype) -> float:
    """Return ``1 / keep`` as tensors of that type divide; cached, since reading waits for the device."""
    return float(torch.ones((), dtype=dtype) / keep)


def _each(a: Tensor, samples: int) -> Tensor:
    """Activations ``[R, S, N, ...]`` of every sample: of one for all of them, that."""
    return a.expand(a.shape[0], samples, *a.shape[2:]) if a.shape[1] == 1 and samples > 1 else a


class FunctionMasks:
    """Activations times Bernoulli(1 - rate) / (1 - rate), drawn once for each of ``samples`` and of all inputs."""

    def __init__(self, rate: float, samples: int, streams: Streams):
        self.keep, self.samples, self.streams = 1 - rate, samples, streams
        self.kept: dict[str, Tensor] = {}

    def __call__(self, site: str, a: Tensor) -> Tensor:
        """Activations a ``[R, S, N, ...]``, masked."""
        a = _each(a, self.samples)
        if site not in self.kept:
            self.kept[site] = (self.streams.uniform(self.samples, 1, *a.shape[3:]) < self.keep) / self.keep
        return a * self.kept[site]


class InputMasks:
    """Activations times Bernoulli(1 - rate) / (1 - rate), drawn anew for every input and each of ``samples``.

    Layers before the first mask compute one sample for all.
    """

    def __init__(self, rate: float, samples: int, streams: Streams):
        self.keep, self.samples, self.streams = 1 - rate, samples, streams

    def __call__(self, site: str, a: Tensor) -> Tensor:
        """Activations a ``[R, S, N, ...]``, masked."""
        a = _each(a, self.samples)
        return a * ((self.streams.uniform(*a.shape[1:]) < self.keep) / self.keep)

    def rectified(self, z: Tensor, pool: bool) -> Tensor:
        """Mask ``relu(z)`` of images z ``[R, S, N, C, H, W]`` as a call would mask it, then pool if ``pool``."""
        return rectified(z, pool, max(z.shape[1], self.samples), self._kept, _factor(self.keep, z.dtype))

    def _kept(self, replica: int, mask: Tensor) -> Tensor:
        return self.streams.uniform_into(replica, mask).lt_(self.keep)
