"""Gaussian processes defined by their values at inducing points, in float64; outputs are independent processes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from fvi_core.data import TrainingSet, rows
from fvi_core.families.base import Family, Functions
from fvi_core.kernels import Kernel, Params
from fvi_core.networks import Network, Parameters
from fvi_core.products import product
from fvi_core.random import Streams
from fvi_core.registry import KERNELS, PartSpec, nested
from fvi_core.triangular import cholesky, solve_lower

INPUTS = "inducing/x"
FLOOR = 1e-12
"""Least variance of a draw: beside an inducing point, rounding may leave a negative variance."""
LEFT = "the covariance that the inducing points leave"
ADVICE = "a larger jitter, fewer points or a smaller learning rate may help"


@dataclass(frozen=True)
class InducingPoints:
    """Process f ~ GP(0, k) given its values ``u = L v`` at points Z ``[R, M, D]``, with ``L L^T = K_ZZ + jitter I``.

    Given v, f(x) has mean ``a^T v`` and covariance ``k - a^T a``, where ``a = L^-1 k_Zx``. A replica whose K_ZZ +
    jitter I is not positive definite gets NaN.
    """

    kernel: Kernel
    params: Params
    z: Tensor
    jitter: float

    @cached_property
    def factor(self) -> Tensor:
        """L, ``[R, M, M]``."""
        matrix = self.kernel(self.params, self.z, self.z)
        return cholesky(matrix, self.jitter, "the kernel matrix of the inducing points", ADVICE)

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
class InducedProcess:
    """Process of each output with whitened values ``v ~ N(m, C C^T)`` at the inducing points.

    Its mean is ``a^T m``, its covariance ``k - a^T a + a^T C C^T a``, with m ``[R, Q, M]`` and C ``[R, Q, M, M]``.
    """

    points: InducingPoints
    mean: Tensor
    factor: Tensor

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance at x ``[R, N, ...]``, each ``[R, Q, N]``; the variance is not below zero."""
        a = self.points.project(x)
        variance = self.points.variance_left(x, a).unsqueeze(1) + self._spread(a).square().sum(2)
        return product(self.mean, a), variance.clamp_min(0)

    def covariance(self, x1: Tensor, x2: Tensor) -> Tensor:
        a1, a2 = self.points.project(x1), self.points.project(x2)
        left = self.prior_covariance(x1, x2) - product(a1.mT, a2)
        found = product(self._spread(a1).flatten(0, 1).mT, self._spread(a2).flatten(0, 1))
        return left.unsqueeze(1) + found.unflatten(0, self.mean.shape[:2])

    def prior_covariance(self, x1: Tensor, x2: Tensor) -> Tensor:
        return self.points.kernel(self.points.params, x1, x2)

    def prior_variance(self, x: Tensor) -> Tensor:
        return self.points.kernel.diagonal(self.points.params, x)

    def draw(self, samples: int, streams: Streams) -> Tensor:
        """Whitened values, ``[R, Q, M, S]``."""
        epsilon = streams.normal(samples, *self.mean.shape[1:]).double().movedim(1, -1)
        spread = product(self.factor.flatten(0, 1), epsilon.flatten(0, 1))
        return self.mean.unsqueeze(-1) + spread.unflatten(0, self.mean.shape[:2])

    def _spread(self, a: Tensor) -> Tensor:
        """``C^T a`` of each output, ``[R, Q, M, N]``."""
        return product(self.factor.mT.flatten(1, 2), a).unflatten(1, self.factor.shape[1:3])


@dataclass(frozen=True)
class Inducing(Family):
    """``f_k = mean_k + g_k`` with a process g_k of whitened values ``v_k ~ N(m_k, C_k C_k^T)`` at the inducing points.

    Outputs share points and kernel. ``points``: number of inducing points, at most the number of training points;
    ``jitter``: added to the diagonal of the kernel matrix, not scaled by its variance. ``draws`` "joint": a draw's
    values at all inputs of one call are correlated; "marginal": they are independent given v, for any number of inputs.
    """

    closed_form = True

    kernel: PartSpec = nested(KERNELS, {"name": "rbf", "ard": False})
    points: int = 100
    jitter: float = 1e-6
    draws: str = "joint"

    def __post_init__(self):
        if self.points < 1 or self.jitter < 0 or self.draws not in ("joint", "marginal"):
            found = f"found {self.points}, {self.jitter} and {self.draws!r}"
            raise ValueError(
                f"family {self.name!r}: expected points 1 or more, jitter 0 or more and draws 'joint' or 'marginal', "
                f"{found}"
            )

        if KERNELS.build(self.kernel).vector:
            raise ValueError(
                f"family {self.name!r}: expected a kernel of numbers, found {self.kernel['name']!r}, of vectors"
            )

    @property
    def pointwise(self) -> bool:  # type: ignore[override]  # a draw's remainder decides
        return self.draws == "marginal"

    def process(self, parameters: Parameters) -> InducedProcess:
        raise NotImplementedError

    def mean_function(self, network: Network, parameters: Parameters, x: Tensor) -> Tensor | float:
        """Mean function ``[R, N, Q]`` added to the zero-mean process."""
        return 0.0

    def random_inputs(self, train: TrainingSet, streams: Streams) -> tuple[Tensor, Tensor]:
        """Draw M training inputs without replacement: their rows ``[R, M]`` and values ``[R, M, D]``."""
        index = streams.permutation(train.x.shape[1])[:, : self.points]
        return index, train.scale(rows(train.x, index)).flatten(2)

    def inducing_values(self, parameters: Parameters) -> tuple[Tensor, Tensor]:
        process = self.process(parameters)
        return process.mean, process.factor

    def marginals(self, network: Network, parameters: Parameters, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, variance = self.process(parameters).moments(x)
        return mean.mT + self.mean_function(network, parameters, x), variance.mT

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        process = self.process(parameters)
        v, points = process.draw(samples, streams), process.points

        def evaluate(x: Tensor) -> Tensor:
            a = points.project(x)
            g = product(v.mT.flatten(1, 2), a)  # [R, Q S, N]
            left = streams.normal(*g.shape[1:]).double()
            if self.draws == "marginal":
                left = left * points.variance_left(x, a).clamp_min(FLOOR).sqrt().unsqueeze(1)
            else:
                left = product(left, cholesky(points.covariance_left(x, a), self.jitter, LEFT, ADVICE).mT)
            f = (g + left).unflatten(1, (-1, samples)).permute(0, 2, 3, 1)
            mean = self.mean_function(network, parameters, x)
            return f + (mean.unsqueeze(1) if isinstance(mean, Tensor) else mean)

        return evaluate
