"""Mutual information of a Dirichlet fitted to function samples (dirichlet2022 sec. 3.3, app. E and F)."""

from __future__ import annotations

import numpy as np

from fvi_core.metrics.classification import Summary
from fvi_core.metrics.probabilities import smooth

PRECISIONS = (1e-3, 1e6)


def fitted(summary: Summary) -> tuple[np.ndarray, np.ndarray]:
    """Return precision and mutual information [N] of the Dirichlet fitted to the samples of each point."""
    mean = smooth(summary.p)
    z = precision(mean, summary.expected_log_smoothed_p)
    return z, mutual_information(mean, z)


def precision(mean: np.ndarray, mean_log: np.ndarray, bounds: tuple[float, float] = PRECISIONS) -> np.ndarray:
    """Maximum-likelihood precision z [N] of Dir(z mean), with the mean fixed.

    Root of psi(z) - sum_k m_k psi(z m_k) + sum_k m_k E[log p_k] (dirichlet2022 eq. 30), within bounds, for
    m = mean [N, K] > 0 and E[log p] = mean_log [N, K]: the optimum that Minka's quasi-Newton iteration seeks.
    """
    from scipy.special import digamma  # slow to load, and most commands only read records

    evidence = (mean * mean_log).sum(-1)
    low, high = (np.full(len(mean), np.log(bound)) for bound in bounds)
    # The likelihood is concave in z: its slope changes sign once. Bisection finds the root; Newton can diverge.
    while np.max(high - low) > 1e-9:
        middle = (low + high) / 2
        z = np.exp(middle)
        rising = digamma(z) - (mean * digamma(z[:, None] * mean)).sum(-1) + evidence > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.exp((low + high) / 2)


def mutual_information(mean: np.ndarray, z: np.ndarray) -> np.ndarray:
    """MI(f; y) = H[m] + sum_k m_k (psi(z m_k + 1) - psi(z + 1)) [N], nats (dirichlet2022 eq. 10 to 12)."""
    from scipy.special import digamma, entr

    conditional = -(mean * (digamma(z[:, None] * mean + 1) - digamma(z + 1)[:, None])).sum(-1)
    return entr(mean).sum(-1) - conditional
