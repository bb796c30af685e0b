"""Likelihoods and epistemic uncertainty of a regressor, per point [N], or of each number of a vector, [N, D]."""

from __future__ import annotations

import numpy as np

from .probabilities import log_mean_exp

FLOOR = float(np.finfo(np.float32).eps)
"""Least distance of samples: equal ones have no nearest-neighbour distance."""


def log_normal(y: np.ndarray, mean: np.ndarray, variance: np.ndarray | float) -> np.ndarray:
    """log N(y; mean, variance).

    >>> log_normal(np.array([0.0]), mean=np.array([0.0]), variance=1.0).round(3)
    array([-0.919])
    """
    return -0.5 * (np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance)


def log_likelihoods(y: np.ndarray, samples: np.ndarray, noise_std: np.ndarray | float) -> np.ndarray:
    """log N(y; f_s, sigma_s^2) [S, N], of function samples [S, N] and one sigma or one for each sample [S].

    >>> log_likelihoods(np.array([0.0]), samples=np.array([[0.0], [1.0]]), noise_std=1.0).round(3)
    array([[-0.919],
           [-1.419]])
    """
    noise = np.reshape(noise_std, (-1, *[1] * (samples.ndim - 1)))
    return log_normal(y, samples.astype(np.float64), noise**2)


def log_mixture(y: np.ndarray, samples: np.ndarray, noise_std: np.ndarray | float) -> np.ndarray:
    """log mean_s N(y; f_s, sigma_s^2) [N].

    >>> log_mixture(np.array([0.0]), samples=np.array([[0.0], [1.0]]), noise_std=1.0).round(3)
    array([-1.138])
    """
    return log_mean_exp(log_likelihoods(y, samples, noise_std))


def epistemic_entropy(samples: np.ndarray) -> np.ndarray:
    """Entropy [N], nats, of function values samples [S, N], S > 1 (pequignot2020 eq. 5, d = k = 1).

    log S - psi(1) + log 2 + mean_s log r_s, with r_s the distance of f_s(x) to the nearest other sample.

    >>> epistemic_entropy(np.array([[0.0], [1.0], [3.0]])).round(3)
    array([2.6])
    """
    ordered = np.sort(samples.astype(np.float64), axis=0)
    gaps = np.diff(ordered, axis=0, prepend=-np.inf, append=np.inf)
    nearest = np.maximum(np.minimum(gaps[:-1], gaps[1:]), FLOOR)
    return np.log(len(samples)) + np.euler_gamma + np.log(2) + np.log(nearest).mean(0)
