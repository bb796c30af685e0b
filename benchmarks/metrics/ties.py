"""Areas under curves with tied scores: expectations over all orders of the ties."""

from __future__ import annotations

import numpy as np


def expected_auroc(fixed: np.ndarray, labels: np.ndarray, drawn: np.ndarray, drawn_labels: np.ndarray, m: int) -> float:
    """Expected area under the ROC curve of fixed cases and m of the drawn ones, all subsets equally likely; subsets
    with labels of one kind count 0. Scores [N] and [G], labels 0 or 1.

    Sum over the number a of findings among the m, weighted by its probability, of the pairs in order, ties one half;
    each pair of drawn cases has the weight a/P, (m - a)/Q or their product.
    """
    one, none = fixed[labels == 1], fixed[labels == 0]
    drawn_one, drawn_none = drawn[drawn_labels == 1], drawn[drawn_labels == 0]
    findings, share = _findings(len(drawn_one), len(drawn_none), m)
    a, b = findings / max(len(drawn_one), 1), (m - findings) / max(len(drawn_none), 1)
    pairs = (
        _in_order(one, none)
        + a * _in_order(drawn_one, none)
        + b * _in_order(one, drawn_none)
        + a * b * _in_order(drawn_one, drawn_none)
    )
    both = (len(one) + findings) * (len(none) + m - findings)
    return float(np.sum(share * np.divide(pairs, both, out=np.zeros_like(share), where=both > 0)))


def expected_auprc(fixed: np.ndarray, labels: np.ndarray, drawn: np.ndarray, drawn_labels: np.ndarray, m: int) -> float:
    """Expected area under precision against recall by trapezoids, as for :func:`expected_auroc`; subsets without a
    finding count 0.

    The area is sum_v t_v (precision at scores >= v + precision at scores > v) / 2, divided by the number of findings,
    over scores v with t_v findings. Both precisions depend on i and j, the numbers of the P_v findings and Q_v others
    above v in the subset, which with a have a multivariate hypergeometric distribution.
    """
    one, none = np.sort(fixed[labels == 1]), np.sort(fixed[labels == 0])
    drawn_one, drawn_none = np.sort(drawn[drawn_labels == 1]), np.sort(drawn[drawn_labels == 0])
    scores = np.unique(np.concatenate([one, drawn_one]))
    total = 0.0
    at, drawn_at = _number(one, scores), _number(drawn_one, scores)
    for side in ("left", "right"):  # at least v, and above v
        above = [len(each) - np.searchsorted(each, scores, side) for each in (one, none, drawn_one, drawn_none)]
        beyond = np.stack(above[2:])
        for found in np.unique(beyond, axis=1).T:
            same = (beyond == found[:, None]).all(0)
            i, plain, by_findings = _weights(int(found[0]), int(found[1]), len(drawn_one), len(drawn_none), m, len(one))
            inside = drawn_at[same] / np.maximum(found[0] if side == "left" else len(drawn_one) - found[0], 1)
            for j in range(plain.shape[1]):
                right, wrong = above[0][same, None] + i, above[1][same, None] + j
                precision = np.divide(right, right + wrong, out=np.ones(right.shape), where=right + wrong > 0)
                if side == "left":
                    there = (at[same, None] + inside[:, None] * i) * plain[:, j]
                else:
                    there = (at[same, None] - inside[:, None] * i) * plain[:, j]
                    there = there + inside[:, None] * by_findings[:, j]
                total += float((precision * there).sum()) / 2
    return total


def _weights(
    findings: int, others: int, all_findings: int, all_others: int, m: int, known: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return i [I], and [I, J]: P(i, j) E[1 / n | i, j] and P(i, j) E[a / n | i, j], with n = known + a findings in the
    subset, and i and j of them and of the others above a score."""
    i, j = np.arange(findings + 1)[:, None, None], np.arange(others + 1)[:, None]
    a = np.arange(max(0, m - all_others), min(all_findings, m) + 1)
    chance = np.exp(
        log_choose(findings, i)
        + log_choose(others, j)
        + log_choose(all_findings - findings, a - i)
        + log_choose(all_others - others, m - a - j)
        - log_choose(all_findings + all_others, m)
    )
    n = known + a
    each = np.divide(chance, n, out=np.zeros_like(chance), where=np.broadcast_to(n > 0, chance.shape))
    return i[:, 0, 0], each.sum(-1), (each * a).sum(-1)


def _findings(findings: int, others: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the possible numbers of findings among m of these cases, and their probabilities."""
    a = np.arange(max(0, m - others), min(findings, m) + 1)
    return a, np.exp(log_choose(findings, a) + log_choose(others, m - a) - log_choose(findings + others, m))


def log_choose(n: int, k: np.ndarray | int) -> np.ndarray:
    """log of n choose k; -inf where n choose k is 0."""
    from scipy.special import gammaln  # slow to load, and most commands only read records

    k = np.asarray(k)
    inside = (k >= 0) & (k <= n)
    safe = np.where(inside, k, 0)
    return np.where(inside, gammaln(n + 1) - gammaln(safe + 1) - gammaln(n - safe + 1), -np.inf)


def _in_order(high: np.ndarray, low: np.ndarray) -> float:
    """Number of pairs with the first score above the second, ties one half."""
    ordered = np.sort(low)
    return float(np.searchsorted(ordered, high, "left").sum() + np.searchsorted(ordered, high, "right").sum()) / 2


def _number(ordered: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return np.searchsorted(ordered, scores, "right") - np.searchsorted(ordered, scores, "left")
