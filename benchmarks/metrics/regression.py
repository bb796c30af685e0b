"""Errors, likelihoods and epistemic uncertainty of a regressor, per point [N] and in standardised units.

Of targets that are vectors they are of each number by itself, [N, D].
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, logsumexp

from benchmarks.records.predictions import RegressionPredictions

_FLOOR = float(np.finfo(np.float32).eps)  # equal samples have no nearest-neighbour distance


def mean(predictions: RegressionPredictions) -> np.ndarray:
    """E f: in closed form where there is one, otherwise the mean over samples."""
    return predictions.mean if predictions.mean is not None else predictions.samples.mean(0, dtype=np.float64)


def variance(predictions: RegressionPredictions) -> np.ndarray:
    """Var f: in closed form where there is one, otherwise over samples (divided by S)."""
    if predictions.variance is not None:
        return predictions.variance
    return predictions.samples.var(0, dtype=np.float64)


def noise_variance(predictions: RegressionPredictions) -> float:
    """sigma^2; the mean over samples where each has its own."""
    return float(np.mean(predictions.noise_std**2))


def squared_error(predictions: RegressionPredictions) -> np.ndarray:
    """(y - E f)^2."""
    return (predictions.given_targets - mean(predictions)) ** 2


def log_normal(y: np.ndarray, mean: np.ndarray, variance: np.ndarray | float) -> np.ndarray:
    """log N(y; mean, variance)."""
    return -0.5 * (np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance)


def log_likelihoods(predictions: RegressionPredictions) -> np.ndarray:
    """log N(y; f_s, sigma_s^2) [S, N]."""
    noise = np.reshape(predictions.noise_std, (-1, *[1] * (predictions.samples.ndim - 1)))
    return log_normal(predictions.given_targets, predictions.samples.astype(np.float64), noise**2)


def log_posterior_predictive(predictions: RegressionPredictions) -> np.ndarray:
    """log mean_s N(y; f_s, sigma^2); log N(y; mean, variance + sigma^2) where f is Gaussian."""
    if predictions.mean is not None:
        total = variance(predictions) + predictions.noise_std**2
        return log_normal(predictions.given_targets, predictions.mean, total)
    return logsumexp(log_likelihoods(predictions), axis=0) - np.log(len(predictions.samples))


def gaussian_log_predictive(predictions: RegressionPredictions) -> np.ndarray:
    """log N(y; E f, Var f + sigma^2), [N]: a Gaussian of the samples' mean and variance, where f is none."""
    return log_normal(predictions.given_targets, mean(predictions), variance(predictions) + noise_variance(predictions))


def gaussian_log_predictive_without_noise(predictions: RegressionPredictions) -> np.ndarray:
    """log N(y; E f, Var f), [N], with the sample variance (divided by S - 1); S > 1."""
    spare = predictions.samples.var(0, ddof=1, dtype=np.float64)
    return log_normal(predictions.given_targets, mean(predictions), np.maximum(spare, _FLOOR**2))


def expected_log_likelihood(predictions: RegressionPredictions) -> np.ndarray:
    """mean_s log N(y; f_s, sigma^2); log N(y; mean, sigma^2) - variance / (2 sigma^2) where f is Gaussian."""
    if predictions.mean is not None:
        noise = predictions.noise_std**2
        expected = log_normal(predictions.given_targets, predictions.mean, noise)
        return expected - variance(predictions) / (2 * noise)
    return log_likelihoods(predictions).mean(0)


def epistemic_entropy(samples: np.ndarray) -> np.ndarray:
    """Entropy [N], nats, of function values samples [S, N], S > 1 (pequignot2020 eq. 5, d = k = 1).

    log S - psi(1) + log 2 + mean_s log r_s, with r_s the distance of f_s(x) to the nearest other sample.
    """
    ordered = np.sort(samples.astype(np.float64), axis=0)
    gaps = np.diff(ordered, axis=0, prepend=-np.inf, append=np.inf)
    nearest = np.maximum(np.minimum(gaps[:-1], gaps[1:]), _FLOOR)
    return np.log(len(samples)) - digamma(1) + np.log(2) + np.log(nearest).mean(0)
