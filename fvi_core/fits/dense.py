"""Posteriors with all correlations between some weights; the other weights stay as they were trained."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.curvature import Recorded, from_matrix, jacobian, weights
from fvi_core.families.base import NotSupported
from fvi_core.families.swag import COUNT, SQUARE
from fvi_core.fits.factored import Factored
from fvi_core.fits.posterior import CURVATURE, Around, Posterior, Tensors, require_finite, within
from fvi_core.fitting import FitFailed
from fvi_core.networks import Network, Parameters
from fvi_core.random import Streams


@dataclass(frozen=True)
class Dense(Posterior):
    """Posterior with all of H over some weights, in this class all of them; other weights stay as trained."""

    def index(self, around: Around) -> Tensor:
        """Return ascending indices of the random weights among all weights."""
        return torch.arange(around.network.n_parameters, device=around.fitting.held.device)

    def size(self, network: Network) -> int:
        """Return the number of random weights."""
        return network.n_parameters

    def check(self, network: Network) -> None:
        within(self.size(network), "structure 'full': the matrix", "'kronecker', 'diagonal' or 'last_layer'")

    def numbers(self, network: Network) -> int:
        return max(self.size(network), 0 if self.head else max(network.sizes.values()))

    def curvature(self, around: Around) -> Tensors:
        index = self.index(around)
        columns = _columns(around.network, index)
        total = torch.zeros(len(index), len(index), dtype=torch.float64, device=index.device)
        for recorded, directions in around.passes(self.numbers(around.network), self.head):
            for direction in directions:
                rows = jacobian(around.network, recorded.gradients(direction), columns).double()
                total.addmm_(rows.mT, rows)
        require_finite({CURVATURE: total})
        return {"index": index, CURVATURE: total}

    def eigenvalues(self, curvature: Tensors) -> Tensor:
        # eigenvalues of a Gram matrix below 0 are rounding
        return torch.linalg.eigvalsh(curvature[CURVATURE]).clamp_min(0)

    def chosen(self, flat: Tensor, curvature: Tensors) -> Tensor:
        return flat[curvature["index"]]

    def fitted(self, curvature: Tensors, precision: float) -> Tensors:
        matrix = curvature[CURVATURE].clone()
        matrix.diagonal().add_(precision)
        factor, info = torch.linalg.cholesky_ex(matrix)
        smallest, largest = float(factor.diagonal().min()) ** 2, float(matrix.diagonal().max())
        if int(info) or smallest <= len(matrix) * torch.finfo(torch.float64).eps * largest:
            raise FitFailed(
                f"the posterior precision of {len(matrix)} weights with prior precision {precision:.3g} is not "
                f"positive definite in double precision (elements up to {largest:.3g}); choose a larger prior "
                "precision"
            )
        return {"index": curvature["index"], "factor": factor}

    def draw(self, network: Network, own: Tensors, samples: int, streams: Streams) -> Parameters:
        steps = self._steps(own, samples, streams)
        flat = steps.new_zeros(samples, network.n_parameters)
        flat[:, own["index"]] = steps
        return network.unflatten(flat)

    def _steps(self, own: Tensors, samples: int, streams: Streams) -> Tensor:
        z = streams.normal(samples, len(own["index"]))[0].double()
        return torch.linalg.solve_triangular(own["factor"].mT, z.mT, upper=True).mT

    def variance(self, network: Network, own: Tensors, recorded: Recorded, direction: Tensor) -> Tensor:
        rows = jacobian(network, recorded.gradients(direction), _columns(network, own["index"])).double()
        return torch.linalg.solve_triangular(own["factor"], rows.mT, upper=False).square().sum(0)


class LastLayer(Dense):
    """All of H over weight and bias of the last layer."""

    head = True

    def index(self, around: Around) -> Tensor:
        return super().index(around)[-self.size(around.network) :]  # the last layer is the last of all

    def size(self, network: Network) -> int:
        return sum(network.sizes[name] for name in network.head.shapes)

    def check(self, network: Network) -> None:
        within(self.size(network), "structure 'last_layer': the matrix", "'kronecker' or 'diagonal'")

    def draw(self, network: Network, own: Tensors, samples: int, streams: Streams) -> Parameters:
        names = [name for name in network.sizes if name in network.head.shapes]
        pieces = self._steps(own, samples, streams).split([network.sizes[name] for name in names], dim=1)
        return {name: piece.unflatten(1, network.shapes[name]) for name, piece in zip(names, pieces, strict=True)}


@dataclass(frozen=True)
class Subnetwork(Dense):
    """All of H over the ``count`` weights of largest marginal variance among those of linear and convolutional layers.

    Daxberger et al. (2021) choose them so: the result has the smallest Wasserstein-2 distance from a diagonal posterior
    over all weights. Variances "diagonal": from the diagonal Laplace approximation; "swag": from the iterates of family
    'swag', as in that paper's code. As in that code, biases and batch normalisation are never chosen. Ties are broken
    by the network's order.
    """

    count: int = 1000
    variances: str = "diagonal"

    def size(self, network: Network) -> int:
        return self.count

    def check(self, network: Network) -> None:
        within(self.count, f"a subnetwork of {self.count} weights: the matrix", "a smaller subnetwork")
        there = sum(network.sizes[name] for name in weights(network))
        if self.count > there:
            raise ValueError(
                f"a subnetwork: expected at most the {there} weights of the network's linear and convolutional layers, "
                f"found size {self.count}; choose a smaller one"
            )

    def index(self, around: Around) -> Tensor:
        network, layers = around.network, weights(around.network)
        if self.variances == "swag":
            if COUNT not in around.parameters or not around.parameters[COUNT].any():
                raise NotSupported("a subnetwork by variances 'swag' needs family 'swag' and iterates that it has seen")
            spread = {name: around.parameters[SQUARE + name].double() for name in network.shapes}
        else:
            diagonal = Factored().curvature(around)
            matrices = {name: diagonal[CURVATURE + name] for name in network.shapes}
            spread = {k: -from_matrix(layers[k], v) if k in layers else v for k, v in matrices.items()}
        lowest = torch.full((), -torch.inf, dtype=torch.float64, device=around.fitting.held.device)
        flat = network.flatten({k: v if k in layers else lowest.expand_as(v) for k, v in spread.items()})
        return flat.argsort(descending=True, stable=True)[: self.count].sort().values


def _columns(network: Network, index: Tensor) -> dict[str, Tensor]:
    """Map indices among all weights to indices within each parameter; parameters without any are left out."""
    columns, start = {}, 0
    for name, size in network.sizes.items():
        inside = index[(index >= start) & (index < start + size)] - start
        if len(inside):
            columns[name] = inside
        start += size
    return columns
