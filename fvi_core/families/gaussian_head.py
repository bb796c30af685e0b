"""Mean-field Gaussian over the last layer's weights, with dropout in the inner layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.families.base import Functions, buffers_of
from fvi_core.families.mean_field import MeansAndVariances
from fvi_core.gaussian import gaussian_kl_weights
from fvi_core.networks import HEAD, Network, Parameters
from fvi_core.networks.masks import InputMasks
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES


@FAMILIES.register("gaussian_head")
@dataclass(frozen=True)
class GaussianHead(MeansAndVariances):
    """``w ~ prod_i N(m_i, exp(log_var_i))`` for the last layer's weights and biases; all other weights are points, and
    inner activations have dropout of this ``rate``, in training and in prediction, with a mask for every input.

    A draw of masks is a draw of the inner layers, so that rudner2022's eq. 14 (R = 1) applies, as in the FashionMNIST
    notebook of that paper's first code (runs 3.1 to 3.4). ``log_var_init``: bounds of the uniform initial
    log-variances.
    """

    rate: float = 0.1
    log_var_init: tuple[float, float] = (-10.0, -8.0)

    def __post_init__(self):
        if not 0 <= self.rate < 1:
            raise ValueError(f"family 'gaussian_head': rate must lie in [0, 1), found {self.rate}")

    def init(self, network: Network, streams: Streams) -> Parameters:
        means = network.init(streams)
        low, high = self.log_var_init
        shapes = {name: shape for name, shape in network.shapes.items() if name.startswith(HEAD + ".")}
        log_vars = {name: low + (high - low) * streams.uniform(*shape) for name, shape in shapes.items()}
        return self.named(network, streams, means, log_vars)

    def weight_kl(
        self, network: Network, parameters: Parameters, mean: float, variance: float, functions: Functions | None
    ) -> Tensor:
        """KL ``[R]`` of the last layer's weights."""
        means, log_vars = self.gaussian_weights(parameters)
        return gaussian_kl_weights({name: means[name] for name in log_vars}, log_vars, mean, variance)

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> DroppedNetworks:
        means, log_vars = self.gaussian_weights(parameters)
        weights = {name: value.unsqueeze(1) for name, value in means.items()}
        for name, log_var in log_vars.items():
            noise = streams.normal(samples, *network.shapes[name])
            weights[name] = weights[name] + torch.exp(0.5 * log_var).unsqueeze(1) * noise
        return DroppedNetworks(network, weights | buffers_of(parameters), self.rate, samples, streams)


@dataclass(frozen=True)
class DroppedNetworks:
    """Random functions: the network at random parameters ``[R, S or 1, *shape]``, under dropout."""

    network: Network
    parameters: Parameters
    rate: float
    samples: int
    streams: Streams

    def __call__(self, x: Tensor) -> Tensor:
        return self.network(self.parameters, x, dropout=InputMasks(self.rate, self.samples, self.streams))

    def features(self, x: Tensor) -> Tensor:
        """Inputs of the last layer under one draw of masks, ``[R, N, F]``."""
        first = {name: value[:, :1] for name, value in self.parameters.items()}
        return self.network.features(first, x, InputMasks(self.rate, 1, self.streams)).squeeze(1)
