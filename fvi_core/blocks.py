"""Many sampled networks at shared inputs, a block of samples at a time.

Hidden activations of hundreds of sampled networks do not fit in a processor's cache, and writing them to memory costs
more than computing them twice. So each block is small enough to stay in cache and is recomputed for its gradient; the
values are the same to the bit.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fvi_core import shallow
from fvi_core.networks import Network, Parameters

BLOCK_ELEMENTS = 2**18
"""Activations of the widest layer in one block: 1 MiB in float32, about a core's second-level cache."""
FEW = 8
"""Below this many samples the network's own layers are used."""


def evaluate(network: Network, parameters: Parameters, x: Tensor) -> Tensor:
    """``network(parameters, x)`` for parameters ``[R, S, *shape]`` and inputs ``[R, N, ...]``, with gradient to
    parameters only.
    """
    samples = next(iter(parameters.values())).shape[1]
    if samples >= FEW and shallow.fits(network, x) and not x.requires_grad:
        return shallow.evaluate(parameters, x)
    if network.convolutional or x.requires_grad:
        return network(parameters, x)
    block = max(1, BLOCK_ELEMENTS // (x.shape[1] * network.width))
    if samples <= block:
        return network(parameters, x)
    return _InBlocks.apply(network, x, block, list(parameters), *parameters.values())


class _InBlocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, network: Network, x: Tensor, block: int, names: list[str], *values: Tensor) -> Tensor:
        ctx.network, ctx.block, ctx.names = network, block, names
        ctx.save_for_backward(x, *values)
        out = x.new_empty(x.shape[0], values[0].shape[1], x.shape[1], network.n_outputs)
        for start in range(0, out.shape[1], block):
            rows = slice(start, start + block)
            out[:, rows] = network({name: value[:, rows] for name, value in zip(names, values, strict=True)}, x)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        x, *values = ctx.saved_tensors
        totals = [torch.empty_like(value) for value in values]
        for start in range(0, gradient.shape[1], ctx.block):
            rows = slice(start, start + ctx.block)
            with torch.enable_grad():
                tracked = [value[:, rows].detach().requires_grad_() for value in values]
                f = ctx.network(dict(zip(ctx.names, tracked, strict=True)), x)
            for total, piece in zip(totals, torch.autograd.grad(f, tracked, gradient[:, rows]), strict=True):
                total[:, rows] = piece
        return None, None, None, None, *totals
