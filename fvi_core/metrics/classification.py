"""Accuracy, likelihoods, Brier score and uncertainties of a classifier.

p [N, C]: probabilities of the predictive distribution (mean over samples); y [N]: labels from 0 to C - 1. Functions of
both raise ValueError for other shapes and labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .probabilities import check_labels, entropy, log_mean_exp, smooth

_CHUNK = 1_000_000  # logits held in float64 at a time: bounds the memory for many classes and samples
_NORMALISED = 1e-2  # the log-sum-exp of log-probabilities is 0 but for the rounding of float16
_ROUNDING = 1e-12  # smaller mutual informations are rounding errors, which must not rank points


@dataclass(frozen=True)
class Summary:
    """Per-point statistics that the metrics of one evaluation set share.

    >>> summarise(np.log([[[0.75, 0.25]], [[0.25, 0.75]]])).p.round(6)
    array([[0.5, 0.5]])
    """

    p: np.ndarray  # [N, C] mean over samples of the probabilities
    log_p: np.ndarray  # [N, C] its logarithm, finite where p underflows, -inf where a probability of 0 was brought
    expected_log_p: np.ndarray  # [N, C] mean over samples of the log-probabilities
    expected_log_smoothed_p: np.ndarray  # [N, C] mean over samples of the logarithms of smoothed probabilities
    scores: dict[str, np.ndarray]  # uncertainties, [N] each, high where a point is uncertain; the first three in nats


def summarise(logits: np.ndarray) -> Summary:
    """Reduce logits [S, N, C] over their samples.

    Raises ValueError for logits without a finite largest one (NaN, infinity, or none above minus infinity), and for
    none at all.

    >>> sorted(summarise(np.zeros((3, 1, 2))).scores)
    ['energy', 'expected_entropy', 'msp', 'mutual_information', 'predictive_entropy']
    """
    samples, points, classes = logits.shape
    if not logits.size:
        raise ValueError(f"logits: expected samples, points and classes, found {logits.shape}")
    step = max(1, _CHUNK // (samples * classes))
    chunks = [_summarise(logits[:, start : start + step]) for start in range(0, points, step)]
    log_p, expected_log_p, expected_entropy, cross, free, norm = (np.concatenate(parts) for parts in zip(*chunks))
    p = np.exp(log_p)
    predictive_entropy = entropy(p)
    information = predictive_entropy - expected_entropy
    information[information < _ROUNDING] = 0
    scores = {
        "predictive_entropy": predictive_entropy,
        "expected_entropy": expected_entropy,
        "mutual_information": information,
        "msp": 1 - p.max(-1),
    }
    if norm.max() > _NORMALISED:
        scores["energy"] = free
    return Summary(p, log_p, expected_log_p, cross, scores)


def _summarise(logits: np.ndarray) -> tuple[np.ndarray, ...]:
    log_p, norm = _normalised(logits)
    p = np.exp(log_p)
    terms = np.multiply(p, log_p, out=np.zeros_like(p), where=p > 0)  # p log p tends to 0, also where log p is -inf
    expected_entropy = -terms.sum(-1).mean(0)
    return (
        log_mean_exp(log_p),
        log_p.mean(0),
        expected_entropy,
        np.log(smooth(p)).mean(0),
        -norm.mean(0),
        np.abs(norm).max(0),
    )


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """log p_c = l_c - log sum_k exp(l_k), in float64.

    >>> log_softmax(np.zeros((1, 2))).round(3)
    array([[-0.693, -0.693]])
    """
    return _normalised(logits)[0]


def _normalised(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities, and the log-sum-exp [...] that was taken from the logits [..., C]; in float64."""
    shifted = logits.astype(np.float64)
    largest = shifted.max(-1, keepdims=True)
    if not np.isfinite(largest).all():
        wrong = int((~np.isfinite(largest)).sum())
        raise ValueError(f"logits: expected a finite largest one at every point, found NaN or infinity at {wrong}")
    shifted -= largest
    total = np.log(np.exp(shifted).sum(-1, keepdims=True))
    return shifted - total, (largest + total)[..., 0]


def accuracy(p: np.ndarray, y: np.ndarray) -> float:
    """mean 1[argmax_c p_c = y]; the first class of a tie.

    >>> accuracy(np.array([[0.75, 0.25], [0.75, 0.25]]), np.array([0, 1]))
    0.5
    """
    check_labels(p, y)
    return float((p.argmax(-1) == y).mean())


def log_likelihood(log_p: np.ndarray, y: np.ndarray) -> float:
    """mean log p(y); log p [N, C] is log mean_s p_s (predictive) or mean_s log p_s (expected).

    >>> round(log_likelihood(np.log([[0.5, 0.5]]), np.array([1])), 3)
    -0.693
    """
    check_labels(log_p, y)
    return float(np.take_along_axis(log_p, y[:, None], -1).mean())


def brier(p: np.ndarray, y: np.ndarray) -> float:
    """mean over points of sum_c (p_c - 1[y = c])^2, in [0, 2].

    >>> brier(np.array([[0.75, 0.25]]), np.array([0]))
    0.125
    """
    check_labels(p, y)
    distance = np.array(p)
    distance[np.arange(len(y)), y] -= 1  # not a matrix of one-hot rows, which has the square of the classes
    return float((distance**2).sum(-1).mean())
