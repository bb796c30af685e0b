"""Evaluate many sampled networks at shared inputs, a block of samples at a time.

A block's hidden activations fit in a processor's cache, unlike those of hundreds of networks. The values are equal to
the bit.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fvi_core import shallow
from fvi_core.networks import Network, Parameters

BLOCK_ELEMENTS = 2**18
"""Activations of the widest layer in one block: 1 MiB in float32, about a core's second-level cache."""
FEW = 8
"""Fewest samples for blocks; fewer use the network's own layers."""


def evaluate(network: Network, parameters: Parameters, x: Tensor) -> Tensor:
    """Return ``network(parameters, x)`` for parameters ``[R, S, *shape]`` and inputs ``[R, N, ...]``.

    Only the parameters get gradients.
    """
    samples = next(iter(parameters.values())).shape[1]
    if samples >= FEW and shallow.fits(network, x) and not x.requires_grad:
        return shallow.evaluate(parameters, x)
    if network.convolutional or x.requires_grad:
        return network(parameters, x)
    block = max(1, BLOCK_ELEMENTS // (x.shape[1] * network.width))
    if samples <= block:
        return network(parameters, x)
    pieces = zip(*(value.split(block, 1) for value in parameters.values()), strict=True)
    return torch.cat([network(dict(zip(parameters, piece, strict=True)), x) for piece in pieces], 1)
