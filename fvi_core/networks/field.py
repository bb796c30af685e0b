"""Vector fields that are gradients and rotated gradients of scalar networks: free of curl, of divergence, or neither.

A scalar network is evaluated together with its derivatives in the D features of an input: activations are ``[R, S, N,
F, 1 + D]``, in the last axis the value and the derivatives of each unit. Weights, masks and factors are the same for
all of them, so the field of any drawn function is the derivative of one potential.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from fvi_core.kernels import FIELDS
from fvi_core.networks.layers import ACTIVATIONS, Affine, DropoutSite, Masks, Parallel, Parameters, PlacesLayer
from fvi_core.networks.network import HEAD, Network
from fvi_core.products import product
from fvi_core.registry import NETWORKS, checked

SLOPES = {
    "tanh": lambda z, a: 1 - a.square(),
    "sigmoid": lambda z, a: a * (1 - a),
    "softplus": lambda z, a: torch.sigmoid(z),
    "gelu": lambda z, a: torch.special.ndtr(z) + z * torch.exp(-0.5 * z.square()) / (2 * torch.pi) ** 0.5,
}
"""Derivatives of smooth activations at z, of value a."""


def with_derivatives(parameters: Parameters, a: Tensor) -> Tensor:
    """Return inputs ``[R, 1, N, D]`` with their derivatives in themselves, the identity."""
    identity = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand(*a.shape, -1)
    return torch.cat([a.unsqueeze(-1), identity], dim=-1)


@dataclass(frozen=True)
class FieldLinear(Affine, PlacesLayer):
    """``z = W^T a + b`` with ``W [in, out]``; of derivatives ``W^T a``."""

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        return self.shifted(mixed(a, parameters[f"{self.name}.weight"]), parameters[f"{self.name}.bias"])

    def shifted(self, z: Tensor, bias: Tensor) -> Tensor:
        return z + F.pad(bias.unsqueeze(-1), (0, z.shape[-1] - 1)).unsqueeze(2)

    def jacobian(self, a: Tensor, delta: Tensor, parameters: Parameters) -> dict[str, Tensor]:
        return {f"{self.name}.weight": torch.matmul(a, delta.mT), f"{self.name}.bias": delta[..., 0]}


@dataclass(frozen=True)
class FieldHead(PlacesLayer):
    """``f_q = sum_j w_j a_jq`` of the fields a ``[R, S, N, F, D]`` of F units: ``[R, S, N, D]``."""

    name: str
    inputs: int
    features: int
    outputs: int = 1

    @property
    def values(self) -> int:
        return self.features

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {f"{self.name}.weight": (self.inputs, 1)}

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        return mixed(a, parameters[f"{self.name}.weight"]).squeeze(-2)

    def jacobian(self, a: Tensor, delta: Tensor, parameters: Parameters) -> dict[str, Tensor]:
        return {f"{self.name}.weight": torch.matmul(a, delta.unsqueeze(-1))}


@dataclass(frozen=True)
class FieldActivation:
    """A smooth nonlinearity of values; derivatives are multiplied by its slope."""

    function: str

    def __call__(self, parameters: Parameters, a: Tensor) -> Tensor:
        z = a[..., :1]
        value = ACTIVATIONS[self.function](z)
        return torch.cat([value, SLOPES[self.function](z, value) * a[..., 1:]], dim=-1)


@dataclass(frozen=True)
class FieldSite(DropoutSite):
    """A place where whole units are masked, with their derivatives."""

    def masked(self, masks: Masks, a: Tensor) -> Tensor:
        return a * masks(self.name, torch.ones_like(a[..., 0])).unsqueeze(-1)


def gradient(parameters: Parameters, a: Tensor) -> Tensor:
    """Return ``grad`` of every unit, ``[R, S, N, F, D]``."""
    return a[..., 1:]


def rotated_gradient(parameters: Parameters, a: Tensor) -> Tensor:
    """Return ``rot = (d_2, -d_1)`` of every unit, ``[R, S, N, F, 2]``."""
    return torch.stack([a[..., 2], -a[..., 1]], dim=-1)


GRADIENTS = {"potential": gradient, "stream": rotated_gradient}


def mixed(a: Tensor, weight: Tensor) -> Tensor:
    """``W^T a`` in the axis of units: a ``[R, S, N, in, P]``, W ``[R, S, in, out]``, S perhaps 1 -> ``[R, S, N, out,
    P]``.
    """
    samples, (n, places) = max(a.shape[1], weight.shape[1]), (a.shape[2], a.shape[-1])
    columns = a.movedim(-2, 2).flatten(3)
    operands = [x.expand(-1, samples, -1, -1).flatten(0, 1) for x in (weight.mT, columns)]
    return product(*operands).unflatten(0, (-1, samples)).unflatten(-1, (n, places)).movedim(2, -2)


@NETWORKS.register("vector_field")
@dataclass(frozen=True)
class VectorField:
    """A field ``grad Phi + rot Psi`` of two perceptrons (Helmholtz; cinquin2024 eq. C.2), each with these hidden
    layers.

    ``field`` "helmholtz": both; "curl_free": ``grad Phi``, in any dimension; "divergence_free": ``rot Psi``, in two.
    The constants of the potentials make no difference and are left out. Raises ValueError for an activation that is not
    smooth, and where targets have not as many numbers as inputs have features.
    """

    hidden: list[int] = checked(least=1)
    activation: str = "tanh"
    field: str = checked("helmholtz", among=FIELDS)

    def __post_init__(self):
        if self.activation not in SLOPES or not self.hidden:
            expected = f"one of {', '.join(SLOPES)}, and a hidden layer or more"
            raise ValueError(f"network 'vector_field': expected {expected}, found {self.activation!r}, {self.hidden}")

    def build(self, input_shape: tuple[int, ...], n_outputs: int) -> Network:
        plane = " of 2" if self.field != "curl_free" else ""
        if tuple(input_shape) != (n_outputs,) or (plane and n_outputs != 2):
            found = f"inputs of shape {list(input_shape)} and targets of {n_outputs}"
            raise ValueError(
                f"network 'vector_field': expected inputs{plane} and as many numbers in a target, found {found}"
            )
        branches = [(*self._potential(part, n_outputs), GRADIENTS[part]) for part in FIELDS[self.field]]
        head = FieldHead(HEAD, len(branches) * self.hidden[-1], n_outputs)
        return Network([with_derivatives, Parallel(tuple(branches)), head], tuple(input_shape))

    def _potential(self, name: str, features: int) -> list:
        layers, width = [], features
        for i, units in enumerate(self.hidden):
            layers += [
                FieldLinear(f"{name}{i}", width, units),
                FieldActivation(self.activation),
                FieldSite(f"{name}{i}"),
            ]
            width = units
        return layers
