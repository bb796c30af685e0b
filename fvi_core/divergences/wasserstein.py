"""Wasserstein-2 distance between Gaussian measures on functions (Wild et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from fvi_core.divergences.base import Divergence, Step
from fvi_core.registry import DIVERGENCES

TINY = 1e-10
"""Singular values of the prior covariance below this share of the largest are rounding, and left out."""


@DIVERGENCES.register("gaussian_wasserstein")
@dataclass(frozen=True)
class GaussianWasserstein(Divergence):
    """The squared Wasserstein-2 distance of a family's process ``GP(m, r)`` from its prior ``GP(prior_mean, k)``,
    summed over outputs (Wild et al. 2022 sec. 4), estimated at the B points x of a batch and S context points s:

    ``mean_x (m(x) - prior_mean)^2 + mean_x k(x, x) + mean_x r(x, x) - 2 / sqrt(S) sum_i sqrt(lambda_i(r(s, x) k(x, s) /
    B))``

    ``root``: the distance itself, as the authors' code has it. The family has the prior process; no prior part is used.
    """

    reads_numbers = True

    prior_mean: float = 0.0
    root: bool = False

    def __call__(self, step: Step) -> Tensor:
        x, s = step.x, step.sample_context()
        process = step.family.process(step.parameters)
        # A family with a process has marginals.
        found = step.marginals or step.family.marginals(step.network, step.parameters, x)
        mean, variance = cast(tuple[Tensor, Tensor], found)
        prior = process.prior_variance(x).mean(1) * mean.shape[-1]
        shared = root_trace(process.covariance(s, x), process.prior_covariance(s, x))
        squares = (mean - self.prior_mean).square().mean(1).sum(-1)
        squared = squares + prior + variance.mean(1).sum(-1) - 2 * shared.sum(-1)
        # An estimate may be negative, without a root.
        return squared.clamp_min(TINY).sqrt() if self.root else squared


def root_trace(r: Tensor, k: Tensor) -> Tensor:
    """``sum_i sqrt(lambda_i(r k^T / B) / S)`` over positive eigenvalues, for r ``[R, Q, S, B]`` and k ``[R, S, B]``:
    ``[R, Q]``.

    It estimates ``tr (C_k^1/2 C_r C_k^1/2)^1/2`` of the covariance operators. k is taken as constant. With its singular
    value decomposition ``k = U D V^T`` the eigenvalues are those of ``D^1/2 U^T r V D^1/2``, which is symmetric for
    equal points and as small as the rank of k.
    """
    s, b = k.shape[-2:]
    return (
        torch.stack(
            [
                torch.stack([_root_trace(each, *_halves(prior)) for each in own])
                for own, prior in zip(r, k.detach(), strict=True)
            ]
        )
        / (s * b) ** 0.5
    )


def _halves(k: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``U D^1/2`` and ``V D^1/2`` for singular values above rounding."""
    u, d, v = torch.linalg.svd(k, full_matrices=False)
    kept = d > TINY * d[0]
    roots = d[kept].sqrt()
    return u[:, kept] * roots, v.mT[:, kept] * roots


def _root_trace(r: Tensor, left: Tensor, right: Tensor) -> Tensor:
    values = torch.linalg.eigvals(left.mT @ r @ right).real
    return values[values > TINY**2 * values.max()].sqrt().sum()
