"""Many sampled networks at shared inputs, a block of samples at a time.

Hidden activations of hundreds of sampled networks do not fit in a processor's cache; a block's do, so that each layer
finds its input there. The values are the same to the bit.
"""

from __future__ import annotations

import torch
from torch import Tensor

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
    pieces = zip(*(value.split(block, 1) for value in parameters.values()), strict=True)
    return torch.cat([network(dict(zip(parameters, piece, strict=True)), x) for piece in pieces], 1)
