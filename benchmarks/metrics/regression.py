"""Metrics of a regressor: errors and likelihoods; CRPS, central intervals and PIT values of its whole distribution.

At each point that is the mixture (1/S) sum_s N(f_s, sigma_s^2) of function samples and their noise, or the one Gaussian
N(mean, variance + sigma^2) where f is Gaussian. Units are standardised, shapes [N] (one value per point), or [N, D] and
[N * D] for vector targets (one per number).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.records.predictions import RegressionPredictions
from fvi_core.metrics.regression import FLOOR, log_likelihoods, log_mixture, log_normal

CENTRAL = (0.5, 0.9, 0.95)
LEVELS = np.arange(1, 100) / 100
BINS = 20
_CHUNK = 500_000  # most values held at a time
_STEP = 0.7  # distance between nodes of an integral, in units of the smallest sigma: exact to 1e-8 of it
_TAIL = 7.0  # tails cut, in standard deviations
_CLOSE = 1e-6  # length in sigma of a last Newton step that leaves rounding errors only


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


def errors(predictions: RegressionPredictions) -> dict[str, float]:
    """Compute errors and log-likelihoods of one set with targets, in original and in standardised units."""
    mse, scale = squared_error(predictions).mean(), predictions.y_std
    posterior = log_posterior_predictive(predictions).mean()
    expected = expected_log_likelihood(predictions).mean()
    matched = {"gaussian_log_predictive": gaussian_log_predictive(predictions).mean() - np.log(scale)}
    if len(predictions.samples) > 1:
        alone = gaussian_log_predictive_without_noise(predictions).mean()
        matched["gaussian_log_predictive_without_noise"] = alone - np.log(scale)
    return matched | {
        "rmse": np.sqrt(mse) * scale,
        "rmse_standardised": np.sqrt(mse),
        "mse": mse * scale**2,
        "mse_standardised": mse,
        "log_posterior_predictive": posterior - np.log(scale),
        "log_posterior_predictive_standardised": posterior,
        "expected_log_likelihood": expected - np.log(scale),
        "expected_log_likelihood_standardised": expected,
    }


@dataclass(frozen=True)
class Mixture:
    """Equal mixture of S Gaussians: means [S, N], std [S, 1] or [S, N]."""

    means: np.ndarray
    std: np.ndarray

    @classmethod
    def of(cls, predictions: RegressionPredictions) -> Mixture:
        """Return the predictive distribution of the targets."""
        if predictions.mean is not None and predictions.variance is not None:
            std = np.sqrt(predictions.variance + predictions.noise_std**2)
            return cls(predictions.mean.reshape(1, -1), std.reshape(1, -1))
        means = predictions.samples.astype(np.float64).reshape(len(predictions.samples), -1)
        return cls(means, np.broadcast_to(np.reshape(predictions.noise_std, (-1, 1)), (len(means), 1)))

    def pit(self, y: np.ndarray) -> np.ndarray:
        """Probability integral transforms F(y) = (1/S) sum_s Phi((y - f_s) / sigma_s), [N] (Dawid 1984); uniform on
        [0, 1] where the distribution is right."""
        return self._by_pieces(lambda piece, rows: piece._cdf(y[rows]))

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Continuous ranked probability scores E|X - y| - E|X - X'| / 2, [N] (Gneiting and Raftery 2007 eq. 21).

        For a mixture (1/S) sum_s A(y - f_s, sigma_s^2) - 1/(2 S^2) sum_st A(f_s - f_t, sigma_s^2 + sigma_t^2) with A(m,
        v) = m (2 Phi(m / sqrt v) - 1) + 2 sqrt v phi(m / sqrt v) (Grimit et al. 2006); for one Gaussian sigma (z (2
        Phi(z) - 1) + 2 phi(z) - 1 / sqrt pi), z = (y - mean) / sigma.
        """

        def scores(piece: Mixture, rows: slice) -> np.ndarray:
            return _distance(y[rows] - piece.means, piece.std).mean(0) - piece._own_distance() / 2

        return self._by_pieces(scores)

    def quantiles(self, level: float) -> np.ndarray:
        """F^-1(level), [N], for a level between 0 and 1."""
        return self._by_pieces(lambda piece, _: piece._quantiles(level))

    def _by_pieces(self, function: Callable[[Mixture, slice], np.ndarray]) -> np.ndarray:
        step = max(1, _CHUNK // len(self.means))
        pieces = [slice(start, start + step) for start in range(0, self.means.shape[1], step)]
        wide = self.std.shape[1] > 1
        return np.concatenate(
            [function(Mixture(self.means[:, rows], self.std[:, rows] if wide else self.std), rows) for rows in pieces]
        )

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return (1 + _erf((y - self.means) / (np.sqrt(2) * self.std)).mean(0)) / 2

    def _own_distance(self) -> np.ndarray:
        """E|X - X'| of two draws: over all pairs of samples, or as 2 int F (1 - F) where that is cheaper."""
        count, least = len(self.means), self.std.min()
        low, high = self.means.min(0) - _TAIL * self.std.max(), self.means.max(0) + _TAIL * self.std.max()
        nodes = (high - low).max() / (_STEP * least)
        if count / 2 <= nodes:
            total = (_distance(np.zeros(1), np.sqrt(2) * self.std)).sum(0) * np.ones(self.means.shape[1])
            for s in range(count - 1):
                together = np.sqrt(self.std[s] ** 2 + self.std[s + 1 :] ** 2)
                total += 2 * _distance(self.means[s] - self.means[s + 1 :], together).sum(0)
            return total / count**2
        steps = int(np.ceil(nodes))
        integral = np.zeros(self.means.shape[1])
        for k in range(1, steps):
            below = self._cdf(low + (high - low) * k / steps)
            integral += below * (1 - below)
        return 2 * integral * (high - low) / steps

    def _quantiles(self, level: float) -> np.ndarray:
        """Quantiles by Newton's iteration, or by bisection where a step would leave the bracket."""
        from scipy.special import ndtri  # slow to load, and most commands only read records

        ends = self.means + ndtri(level) * self.std  # the mixture's quantile lies between those of its components
        low, high = ends.min(0), ends.max(0)
        spread = np.sqrt(self.means.var(0) + (self.std**2).mean(0))
        quantiles = np.clip(self.means.mean(0) + ndtri(level) * spread, low, high)
        active = np.flatnonzero(high > low)
        for _ in range(200):
            if not len(active):
                break
            x, std = quantiles[active], self.std[:, active] if self.std.shape[1] > 1 else self.std
            standard = (x - self.means[:, active]) / std
            above = (1 + _erf(standard / np.sqrt(2)).mean(0)) / 2 - level
            slope = (np.exp(-(standard**2) / 2) / std).mean(0) / np.sqrt(2 * np.pi)
            low[active], high[active] = np.where(above < 0, x, low[active]), np.where(above < 0, high[active], x)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = x - above / slope
            inside = (newton > low[active]) & (newton < high[active])
            quantiles[active] = np.where(inside, newton, (low[active] + high[active]) / 2)
            active = active[np.abs(quantiles[active] - x) > _CLOSE * self.std.min()]
        return quantiles


def _distance(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """E|m + s e| for e ~ N(0, 1)."""
    standard = mean / (np.sqrt(2) * std)
    return mean * _erf(standard) + np.sqrt(2 / np.pi) * std * np.exp(-(standard**2))


def _erf(values: np.ndarray) -> np.ndarray:
    import torch  # torch is slow to load, and most commands only read records; its erf takes a quarter of SciPy's time

    return torch.erf(torch.from_numpy(np.ascontiguousarray(values))).numpy()


def coverage(pit: np.ndarray, level: float) -> float:
    """Fraction of targets inside the central interval of this level: (1 - level) / 2 <= F(y) <= (1 + level) / 2."""
    return float((np.abs(pit - 0.5) <= level / 2).mean())


def calibration_error(pit: np.ndarray) -> float:
    """mean_j |p_j - (share of F(y) <= p_j)|, p_j = 0.01, 0.02, ..., 0.99, of PIT values [N] (Kuleshov et al. 2018, who
    square the differences; absolute as in Chung et al. 2021)."""
    below = np.searchsorted(np.sort(pit), LEVELS, side="right") / len(pit)
    return float(np.abs(below - LEVELS).mean())


def kolmogorov_smirnov(pit: np.ndarray) -> float:
    """sup_u |(share of F(y) <= u) - u| of PIT values [N]: their distance from the uniform distribution."""
    ordered, n = np.sort(pit), len(pit)
    return float(np.maximum(np.arange(1, n + 1) / n - ordered, ordered - np.arange(n) / n).max())


def histogram(pit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of 20 bins of equal width between 0 and 1, and the number of PIT values in each."""
    counts, edges = np.histogram(pit, np.linspace(0, 1, BINS + 1))
    return edges, counts


def distribution(predictions: RegressionPredictions, pit: np.ndarray) -> dict[str, float]:
    """Compute all these metrics for one set with targets; scores and widths in original units too."""
    mixture, y = Mixture.of(predictions), predictions.given_targets.reshape(-1)
    score = float(mixture.crps(y).mean())
    values = {"crps": score * predictions.y_std, "crps_standardised": score}
    for level in CENTRAL:
        low, high = (mixture.quantiles((1 + side * level) / 2) for side in (-1, 1))
        values[f"coverage_{100 * level:.0f}"] = coverage(pit, level)
        values[f"interval_width_{100 * level:.0f}"] = float((high - low).mean()) * predictions.y_std
    return values | {"quantile_calibration_error": calibration_error(pit), "pit_ks": kolmogorov_smirnov(pit)}
