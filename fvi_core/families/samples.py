"""Equally likely networks of given weights: the draws of a Markov chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fvi_core.families.base import Family
from fvi_core.networks import Network, Parameters
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES


@FAMILIES.register("samples")
@dataclass(frozen=True)
class Samples(Family):
    """``q(f) = 1/S sum_s delta(f - f_{w_s})`` with parameters ``[R, S, *shape]``; S = 1 during training.

    A call for S functions or more returns all, a call for fewer returns functions evenly spaced along the chain;
    nothing is random.
    """

    def init(self, network: Network, streams: Streams) -> Parameters:
        start = network.init(streams) | network.init_buffers(streams)
        return {name: value.unsqueeze(1) for name, value in start.items()}

    def initial_network(self, network: Network, parameters: Parameters) -> Parameters:
        return {name: parameters[name][:, 0] for name in network.shapes}

    def sampled(self, positions: Sequence[Parameters]) -> Parameters:
        return {name: torch.cat([position[name] for position in positions], dim=1) for name in positions[0]}

    def weights(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Parameters:
        names = [*network.shapes, *(name for name in network.buffers if name in parameters)]
        held = parameters[names[0]].shape[1]
        if samples >= held:
            return {name: parameters[name] for name in names}
        index = torch.arange(samples, device=parameters[names[0]].device) * held // samples
        return {name: parameters[name][:, index] for name in names}
