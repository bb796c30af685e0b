"""Mean-field Gaussian over all network parameters."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fvi_core.families.base import DrawnNetworks, Family, Functions, buffers_of, random_layers
from fvi_core.networks import Network, Parameters
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, later

MEAN, LOG_VAR = "mean/", "log_var/"
LAYERS = ("all", "weighted", "hidden", "last")


class MeansAndVariances(Family):
    """Family whose parameters are means of all weights and log-variances of some; the others are points."""

    def initial_network(self, network: Network, parameters: Parameters) -> Parameters:
        return {name: parameters[MEAN + name] for name in network.shapes}

    def gaussian_weights(self, parameters: Parameters) -> tuple[Parameters, Parameters]:
        means = {k.removeprefix(MEAN): v for k, v in parameters.items() if k.startswith(MEAN)}
        log_vars = {k.removeprefix(LOG_VAR): v for k, v in parameters.items() if k.startswith(LOG_VAR)}
        return means, log_vars

    def named(self, network: Network, streams: Streams, means: Parameters, log_vars: Parameters) -> Parameters:
        """Return these as initial parameters, with the network's buffers."""
        return (
            {MEAN + name: value for name, value in means.items()}
            | {LOG_VAR + name: value for name, value in log_vars.items()}
            | network.init_buffers(streams)
        )


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
    layers: str = later("all")

    def __post_init__(self):
        if self.layers not in LAYERS:
            raise ValueError(f"family {self.name!r}: layers must be one of {LAYERS}, found {self.layers!r}")

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
        log_vars = {}
        for name, shape in drawn.items():
            low, high = own.get(name, self.log_var_init)
            log_vars[name] = low + (high - low) * streams.uniform(*shape)
        return self.named(network, streams, means, log_vars)

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
