"""Monte Carlo dropout (Gal and Ghahramani 2016)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fvi_core.families.base import Functions
from fvi_core.families.point import Point
from fvi_core.networks import Network, Parameters
from fvi_core.networks.masks import InputMasks
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES


@FAMILIES.register("dropout")
@dataclass(frozen=True)
class Dropout(Point):
    """Activations times Bernoulli(1 - rate) / (1 - rate) at every dropout site, in training and in prediction.

    ``masks``: "input" draws a mask for every input (common practice); "function" draws one for each sampled function
    and uses it at every input, so that a draw is one function everywhere (needed by divergences that compare functions
    jointly).
    """

    draws_networks = False

    rate: float = 0.1
    masks: str = "input"

    def __post_init__(self):
        if not 0 <= self.rate < 1:
            raise ValueError(f"family 'dropout': rate must lie in [0, 1), found {self.rate}")
        if self.masks not in ("input", "function"):
            raise ValueError(f"family 'dropout': masks must be 'input' or 'function', found {self.masks!r}")

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        weights = {name: value.unsqueeze(1) for name, value in parameters.items()}
        if self.masks == "input":
            masks = InputMasks(self.rate, samples, streams)
            return lambda x: network(weights, x, dropout=masks)
        kept: dict[str, Tensor] = {}
        keep = 1 - self.rate

        def mask(site: str, a: Tensor) -> Tensor:
            if a.shape[1] == 1 and samples > 1:
                a = a.expand(a.shape[0], samples, *a.shape[2:])
            if site not in kept:
                kept[site] = (streams.uniform(samples, 1, *a.shape[3:]) < keep) / keep
            return a * kept[site]

        return lambda x: network(weights, x, dropout=mask)
