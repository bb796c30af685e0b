"""Averages, entropies and smoothing of probabilities, scores to rank, and the check that labels belong to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

Values = TypeVar("Values", "np.ndarray", "Tensor")


def log_mean_exp(x: np.ndarray) -> np.ndarray:
    """log mean_s exp(x_s) over the first axis; -inf where every x_s is.

    The largest terms are counted and left out of the sum, so that log1p preserves the contribution of the others.

    >>> log_mean_exp(np.log([[0.5], [0.25]])).round(3)
    array([-0.981])
    """
    largest = x.max(0)
    at_largest = x == largest
    count = at_largest.sum(0)
    shifted = np.where(at_largest, -np.inf, x - np.where(np.isfinite(largest), largest, 0))
    return np.log1p(np.exp(shifted).sum(0) / count) + np.log(count) + largest - np.log(len(x))


def entropy(p: np.ndarray) -> np.ndarray:
    """-sum_c p_c log p_c over the last axis, in nats; 0 log 0 is 0.

    >>> entropy(np.array([[0.5, 0.5]])).round(3)
    array([0.693])
    """
    import torch  # torch is slow to load, and most commands only read records; its bits are those of scipy.special.entr

    return torch.special.entr(torch.from_numpy(p)).numpy().sum(-1)


def to_rank(scores: np.ndarray) -> np.ndarray:
    """Return scores [N] rounded to 40 bits, a relative 1e-12, so that rounding errors do not order points of one score.

    Entropies of the same probabilities in another order of the classes differ in their last bits.

    >>> len(np.unique(to_rank(np.array([0.3, 0.1 + 0.2]))))
    1
    """
    mantissa, exponent = np.frexp(np.asarray(scores, np.float64))
    return np.ldexp(np.rint(mantissa * 2.0**40), exponent - 40)


def smooth(probabilities: Values, amount: float = 1e-4) -> Values:
    """(1 - amount) p + amount / K over the last axis of K classes, so that log p is finite (dirichlet2022 App. F).

    >>> smooth(np.array([0.0, 1.0]), amount=0.5)
    array([0.25, 0.75])
    """
    return (1 - amount) * probabilities + amount / probabilities.shape[-1]


def check_labels(p: np.ndarray, y: np.ndarray) -> None:
    """Raise ValueError unless p is [N, C], and y has a label from 0 to C - 1 for each of one or more points.

    >>> check_labels(np.array([[0.75, 0.25]]), np.array([1]))
    """
    if p.ndim != 2 or y.shape != (len(p),) or not len(y) or y.min() < 0 or y.max() >= p.shape[-1]:
        found = f"shapes {p.shape} and {y.shape}" + (f", labels {y.min()}..{y.max()}" if y.size else "")
        raise ValueError(f"expected probabilities [N, C] and labels [N] in 0..C-1, found {found}")
