"""One network whose head compares features with a centroid of each class (DUQ)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.data import TrainingSet
from fvi_core.families.base import Family, Functions, NotSupported, buffers_of
from fvi_core.held import FOLLOWING
from fvi_core.networks import Linear, Network, Parameters
from fvi_core.products import product
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, checked

WEIGHT = "centroids.weight"
COUNT, SUM = f"{FOLLOWING}centroids.count", f"{FOLLOWING}centroids.sum"


@FAMILIES.register("centroids")
@dataclass(frozen=True)
class Centroids(Family):
    """Functions ``f_c(x) = log K_c(x)``, ``K_c(x) = exp(-mean_j (z_cj(x) - e_cj)^2 / (2 length^2))`` (van Amersfoort et
    al. 2020). ``z_c = W_c phi(x)`` has ``size`` numbers; phi are the features before the network's head, which is
    replaced.

    ``e_c = m_c / N_c`` is not trained but follows: after each step, with the network as it predicts,
    ``N_c <- decay N_c + (1 - decay) n_c`` and ``m_c <- decay m_c + (1 - decay) sum z_c``, over the n_c inputs of class
    c in the batch. ``count``: N_c at the start; ``weight_std``, ``centroid_std``: deviations of the initial W and e.
    """

    size: int = checked(256, least=1)
    length: float = checked(0.1, above=0)
    decay: float = checked(0.999, least=0, below=1)
    count: float = checked(12.0, above=0)
    weight_std: float = checked(0.05, least=0)
    centroid_std: float = checked(1.0, least=0)

    def init(self, network: Network, streams: Streams) -> Parameters:
        if not isinstance(network.head, Linear):
            raise NotSupported("family 'centroids' replaces a linear head, which the network has not")
        start = {k: v for k, v in network.init(streams).items() if k not in network.head.shapes}
        classes = network.n_outputs
        centroids = self.centroid_std * streams.normal(classes, self.size)
        counts = torch.full((len(streams), classes), self.count, dtype=streams.dtype, device=streams.device)
        own = {
            WEIGHT: self.weight_std * streams.normal(network.head.inputs, classes, self.size),
            COUNT: counts,
            SUM: centroids * self.count,
        }
        return start | own | network.init_buffers(streams)

    def prepare(self, network: Network, parameters: Parameters, train: TrainingSet, streams: Streams) -> Parameters:
        if not train.classification:
            raise NotSupported("family 'centroids' has a centroid of each class; the data set has no classes")
        return parameters

    def initial_network(self, network: Network, parameters: Parameters) -> Parameters:
        return {}  # the family has no head

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        centroids = parameters[SUM] / parameters[COUNT].unsqueeze(-1)

        def evaluate(x: Tensor) -> Tensor:
            distance = (_embedded(network, parameters, x) - centroids.unsqueeze(1)).square().mean(-1)
            return (-distance / (2 * self.length**2)).unsqueeze(1)

        return evaluate

    @torch.no_grad()
    def after_step(self, network: Network, parameters: Parameters, x: Tensor, y: Tensor) -> Parameters:
        own = torch.nn.functional.one_hot(y, network.n_outputs).to(parameters[COUNT].dtype)
        sums = torch.einsum("rnc,rncj->rcj", own, _embedded(network, parameters, x))
        return {
            COUNT: torch.lerp(own.sum(1), parameters[COUNT], self.decay),
            SUM: torch.lerp(sums, parameters[SUM], self.decay),
        }


def _embedded(network: Network, parameters: Parameters, x: Tensor) -> Tensor:
    """``z_c(x)``, ``[R, N, C, size]``."""
    body = {name: parameters[name].unsqueeze(1) for name in network.shapes if name in parameters}
    features = network.features(body | buffers_of(parameters), x).squeeze(1)
    weight = parameters[WEIGHT]
    return product(features, weight.flatten(2)).unflatten(-1, weight.shape[2:])
