"""Names of metrics in reports, and their better side."""

from __future__ import annotations

from typing import Any

from benchmarks.metrics.registry import METRICS
from benchmarks.records.store import COSTS

_REFERRED = {"accuracy": "accuracy", "auroc": "AUROC", "auprc": "AUPRC", "nll": "NLL"}
_OOD = {"auroc": "AUROC", "aupr": "AUPR", "fpr95": "FPR at 95 % TPR"}
TITLES = {
    "nll": "negative log-likelihood",
    "brier": "Brier score",
    "ece": "ECE (15 bins)",
    "ece_10": "ECE (10 bins)",
    "ace_15": "adaptive ECE (15 bins)",
    "log_likelihood": "log-likelihood",
    "smoothed_log_likelihood": "log-likelihood, smoothed",
    "expected_log_likelihood": "expected log-likelihood",
    "expected_log_likelihood_standardised": "expected log-likelihood, standardised",
    "log_posterior_predictive_standardised": "log posterior predictive, standardised",
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "sensitivity_at_80_specificity": "sensitivity at 80 % specificity",
    **{f"referral_{metric}_area": f"{words} under referral" for metric, words in _REFERRED.items()},
    **{f"referral_{m}_area_oracle": f"{words} under referral to an oracle" for m, words in _REFERRED.items()},
    **{f"{how}ood_{m}": f"{how.replace('_', ' ')}OOD {w}" for how in ("", "near_", "far_") for m, w in _OOD.items()},
    "ood_accuracy": "OOD accuracy",
    "ood_accuracy_log_loss": "OOD accuracy by log-loss",
    "selective_accuracy_area": "area under the retention curve",
    "aurc": "AURC",
    "augrc": "AUGRC",
    "crps": "CRPS",
    "crps_standardised": "CRPS, standardised",
    "coverage_50": "share inside 50 % intervals",
    "coverage_90": "share inside 90 % intervals",
    "coverage_95": "share inside 95 % intervals",
    "interval_width_50": "width of 50 % intervals",
    "interval_width_90": "width of 90 % intervals",
    "interval_width_95": "width of 95 % intervals",
    "pit_ks": "distance of PIT values from uniform (Kolmogorov-Smirnov)",
    "classwise_ece": "classwise ECE",
    "classwise_ace": "classwise adaptive ECE",
    "top_label_ece": "top-label ECE",
    "msp": "mean of 1 - max p",
    "rmse": "RMSE",
    "rmse_standardised": "RMSE, standardised",
    "mse": "MSE",
    "mse_standardised": "MSE, standardised",
    "training_seconds": "training time (s)",
    "knn_kl": "nearest-neighbour KL",
    "wasserstein2": "2-Wasserstein distance",
    "wasserstein2_squared": "squared 2-Wasserstein distance",
    "log_marginal_likelihood": "log marginal likelihood per point",
    "collapsed_bound": "bound on the log marginal likelihood per point",
}
# Published comparisons between runs; not metrics of a single run.
COMPARISONS = {"wasserstein2": -1}
RANK = "mean_rank_"
SIDES = {"higher": 1, "lower": -1, "none": 0}
MARKS = {1: " ↑", -1: " ↓", 0: ""}


def direction(metric: str) -> int:
    """Return +1 where higher is better, -1 where lower is, 0 where neither (entropies)."""
    if metric.startswith(RANK):
        return -1
    return SIDES[METRICS[metric].direction] if metric in METRICS else COMPARISONS.get(metric, 0)


def side(column: Any) -> int:
    """Return the direction of a table's column; 0 also for costs that rank nothing."""
    return direction(column.cell.metric) if column.compared or column.cell.metric not in COSTS else 0


def name(metric: str) -> str:
    """Return a metric's name in words."""
    if metric.startswith(RANK):
        return f"mean rank by {name(metric.removeprefix(RANK))}"
    return TITLES.get(metric, metric.replace("_", " "))


def title(column: Any) -> str:
    """Return the name of a column's metric with an arrow to its better side."""
    return name(column.cell.metric) + MARKS[side(column)]
