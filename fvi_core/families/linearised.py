"""Network linearised about its mean weights, under mean-field Gaussian weights (cinquin2024 eq. 2.6-2.7)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fvi_core.families.base import Functions, NotSupported
from fvi_core.families.mean_field import MeanField
from fvi_core.linearisation import full_network_moments, linearised
from fvi_core.networks import Network, Parameters
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES


@FAMILIES.register("linearised_mean_field")
@dataclass(frozen=True)
class LinearisedMeanField(MeanField):
    """``f_L(x; w) = f(x; m) + J(x; m)(w - m)`` with ``w ~ N(m, S)``, S diagonal: a Gaussian process with closed-form
    moments.
    """

    closed_form = True
    draws_networks = False

    def init(self, network: Network, streams: Streams) -> Parameters:
        if network.buffers:
            raise NotSupported(f"family {self.name!r} needs functions of single inputs: no batch normalisation")
        if self.layers != "all":
            raise NotSupported(f"family {self.name!r} is linearised in all layers, found layers {self.layers!r}")
        return super().init(network, streams)

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        means, _ = self.gaussian_weights(parameters)
        drawn = self.weights(network, parameters, samples, streams)
        steps = {name: value - means[name].unsqueeze(1) for name, value in drawn.items()}
        return linearised(network, means, steps, {})

    def marginals(self, network: Network, parameters: Parameters, x: Tensor) -> tuple[Tensor, Tensor]:
        means, log_vars = self.gaussian_weights(parameters)
        mean, variance = full_network_moments(network, means, log_vars, x, "diagonal")
        return mean.transpose(-1, -2), variance.transpose(-1, -2)
