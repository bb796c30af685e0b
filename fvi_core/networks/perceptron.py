"""Multilayer perceptrons."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fvi_core.networks.layers import Activation, DropoutSite, Flatten, Linear
from fvi_core.networks.network import HEAD, Network
from fvi_core.registry import NETWORKS


@NETWORKS.register("mlp")
@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron on flattened inputs; a dropout site after every hidden activation."""

    hidden: list[int]
    activation: str = "relu"

    def build(self, input_shape: tuple[int, ...], n_outputs: int) -> Network:
        layers: list = [Flatten(len(input_shape))] if len(input_shape) > 1 else []
        width = math.prod(input_shape)
        for i, units in enumerate(self.hidden):
            layers += [Linear(f"hidden{i}", width, units), Activation(self.activation), DropoutSite(f"hidden{i}")]
            width = units
        return Network([*layers, Linear(HEAD, width, n_outputs)], tuple(input_shape))
