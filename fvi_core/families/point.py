"""The network at given parameters: trained ones (MAP), those under dropout, or the draws of a Markov chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fvi_core.families.base import Family, Functions, NotSupported
from fvi_core.networks import Network, Parameters
from fvi_core.networks.pooling import FunctionMasks, InputMasks
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, checked


@FAMILIES.register("point")
@dataclass(frozen=True)
class Point(Family):
    """``q(f) = delta(f - f_w)``."""

    def init(self, network: Network, streams: Streams) -> Parameters:
        return network.init(streams) | network.init_buffers(streams)

    def weights(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Parameters:
        return {name: value.unsqueeze(1) for name, value in parameters.items()}


@FAMILIES.register("dropout")
@dataclass(frozen=True)
class Dropout(Point):
    """Activations times Bernoulli(1 - rate) / (1 - rate) at every dropout site, in training and in prediction
    (Gal and Ghahramani 2016).

    ``masks``: "input" draws a mask for every input (common practice); "function" draws one for each sampled function
    and uses it at every input, so that a draw is one function everywhere (needed by divergences that compare functions
    jointly).
    """

    rate: float = checked(0.1, least=0, below=1)
    masks: str = checked("input", among=("input", "function"))

    def init(self, network: Network, streams: Streams) -> Parameters:
        if not network.sites:
            raise NotSupported(
                "family 'dropout' masks activations at dropout sites, and the network has none that is reached; "
                "put nn.Dropout modules into a module of your own, between layers with parameters"
            )
        return super().init(network, streams)

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        weights = {name: value.unsqueeze(1) for name, value in parameters.items()}
        masks = (InputMasks if self.masks == "input" else FunctionMasks)(self.rate, samples, streams)
        return lambda x: network(weights, x, dropout=masks)


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
