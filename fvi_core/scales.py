"""Positive scales as unconstrained parameters: ``rho`` with ``std = softplus(rho)``.

The Gaussians of rudner2022 and cinquin2024 and all kernels hold logarithms instead (``log_var``, ``log_variance``):
gradient steps depend on the parametrisation, so each follows its paper. Hyper-parameters state a prior and a kernel by
their variance, observation noise by its standard deviation, and a start (``rho_init``, ``log_var_init``) in the unit of
its paper.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def softplus(rho: Tensor) -> Tensor:
    """``log(1 + exp(rho))``, finite below 88 in float32. Unlike torch's it rounds alike at every place of a stack."""
    return rho.exp().log1p()


def inverse_softplus(std: float) -> float:
    """``log(exp(std) - 1)`` of a positive number, so that it neither overflows nor cancels."""
    return std + math.log(-math.expm1(-std))


def inverse_softplus_of(std: Tensor) -> Tensor:
    """:func:`inverse_softplus` of every element."""
    return std + torch.log(-torch.expm1(-std))
