"""Adversarial attacks: small changes of inputs that mislead a model."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fvi_core.families.base import Functions
from fvi_core.telling import counted


def fgsm(
    functions: Functions,
    x: Tensor,
    y: Tensor,
    epsilon: float | Tensor,
    low: float | Tensor,
    high: float | Tensor,
    *,
    chunk: int = 500,
) -> Tensor:
    """The fast gradient sign method: ``x + epsilon sign(grad_x loss(x, y))`` (Goodfellow et al. 2015, sec. 4).

    The loss is the negative log-likelihood of the mean predictive, ``-log 1/S sum_s softmax(f_s(x))_y``. Inputs ``x [R,
    N, ...]`` of a floating type; labels ``y [R, N]``; ``functions`` returns logits ``[R, S, N, K]``, independent
    between points. ``epsilon`` and the bounds ``low``, ``high`` of the result are numbers, or tensors that broadcast to
    ``x`` (one per channel), in the units of ``x``; a value beyond a bound moves no further out. Points are attacked
    ``chunk`` at a time. The result is a constant; parameters get no gradient, also within ``no_grad``. Raises TypeError
    for other inputs, ValueError for a negative epsilon.

    dirichlet2022 (sec. 4.5, tables 14 to 16 and 20 to 22) has epsilon = 0, 0.05, ..., 0.3 and leaves open: its units;
    whether attacked images are clipped to the range of pixels; whether the loss is the mean predictive's or each
    sample's; whether the attack knows the samples that predict (dropout by input draws others at every call anyway).
    Units of the normalised inputs fit its numbers better: there, 0.3 is some 19 of CIFAR's 255 levels, in the range of
    pixels 76, which should leave a network that was not trained against attacks at chance; the paper reports 11 to 26
    per cent correct on CIFAR-10.
    """
    if not x.is_floating_point():
        raise TypeError(f"attack: expected inputs of a floating type, in the units of the network, found {x.dtype}")
    if bool((torch.as_tensor(epsilon) < 0).any()):
        raise ValueError(f"attack: expected epsilon >= 0, found {epsilon}")
    x = x.detach()
    epsilon, low, high = (torch.as_tensor(value, dtype=x.dtype, device=x.device) for value in (epsilon, low, high))
    pieces = list(zip(x.split(chunk, 1), y.split(chunk, 1), strict=True))
    sizes = [labels.shape[1] for _, labels in pieces]
    signs = [_gradient(functions, *piece).sign() for piece in counted("attack on inputs: piece", pieces, sizes)]
    return (x + epsilon * torch.cat(signs, 1)).clamp(torch.minimum(low, x), torch.maximum(high, x))


@torch.enable_grad()
def _gradient(functions: Functions, x: Tensor, y: Tensor) -> Tensor:
    """Return the gradient of each point's loss in the point, in the shape of ``x``."""
    x = x.clone().requires_grad_()
    # In float64: where the model is sure of y, float32 rounds 1 - p_y, and so the gradient, to 0.
    log_p = functions(x).double().log_softmax(-1)
    labels = y[:, None, :, None].expand(*log_p.shape[:-1], 1)
    log_mean = log_p.gather(-1, labels)[..., 0].logsumexp(1) - math.log(log_p.shape[1])
    return torch.autograd.grad(-log_mean.sum(), x)[0]
