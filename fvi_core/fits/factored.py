"""Posteriors whose precision is diagonal: in the weights themselves, or in each layer's Kronecker-factored
eigenvectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from fvi_core.curvature import Recorded, as_matrix, from_matrix, weights
from fvi_core.fits.posterior import CURVATURE, Around, Posterior, Tensors, require_finite, within
from fvi_core.networks import Conv2d, Network, Parameters, PlacesLayer
from fvi_core.random import Streams
from fvi_core.telling import counted

PRECISION, LEFT, RIGHT = "precision/", "left/", "right/"


@dataclass(frozen=True)
class Factored(Posterior):
    """Posterior with a diagonal precision, in the weights themselves or in the eigenvectors of Kronecker factors.

    Diagonal: the exact diagonal of H. Kronecker: ``H = A (x) B`` for a weight matrix, A the mean of ``a_nt a_nt^T``
    over inputs n and places t, with a the layer's inputs, B the sum of ``d_nt^T L_n d_nt``, with d the gradients of the
    network's outputs in the layer's outputs; a linear layer has one place (Martens and Grosse 2015; Grosse and Martens
    2016, who assume homogeneous places with uncorrelated gradients). A bias has input 1 and block B, uncorrelated with
    the weights. Batch normalisation and unknown modules get their diagonal. The prior precision is added to the
    products of eigenvalues, not to the factors.

    With the mean over places H is exact where d is the same at all inputs and places, and the marginal likelihood has
    the optimum of curvlinops and ASDL. BackPACK, as its source says, sums instead: a convolution's curvature is then
    larger by the number of places.
    """

    kronecker: bool = False

    def check(self, network: Network) -> None:
        for name, layer in weights(network).items() if self.kronecker else ():
            shape = as_matrix(layer, torch.empty(network.shapes[name], device="meta")).shape
            within(max(shape), f"structure 'kronecker': a factor of layer {layer.name!r}", "'diagonal' or 'last_layer'")

    def numbers(self, network: Network) -> int:
        whole = [x for x in network.parametrised if isinstance(x, Conv2d | PlacesLayer)]
        return max((network.sizes[name] for layer in whole for name in layer.shapes), default=1)

    def curvature(self, around: Around) -> Tensors:
        network, sums = around.network, Sums()
        factored = weights(network) if self.kronecker else {}
        biases = {name for layer in factored.values() for name in layer.shapes} - set(factored)
        for recorded, directions in around.passes(self.numbers(network)):
            for place, direction in enumerate(directions):
                for name, gradient in recorded.gradients(direction).items():
                    if name in factored:
                        if place == 0:
                            sums.add(LEFT + name, _gram(cast(Tensor, gradient.left)) / gradient.right.shape[-1])
                        sums.add(RIGHT + name, _gram(gradient.right))
                    elif name not in biases:
                        squares = gradient.squares()
                        shape = squares.shape if gradient.left is not None else network.shapes[name]
                        sums.add(CURVATURE + name, squares.view(shape))
        require_finite(sums)
        costs = [float(len(sums[LEFT + name])) ** 3 + len(sums[RIGHT + name]) ** 3 for name in factored]
        for name, layer in counted("decomposing factors of layer", factored.items(), costs):
            left, sums[LEFT + name] = _eigen(sums[LEFT + name] / around.fitting.n_train)
            right, sums[RIGHT + name] = _eigen(sums[RIGHT + name])
            sums[CURVATURE + name] = torch.outer(left, right)
            for bias in set(layer.shapes) - {name}:
                sums[CURVATURE + bias] = right
        return dict(sums)

    def eigenvalues(self, curvature: Tensors) -> Tensor:
        return torch.cat([value.flatten() for name, value in curvature.items() if name.startswith(CURVATURE)])

    def chosen(self, flat: Tensor, curvature: Tensors) -> Tensor:
        return flat

    def fitted(self, curvature: Tensors, precision: float) -> Tensors:
        fitted = {}
        for name, value in curvature.items():
            if name.startswith(CURVATURE):
                fitted[PRECISION + name.removeprefix(CURVATURE)] = value + precision
            else:
                fitted[name] = value
        return fitted

    def draw(self, network: Network, own: Tensors, samples: int, streams: Streams) -> Parameters:
        drawn, layers = network.unflatten(streams.normal(samples, network.n_parameters)[0].double()), weights(network)
        for layer in network.parametrised:
            first = next(iter(layer.shapes))
            for name in layer.shapes:
                step = as_matrix(layer, drawn[name]) if name in layers else drawn[name]
                step = step * own[PRECISION + name].rsqrt()
                if RIGHT + first in own:
                    step = torch.matmul(step, own[RIGHT + first].mT)
                    step = torch.matmul(own[LEFT + first], step) if name in layers else step
                drawn[name] = from_matrix(layer, step) if name in layers else step
        return drawn

    def variance(self, network: Network, own: Tensors, recorded: Recorded, direction: Tensor) -> Tensor:
        gradients, total = recorded.gradients(direction), direction.new_zeros(len(direction), dtype=torch.float64)
        for layer in network.parametrised:
            first = next(iter(layer.shapes))
            for name in layer.shapes:
                gradient = gradients[name]
                if LEFT + first in own:
                    gradient = gradient.rotated(own[LEFT + first], own[RIGHT + first])
                total = total + gradient.quadratic(own[PRECISION + name].reciprocal())
        return total


class Sums(Tensors):
    """Tensors by name, added up."""

    def add(self, name: str, value: Tensor) -> None:
        """Add a value to the tensor of that name, or store the value if there is none."""
        self[name] = self[name] + value if name in self else value


def _gram(values: Tensor) -> Tensor:
    """``sum_nt v_nt v_nt^T`` of ``[N, I, T]``, in float64."""
    rows = values.double().transpose(0, 1).flatten(1)
    return torch.matmul(rows, rows.mT)


def _eigen(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of a Gram matrix; below 0 eigenvalues are rounding."""
    values, vectors = torch.linalg.eigh(matrix)
    return values.clamp_min(0), vectors
