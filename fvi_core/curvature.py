"""Gradients of a network's outputs in its weights, layer by layer: what generalised Gauss-Newton matrices are made of.

All of this is about one network, without axes for replicas or samples: parameters ``[*shape]``, inputs ``[N, ...]``.
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
    """Gradients of one number at each of N inputs in one parameter, ``sum_t left[n, i, t] right[n, j, t]``: ``[N, I,
    J]``.

    A weight is a matrix with a row for each of the layer's inputs and a column for each of its units; t are the places
    of a convolution. A vector has no ``left``: ``sum_t right[n, j, t]``.
    """

    left: Tensor | None
    right: Tensor

    def rotated(self, left: Tensor, right: Tensor) -> Gradient:
        """Return the gradient in coordinates whose axes are the columns of ``left [I, I]`` and ``right [J, J]``."""
        rows = None if self.left is None else torch.matmul(left.mT, self.left.to(left))
        return Gradient(rows, torch.matmul(right.mT, self.right.to(right)))

    def values(self) -> Tensor:
        """``[N, I, J]``, or ``[N, J]`` of a vector."""
        return self.right.sum(-1) if self.left is None else torch.matmul(self.left, self.right.mT)

    def squares(self) -> Tensor:
        """Their squares summed over inputs, ``[I, J]`` or ``[J]``, in float64."""
        if self.left is None or self.left.shape[-1] > 1:
            return self.values().square().sum(0, dtype=torch.float64)
        left, right = self.left[..., 0].double(), self.right[..., 0].double()
        return torch.matmul(left.square().mT, right.square())

    def quadratic(self, weights: Tensor) -> Tensor:
        """``sum_ij weights[i, j] g[n, i, j]^2``, ``[N]`` in float64."""
        if self.left is None or self.left.shape[-1] > 1:
            return torch.matmul(self.values().double().square().flatten(1), weights.flatten())
        left, right = self.left[..., 0].double(), self.right[..., 0].double()
        return (torch.matmul(left.square(), weights) * right.square()).sum(-1)


@dataclass(frozen=True)
class Recorded:
    """A pass of a network: outputs ``[N, Q]``, and of every layer with parameters what went in and what came out."""

    parameters: Parameters
    outputs: Tensor
    layers: list[tuple[ParametricLayer, Tensor, Tensor]]
    differentiable: bool

    @cached_property
    def inputs(self) -> list[Tensor]:
        """Return each layer's multiplicands: ``[N, I, T]``, images ``[N, channels, H, W]`` for batch normalisation,
        inputs ``[1, N, ...]`` for layers with a Jacobian of their own.
        """
        found = []
        for layer, a, _ in self.layers:
            if isinstance(layer, BatchNorm):
                left = layer.normalised(self.parameters, a)[0, 0]
            elif isinstance(layer, PlacesLayer):
                left = a[:, 0]
            elif isinstance(layer, Conv2d):
                left = F.unfold(a[0, 0], layer.kernel, padding=layer.padding, stride=layer.stride)
            else:
                left = a[0, 0, ..., None]
            found.append(left if self.differentiable else left.detach())
        return found

    def gradients(self, direction: Tensor) -> dict[str, Gradient]:
        """Gradients of ``sum_q direction[n, q] f_q(x_n)``, by parameter."""
        ends, double = [z for _, _, z in self.layers], self.differentiable
        deltas = torch.autograd.grad(self.outputs, ends, direction, retain_graph=True, create_graph=double)
        found: dict[str, Gradient] = {}
        for (layer, _, _), left, delta in zip(self.layers, self.inputs, deltas, strict=True):
            if isinstance(layer, PlacesLayer):
                made = layer.jacobian(left, delta[:, 0], self.parameters)
                found |= {name: Gradient(None, value[0].flatten(1).unsqueeze(-1)) for name, value in made.items()}
                continue
            first, *others = layer.shapes
            right = delta[0, 0].flatten(2) if delta.dim() > 4 else delta[0, 0, ..., None]
            if isinstance(layer, BatchNorm):
                found[first] = Gradient(None, left.flatten(2) * right)
            else:
                found[first] = Gradient(left, right)
            found |= {name: Gradient(None, right) for name in others}
        return found


def record(network: Network, parameters: Parameters, x: Tensor, head: bool = False) -> Recorded:
    """A pass at x ``[N, ...]``; with ``head`` the last layer is all that is recorded.

    Without its running statistics among the parameters batch normalisation takes the batch's, and an output depends on
    the other inputs too. Gradients may be differentiated in x
    where x asks for it.
    """
    differentiable = torch.is_grad_enabled() and x.requires_grad
    at = {name: value.detach()[None, None] for name, value in parameters.items()}
    with torch.enable_grad():
        if not head:
            tape = Tape()
            f = network({k: v.requires_grad_(k in network.shapes) for k, v in at.items()}, x[None], tape=tape)
            return Recorded(at, f[0, 0], tape.entries, differentiable)  # indexed here, with its gradient
        phi = network.features(at, x[None])
        f = network.head({name: at[name].requires_grad_() for name in network.head.shapes}, phi)
        return Recorded(at, f[0, 0], [(network.head, phi, f)], differentiable)


def weights(network: Network) -> dict[str, ParametricLayer]:
    """The parameters that are matrices, the weights of linear and convolutional layers, and the layer of each."""
    return {next(iter(x.shapes)): x for x in network.parametrised if not isinstance(x, BatchNorm | PlacesLayer)}


def as_matrix(layer: ParametricLayer, weight: Tensor) -> Tensor:
    """A weight ``[..., *shape]`` of a layer as :class:`Gradient` has it, ``[..., I, J]``."""
    return weight.flatten(-3).mT if isinstance(layer, Conv2d) else weight


def from_matrix(layer: ParametricLayer, matrix: Tensor) -> Tensor:
    """The inverse of :func:`as_matrix`."""
    if isinstance(layer, Conv2d):
        return matrix.mT.unflatten(-1, (layer.inputs, layer.kernel, layer.kernel))
    return matrix


def jacobian(network: Network, gradients: dict[str, Gradient], columns: dict[str, Tensor]) -> Tensor:
    """The gradients at some elements of each parameter, side by side in the order of ``network.shapes``: ``[N, n]``.

    ``columns``: which elements of a parameter, as it is laid out; one that is not there has none.
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
    """How many inputs to look at together, each of which takes so many numbers."""
    return max(1, BLOCK // max(numbers, network.width))
