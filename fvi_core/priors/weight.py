"""Gaussian priors over weights, and their pushforward to function space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.data import TrainingSet
from fvi_core.families.base import DrawnNetworks, NotSupported
from fvi_core.kernels import evenly_spaced
from fvi_core.linearisation import full_network_moments, last_layer_moments
from fvi_core.networks import HEAD, Network, Parameters
from fvi_core.priors.base import Prior
from fvi_core.random import Streams
from fvi_core.registry import PRIORS, checked

CALIBRATION = 500
"""Number of training points whose statistics normalise the prior's features, where these are measured once."""


@PRIORS.register("gaussian_weights")
@dataclass(frozen=True)
class GaussianWeights(Prior):
    """``w ~ N(0, variance I)``, its samples, and its pushforward through the linearised network (rudner2022 eq. 11,
    14).

    The pushforward needs a point of linearisation. ``features`` "initial" takes the network's own random initialisation
    (a random-feature prior, as the code of rudner2022 does); "draw" takes one draw from the prior, fixed during
    training; "current" takes the family's mean weights at each step, as constants: the prior then follows the posterior
    (for networks without batch normalisation). ``jacobian`` "last_layer": given these features, f has mean 0
    (``centred``) or the initial network's, and covariance ``variance (phi phi^T + 1)``. "full": ``variance J J^T`` over
    all layers, with J at the same point.

    With batch normalisation, phi is normalised by a context's own statistics where training does so: otherwise the
    scales of the prior's and the posterior's features would differ between contexts. Else, and for "full", it is
    normalised by the statistics of training points, measured once.
    """

    variance: float = checked(1.0, above=0)
    features: str = checked("initial", among=("initial", "draw", "current"))
    jacobian: str = checked("last_layer", among=("last_layer", "full"))
    centred: bool = True

    def init(self, network: Network, initial: Parameters, train: TrainingSet, streams: Streams) -> dict[str, Tensor]:
        if self.features == "current":
            if network.buffers:
                raise NotSupported("prior 'gaussian_weights': features 'current' are not for batch normalisation")
            return {}
        if self.features == "initial":
            parameters = {name: value.detach().clone() for name, value in initial.items() if name in network.shapes}
        else:
            parameters = {name: value[:, 0] for name, value in self.weights(network, 1, streams).items()}
        if not parameters or not network.buffers or (self.jacobian == "last_layer" and not network.shares_statistics):
            return parameters
        x = train.scale(evenly_spaced(train.x, CALIBRATION))
        statistics = network.statistics({name: value.unsqueeze(1) for name, value in parameters.items()}, x)
        return parameters | {name: value.squeeze(1) for name, value in statistics.items()}

    def following(self, parameters: Parameters, mean: Callable[[], Parameters]) -> Parameters:
        return {k: v.detach() for k, v in mean().items()} if self.features == "current" else parameters

    def gaussian_weights(self) -> tuple[float, float]:
        return 0.0, self.variance

    def flat_weights(self, network: Network, samples: int, streams: Streams) -> Tensor:
        return self.variance**0.5 * streams.normal(samples, network.n_parameters)

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> DrawnNetworks:
        return DrawnNetworks(network, self.weights(network, samples, streams))

    @torch.no_grad()
    def moments(self, network: Network, parameters: Parameters, x: Tensor, covariance: str) -> tuple[Tensor, Tensor]:
        if not parameters:
            needed = {
                "initial": "weights from the family's initial_network (or use 'draw')",
                "current": "a training step",
            }
            raise NotSupported(
                f"prior 'gaussian_weights': features {self.features!r} need {needed[self.features]}, found none"
            )
        log_var = {k: v.new_full((), self.variance).log().expand_as(v) for k, v in parameters.items()}
        if self.jacobian == "full":
            mean, cov = full_network_moments(network, parameters, log_var, x, covariance)
        else:
            head = {name: value for name, value in parameters.items() if name.startswith(HEAD + ".")}
            mean, cov = last_layer_moments(network, parameters, head, log_var, x, covariance)
        return (torch.zeros_like(mean) if self.centred else mean), cov


@PRIORS.register("gaussian_factors")
@dataclass(frozen=True)
class GaussianFactors(Prior):
    """``N(mean, variance)`` on every rank-1 factor; one of 1 leaves the weights as they are (Dusenberry et al.
    2020).
    """

    mean: float = 1.0
    variance: float = checked(0.01, above=0)

    def gaussian_weights(self) -> tuple[float, float]:
        return self.mean, self.variance
