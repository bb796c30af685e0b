"""Sparse Gaussian processes whose values at the inducing points are the best ones, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.families.base import FitData
from fvi_core.families.exact_gp import noise_variance, unconditioned
from fvi_core.families.inducing import INPUTS, InducedProcess, InducingPoints
from fvi_core.families.sparse_gp import FACTOR, MEAN, SparseGP
from fvi_core.held import Held
from fvi_core.likelihoods import Likelihood
from fvi_core.networks import Network, Parameters
from fvi_core.products import product
from fvi_core.registry import FAMILIES
from fvi_core.triangular import cholesky, log_determinant, solve_lower


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
