"""Mean-field Gaussian over all network parameters."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fvi_core.families.base import DrawnNetworks, Family, Functions, buffers_of
from fvi_core.networks import Network, Parameters
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, later

MEAN, LOG_VAR = "mean/", "log_var/"


@FAMILIES.register("mean_field")
@dataclass(frozen=True)
class MeanField(Family):
    """``q(w) = prod_i N(w_i | m_i, exp(log_var_i))`` (Blundell et al. 2015).

    ``mean_init``: "default" (the network's own initialisation) or a standard deviation of zero-centred normal means (0:
    all means start at 0). ``log_var_init``: bounds of the uniform initial log-variances; ``log_var_init_of``: other
    bounds for the tensors of these names ("head.bias").
    """

    draws_networks = True

    mean_init: str | float = "default"
    log_var_init: tuple[float, float] = (-10.0, -8.0)
    log_var_init_of: dict[str, tuple[float, float]] | None = later(None)

    def init(self, network: Network, streams: Streams) -> Parameters:
        if self.mean_init == "default":
            means = network.init(streams)
        else:
            means = {name: float(self.mean_init) * streams.normal(*shape) for name, shape in network.shapes.items()}
        own = self.log_var_init_of or {}
        if unknown := own.keys() - network.shapes.keys():
            known = sorted(network.shapes)
            raise ValueError(f"family {self.name!r}: log_var_init_of names {sorted(unknown)}, the network has {known}")
        log_vars = {}
        for name, shape in network.shapes.items():
            low, high = own.get(name, self.log_var_init)
            log_vars[name] = low + (high - low) * streams.uniform(*shape)
        return (
            {MEAN + k: v for k, v in means.items()}
            | {LOG_VAR + k: v for k, v in log_vars.items()}
            | network.init_buffers(streams)
        )

    def initial_network(self, network: Network, parameters: Parameters) -> Parameters:
        return {name: parameters[MEAN + name] for name in network.shapes}

    def gaussian_weights(self, parameters: Parameters) -> tuple[Parameters, Parameters]:
        means = {k.removeprefix(MEAN): v for k, v in parameters.items() if k.startswith(MEAN)}
        log_vars = {k.removeprefix(LOG_VAR): v for k, v in parameters.items() if k.startswith(LOG_VAR)}
        return means, log_vars

    def weights(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Parameters:
        means, log_vars = self.gaussian_weights(parameters)
        mean, std = network.flatten(means), torch.exp(0.5 * network.flatten(log_vars))
        epsilon = streams.normal(samples, network.n_parameters)
        return network.unflatten(mean.unsqueeze(1) + std.unsqueeze(1) * epsilon) | buffers_of(parameters)

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        return DrawnNetworks(network, self.weights(network, parameters, samples, streams))
