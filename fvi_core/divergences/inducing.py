"""KL divergence between values of a process at its inducing points (the evidence bound of sparse Gaussian
processes).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fvi_core.divergences.base import Divergence, Step
from fvi_core.registry import DIVERGENCES
from fvi_core.triangular import log_determinant


@DIVERGENCES.register("inducing_kl")
@dataclass(frozen=True)
class InducingKL(Divergence):
    """``sum_k KL(q(u_k) || N(0, K_ZZ))`` over outputs k, the KL of the whole process (Hensman et al. 2013 eq. 3).

    In whitened values v, ``u = L v`` with ``L L^T = K_ZZ``, it is the KL of ``N(m, C C^T)`` from ``N(0, I)``, ``1/2 [
    |m|^2 + |C|^2 - M - log det C C^T ]``. The family has the prior process; no prior part is used.
    """

    def __call__(self, step: Step) -> Tensor:
        mean, factor = step.family.inducing_values(step.parameters)
        squares = mean.square().sum(-1) + factor.square().sum((-2, -1))
        return 0.5 * (squares - mean.shape[-1] - log_determinant(factor)).sum(-1)
