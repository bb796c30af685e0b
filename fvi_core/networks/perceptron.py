"""Multilayer perceptrons."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fvi_core.networks.layers import INITS, Activation, DropoutSite, Flatten, Linear, initialised
from fvi_core.networks.network import HEAD, Network
from fvi_core.registry import NETWORKS, later
from fvi_core.spelling import check_known


@NETWORKS.register("mlp")
@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron on flattened inputs; a dropout site after every hidden activation.

    ``init``: initial weights, "uniform" on +-1/sqrt(fan_in) as PyTorch has them, biases too, or normal ones of variance
    1/fan_in ("lecun"), 0.774/fan_in ("haiku"), 2/(fan_in + fan_out) ("glorot") or 2/fan_in ("he"), biases 0. Raises
    ValueError for another.
    """

    hidden: list[int]
    activation: str = "relu"
    init: str = later("uniform")

    def __post_init__(self) -> None:
        check_known("network 'mlp': init", self.init, INITS)

    def build(self, input_shape: tuple[int, ...], n_outputs: int) -> Network:
        layers: list = [Flatten(len(input_shape))] if len(input_shape) > 1 else []
        width = math.prod(input_shape)
        for i, units in enumerate(self.hidden):
            hidden = initialised(Linear(f"hidden{i}", width, units), self.init)
            layers += [hidden, Activation(self.activation), DropoutSite(f"hidden{i}")]
            width = units
        return Network([*layers, initialised(Linear(HEAD, width, n_outputs), self.init)], tuple(input_shape))
