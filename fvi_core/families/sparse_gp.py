"""Gaussian processes defined by their values at inducing points, in float64; outputs are independent processes.

The values are variational, or the best ones in closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fvi_core.data import TrainingSet, rows
from fvi_core.families.base import Family, FitData, Functions, NotSupported
from fvi_core.families.exact_gp import noise_variance, unconditioned
from fvi_core.gaussian_process import fit_kernel
from fvi_core.held import CONSTANT, Held
from fvi_core.kernels import Kernel, Params, evenly_spaced
from fvi_core.likelihoods import Likelihood
from fvi_core.networks import Network, Parameters
from fvi_core.products import product
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, KERNELS, PartSpec, checked, later, nested
from fvi_core.triangular import cholesky, log_determinant, lower_triangle, solve_lower

INPUTS, MEAN, FACTOR = "inducing/x", "inducing/mean", "inducing/factor"
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
        spread = product(self._spread(a1).flatten(0, 1).mT, self._spread(a2).flatten(0, 1))
        return left.unsqueeze(1) + spread.unflatten(0, self.mean.shape[:2])

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
    points: int = checked(100, least=1)
    jitter: float = checked(1e-6, least=0)
    draws: str = checked("joint", among=("joint", "marginal"))

    def __post_init__(self):
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


@FAMILIES.register("sparse_gp")
@dataclass(frozen=True)
class SparseGP(Inducing):
    """A Gaussian process of variational values ``u ~ N(L m, L C C^T L^T)`` at trained inducing points (Hensman et al.
    2013).

    ``L L^T = K_ZZ + jitter I``: m and C are whitened, and start at 0 and I, the prior. Inducing points start at random
    training inputs, length-scales at the median distance; points, m, C, the logarithms of the kernel's hyper-parameters
    and the likelihood's noise are trained together. The objective is the evidence bound with divergence "inducing_kl".
    Only the shapes of the network's inputs and outputs are used.

    ``fit_steps`` above 0: hyper-parameters are fixed before training, as for a prior "gaussian_process", by so many
    steps of Adam at ``fit_lr`` on the marginal likelihood of all training data. Not for classes.
    """

    fit_steps: int = later(0, least=0)
    fit_lr: float = later(0.05, above=0)

    def init(self, network: Network, streams: Streams) -> Parameters:
        features = network.n_features
        hyper = KERNELS.build(self.kernel).init(len(streams), features)
        values = streams.normal(self.points, features)  # placeholder until training inputs are known
        hyper = {name: value.to(streams.device) for name, value in hyper.items()}
        return self._named(hyper) | self._start(values, network.n_outputs)

    def prepare(self, network: Network, parameters: Parameters, train: TrainingSet, streams: Streams) -> Parameters:
        kernel, (_, z) = KERNELS.build(self.kernel), self.random_inputs(train, streams)
        if not self.fit_steps:
            hyper = kernel.init(len(z), z.shape[-1], train.scale(evenly_spaced(train.x)))
        elif train.classification:
            raise NotSupported(f"family {self.name!r}: fit_steps: a kernel is fitted to numbers, not to classes")
        else:
            hyper, _ = fit_kernel(
                kernel, train.x, train.y, streams, steps=self.fit_steps, lr=self.fit_lr, scale=train.scale
            )
        return self._named(hyper) | self._start(z.to(parameters[INPUTS].dtype), network.n_outputs)

    def _start(self, z: Tensor, outputs: int) -> Parameters:
        r, m = z.shape[:2]
        return {INPUTS: z, MEAN: z.new_zeros(r, outputs, m), FACTOR: z.new_zeros(r, outputs, m, m)}

    def _named(self, hyper: Params) -> Parameters:
        """Name hyper-parameters as trained parameters, or as constants."""
        return {(CONSTANT + name if self.fit_steps else name): value for name, value in hyper.items()}

    def inducing_points(self, parameters: Parameters) -> InducingPoints:
        """Return the prior process given its values at the inducing points."""
        own = {name: value for name, value in parameters.items() if not name.startswith("inducing/")}
        hyper = {name.removeprefix(CONSTANT): value for name, value in own.items()}
        return InducingPoints(KERNELS.build(self.kernel), hyper, parameters[INPUTS], self.jitter)

    def process(self, parameters: Parameters) -> InducedProcess:
        values = parameters[MEAN].double(), lower_triangle(parameters[FACTOR].double())
        return InducedProcess(self.inducing_points(parameters), *values)


@FAMILIES.register("collapsed_gp")
@dataclass(frozen=True)
class CollapsedGP(SparseGP):
    """A sparse process with the m and C that maximise its evidence bound (Titsias 2009).

    Inducing points, the kernel's hyper-parameters and the likelihood's Gaussian noise are trained on that maximum,
    :func:`collapsed`, of all training data; it is where :class:`SparseGP` arrives after enough steps. No divergence is
    used, and there are no predictions during training.
    """

    def _start(self, z: Tensor, outputs: int) -> Parameters:
        return {INPUTS: z}

    def process(self, parameters: Parameters) -> InducedProcess:
        if MEAN not in parameters:
            raise unconditioned(self.name)
        return InducedProcess(self.inducing_points(parameters), parameters[MEAN], parameters[FACTOR])

    def log_evidence(self, held: Held, likelihood: Likelihood, x: Tensor, y: Tensor) -> Tensor:
        noise = noise_variance(self, likelihood, held.likelihood)
        return collapsed(self.inducing_points(held.family), noise, x, y)[0]

    def condition(self, parameters: Parameters, fitting: FitData) -> Parameters:
        held = Held.of(parameters)
        noise = noise_variance(self, fitting.likelihood, held.likelihood)
        with torch.no_grad():
            _, mean, factor = collapsed(self.inducing_points(held.family), noise, fitting.x, fitting.y)
        return parameters | {MEAN: mean, FACTOR: factor}


def collapsed(points: InducingPoints, noise: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Largest evidence bound over whitened values N(m, C C^T), ``[R]`` in nats, with its m and C (Titsias 2009, eq. 9
    and 10).

    ``log N(y | 0, Q + sigma^2 I) - tr(K - Q) / (2 sigma^2)``, ``Q = K_xZ (K_ZZ + jitter I)^-1 K_Zx``, summed over
    outputs, at inputs ``[R, N, ...]`` and targets ``[R, N]`` or ``[R, N, Q]``; ``noise`` is sigma^2, ``[R]``. m is
    ``[R, Q, M]``; C, ``[R, Q, M, M]``, is upper triangular and the same for every output.
    """
    targets = (y if y.dim() == 3 else y.unsqueeze(-1)).double()
    (n, outputs), variance = targets.shape[1:], noise.double()[:, None, None]
    a = points.project(x)
    gram = product(a, a.mT)
    left = points.kernel.diagonal(points.params, x).sum(1) - gram.diagonal(dim1=1, dim2=2).sum(1)
    root = cholesky(gram / variance, 1.0)
    white = solve_lower(root, product(a, targets / variance))
    constants = outputs * (n * (2 * math.pi * noise).log() + log_determinant(root) + left / noise)
    bound = -0.5 * (constants + targets.square().sum((1, 2)) / noise - white.square().sum((1, 2)))
    identity = torch.eye(root.shape[-1], dtype=root.dtype, device=root.device)
    factor = torch.linalg.solve_triangular(root.mT, identity.expand_as(root), upper=True)
    return bound, product(factor, white).mT, factor.unsqueeze(1).expand(-1, outputs, -1, -1)
