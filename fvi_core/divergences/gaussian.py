"""Divergences of Gaussians: KL of linearised networks from priors, KL of values at inducing points, and Wasserstein-2
distance of processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from fvi_core.divergences.base import Divergence, Step
from fvi_core.families.base import DrawnNetworks, NotSupported
from fvi_core.gaussian import gaussian_kl_diagonal, gaussian_kl_full, regularised_gaussian_kl
from fvi_core.linearisation import full_network_moments, head_moments
from fvi_core.registry import DIVERGENCES, checked, later
from fvi_core.triangular import log_determinant

TINY = 1e-10
"""Singular values of the prior covariance below this share of the largest are rounding, and left out."""
JACOBIANS = ("last_layer", "full")


@dataclass(frozen=True)
class LinearisedKL(Divergence):
    """``max_{s <= S} sum_k D(N(f_k(C_s), cov_k) || prior)`` over outputs k and S context sets (rudner2022 eq. 16-17).

    ``jacobian``: "last_layer" (rudner2022 eq. 14, R = 1) or "full"; ``stop_gradient`` holds the full Jacobian constant.
    ``outputs`` "independent" compares each output separately, as the papers do; "joint" compares the outputs at all
    points together, as a prior with dependent outputs needs.
    """

    jacobian: str = checked("last_layer", among=JACOBIANS)
    sets: int = checked(1, least=1)
    stop_gradient: bool = False
    outputs: str = later("independent", among=("independent", "joint"))

    @property
    def covariance(self) -> str:
        """ "full", or "diagonal" where the divergence compares single points."""
        return "full"

    @property
    def compared(self) -> str:
        """Kind of covariance to compute, in the words of :mod:`fvi_core.linearisation`."""
        return "joint" if self.outputs == "joint" else self.covariance

    def __call__(self, step: Step) -> Tensor:
        if self.compared != self.covariance == "diagonal":
            raise ValueError(f"divergence {self.name!r}: outputs 'joint' has a full covariance, found 'diagonal'")
        totals = torch.stack([self._one_set(step, step.sample_context()) for _ in range(self.sets)])
        return totals.amax(0)

    def _one_set(self, step: Step, x: Tensor) -> Tensor:
        mean_q, cov_q = self.moments(step, x)
        mean_p, cov_p = step.prior_moments(x, self.compared)
        for what, moment, like in (("mean", mean_p, mean_q), (f"{self.compared} covariance", cov_p, cov_q)):
            if moment.shape[2:] != like.shape[2:]:  # a variance in place of a covariance would be broadcast
                expected = ", ".join(["R, Q or 1", *map(str, like.shape[2:])])
                raise ValueError(
                    f"prior {step.prior.name!r}: moments: expected a {what} [{expected}], found {list(moment.shape)}"
                )
        return self.kl(mean_q, cov_q, mean_p.to(mean_q.dtype), cov_p).sum(-1)

    def moments(self, step: Step, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean ``[R, Q, K]`` and covariance or variance of the linearised family at x."""
        mean, log_var = step.family.gaussian_weights(step.parameters)
        if self.jacobian == "full":
            if log_var.keys() != mean.keys():
                raise NotSupported(
                    f"divergence {self.name!r}: jacobian 'full' needs Gaussian weights in every layer, and family "
                    f"{step.family.name!r} has them in some only; use jacobian 'last_layer'"
                )
            return full_network_moments(
                step.network, mean | step.buffers, log_var, x, self.compared, self.stop_gradient
            )
        if not step.network.head.shapes.keys() <= log_var.keys():
            raise NotSupported(
                f"divergence {self.name!r}: jacobian 'last_layer' needs a Gaussian last layer, and that of family "
                f"{step.family.name!r} is a point; use layers 'all', 'weighted' or 'last'"
            )
        features = getattr(step.functions, "features", None)
        if features is None:
            drawn = step.family.weights(step.network, step.parameters, 1, step.streams)
            features = DrawnNetworks(step.network, drawn).features
        return head_moments(features(x), mean, log_var, self.compared)

    def kl(self, mean_q: Tensor, cov_q: Tensor, mean_p: Tensor, cov_p: Tensor) -> Tensor:
        """KL of each output, ``[R, Q]``, from means ``[R, Q, K]`` in the precision of training and covariances
        ``[R, Q, K, K]`` in float64 (variances ``[R, Q, K]`` where ``covariance`` is "diagonal"); a prior's may have Q =
        1.
        """
        raise NotImplementedError


