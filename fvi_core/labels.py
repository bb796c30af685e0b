"""Class labels as regression targets, for Gaussian process priors of classifiers."""

from __future__ import annotations

import torch
from torch import Tensor


def milios_targets(labels: Tensor, n_classes: int, alpha_eps: float = 0.01) -> tuple[Tensor, Tensor]:
    """Log-normal targets and noise variances of class labels (Milios et al. 2018, sec. 4).

    With a_k = alpha_eps + [y = k], the Gamma(a_k, 1) variable of the Dirichlet is matched in mean and
    variance by a log-normal one: variance_k = log(1 / a_k + 1), target_k = log a_k - variance_k / 2.

    Labels ``[R, N]`` (long) -> targets, variances ``[R, N, n_classes]`` in float64. A zero-mean process needs centred
    targets (their mean is negative). Raises ValueError for a label outside [0, n_classes) or alpha_eps <= 0.
    """
    if alpha_eps <= 0:
        raise ValueError(f"alpha_eps: expected a number above 0, found {alpha_eps}")
    if labels.numel() and (labels.min() < 0 or labels.max() >= n_classes):
        raise ValueError(
            f"labels: expected integers in [0, {n_classes}), found {int(labels.min())} to {int(labels.max())}"
        )
    alpha = torch.nn.functional.one_hot(labels, n_classes).double() + alpha_eps
    variances = (1 / alpha + 1).log()
    return alpha.log() - variances / 2, variances
