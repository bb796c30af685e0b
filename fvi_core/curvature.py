"""Gradients of a network's outputs in its weights, layer by layer, for generalised Gauss-Newton matrices.

All functions take one network without axes for replicas or samples: parameters ``[*shape]``, inputs ``[N, ...]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from fvi_core.networks import BatchNorm, Conv2d, Network, Parameters, ParametricLayer, PlacesLayer, Tape

BLOCK = 2**22
"""Most numbers in one piece of a Jacobian."""


@dataclass(frozen=True)
class Gradient:
    """Gradients ``[N, I, J]`` of a scalar at N inputs in one parameter, ``sum_t left[n, i, t] right[n, j, t]``.

    A weight is a matrix with a row for each of the layer's inputs and a column for each of its units; t are the places
    of a convolution. A vector parameter has no ``left`` and gradients ``sum_t right[n, j, t]``.
    """

    left: Tensor | None
    right: Tensor

    def rotated(self, left: Tensor, right: Tensor) -> Gradient:
        """Return the gradient in coordinates whose axes are the columns of ``left [I, I]`` and ``right [J, J]``."""
        rows = None if self.left is None else torch.matmul(left.mT, self.left.to(left))
        return Gradient(rows, torch.matmul(right.mT, self.right.to(right)))

    def values(self) -> Tensor:
        """Return the gradients ``[N, I, J]``, or ``[N, J]`` for a vector."""
        return self.right.sum(-1) if self.left is None else torch.matmul(self.left, self.right.mT)

    def squares(self) -> Tensor:
        """Return squared gradients summed over inputs, ``[I, J]`` or ``[J]``, in float64."""
        if self.left is None or self.left.shape[-1] > 1:
            return self.values().square().sum(0, dtype=torch.float64)
        left, right = self.left[..., 0].double(), self.right[..., 0].double()
        return torch.matmul(left.square().mT, right.square())

    def quadratic(self, weights: Tensor) -> Tensor:
        """Return ``sum_ij weights[i, j] g[n, i, j]^2``, ``[N]`` in float64."""
        if self.left is None or self.left.shape[-1] > 1:
            return torch.matmul(self.values().double().square().flatten(1), weights.flatten())
        left, right = self.left[..., 0].double(), self.right[..., 0].double()
        return (torch.matmul(left.square(), weights) * right.square()).sum(-1)


@dataclass(frozen=True)
class Recorded:
    """Pass of a network: outputs ``[N, Q]``, and inputs and outputs of every layer with parameters."""

    parameters: Parameters
    outputs: Tensor
    layers: list[tuple[ParametricLayer, Tensor, Tensor]]
    differentiable: bool

    @cached_property
    def inputs(self) -> list[Tensor]:
        """Return each layer's multiplicands: ``[N, I, T]``, images ``[N, channels, H, W]`` for batch normalisation,
        inputs ``[1, N, ...]`` for layers with a Jacobian of their own.
        """
        multiplicands = []
        for layer, a, _ in self.layers:
            if isinstance(layer, BatchNorm):
                left = layer.normalised(self.parameters, a)[0, 0]
            elif isinstance(layer, PlacesLayer):
                left = a[:, 0]
            elif isinstance(layer, Conv2d):
                left = F.unfold(a[0, 0], layer.kernel, padding=layer.padding, stride=layer.stride)
            else:
                left = a[0, 0, ..., None]
            multiplicands.append(left if self.differentiable else left.detach())
        return multiplicands

    def gradients(self, direction: Tensor) -> dict[str, Gradient]:
        """Return gradients of ``sum_q direction[n, q] f_q(x_n)``, by parameter."""
        ends, double = [z for _, _, z in self.layers], self.differentiable
        deltas = torch.autograd.grad(self.outputs, ends, direction, retain_graph=True, create_graph=double)
        gradients: dict[str, Gradient] = {}
        for (layer, _, _), left, delta in zip(self.layers, self.inputs, deltas, strict=True):
            if isinstance(layer, PlacesLayer):
                for name, value in layer.jacobian(left, delta[:, 0], self.parameters).items():
                    gradients[name] = Gradient(None, value[0].flatten(1).unsqueeze(-1))
                continue
            first, *others = layer.shapes
            right = delta[0, 0].flatten(2) if delta.dim() > 4 else delta[0, 0, ..., None]
            if isinstance(layer, BatchNorm):
                gradients[first] = Gradient(None, left.flatten(2) * right)
            else:
                gradients[first] = Gradient(left, right)
            gradients |= {name: Gradient(None, right) for name in others}
        return gradients


def record(network: Network, parameters: Parameters, x: Tensor, head: bool = False) -> Recorded:
    """Record a pass at x ``[N, ...]``; with ``head``, of the last layer alone.

    If the parameters lack running statistics, batch normalisation uses the batch's, and an output depends on the other
    inputs too. Gradients are differentiable in x if x requires gradients.
    """
    differentiable = torch.is_grad_enabled() and x.requires_grad
    at = {name: value.detach()[None, None] for name, value in parameters.items()}
    with torch.enable_grad():
        if not head:
            tape = Tape()
            f = network({k: v.requires_grad_(k in network.shapes) for k, v in at.items()}, x[None], tape=tape)
            return Recorded(at, f[0, 0], tape.entries, differentiable)  # indexed here, so that the gradient passes
        phi = network.features(at, x[None])
        f = network.head({name: at[name].requires_grad_() for name in network.head.shapes}, phi)
        return Recorded(at, f[0, 0], [(network.head, phi, f)], differentiable)


def weights(network: Network) -> dict[str, ParametricLayer]:
    """Return the names of weight matrices, of linear and convolutional layers, with their layers."""
    return {next(iter(x.shapes)): x for x in network.parametrised if not isinstance(x, BatchNorm | PlacesLayer)}


def as_matrix(layer: ParametricLayer, weight: Tensor) -> Tensor:
    """Reshape a layer's weight ``[..., *shape]`` to the matrix of :class:`Gradient`, ``[..., I, J]``."""
    return weight.flatten(-3).mT if isinstance(layer, Conv2d) else weight


def from_matrix(layer: ParametricLayer, matrix: Tensor) -> Tensor:
    """Invert :func:`as_matrix`."""
    if isinstance(layer, Conv2d):
        return matrix.mT.unflatten(-1, (layer.inputs, layer.kernel, layer.kernel))
    return matrix


def jacobian(network: Network, gradients: dict[str, Gradient], columns: dict[str, Tensor]) -> Tensor:
    """Return the gradients of some elements of the parameters, ``[N, n]``, in the order of ``network.shapes``.

    ``columns``: indices of a parameter's elements, in its memory order; parameters not named are left out.
    """
    layers, pieces = weights(network), []
    for name in network.shapes:
        if name in columns:
            values = gradients[name].values()
            if isinstance(layers.get(name), Conv2d):
                values = values.mT
            values = values.flatten(1)
            whole = len(columns[name]) == values.shape[1]
            pieces.append(values if whole else values[:, columns[name]])
    return torch.cat(pieces, dim=1)


def inputs_at_once(network: Network, numbers: int) -> int:
    """Return how many inputs to process together, given the numbers held for each."""
    return max(1, BLOCK // max(numbers, network.width))
