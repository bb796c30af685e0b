"""Single function: the network at its trained parameters (MAP)."""

from __future__ import annotations

from dataclasses import dataclass

from fvi_core.families.base import Family
from fvi_core.networks import Network, Parameters
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
