"""Gaussian processes that are known through their values at inducing points; all in float64, an output a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fvi_core.families.base import Family, Functions
from fvi_core.gaussian import cholesky, solve_lower
from fvi_core.kernels import Kernel, Params
from fvi_core.networks import Network, Parameters
from fvi_core.problem import rows
from fvi_core.products import product
from fvi_core.random import Streams
from fvi_core.registry import KERNELS, nested

if TYPE_CHECKING:
    from fvi_core.priors.base import TrainingSet

INPUTS = "inducing/x"
FLOOR = 1e-12
"""Least variance of what is drawn; rounding leaves less, or less than nothing, beside an inducing point."""


@dataclass(frozen=True)
class InducingPoints:
    """A process f ~ GP(0, k) seen from its values u at points Z ``[R, M, D]``: ``u = L v`` with ``L L^T = K_ZZ + jitter I``.

    Given v, f(x) has mean ``a^T v`` and covariance ``k - a^T a``, where ``a = L^-1 k_Zx``. All NaN where K_ZZ + jitter I is
    not positive definite, for that replica alone.
    """

    kernel: Kernel
    params: Params
    z: Tensor
    jitter: float

    @cached_property
    def factor(self) -> Tensor:
        """L, ``[R, M, M]``."""
        return cholesky(self.kernel(self.params, self.z, self.z), self.jitter)

    def project(self, x: Tensor) -> Tensor:
        """a at x ``[R, N, ...]``: ``[R, M, N]``."""
        return solve_lower(self.factor, self.kernel(self.params, self.z, x))

    def variance_left(self, x: Tensor, a: Tensor) -> Tensor:
        """Variance of f given v, ``[R, N]``."""
        return self.kernel.diagonal(self.params, x) - a.square().sum(1)

    def covariance_left(self, x: Tensor, a: Tensor) -> Tensor:
        """Covariance of f given v, ``[R, N, N]``."""
        return self.kernel(self.params, x, x) - product(a.mT, a)


@dataclass(frozen=True)
class InducedProcess(Family):
    """``f_k = mean_k + g_k``, where g_k has the whitened values ``v_k ~ N(m_k, C_k C_k^T)`` at the inducing points.

    Outputs share points and kernel. ``points``: how many, at most as many as there are training points; ``jitter`` is added
    to the diagonal of the kernel matrix as it is, of no other size. ``draws`` "joint": the values of a draw at all inputs of
    one call vary together; "marginal": as inputs vary apart given v, each by itself, in any number of inputs.
    """

    closed_form = True
    explains = True

    kernel: dict[str, Any] = nested(KERNELS, {"name": "rbf", "ard": False})
    points: int = 100
    jitter: float = 1e-6
    draws: str = "joint"

    def __post_init__(self):
        if self.points < 1 or self.jitter < 0 or self.draws not in ("joint", "marginal"):
            found = f"found {self.points}, {self.jitter} and {self.draws!r}"
            raise ValueError(
                f"family {self.name!r}: expected points 1 or more, jitter 0 or more and draws 'joint' or 'marginal', {found}"
            )

    @property
    def pointwise(self) -> bool:  # type: ignore[override]  # a draw's remainder decides
        return self.draws == "marginal"

    def inducing(self, parameters: Parameters) -> InducingPoints:
        """The process at its inducing points."""
        raise NotImplementedError

    def whitened(self, parameters: Parameters, process: InducingPoints) -> tuple[Tensor, Tensor]:
        """Mean m ``[R, Q, M]`` and factor C ``[R, Q, M, M]`` of the whitened values."""
        raise NotImplementedError

    def mean_function(self, network: Network, parameters: Parameters, x: Tensor) -> Tensor | float:
        """What is added to the process, ``[R, N, Q]``."""
        return 0.0

    def random_inputs(self, train: TrainingSet, streams: Streams) -> tuple[Tensor, Tensor]:
        """Random training inputs, each once, as many as there are inducing points: their rows ``[R, M]``, and they ``[R, M, D]``."""
        index = streams.permutation(train.x.shape[1])[:, : self.points]
        return index, train.scale(rows(train.x, index)).flatten(2)

    def inducing_values(self, parameters: Parameters) -> tuple[Tensor, Tensor]:
        return self.whitened(parameters, self.inducing(parameters))

    def marginals(self, network: Network, parameters: Parameters, x: Tensor) -> tuple[Tensor, Tensor]:
        process = self.inducing(parameters)
        m, c = self.whitened(parameters, process)
        a = process.project(x)
        mean = product(m, a).mT + self.mean_function(network, parameters, x)
        variance = process.variance_left(x, a).unsqueeze(1) + across(c.mT, a).square().sum(2)
        return mean, variance.clamp_min(0).mT

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        process = self.inducing(parameters)
        m, c = self.whitened(parameters, process)
        epsilon = streams.normal(samples, *m.shape[1:]).double().movedim(1, -1)  # [R, Q, M, S]
        v = m.unsqueeze(-1) + product(c.flatten(0, 1), epsilon.flatten(0, 1)).unflatten(0, m.shape[:2])

        def evaluate(x: Tensor) -> Tensor:
            a = process.project(x)
            g = product(v.mT.flatten(1, 2), a)  # [R, Q S, N]
            left = streams.normal(*g.shape[1:]).double()
            if self.draws == "marginal":
                left = left * process.variance_left(x, a).clamp_min(FLOOR).sqrt().unsqueeze(1)
            else:
                left = product(left, cholesky(process.covariance_left(x, a), self.jitter).mT)
            f = (g + left).unflatten(1, (-1, samples)).permute(0, 2, 3, 1)
            mean = self.mean_function(network, parameters, x)
            return f + (mean.unsqueeze(1) if isinstance(mean, Tensor) else mean)

        return evaluate

    def faults(self, parameters: Parameters) -> list[str]:
        return list(self._faults(self.inducing(parameters)))

    def _faults(self, process: InducingPoints) -> Iterator[str]:
        matrices = process.kernel(process.params, process.z, process.z)
        identity = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
        for matrix in matrices:
            if not torch.isfinite(matrix).all():
                yield "the kernel matrix of the inducing points is not finite"
            elif torch.linalg.cholesky_ex(matrix + self.jitter * identity).info > 0:
                found = f"{len(matrix)} inducing points, largest variance {float(matrix.diagonal().max()):.3g}"
                yield (
                    f"the kernel matrix of {found}, with jitter {self.jitter:g} is not positive definite; "
                    "a larger jitter, fewer points or a smaller learning rate may help"
                )
            else:
                yield ""


def across(matrices: Tensor, a: Tensor) -> Tensor:
    """Of each output's matrix ``[R, Q, K, M]`` and the a that they share ``[R, M, N]``: ``[R, Q, K, N]``."""
    return product(matrices.flatten(1, 2), a).unflatten(1, matrices.shape[1:3])


def lower_triangle(raw: Tensor) -> Tensor:
    """A lower factor of free numbers ``[..., M, M]``: those below the diagonal, and the exponentials of those on it."""
    return raw.tril(-1) + torch.diag_embed(raw.diagonal(dim1=-2, dim2=-1).exp())
