"""The network at its trained parameters: a single function (MAP), or random ones by dropout."""

from __future__ import annotations

from dataclasses import dataclass

from fvi_core.families.base import Family, Functions, NotSupported
from fvi_core.networks import Network, Parameters
from fvi_core.networks.masks import FunctionMasks, InputMasks
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES


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

    rate: float = 0.1
    masks: str = "input"

    def __post_init__(self):
        if not 0 <= self.rate < 1:
            raise ValueError(f"family 'dropout': rate must lie in [0, 1), found {self.rate}")
        if self.masks not in ("input", "function"):
            raise ValueError(f"family 'dropout': masks must be 'input' or 'function', found {self.masks!r}")

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
