"""Curves for figures, as lists small enough for a record: five significant digits."""

from __future__ import annotations

import numpy as np

from benchmarks.records.predictions import ClassificationPredictions, RegressionPredictions
from fvi_core.metrics import calibration, ood, selective
from fvi_core.metrics.classification import log_softmax
from fvi_core.metrics.probabilities import entropy

from . import regression, screening

Curve = dict[str, list]
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
EXAMPLES = PATHS = 5
_ROUNDING = 1e-9  # tolerance for rounding errors in a probability of 1


def compact(array: np.ndarray) -> list:
    """Convert to nested lists: integers unchanged, floats to five significant digits, non-finite ones to None."""
    if np.issubdtype(array.dtype, np.integer):
        return array.tolist()
    if array.ndim > 1:
        return [compact(row) for row in array]
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in array.tolist()]


def reliability(confidence: np.ndarray, correct: np.ndarray, bins: int = 15) -> Curve:
    """Return mean confidence, accuracy and count of each bin of equal width; None in an empty bin."""
    values = calibration.binned(confidence, correct, calibration.equal_width(confidence, bins), bins)
    return {name: compact(value) for name, value in zip(("confidence", "accuracy", "count"), values)}


def retention(correct: np.ndarray, uncertainty: np.ndarray) -> Curve:
    """Return the accuracy on the most certain fraction of the points, at fractions 0 (one point), 0.01, ..., 1."""
    fraction = np.linspace(0, 1, 101)
    count = np.maximum(np.round(fraction * len(correct)).astype(int), 1)
    accuracy = selective.retention_curve(correct, uncertainty)[count - 1]
    return {"fraction": compact(fraction), "accuracy": compact(accuracy)}


def roc(detections: dict[str, ood.Detection]) -> Curve:
    """Return the true positive rate of each score at the false positive rates 0, 0.01, ..., 1."""
    return {"fpr": compact(ood.FPR_GRID)} | {name: compact(d.tpr_on_grid()) for name, d in detections.items()}


def screening_roc(cases: screening.Cases) -> Curve:
    """Return sensitivity at false positive rates 0, 0.02, ..., 1, linear between thresholds (as RETINA's plots)."""
    false, true = screening.roc(cases.score, cases.labels)
    return {"fpr": compact(screening.FPR_GRID), "sensitivity": compact(np.interp(screening.FPR_GRID, false, true))}


def referral(curves: screening.Curves) -> Curve:
    """Return referral curves at the shares 0, 0.01, ..., 1 of referred cases."""
    share = np.linspace(0, 1, 101)
    rows = {name: np.round(share * (len(curve) - 1)).astype(int) for name, curve in curves.items()}
    return {"referred": compact(share)} | {name: compact(curve[rows[name]]) for name, curve in curves.items()}


def entropy_histogram(id: np.ndarray, ood: np.ndarray, classes: int, bins: int = 30) -> Curve:
    """Count ID and OOD points by predictive entropy, in bins of equal width from 0 to log C."""
    edges = np.linspace(0, np.log(classes), bins + 1)
    counts = [np.histogram(np.clip(entropy, 0, edges[-1]), edges)[0] for entropy in (id, ood)]
    return {"edges": compact(edges), "id": compact(counts[0]), "ood": compact(counts[1])}


def confidence(p: np.ndarray) -> Curve:
    """Return the share of points p [N, C] whose largest probability is at least 0, 0.01, ..., 1."""
    thresholds = np.linspace(0, 1, 101)
    ordered = np.sort(p.max(-1))
    share = 1 - np.searchsorted(ordered, thresholds - _ROUNDING, side="left") / len(ordered)
    return {"threshold": compact(thresholds), "share": compact(share)}


def examples(p: np.ndarray, precision: np.ndarray | None, labels: np.ndarray) -> Curve:
    """Return the first points: label, mean probabilities, precision of the Dirichlet fitted to their samples."""
    first = slice(EXAMPLES)
    fitted = {} if precision is None else {"precision": compact(precision[first])}
    return {"label": compact(labels[first]), "probability": compact(p[first])} | fitted


def pit(values: np.ndarray) -> Curve:
    """Count the PIT values [N] in each of the histogram's bins."""
    return {name: compact(array) for name, array in zip(("edges", "count"), regression.histogram(values))}


def epistemic_entropy(entropy: np.ndarray) -> Curve:
    """Return five quantiles over the points of the epistemic entropy, standardised units."""
    return {"quantile": list(QUANTILES), "value": compact(np.quantile(entropy, QUANTILES))}


def eigenvalues(samples: np.ndarray) -> Curve:
    """Return the eigenvalues, largest first, of the covariance of functions [S, N] divided by the number of points: the
    draws' estimates of the eigenvalues of the covariance operator, standardised units."""
    centred = samples.astype(np.float64) - samples.mean(0, dtype=np.float64)
    singular = np.linalg.svd(centred, compute_uv=False)[: len(samples) - 1]  # centring removes one of them
    return {"value": compact(singular**2 / (len(samples) - 1) / samples.shape[1])}


def squared_errors(errors: np.ndarray) -> Curve:
    """Return squared errors of vector targets [N, D] at each point, summed over D, original units."""
    return {"value": compact(errors.sum(-1))}


def regression_grid(x: np.ndarray, predictions: RegressionPredictions) -> Curve:
    """Return mean, deviation without and with noise, and sample paths (not for vectors) at x, original units."""
    scale, paths = predictions.y_std, PATHS if predictions.samples.ndim == 2 else 0
    variance = regression.variance(predictions)
    return {
        "x": compact(x),
        "mean": compact(regression.mean(predictions) * scale + predictions.y_mean),
        "std": compact(np.sqrt(variance) * scale),
        "std_with_noise": compact(np.sqrt(variance + regression.noise_variance(predictions)) * scale),
        "samples": compact(predictions.samples[:paths].astype(np.float64) * scale + predictions.y_mean),
    }


def classification_grid(x: np.ndarray, predictions: ClassificationPredictions) -> Curve:
    """Return mean and standard deviation over samples of p(class 1), and predictive entropy, at x."""
    p = np.exp(log_softmax(predictions.logits))
    return {
        "x": compact(x),
        "probability": compact(p[..., 1].mean(0)),
        "std": compact(p[..., 1].std(0)),
        "predictive_entropy": compact(entropy(p.mean(0))),
    }
