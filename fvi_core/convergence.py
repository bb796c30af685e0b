"""Convergence of Markov chains: R-hat and effective sample sizes (Vehtari et al. 2021).

Draws of a scalar are ``[C, S]``: C chains of S draws each. All numbers equal ``arviz``'s.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

FEWEST = 4
"""Fewest draws of a chain for which the numbers are defined: two halves of two."""


def r_hat(draws: Tensor) -> float:
    """Return rank-normalised split R-hat, the larger of bulk and tails (eq. 14, sec. 4.1-4.2); 1 for equal draws."""
    halves = _halves(draws.double())
    away = (halves - torch.quantile(halves.flatten(), 0.5)).abs()
    return max(_r_hat(_normal_scores(halves)), _r_hat(_normal_scores(away)))


def bulk_ess(draws: Tensor) -> float:
    """Return the effective sample size of the normal scores of ranks (sec. 4.3)."""
    return _ess(_normal_scores(_halves(draws.double())))


def tail_ess(draws: Tensor) -> float:
    """Return the smaller effective sample size of the indicators ``draw <= quantile`` at 5 and 95 % (sec. 4.3)."""
    draws = draws.double()
    ends = torch.quantile(draws.flatten(), draws.new_tensor([0.05, 0.95]))
    return min(_ess(_halves((draws <= end).double())) for end in ends)


def _halves(draws: Tensor) -> Tensor:
    """Split each chain into halves, ``[2 C, S // 2]``, without the middle draw of an odd number."""
    half = draws.shape[1] // 2
    return torch.cat([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: Tensor) -> Tensor:
    """Normal quantiles of fractional ranks among all draws, equal draws at their mean rank (eq. 14)."""
    _, place, counts = torch.unique(draws, return_inverse=True, return_counts=True)
    ranks = counts.cumsum(0) - (counts - 1) / 2
    return torch.special.ndtri((ranks[place].double() - 3 / 8) / (draws.numel() + 1 / 4))


def _r_hat(draws: Tensor) -> float:
    """Return sqrt((S - 1) / S + B / (S W)), with variances B between and W within chains (eq. 3)."""
    s = draws.shape[1]
    within, between = draws.var(1).mean().item(), draws.mean(1).var().item()
    if within == 0:
        return 1.0 if between == 0 else math.inf
    return math.sqrt((s - 1) / s + between / within)


def _ess(draws: Tensor) -> float:
    """Return C S / tau, with tau from Geyer's initial monotone sequence of paired autocorrelations (eq. 10 to 13)."""
    chains, s = draws.shape
    if draws.max() == draws.min():
        return float(draws.numel())
    autocovariance = _autocovariance(draws).mean(0)
    within = autocovariance[0].item() * s / (s - 1)
    total = within * (s - 1) / s + (draws.mean(1).var().item() if chains > 1 else 0.0)
    rho = (1 - (within - autocovariance) / total).tolist()
    rho[0] = 1.0
    first = [0]  # first number of each pair; the last is where the sum stops
    while first[-1] < s - 4 and rho[first[-1]] + rho[first[-1] + 1] > 0:
        first.append(first[-1] + 2)
    pairs = [rho[t] + rho[t + 1] for t in first]
    for i in range(1, len(pairs) - 1):
        pairs[i] = min(pairs[i], pairs[i - 1])
    half = rho[first[-1]] if pairs[-1] >= 0 else max(rho[first[-1]], 0.0)  # the last pair's, for antithetic chains
    tau = 2 * sum(pairs[:-1]) - 1 + half
    return draws.numel() / max(tau, 1 / math.log10(draws.numel()))


def _autocovariance(draws: Tensor) -> Tensor:
    """Return autocovariances ``[C, S]``, each lag's sum over the chain divided by S."""
    s = draws.shape[1]
    size = 2 ** math.ceil(math.log2(2 * s))
    spectrum = torch.fft.rfft(draws - draws.mean(1, keepdim=True), n=size)
    return torch.fft.irfft(spectrum.abs().square(), n=size)[:, :s] / s
