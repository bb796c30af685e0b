"""Evaluate many sampled networks at shared inputs, a block of samples at a time.

A block's hidden activations fit in a processor's cache, unlike those of hundreds of networks. The values are equal to
the bit.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from fvi_core import shallow
from fvi_core.networks import Network, Parameters

BLOCK_ELEMENTS = 2**18
"""Activations of the widest layer in one block: 1 MiB in float32, about a core's second-level cache."""
CHUNK = 2**24
"""Most values of a layer computed at once outside training."""
RESIDUAL_CHUNK = 2**23
"""Most values of a layer computed at once for residual networks on a CPU: 32 MiB as float32, the largest block that the
C library reuses; returning larger blocks to the system makes prediction a quarter slower. Other networks use ``CHUNK``,
on which the masks of dropout by input, and so existing records, depend.
"""
CHANGES = 2**22
"""Most values of a layer in one block of changes of a network on a CPU: 16 MiB as float32, reused like those."""
ON_GPU = 8
"""Factor on these sizes for a GPU, which small pieces leave idle."""
FEW = 8
"""Fewest samples for blocks; fewer use the network's own layers."""
TOGETHER = 10
"""Most convolutional networks evaluated together. With more, fewer inputs fit into a block, and for each block all
weights are read from memory."""


def evaluate(network: Network, parameters: Parameters, x: Tensor) -> Tensor:
    """Return ``network(parameters, x)`` for parameters ``[R, S, *shape]`` and inputs ``[R, N, ...]``.

    Only the parameters get gradients.
    """
    samples = next(iter(parameters.values())).shape[1]
    if x.requires_grad:
        return network(parameters, x)
    if samples >= FEW and shallow.fits(network, x):
        return shallow.evaluate(parameters, x)
    if network.convolutional:
        block = networks_at_once(network, parameters, samples)
    else:
        block = max(1, BLOCK_ELEMENTS // (x.shape[1] * network.width))
    if samples <= block:
        return network(parameters, x)
    return torch.cat([network(piece, x) for piece in in_blocks(parameters, samples, block)], 1)


def networks_at_once(network: Network, parameters: Parameters, samples: int) -> int:
    """Return how many of ``samples`` networks ``[R, S, *shape]`` are evaluated together at images: at most TOGETHER, or
    all where they share layers, which one pass computes for all.
    """
    shared = any(parameters[name].shape[1] == 1 for name in network.shapes)
    return samples if shared else min(samples, TOGETHER)


def in_blocks(parameters: Parameters, samples: int, block: int) -> Iterator[Parameters]:
    """Yield parameters ``[R, S, *shape]`` a block of samples at a time; those that all samples share stay whole."""
    for start in range(0, samples, block):
        yield {name: v if v.shape[1] == 1 else v[:, start : start + block] for name, v in parameters.items()}


def rows_at_once(network: Network, samples: int, device: torch.device) -> int:
    """Return at how many inputs ``samples`` functions are evaluated together."""
    if device.type == "cuda":
        chunk = CHUNK * ON_GPU
    else:
        chunk = RESIDUAL_CHUNK if network.residual else CHUNK
    return max(1, chunk // (samples * max(network.width, 1)))


def changes_at_once(network: Network, x: Tensor) -> int:
    """Return how many changes of weights :mod:`fvi_core.tangents` takes together at inputs ``x [R, N, ...]``."""
    chunk = CHUNK * ON_GPU if x.device.type == "cuda" else CHANGES
    return max(1, chunk // (len(x) * x.shape[1] * max(network.width, 1)))
