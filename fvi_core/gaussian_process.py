"""Exact Gaussian process regression and the fit of kernel hyper-parameters; float64, one process per replica.

Targets are ``[R, N]``, or ``[R, N, Q]`` for Q independent processes that share one kernel, or of a kernel of vectors
for one process of vectors. A noise *variance* is ``[R]``, one per point ``[R, N]``, or one per point and output ``[R,
N, Q]``. The prior mean is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fvi_core.data import rows
from fvi_core.kernels import Kernel, Params, among, evenly_spaced
from fvi_core.random import Streams
from fvi_core.scales import inverse_softplus_of, softplus
from fvi_core.telling import due, tell
from fvi_core.triangular import cholesky, log_determinant, solve_lower

ADVICE = "where rows are repeated with equal targets the marginal likelihood grows without bound as the noise goes to 0"


def log_marginal_likelihood(kernel: Kernel, params: Params, noise: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """log N(y | 0, K + noise), summed over outputs, ``[R]`` in nats (Rasmussen & Williams 2006, eq. 2.30).

    Inputs ``[R, N, ...]``; a replica whose covariance is not positive definite gets NaN.
    """
    gram, added, targets = _covariance(kernel, params, noise, x, y)
    factor = _factor(gram, added)
    return _log_density(factor, solve_lower(factor, targets)).sum(1)


def log_evidence(kernel: Kernel, params: Params, noise: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """:func:`log_marginal_likelihood` with gradients in closed form, which cost a third of autograd's.

    They round otherwise. :func:`fit_kernel` keeps autograd's, since training under a fitted prior amplifies rounding.
    """
    return _Evidence.apply(*_covariance(kernel, params, noise, x, y)).sum(1)


class _Evidence(torch.autograd.Function):
    """log N(y | 0, K + noise), ``[R, Q]``, of what :func:`_covariance` returns.

    Gradients: for K ``(a a^T - (K + noise)^-1) / 2`` with ``a = (K + noise)^-1 y`` (Rasmussen & Williams 2006, eq.
    5.9), for y ``-a``.
    """

    @staticmethod
    def forward(ctx: Any, gram: Tensor, noise: Tensor, targets: Tensor) -> Tensor:
        factor = _factor(gram, noise)
        white = solve_lower(factor, targets)
        ctx.save_for_backward(factor, white)
        return _log_density(factor, white)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        factor, white = ctx.saved_tensors
        gradient, shared = gradient[..., None, None], factor.shape[1] == 1
        if shared:  # outputs are columns then
            white, gradient = white.transpose(1, 3), gradient.transpose(1, 3)
        weights = torch.linalg.solve_triangular(factor.mT, white, upper=True)
        scaled = gradient * weights
        slope = torch.cholesky_inverse(factor).mul_(-0.5 * gradient.sum(-1, keepdim=True))
        slope += (0.5 * scaled) @ weights.mT
        to_targets = -scaled.transpose(1, 3) if shared else -scaled
        return slope.sum(1, keepdim=True), slope.diagonal(dim1=-2, dim2=-1), to_targets


def fit_kernel(
    kernel: Kernel,
    x: Tensor,
    y: Tensor,
    streams: Streams,
    *,
    steps: int = 500,
    lr: float = 0.05,
    batch_size: int | None = None,
    init_noise: float = 0.1,
    min_noise: float = 1e-4,
    fixed_noise: Tensor | None = None,
    scale: Callable[[Tensor], Tensor] = lambda x: x,
    transform: str = "log",
    start: str = "median",
) -> tuple[Params, Tensor]:
    """Hyper-parameters and noise variance by the marginal likelihood of random batches (Chen et al. 2022).

    Adam on the mean log marginal likelihood per point of a batch; every replica draws its own batches, without
    replacement within a pass, and is fitted as if alone. ``batch_size=None`` uses all points at every step.
    ``fixed_noise`` (such as the variances of Milios et al. 2018) is not fitted; otherwise the noise starts at
    ``init_noise`` and stays above ``min_noise``, both variances. ``scale`` converts x to the kernel's inputs, a batch
    at a time. ``transform``: Adam moves the logarithms of the hyper-parameters and of the noise, or with "softplus" the
    numbers z whose softplus log(1 + e^z) they are. ``start``: length-scales from the "median" distance of x, or "one".
    Returns constants: the params of ``kernel`` and the noise, ``[R]`` if fitted.
    """
    replicas, n = x.shape[:2]
    if not init_noise > min_noise >= 0:
        raise ValueError(f"expected init_noise > min_noise >= 0, found {init_noise} and {min_noise}")
    size = n if batch_size is None else min(batch_size, n)
    initial = kernel.init(replicas, x[0, 0].numel(), scale(evenly_spaced(x)) if start == "median" else None)
    free = {name: _free(value.to(x.device), transform).requires_grad_() for name, value in initial.items()}
    log_noise = torch.zeros(replicas, dtype=torch.float64, device=x.device) + math.log(init_noise - min_noise)
    free_noise = _free(log_noise, transform).requires_grad_(fixed_noise is None)
    optimiser = torch.optim.Adam([*free.values(), free_noise], lr=lr)
    order: Tensor | None = None
    first = n
    for step in range(steps):
        if due(step, steps):
            tell(f"fitting a kernel, step {step} of {steps}")
        if order is None or first + size > n:
            order, first = streams.permutation(n), 0
        batch = order[:, first : first + size]
        first += size
        params = {name: _log(value, transform) for name, value in free.items()}
        noise = _log(free_noise, transform).exp() + min_noise if fixed_noise is None else fixed_noise
        noise = rows(noise, batch) if noise.dim() > 1 else noise
        objective = log_marginal_likelihood(kernel, params, noise, scale(rows(x, batch)), rows(y, batch)) / size
        optimiser.zero_grad()
        (-objective.sum()).backward()
        optimiser.step()
    fitted = {name: _log(value.detach(), transform) for name, value in free.items()}
    noise = _log(free_noise.detach(), transform).exp() + min_noise if fixed_noise is None else fixed_noise
    return fitted, noise


def _free(log: Tensor, transform: str) -> Tensor:
    """Return the numbers that Adam moves for positive ones with these logarithms."""
    return log if transform == "log" else inverse_softplus_of(log.exp())


def _log(free: Tensor, transform: str) -> Tensor:
    return free if transform == "log" else softplus(free).log()


def posterior(
    kernel: Kernel,
    params: Params,
    noise: Tensor,
    x_train: Tensor,
    y_train: Tensor,
    x_test: Tensor,
    full: bool = False,
) -> tuple[Tensor, Tensor]:
    """Mean and variance of the latent function, without noise (Rasmussen & Williams 2006, eq. 2.23-2.24).

    Test inputs ``[R, M, ...]`` -> mean and variance, each ``[R, M]``, or ``[R, M, Q]`` for targets with an output axis.
    ``full=True`` gives covariances ``[R, M, M]``, or ``[R, Q, M, M]``, in place of variances; of a process of vectors
    ``[R, M Q, M Q]``, the numbers at one point together.
    """
    gram, added, targets = _covariance(kernel, params, noise, x_train, y_train)
    factor = _factor(gram, added)
    cross = solve_lower(factor, kernel(params, x_train, x_test)[:, None])
    # A product with a vector takes another path for one replica than for many, with other last bits.
    mean = (cross * solve_lower(factor, targets)).sum(-2)
    if full:
        cov = kernel(params, x_test, x_test)[:, None] - cross.mT @ cross
        cov = cov.expand(*mean.shape, mean.shape[-1])
    else:
        cov = (kernel.diagonal(params, x_test)[:, None] - cross.square().sum(-2)).expand(mean.shape)
    if kernel.vector:
        mean, cov = mean[:, 0].unflatten(-1, x_test.shape[1:2] + y_train.shape[2:]), cov[:, 0]
        return mean, cov if full else cov.reshape(mean.shape)
    if y_train.dim() == 2:
        return mean[:, 0], cov[:, 0]
    return mean.mT, cov if full else cov.mT


def conditioned(mean: Tensor, covariance: Tensor, noise: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance ``[R, M]`` of the last M of N + M jointly Gaussian values, given the first N with noise.

    mean ``[R, N + M]``, covariance ``[R, N + M, N + M]``, noise variance ``[R]``, observed y ``[R, N]``. NaN for a
    replica whose covariance is not positive definite.
    """
    n = y.shape[1]
    identity = torch.eye(n, dtype=covariance.dtype, device=covariance.device)
    factor = cholesky(covariance[:, :n, :n] + noise[:, None, None] * identity)
    cross = solve_lower(factor, covariance[:, :n, n:])
    away = solve_lower(factor, (y - mean[:, :n]).unsqueeze(-1))
    variance = covariance.diagonal(dim1=-2, dim2=-1)[:, n:] - cross.square().sum(1)
    return mean[:, n:] + (cross * away).sum(1), variance


def _covariance(kernel: Kernel, params: Params, noise: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return K ``[R, 1, N, N]``, noise variances ``[R, 1 or Q, N]`` and targets ``[R, Q, N, 1]``."""
    noise, y = noise.double(), y.double()
    if kernel.vector:
        y, noise = y.flatten(1), noise.flatten(1) if noise.dim() == 3 else noise
    noise = noise.mT if noise.dim() == 3 else noise.reshape(len(noise), 1, -1)
    gram = among(kernel, params, x)[:, None]
    targets = y[:, None] if y.dim() == 2 else y.mT
    return gram, noise.expand(-1, -1, gram.shape[-1]), targets[..., None]


def _log_density(factor: Tensor, white: Tensor) -> Tensor:
    """Return log N(y | 0, L L^T), ``[R, Q]``, from L and ``L^-1 y``."""
    return -0.5 * (white.square().sum((-2, -1)) + log_determinant(factor) + white.shape[-2] * math.log(2 * math.pi))


def _factor(gram: Tensor, noise: Tensor) -> Tensor:
    """Return the factor of K + noise, ``[R, 1 or Q, N, N]``."""
    return cholesky(gram, torch.diag_embed(noise), "the covariance of the targets", ADVICE)
