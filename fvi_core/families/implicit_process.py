"""Process of linear combinations of a Bayesian network's prior functions (Ma et al. 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.blocks import evaluate
from fvi_core.families.base import Family, Functions, buffers_of
from fvi_core.families.mean_field import MEAN
from fvi_core.held import CONSTANT
from fvi_core.networks import Network, Parameters
from fvi_core.products import product
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, checked
from fvi_core.triangular import lower_triangle

LOG_STD, NOISE = "log_std/", f"{CONSTANT}noise"
COEFFICIENTS, FACTOR = "coefficients/mean", "coefficients/factor"


@FAMILIES.register("implicit_process")
@dataclass(frozen=True)
class ImplicitProcess(Family):
    """``f = m + sum_d a_d phi_d``, ``q(a) = N(mu, L L^T)`` against ``p(a) = N(0, I)`` (Ma et al. 2019).

    ``m`` is the mean and ``phi_d = (f_d - m) / sqrt(D - 1)`` the deviations of D = ``draws`` prior functions f_d:
    networks of weights ``mu_w + s z_d``. The z_d are drawn once; mu_w and s (initially an untrained network's weights
    and ``std_init``) are trained with mu and L. All outputs share the coefficients a, so that they depend on each other
    as in the prior. Divergence "weight_kl" compares the coefficients.
    """

    closed_form = True
    independent_outputs = False

    draws: int = checked(20, least=2)
    std_init: float = checked(0.1, above=0)

    def init(self, network: Network, streams: Streams) -> Parameters:
        means = network.init(streams)
        like = next(iter(means.values()))
        stds = {LOG_STD + name: torch.full_like(value, math.log(self.std_init)) for name, value in means.items()}
        noise = streams.normal(self.draws, network.n_parameters)
        zeros = like.new_zeros(len(streams), self.draws, self.draws)
        return (
            {MEAN + name: value for name, value in means.items()}
            | stds
            | {COEFFICIENTS: zeros[:, 0].clone(), FACTOR: zeros, NOISE: noise}
            | network.init_buffers(streams)
        )

    def initial_network(self, network: Network, parameters: Parameters) -> Parameters:
        return {name: parameters[MEAN + name] for name in network.shapes}

    def basis(self, network: Network, parameters: Parameters, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean ``[R, N, Q]`` and deviations ``[R, D, N, Q]`` of the prior functions at x."""
        means = network.flatten({name: parameters[MEAN + name] for name in network.shapes}).unsqueeze(1)
        stds = network.flatten({name: parameters[LOG_STD + name] for name in network.shapes}).exp().unsqueeze(1)
        weights = network.unflatten(means + stds * parameters[NOISE]) | buffers_of(parameters)
        f = evaluate(network, weights, x)
        mean = f.mean(1)
        return mean, (f - mean.unsqueeze(1)) / math.sqrt(self.draws - 1)

    def factor(self, parameters: Parameters) -> Tensor:
        """Return L ``[R, D, D]``; the parameters hold the logarithm of its diagonal."""
        return lower_triangle(parameters[FACTOR])

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        epsilon = streams.normal(samples, self.draws)
        a = product(epsilon, self.factor(parameters).mT, parameters[COEFFICIENTS].unsqueeze(1))

        def values(x: Tensor) -> Tensor:
            mean, deviations = self.basis(network, parameters, x)
            return mean.unsqueeze(1) + product(a, deviations.flatten(2)).unflatten(2, mean.shape[1:])

        return values

    def marginals(self, network: Network, parameters: Parameters, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, deviations = self.basis(network, parameters, x)
        flat = deviations.flatten(2)
        centre = product(parameters[COEFFICIENTS].unsqueeze(1), flat).view_as(mean)
        return mean + centre, product(self.factor(parameters).mT, flat).square().sum(1).view_as(mean)

    def weight_kl(
        self, network: Network, parameters: Parameters, mean: float, variance: float, functions: Functions | None
    ) -> Tensor:
        """KL ``[R]`` of the coefficients from independent ``N(mean, variance)``."""
        factor, gap = self.factor(parameters), parameters[COEFFICIENTS] - mean
        squares = factor.square().sum((1, 2)) + gap.square().sum(1)
        log_determinant = 2 * parameters[FACTOR].diagonal(dim1=-2, dim2=-1).sum(1)
        return 0.5 * (squares / variance - self.draws + self.draws * math.log(variance) - log_determinant)
