"""Errors, likelihoods and epistemic uncertainty of a regressor, in standardised units: one value per point [N], or per
number [N, D] of vector targets."""

from __future__ import annotations

import numpy as np

from benchmarks.records.predictions import RegressionPredictions
from fvi_core.metrics.regression import FLOOR, log_likelihoods, log_mixture, log_normal


def mean(predictions: RegressionPredictions) -> np.ndarray:
    """E f: in closed form where there is one, otherwise the mean over samples."""
    return predictions.mean if predictions.mean is not None else predictions.samples.mean(0, dtype=np.float64)


def variance(predictions: RegressionPredictions) -> np.ndarray:
    """Var f: in closed form where there is one, otherwise over samples (divided by S)."""
    if predictions.variance is not None:
        return predictions.variance
    return predictions.samples.var(0, dtype=np.float64)


def noise_variance(predictions: RegressionPredictions) -> float:
    """sigma^2; the mean over samples where the noise differs between them."""
    return float(np.mean(predictions.noise_std**2))


def squared_error(predictions: RegressionPredictions) -> np.ndarray:
    """(y - E f)^2."""
    return (predictions.given_targets - mean(predictions)) ** 2


def log_posterior_predictive(predictions: RegressionPredictions) -> np.ndarray:
    """log mean_s N(y; f_s, sigma^2); log N(y; mean, variance + sigma^2) where f is Gaussian."""
    if predictions.mean is not None:
        total = variance(predictions) + predictions.noise_std**2
        return log_normal(predictions.given_targets, predictions.mean, total)
    return log_mixture(predictions.given_targets, predictions.samples, predictions.noise_std)


def gaussian_log_predictive(predictions: RegressionPredictions) -> np.ndarray:
    """log N(y; E f, Var f + sigma^2), [N]: the Gaussian with the samples' mean and variance."""
    return log_normal(predictions.given_targets, mean(predictions), variance(predictions) + noise_variance(predictions))


def gaussian_log_predictive_without_noise(predictions: RegressionPredictions) -> np.ndarray:
    """log N(y; E f, Var f), [N], with the sample variance (divided by S - 1); S > 1."""
    spare = predictions.samples.var(0, ddof=1, dtype=np.float64)
    return log_normal(predictions.given_targets, mean(predictions), np.maximum(spare, FLOOR**2))


def expected_log_likelihood(predictions: RegressionPredictions) -> np.ndarray:
    """mean_s log N(y; f_s, sigma^2); log N(y; mean, sigma^2) - variance / (2 sigma^2) where f is Gaussian."""
    if predictions.mean is not None:
        noise = predictions.noise_std**2
        expected = log_normal(predictions.given_targets, predictions.mean, noise)
        return expected - variance(predictions) / (2 * noise)
    return log_likelihoods(predictions.given_targets, predictions.samples, predictions.noise_std).mean(0)
