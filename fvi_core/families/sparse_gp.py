"""Sparse Gaussian processes whose values at the inducing points are variational, or the best ones in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.data import TrainingSet
from fvi_core.families.base import FitData, NotSupported
from fvi_core.families.exact_gp import noise_variance, unconditioned
from fvi_core.families.inducing import INPUTS, InducedProcess, Inducing, InducingPoints
from fvi_core.gaussian_process import fit_kernel
from fvi_core.held import CONSTANT, Held
from fvi_core.kernels import Params, evenly_spaced
from fvi_core.likelihoods import Likelihood
from fvi_core.networks import Network, Parameters
from fvi_core.products import product
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, KERNELS, later
from fvi_core.triangular import cholesky, log_determinant, lower_triangle, solve_lower

MEAN, FACTOR = "inducing/mean", "inducing/factor"


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

    fit_steps: int = later(0)
    fit_lr: float = later(0.05)

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

    def log_evidence(
        self,
        network: Network,
        parameters: Parameters,
        likelihood: Likelihood,
        likelihood_parameters: Parameters,
        x: Tensor,
        y: Tensor,
    ) -> Tensor:
        noise = noise_variance(self, likelihood, likelihood_parameters)
        return collapsed(self.inducing_points(parameters), noise, x, y)[0]

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
