"""Radial Bayesian neural networks (Farquhar et al. 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from fvi_core.families.base import DrawnNetworks, Family, Functions, NotSupported, buffers_of, random_layers
from fvi_core.families.mean_field import MEAN
from fvi_core.gaussian import gaussian_kl_weights
from fvi_core.networks import Network, Parameters, ParametricLayer
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, checked
from fvi_core.scales import softplus

RHO = "rho/"
EULER = -torch.digamma(torch.ones((), dtype=torch.float64)).item()


@FAMILIES.register("radial")
@dataclass(frozen=True)
class Radial(Family):
    """``w = m + s * eps / |eps| * |r|`` for all weights of a layer, ``eps ~ N(0, I)``, ``r ~ N(0, 1)``,
    ``s = softplus(rho)`` (Farquhar et al. 2020; dirichlet2022 table 1).

    ``layers``: which parameters are random (the others are points): "all"; "weighted", linear and convolutional layers;
    "hidden", these except the last (dirichlet2022 App. F). ``kl``: divergence from a Gaussian over the random weights,
    "monte_carlo" as Farquhar et al. estimate it, or "gaussian", the closed form of ``N(m, s^2)`` (dirichlet2022 App.
    F).
    """

    rho_init: float = -5.0
    layers: str = checked("all", among=("all", "weighted", "hidden"))
    kl: str = checked("monte_carlo", among=("monte_carlo", "gaussian"))

    def drawn(self, network: Network) -> list[ParametricLayer]:
        """The layers whose parameters are drawn."""
        return random_layers(network, self.layers)

    def init(self, network: Network, streams: Streams) -> Parameters:
        means = network.init(streams)
        names = [name for layer in self.drawn(network) for name in layer.shapes]
        rhos = {RHO + name: torch.full_like(means[name], self.rho_init) for name in names}
        return {MEAN + name: value for name, value in means.items()} | rhos | network.init_buffers(streams)

    def initial_network(self, network: Network, parameters: Parameters) -> Parameters:
        return {name: parameters[MEAN + name] for name in network.shapes}

    def weights(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Parameters:
        drawn = {name: parameters[MEAN + name].unsqueeze(1) for name in network.shapes}
        for layer in self.drawn(network):
            sizes = [network.sizes[name] for name in layer.shapes]
            direction, radius = streams.normal(samples, sum(sizes)), streams.normal(samples, 1)
            steps = direction * (radius.abs() / direction.norm(dim=-1, keepdim=True))
            for name, step in zip(layer.shapes, steps.split(sizes, -1), strict=True):
                std = softplus(parameters[RHO + name]).unsqueeze(1)
                drawn[name] = drawn[name] + std * step.unflatten(-1, network.shapes[name])
        drawn = {name: value.expand(-1, samples, *value.shape[2:]) for name, value in drawn.items()}
        return drawn | buffers_of(parameters)

    def weight_kl(
        self, network: Network, parameters: Parameters, mean: float, variance: float, functions: Functions | None
    ) -> Tensor:
        """``E_q[log q] - E_q[log p]``, ``[R]``. "monte_carlo": the first in closed form, ``-sum log s`` and a constant,
        the second averaged over the functions drawn for the likelihood (Farquhar et al. 2020)."""
        layers = [{name: network.sizes[name] for name in layer.shapes} for layer in self.drawn(network)]
        names = [name for layer in layers for name in layer]
        log_std = {name: softplus(parameters[RHO + name]).log() for name in names}
        if self.kl == "gaussian":
            means, log_vars = {k: parameters[MEAN + k] for k in names}, {k: 2 * v for k, v in log_std.items()}
            return gaussian_kl_weights(means, log_vars, mean, variance)
        if not isinstance(functions, DrawnNetworks):
            raise NotSupported(f"family {self.name!r}: its weight_kl needs its drawn networks; use kl 'gaussian'")
        entropy: Any = sum(v.flatten(1).sum(1) for v in log_std.values())
        entropy = entropy + sum(unit_entropy(sum(layer.values())) for layer in layers)
        squares = cast(
            Tensor, sum((functions.parameters[name] - mean).square().flatten(2).sum(2) for name in names)
        ).mean(1)
        constant = 0.5 * math.log(2 * math.pi * variance) * sum(sum(layer.values()) for layer in layers)
        return squares / (2 * variance) + constant - entropy

    def tied_weight_kl(self, network: Network, parameters: Parameters, gain: float) -> Tensor:
        """Return the KL in closed form, whatever ``kl``: in a layer of D parameters, ``E|w - m|^2 = sum s^2 / D``."""
        total: Any = 0
        for layer in self.drawn(network):
            size, variance = sum(network.sizes[name] for name in layer.shapes), gain / layer.fan_in
            std = torch.cat([softplus(parameters[RHO + name]).flatten(1) for name in layer.shapes], dim=1)
            cross = std.square().mean(1) / (2 * variance) + 0.5 * math.log(2 * math.pi * variance) * size
            total = total + cross - std.log().sum(1) - unit_entropy(size)
        return total


def unit_entropy(size: int) -> float:
    """Entropy in nats of ``eps / |eps| * |r|`` in ``size`` dimensions: ``log A + (size - 1) E log |r| - E log p(|r|)``.

    A is the area of the unit sphere; |r| is half-normal, with ``E log |r| = -(gamma + log 2) / 2``, gamma Euler's
    constant.
    """
    area = math.log(2) + size / 2 * math.log(math.pi) - math.lgamma(size / 2)
    return area - (size - 1) * (EULER + math.log(2)) / 2 - 0.5 * math.log(2 / math.pi) + 0.5