@DIVERGENCES.register("gaussian_kl")
@dataclass(frozen=True)
class GaussianKL(LinearisedKL):
    """KL divergence of Gaussians (rudner2022 eq. 16-17).

    ``covariance``: "full" or "diagonal" (rudner2021 alg. 1); ``jitter`` is added to both covariances.
    """

    covariance: str = checked("full", among=("full", "diagonal"))
    jitter: float = checked(1e-6, least=0)

    def kl(self, mean_q: Tensor, cov_q: Tensor, mean_p: Tensor, cov_p: Tensor) -> Tensor:
        if self.covariance == "diagonal":
            return gaussian_kl_diagonal(mean_q, cov_q + self.jitter, mean_p, cov_p + self.jitter)
        return gaussian_kl_full(mean_q, cov_q, mean_p, cov_p, self.jitter)


@DIVERGENCES.register("regularised_kl")
@dataclass(frozen=True)
class RegularisedKL(LinearisedKL):
    """Regularised KL with ``gamma * M`` added to both covariances of M values, one at each context point (cinquin2024
    eq. 2.9), or of all outputs there if these are joint.
    """

    jacobian: str = checked("full", among=JACOBIANS)
    gamma: float = checked(1e-10, least=0)

    def kl(self, mean_q: Tensor, cov_q: Tensor, mean_p: Tensor, cov_p: Tensor) -> Tensor:
        return regularised_gaussian_kl(mean_q, cov_q, mean_p, cov_p, self.gamma)


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
        marginals = step.marginals or step.family.marginals(step.network, step.parameters, x)
        mean, variance = cast(tuple[Tensor, Tensor], marginals)
        prior = process.prior_variance(x).mean(1) * mean.shape[-1]
        shared = root_trace(process.covariance(s, x), process.prior_covariance(s, x))
        squares = (mean - self.prior_mean).square().mean(1).sum(-1)
        squared = squares + prior + variance.mean(1).sum(-1) - 2 * shared.sum(-1)
        # An estimate may be negative, without a root.
        return squared.clamp_min(TINY).sqrt() if self.root else squared


def root_trace(r: Tensor, k: Tensor) -> Tensor:
    """``sum_i sqrt(lambda_i(r k^T / B) / S)`` over positive eigenvalues, for r ``[R, Q, S, B]`` and k ``[R, S, B]``:
    ``[R, Q]``.

    It estimates ``tr (C_k^1/2 C_r C_k^1/2)^1/2`` of the covariance operators. With the singular value decomposition
    ``k = U D V^T`` the eigenvalues are those of ``D^1/2 U^T r V D^1/2``, which is symmetric for equal points and as
    small as the rank of k. That gives the gradient in r. Where a family trains its kernel, the gradient in k is taken
    from the eigenvalues of ``k r^T``, which are the same.
    """
    s, b = k.shape[-2:]
    pairs = list(zip(r, k.detach(), strict=True))
    total = torch.stack([torch.stack([_root_trace(each, prior) for each in own]) for own, prior in pairs])
    if k.requires_grad:
        pairs = list(zip(r.detach(), k, strict=True))
        turned = torch.stack([torch.stack([_root_trace(prior, each) for each in own]) for own, prior in pairs])
        total = total + (turned - turned.detach())  # the value of total, the gradient of both
    return total / (s * b) ** 0.5


def _root_trace(r: Tensor, k: Tensor) -> Tensor:
    """``sum_i sqrt(lambda_i(r k^T))`` for r and k ``[S, B]``, a constant; NaN where one is not finite."""
    if not (torch.isfinite(r).all() and torch.isfinite(k).all()):  # LAPACK raises, for all replicas of a stack
        return r.sum() * torch.nan
    u, d, v = torch.linalg.svd(k, full_matrices=False)
    large = d >= TINY * d[0]  # others are rounding
    roots = d[large].sqrt()
    values = torch.linalg.eigvals((u[:, large] * roots).mT @ r @ (v.mT[:, large] * roots)).real
    return values[values > TINY**2 * values.max()].sqrt().sum()
