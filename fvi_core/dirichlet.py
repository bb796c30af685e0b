"""Dirichlet distributions over class probabilities: fit from function samples, divergence."""

from __future__ import annotations

import torch
from torch import Tensor


@torch.no_grad()
def minka_precision(
    samples: Tensor,
    z_min: float,
    z_max: float,
    *,
    tolerance: float = 1e-5,
    max_iterations: int = 100,
    single_sample_precision: float | None = None,
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
    optimum: its precision is ``single_sample_precision``, or z_max if that is None.
    """
    if not 0 < z_min <= z_max:
        raise ValueError(f"precision bounds need 0 < z_min <= z_max, found z_min={z_min}, z_max={z_max}")
    *lead, n_samples, n_points, n_classes = samples.shape
    if n_samples == 1:
        value = z_max if single_sample_precision is None else single_sample_precision
        return samples.new_full((*lead, n_points), float(value))
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


def fit_dirichlet(samples: Tensor, z_min: float, z_max: float, **options) -> Tensor:
    """Concentrations fitted to samples ``[..., S, N, K]`` -> ``[..., N, K]`` (dirichlet2022, sec. 3.3).

    The sample mean times :func:`minka_precision`, whose options it takes; a constant, without gradient.
    """
    return samples.detach().mean(-3) * minka_precision(samples, z_min, z_max, **options)[..., None]


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
