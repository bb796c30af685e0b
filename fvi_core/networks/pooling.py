"""Masks of dropout, and ReLU, dropout and 2x2 max-pooling of images in one step: a few images at a time, which stay in
a processor's cache.

Pooling before the ReLU gives the same values and sends gradients to the same pixels: the largest of four numbers stays
the largest, and where none is positive no gradient passes. So the ReLU sees a quarter of the pixels. The gradient needs
no stored mask either: it passes where the result is positive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fvi_core.networks.layers import Activation, BatchNorm, Conv2d, DropoutSite, MaxPool, Residual
from fvi_core.random import Streams

BLOCK_ELEMENTS = 2**18
"""Numbers of the images that are worked on together: 1 MiB in float32, about a core's second-level cache."""
DrawMask = Callable[[int, Tensor], Tensor]
"""Function that fills images ``[B, C, H, W]`` with 1 where an activation of replica r stays and 0 elsewhere; called for
all images of a replica in order, sample after sample."""
_pool = torch.ops.aten.max_pool2d_with_indices.out
_pool_backward = torch.ops.aten.max_pool2d_with_indices_backward.grad_input
_threshold_backward = torch.ops.aten.threshold_backward


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
        self.masks: dict[str, Tensor] = {}

    def __call__(self, site: str, a: Tensor) -> Tensor:
        """Activations a ``[R, S, N, ...]``, masked."""
        a = _each(a, self.samples)
        if site not in self.masks:
            self.masks[site] = (self.streams.uniform(self.samples, 1, *a.shape[3:]) < self.keep) / self.keep
        return a * self.masks[site]


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
        return rectified(z, pool, max(z.shape[1], self.samples), self._draw_mask, _factor(self.keep, z.dtype))

    def _draw_mask(self, replica: int, mask: Tensor) -> Tensor:
        return self.streams.uniform_into(replica, mask).lt_(self.keep)


@dataclass(frozen=True)
class Rectified:
    """Convolution, normalisation or sum, followed by ReLU, its dropout site, and with ``pool`` pooling: one step that
    stores fewer tensors."""

    layer: Conv2d | BatchNorm | Residual
    site: DropoutSite | None
    pool: bool


def together(layers: Sequence) -> list:
    """Return the layers, with each followed by a rectifier joined to it in a :class:`Rectified` where possible."""
    steps: list = []
    remaining = list(layers)
    while remaining:
        layer = remaining.pop(0)
        if isinstance(layer, Residual):
            layer = Residual(tuple(together(layer.body)), tuple(together(layer.shortcut)))
        if isinstance(layer, Conv2d | BatchNorm | Residual) and remaining[:1] == [Activation("relu")]:
            del remaining[0]
            site = remaining.pop(0) if remaining and type(remaining[0]) is DropoutSite else None
            pool = isinstance(layer, Conv2d) and remaining[:1] == [MaxPool()]
            if pool:
                del remaining[0]
            layer = Rectified(layer, site, pool)
        steps.append(layer)
    return steps


def rectified(
    z: Tensor, pool: bool, samples: int | None = None, draw_mask: DrawMask | None = None, factor: float = 1.0
) -> Tensor:
    """``relu(z)``, with the drawn masks times ``factor``, then pooled where ``pool`` says so.

    z ``[R, S, N, C, H, W]`` may have one sample for all of ``samples``, which are masked separately. Differentiable
    once.
    """
    return _Rectified.apply(z, pool, samples or z.shape[1], draw_mask, factor)


def _largest(z: Tensor) -> Tensor:
    """Return the 2x2 max-pooling of images z ``[N, C, H, W]``, without indices for gradients: faster."""
    height, width = z.shape[-2] // 2 * 2, z.shape[-1] // 2 * 2
    rows = torch.maximum(z[..., :height:2, :width], z[..., 1:height:2, :width])
    return torch.maximum(rows[..., ::2], rows[..., 1::2])


class _Rectified(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z: Tensor, pool: bool, samples: int, draw_mask: DrawMask | None, factor: float) -> Tensor:
        replicas, own, n, channels, height, width = z.shape
        shape = (height // 2, width // 2, channels) if pool else (height, width, channels)
        out = z.new_empty(replicas, samples, n, *shape).movedim(-1, -3)
        places = torch.empty_like(out, dtype=torch.int64) if pool and ctx.needs_input_grad[0] else None
        size = max(1, BLOCK_ELEMENTS // z[0, 0, 0].numel())
        # Masks are drawn channel by channel of an image; images lie the other way round.
        mask = z.new_empty(min(size, n), *z.shape[3:])
        product = torch.empty_like(mask, memory_format=torch.channels_last)
        for r in range(replicas):
            for s in range(samples):
                for start in range(0, n, size):
                    rows = slice(start, start + size)
                    piece, target = z[r, s if own > 1 else 0, rows], out[r, s, rows]
                    if draw_mask is not None:
                        drawn = draw_mask(r, mask[: len(piece)])
                        piece = torch.mul(piece, factor, out=product[: len(piece)]).mul_(drawn)
                    if places is not None:
                        _pool(piece, [2, 2], [2, 2], out=target, indices=places[r, s, rows])
                    else:
                        target.copy_(_largest(piece) if pool else piece)
                    target.relu_()
        ctx.save_for_backward(out, *([] if places is None else [places]))
        ctx.shape, ctx.size, ctx.factor = z.shape, size, factor
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        out, *places = ctx.saved_tensors
        replicas, own, n, channels, height, width = ctx.shape
        total = out.new_empty(replicas, own, n, height, width, channels).movedim(-1, -3)
        spare = out.new_empty(min(ctx.size, n), height, width, channels).movedim(-1, -3)
        for r in range(replicas):
            for start in range(0, n, ctx.size):
                rows = slice(start, start + ctx.size)
                for s in range(out.shape[1]):
                    passed = _threshold_backward(gradient[r, s, rows], out[r, s, rows], 0)
                    if ctx.factor != 1:
                        passed = passed.mul_(ctx.factor)
                    target, first = total[r, s if own > 1 else 0, rows], s == 0 or own > 1
                    if places:
                        into = target if first else spare[: len(target)]
                        passed = passed.contiguous(memory_format=torch.channels_last)
                        _pool_backward(
                            passed, into, [2, 2], [2, 2], [0, 0], [1, 1], False, places[0][r, s, rows], grad_input=into
                        )
                        passed = into
                    if not first:
                        target.add_(passed)
                    elif passed is not target:
                        target.copy_(passed)
        return total, None, None, None, None
