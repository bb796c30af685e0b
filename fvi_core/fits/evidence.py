"""Laplace evidence as a function of the prior precision, and its maximum.

    log p(D) ~ log p(D | w) + 1/2 [ P log delta - sum_i log(l_i + delta) - delta |w - m|^2 ]

at the trained weights w, with the curvature's eigenvalues l_i and the prior N(m, I / delta) of the P weights that have
a posterior (MacKay 1992; Immer et al. 2021, sec. 2). Its derivative in log delta, half of ``sum_i l_i / (l_i + delta)
- delta |w - m|^2``, decreases monotonically: there is at most one maximum.
"""

from __future__ import annotations

import math

from torch import Tensor

from fvi_core.fitting import FitFailed

LOW, HIGH = 1e-10, 1e10
STEPS = 70  # halvings: after 62 the bounds are neighbouring floating-point numbers


def evidence(eigenvalues: Tensor, distance: float, precision: float) -> float:
    """Return the terms of the log evidence that depend on the prior precision; ``distance``: |w - m|^2."""
    complexity = (eigenvalues + precision).log().sum()
    return 0.5 * (len(eigenvalues) * math.log(precision) - float(complexity) - precision * distance)


def slope(eigenvalues: Tensor, distance: float, precision: float) -> float:
    """Return the derivative of :func:`evidence` in the logarithm of the prior precision."""
    return 0.5 * (float((eigenvalues / (eigenvalues + precision)).sum()) - precision * distance)


def best(eigenvalues: Tensor, distance: float) -> float:
    """Return the prior precision of largest evidence. Raises :class:`FitFailed` if it is not between LOW and HIGH."""
    low, high = math.log(LOW), math.log(HIGH)
    if slope(eigenvalues, distance, LOW) <= 0 or slope(eigenvalues, distance, HIGH) >= 0:
        raise FitFailed(
            f"the marginal likelihood has no maximum at a prior precision between {LOW:g} and {HIGH:g} (the squared "
            f"norm of the weights is {distance:.3g}, the trace of the curvature {float(eigenvalues.sum()):.3g}); give "
            "the precision"
        )
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(eigenvalues, distance, math.exp(middle)) > 0 else (low, middle)
    return math.exp((low + high) / 2)
