"""Rank-1 Bayesian neural networks (Dusenberry et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.families.base import Family, Functions, NotSupported, buffers_of, random_layers
from fvi_core.gaussian import gaussian_kl_weights
from fvi_core.networks import BatchNorm, Conv2d, Network, Opaque, Parameters, ParametricLayer
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, checked, later
from fvi_core.scales import softplus

MEAN, RHO = "factor_mean/", "factor_rho/"
SIDES = ("inputs", "outputs")


@dataclass(frozen=True)
class Scaled:
    """Layers between factors ``[R, draws, size, channels]`` of their inputs and outputs, by layer: each function has
    one member's if ``whole``, else its points are distributed over the members."""

    factors: dict[str, list[Tensor]]
    size: int
    whole: bool

    @property
    def samples(self) -> int:
        """Number of functions that the factors make of one set of weights."""
        shape = next(iter(self.factors.values()))[0].shape
        return shape[1] * shape[2] if self.whole else shape[1]

    def _of_points(self, factor: Tensor, a: Tensor) -> Tensor:
        """Each point's factor, ``[R, S, N or 1, channels]`` with as many axes after it as a has."""
        points = torch.arange(a.shape[2], device=a.device)
        members = points * self.size // len(points)
        factor = factor.flatten(1, 2).unsqueeze(2) if self.whole else factor[:, :, members]
        return factor[(..., *[None] * (a.dim() - factor.dim()))]

    def __call__(self, layer: ParametricLayer, weights: Parameters, a: Tensor) -> Tensor:
        if layer.name not in self.factors:
            return layer(weights, a)
        inputs, outputs = self.factors[layer.name]
        bias = weights.get(f"{layer.name}.bias")
        plain = weights if bias is None else weights | {f"{layer.name}.bias": torch.zeros_like(bias)}
        z = layer(plain, a * self._of_points(inputs, a))
        z = z * self._of_points(outputs, z)
        return z if bias is None else layer.shifted(z, bias)


@FAMILIES.register("rank1")
@dataclass(frozen=True)
class Rank1(Family):
    """An ensemble of ``size`` members that share weights, ``W_m = W * (s_m r_m^T)``, with Gaussian factors of their own
    for each input and output channel of a layer: ``s_m ~ N(mean, softplus(rho)^2)``, r_m alike (Dusenberry et al.
    2020).

    ``layers`` "all": factors for every linear and convolutional layer; "hidden": for all but the last (dirichlet2022
    App. F). Means start at 1, or, with probability 1 - ``positive``, at -1; weights, biases and normalisation are
    points. With fewer functions than members, as in training, the points of a batch are distributed over the members in
    equal runs (Wen et al. 2020), at the cost of one network; with at least as many, as in prediction, every function is
    one member's, for ``samples // size`` draws of its factors.
    """

    size: int = checked(4, least=1)
    rho_init: float = -3.0
    layers: str = checked("all", among=("all", "hidden"))
    positive: float = later(1.0, least=0, most=1)

    @property
    def members(self) -> int:  # type: ignore[override]  # a hyper-parameter
        return self.size

    @property
    def shared_by(self) -> int:  # type: ignore[override]  # a hyper-parameter
        return self.size

    def scaled(self, network: Network) -> list[ParametricLayer]:
        """The layers with factors."""
        return [layer for layer in random_layers(network, self.layers) if not isinstance(layer, BatchNorm | Opaque)]

    def init(self, network: Network, streams: Streams) -> Parameters:
        parameters, scaled = network.init(streams), self.scaled(network)
        plain = [layer for layer in random_layers(network, self.layers) if isinstance(layer, Opaque) and layer.plain]
        if plain or not scaled:
            hint = f"; {plain[0].described} could have none" if plain else ""
            raise NotSupported(f"family {self.name!r} needs linear and convolutional layers with factors{hint}")
        for layer in scaled:
            for side in SIDES:
                shape = (len(streams), self.size, getattr(layer, side))
                mean = torch.ones(shape, dtype=streams.dtype, device=streams.device)
                if self.positive < 1:
                    mean = torch.where(streams.uniform(*shape[1:]) < self.positive, mean, -mean)
                parameters[f"{MEAN}{layer.name}.{side}"] = mean
                parameters[f"{RHO}{layer.name}.{side}"] = torch.full_like(mean, self.rho_init)
        return parameters | network.init_buffers(streams)

    def factors(
        self, network: Network, parameters: Parameters, draws: int, streams: Streams
    ) -> dict[str, list[Tensor]]:
        """Input and output factors ``[R, draws, size, channels]`` of each layer."""
        factors = {}
        for layer in self.scaled(network):
            names = [f"{layer.name}.{side}" for side in SIDES]
            means, rhos = ([parameters[prefix + name].unsqueeze(1) for name in names] for prefix in (MEAN, RHO))
            sizes = [layer.inputs, layer.outputs]
            epsilon = streams.normal(draws, self.size, sum(sizes)).split(sizes, -1)
            factors[layer.name] = [m + softplus(rho) * e for m, rho, e in zip(means, rhos, epsilon, strict=True)]
        return factors

    def weights(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Parameters:
        """Parameters of every member, ``[R, max(1, samples // size) * size, *shape]``."""
        draws = max(1, samples // self.size)
        factors = self.factors(network, parameters, draws, streams)
        shared = {name: parameters[name].unsqueeze(1) for name in network.shapes}
        drawn = {name: value.expand(-1, draws * self.size, *value.shape[2:]) for name, value in shared.items()}
        for layer in self.scaled(network):
            inputs, outputs = (f.flatten(1, 2) for f in factors[layer.name])
            if isinstance(layer, Conv2d):  # weights [out, in, k, k]
                outer = (outputs[..., None] * inputs[..., None, :])[..., None, None]
            else:  # weights [in, out]
                outer = inputs[..., None] * outputs[..., None, :]
            drawn[f"{layer.name}.weight"] = drawn[f"{layer.name}.weight"] * outer
        return drawn | buffers_of(parameters)

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        whole = samples >= self.size
        factors = self.factors(network, parameters, samples // self.size if whole else samples, streams)
        weights = {name: parameters[name].unsqueeze(1) for name in network.shapes} | buffers_of(parameters)

        scaled = Scaled(factors, self.size, whole)
        return lambda x: network(weights, x, apply=scaled)

    def weight_kl(
        self, network: Network, parameters: Parameters, mean: float, variance: float, functions: Functions | None
    ) -> Tensor:
        """KL ``[R]`` of the factors from ``N(mean, variance)``, summed over factors and averaged over the members of
        the mixture, an upper bound of the mixture's KL (Dusenberry et al. 2020)."""
        means = {k.removeprefix(MEAN): v for k, v in parameters.items() if k.startswith(MEAN)}
        log_vars = {k: 2 * softplus(parameters[RHO + k]).log() for k in means}
        return gaussian_kl_weights(means, log_vars, mean, variance) / self.size
