"""KL divergence between Dirichlet predictives fitted to function samples (dirichlet2022 sec. 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.divergences.base import Divergence, Step
from fvi_core.families.base import NotSupported
from fvi_core.metrics.probabilities import smooth
from fvi_core.registry import DIVERGENCES, checked


@DIVERGENCES.register("dirichlet_kl")
@dataclass(frozen=True)
class DirichletKL(Divergence):
    """``1/M sum_m log q(f^m) - log p(f^m)`` with a Dirichlet q fitted to the M sampled class probabilities
    (dirichlet2022 eq. 6).

    q's mean is the samples' mean, its precision Minka's estimate clipped to [K, N], and N for one sample; q is constant
    in the gradient (sec. 3.3). ``smoothing``: label smoothing of the probabilities (App. F). ``index_set`` "mean": the
    expectation over the index set of eq. 4; "sum": the sum over it, S times as much.
    """

    smoothing: float = checked(1e-4, least=0, below=1)
    index_set: str = checked("mean", among=("mean", "sum"))

    def __call__(self, step: Step) -> Tensor:
        context = step.sample_context()
        if step.functions is None or step.values is None:
            raise NotSupported(
                "divergence 'dirichlet_kl' needs a draw of functions, and the family is trained in closed form"
            )
        f = step.values if context is step.x else step.functions(context)
        probabilities = smooth(torch.softmax(f, -1), self.smoothing)
        n_classes = float(f.shape[-1])
        alpha = fit_dirichlet(probabilities, z_min=n_classes, z_max=max(n_classes, float(step.n_train)))
        concentration = step.prior.concentration(f.shape[-1], f.device).to(alpha)
        kl = dirichlet_kl_monte_carlo(probabilities, alpha, concentration)
        return kl.mean(-1) if self.index_set == "mean" else kl.sum(-1)


@torch.no_grad()
def minka_precision(
    samples: Tensor,
    z_min: float,
    z_max: float,
    *,
    tolerance: float = 1e-5,
    max_iterations: int = 100,
) -> Tensor:
    """Dirichlet precision of highest likelihood, mean fixed (Minka 2000; dirichlet2022, eq. 29-32).

    Smoothed probabilities ``[..., S, N, K]`` -> precisions ``[..., N]``, without gradient, in [z_min, z_max].
    With m_k = mean_s f_k and l_k = mean_s log f_k, the quasi-Newton step is

        1/z <- 1/z + L'(z) / (z^2 L''(z)),
        L'  = psi(z) - sum_k m_k (psi(z m_k) - l_k),
        L'' = psi_1(z) - sum_k m_k^2 psi_1(z m_k).

    The start is Minka's Stirling approximation z = (K - 1) / (-2 sum_k m_k (l_k - log m_k)). Eq. 32 prints
    log l_k there, but eq. 29 already defines l_k as a mean of logarithms, which is negative: the second
    logarithm is a misprint. Likewise the text after eq. 5 prints alpha = mean / z for alpha = mean * z.

    Each point stops when its own step is below ``tolerance``; after ``max_iterations`` the last iterate is returned.
    Finite input gives finite output: zeros are floored, identical samples give z_max. One sample has no likelihood
    optimum: its precision is z_max.
    """
    *lead, n_samples, n_points, n_classes = samples.shape
    if n_samples == 1:
        return samples.new_full((*lead, n_points), float(z_max))
    floored = samples.double().clamp_min(1e-30)
    mean = floored.mean(-3).reshape(-1, n_classes)
    mean = mean / mean.sum(-1, keepdim=True)
    mean_log = floored.log().mean(-3).reshape(-1, n_classes)
    divergence = (mean * (mean.log() - mean_log)).sum(-1).clamp_min(1e-300)
    z = ((n_classes - 1) / (2 * divergence)).clamp(z_min, z_max)
    active = torch.arange(len(z), device=z.device)
    for _ in range(max_iterations):
        old, m, mean_log_m = z[active], mean[active], mean_log[active]
        alpha = old[:, None] * m
        slope = torch.digamma(old) - (m * (torch.digamma(alpha) - mean_log_m)).sum(-1)
        curvature = torch.polygamma(1, old) - (m.square() * torch.polygamma(1, alpha)).sum(-1)
        inverse = 1 / old + slope / (old.square() * curvature)
        # A step past 1/z = 0 says that the likelihood still rises at infinity.
        new = torch.where(inverse <= 0, z_max, 1 / inverse).clamp(z_min, z_max)
        z[active] = new
        active = active[(new - old).abs() >= tolerance]
        if len(active) == 0:
            break
    return z.reshape(*lead, n_points).to(samples.dtype)


def fit_dirichlet(samples: Tensor, z_min: float, z_max: float) -> Tensor:
    """Concentrations fitted to samples ``[..., S, N, K]`` -> ``[..., N, K]`` (dirichlet2022, sec. 3.3).

    The sample mean times :func:`minka_precision`; a constant, without gradient.
    """
    return samples.detach().mean(-3) * minka_precision(samples, z_min, z_max)[..., None]


def dirichlet_log_density(probabilities: Tensor, alpha: Tensor) -> Tensor:
    """log Dir(f | alpha), ``[..., K]`` -> ``[...]``, in float64: large concentrations cancel in float32."""
    probabilities, alpha = probabilities.double(), alpha.double()
    normaliser = torch.lgamma(alpha.sum(-1)) - torch.lgamma(alpha).sum(-1)
    return normaliser + ((alpha - 1) * probabilities.log()).sum(-1)


def dirichlet_kl_monte_carlo(probabilities: Tensor, alpha_q: Tensor, alpha_p: Tensor) -> Tensor:
    """KL(q || p) per point: the mean over samples of log q(f) - log p(f) (dirichlet2022, eq. 6).

    Smoothed probabilities ``[..., S, N, K]``, concentrations that broadcast to ``[..., N, K]`` -> ``[...,
    N]``, in nats. The densities are constants: gradients reach the samples only, as the paper prescribes.
    """
    shape = (*probabilities.shape[:-3], *probabilities.shape[-2:])
    alpha_q, alpha_p = (alpha.detach().expand(shape).unsqueeze(-3) for alpha in (alpha_q, alpha_p))
    difference = dirichlet_log_density(probabilities, alpha_q) - dirichlet_log_density(probabilities, alpha_p)
    return difference.mean(-2).to(probabilities.dtype)
