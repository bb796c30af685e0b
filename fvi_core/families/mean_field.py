"""Mean-field Gaussians over network parameters: all of them, those of the linearised network, or the last layer's under
dropout.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.families.base import DrawnNetworks, Family, Functions, NotSupported, buffers_of, random_layers
from fvi_core.linearisation import full_network_moments, linearised
from fvi_core.networks import Network, Parameters
from fvi_core.networks.pooling import InputMasks
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, checked, later

MEAN, LOG_VAR = "mean/", "log_var/"


class MeansAndVariances(Family):
    """Family whose parameters are means of all weights and log-variances of some; the others are points."""

    def initial_network(self, network: Network, parameters: Parameters) -> Parameters:
        return {name: parameters[MEAN + name] for name in network.shapes}

    def gaussian_weights(self, parameters: Parameters) -> tuple[Parameters, Parameters]:
        means = {k.removeprefix(MEAN): v for k, v in parameters.items() if k.startswith(MEAN)}
        log_vars = {k.removeprefix(LOG_VAR): v for k, v in parameters.items() if k.startswith(LOG_VAR)}
        return means, log_vars


@FAMILIES.register("mean_field")
@dataclass(frozen=True)
class MeanField(MeansAndVariances):
    """``q(w) = prod_i N(w_i | m_i, exp(log_var_i))`` (Blundell et al. 2015).

    ``mean_init``: "default" (the network's own initialisation) or a standard deviation of zero-centred normal means (0:
    all means start at 0). ``log_var_init``: bounds of the uniform initial log-variances; ``log_var_init_of``: other
    bounds for named tensors ("head.bias"). ``layers``: which parameters are random (the others are points): "all";
    "weighted", linear and convolutional layers; "hidden", these except the last; "last", the last layer, whose inputs
    are then computed once for all samples.
    """

    draws_networks = True

    mean_init: str | float = "default"
    log_var_init: tuple[float, float] = (-10.0, -8.0)
    log_var_init_of: dict[str, tuple[float, float]] | None = later(None)
    layers: str = later("all", among=("all", "weighted", "hidden", "last"))

    def init(self, network: Network, streams: Streams) -> Parameters:
        if self.mean_init == "default":
            means = network.init(streams)
        else:
            means = {name: float(self.mean_init) * streams.normal(*shape) for name, shape in network.shapes.items()}
        own = self.log_var_init_of or {}
        drawn = {name: shape for layer in random_layers(network, self.layers) for name, shape in layer.shapes.items()}
        if unknown := own.keys() - drawn.keys():
            known = sorted(drawn)
            raise ValueError(f"family {self.name!r}: log_var_init_of names {sorted(unknown)}, the network has {known}")
        parameters = {MEAN + name: value for name, value in means.items()}
        for name, shape in drawn.items():
            low, high = own.get(name, self.log_var_init)
            parameters[LOG_VAR + name] = low + (high - low) * streams.uniform(*shape)
        return parameters | network.init_buffers(streams)

    def weights(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Parameters:
        weights = self._weights(network, parameters, samples, streams)
        drawn = {
            name: value if value.shape[1] == samples else value.expand(-1, samples, *value.shape[2:])
            for name, value in weights.items()
        }
        return drawn | buffers_of(parameters)

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        if self.layers != "last":
            return DrawnNetworks(network, self.weights(network, parameters, samples, streams))
        return DrawnNetworks(network, self._weights(network, parameters, samples, streams) | buffers_of(parameters))

    def _weights(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Parameters:
        """Random network parameters ``[R, S, *shape]``, points ``[R, 1, *shape]``."""
        means, log_vars = self.gaussian_weights(parameters)
        names = [name for name in network.shapes if name in log_vars]
        mean, log_var = (torch.cat([of[name].flatten(1) for name in names], dim=-1) for of in (means, log_vars))
        epsilon = streams.normal(samples, mean.shape[-1])
        flat = mean.unsqueeze(1) + torch.exp(0.5 * log_var).unsqueeze(1) * epsilon
        pieces = dict(zip(names, flat.split([network.sizes[name] for name in names], dim=-1), strict=True))
        return {
            name: pieces[name].unflatten(-1, shape) if name in pieces else means[name].unsqueeze(1)
            for name, shape in network.shapes.items()
        }


@FAMILIES.register("gaussian_head")
@dataclass(frozen=True)
class GaussianHead(MeansAndVariances):
    """``w ~ prod_i N(m_i, exp(log_var_i))`` for the last layer's weights and biases; all other weights are points, and
    inner activations have dropout of this ``rate``, in training and in prediction, with a mask for every input.

    A draw of masks is a draw of the inner layers, so that rudner2022's eq. 14 (R = 1) applies, as in the FashionMNIST
    notebook of that paper's first code (runs 3.1 to 3.4). ``log_var_init``: bounds of the uniform initial
    log-variances.
    """

    rate: float = checked(0.1, least=0, below=1)
    log_var_init: tuple[float, float] = (-10.0, -8.0)

    def init(self, network: Network, streams: Streams) -> Parameters:
        return MeanField(log_var_init=self.log_var_init, layers="last").init(network, streams)

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


@FAMILIES.register("linearised_mean_field")
@dataclass(frozen=True)
class LinearisedMeanField(MeanField):
    """``f_L(x; w) = f(x; m) + J(x; m)(w - m)`` with ``w ~ N(m, S)``, S diagonal: a Gaussian process with closed-form
    moments.
    """

    closed_form = True
    draws_networks = False
    independent_outputs = False

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
