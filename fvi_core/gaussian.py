"""Divergences between Gaussians."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fvi_core.triangular import cholesky, log_determinant, solve_lower

ADVICE = "more on the diagonals (jitter or gamma), fewer context points or a rougher prior may help"


def gaussian_kl_full(mean_q: Tensor, cov_q: Tensor, mean_p: Tensor, cov_p: Tensor, jitter: float = 0.0) -> Tensor:
    """KL(N(mean_q, cov_q + jitter I) || N(mean_p, cov_p + jitter I)), in nats.

    1/2 [ tr(S_p^-1 S_q) + (m_q - m_p)^T S_p^-1 (m_q - m_p) - M + log det S_p - log det S_q ], as in Rudner et
    al. 2022 and Cinquin & Bamler 2024 (the right-hand side of eq. 2.9).

    Means ``[..., M]``, covariances ``[..., M, M]`` -> ``[...]``. Leading dimensions broadcast; ``cov_p`` of
    shape ``[R, 1, M, M]`` against ``cov_q`` of ``[R, Q, M, M]`` is factored once per replica. Computed in
    float64, returned in the dtype of ``mean_q``. Where a covariance is not positive definite the divergence
    and its gradient are NaN for that batch element only.
    """
    dtype = mean_q.dtype
    mean_q, cov_q, mean_p, cov_p = (t.double() for t in (mean_q, cov_q, mean_p, cov_p))
    return _kl_of_factors(mean_q - mean_p, *_factors(cov_q, cov_p, jitter)).to(dtype)


def _factors(cov_q: Tensor, cov_p: Tensor, jitter: float) -> tuple[Tensor, Tensor]:
    """Return lower factors of the posterior's and the prior's covariance at the context points."""
    factor_p = cholesky(cov_p, jitter, "the prior's covariance at the context points", ADVICE)
    return cholesky(cov_q, jitter, "the variational posterior's covariance at the context points", ADVICE), factor_p


def _kl_of_factors(difference: Tensor, factor_q: Tensor, factor_p: Tensor) -> Tensor:
    """KL of two Gaussians, from ``m_q - m_p`` and the Cholesky factors of both covariances."""
    batch = torch.broadcast_shapes(difference.shape[:-1], factor_q.shape[:-2], factor_p.shape[:-2])
    size = difference.shape[-1]
    if factor_q.shape[:-2] == difference.shape[:-1]:
        solved = solve_lower(factor_p, torch.cat([factor_q, difference[..., None]], dim=-1))
        squares = solved.square().sum((-2, -1))
    else:
        squares = solve_lower(factor_p, factor_q).square().sum((-2, -1))
        squares = squares + solve_lower(factor_p, difference[..., None]).square().sum((-2, -1))
    kl = 0.5 * (squares - size + log_determinant(factor_p) - log_determinant(factor_q))
    return kl.expand(batch)


class _KL(torch.autograd.Function):
    """KL divergence with gradients ``dD/dS_q = 1/2 (S_p^-1 - S_q^-1)`` and ``dD/dm_q = S_p^-1 (m_q - m_p)``, in
    float64."""

    @staticmethod
    def forward(ctx, mean_q: Tensor, cov_q: Tensor, mean_p: Tensor, cov_p: Tensor, jitter: float) -> Tensor:
        difference, (factor_q, factor_p) = mean_q - mean_p, _factors(cov_q, cov_p, jitter)
        ctx.save_for_backward(difference, factor_q, factor_p)
        ctx.shapes = [t.shape for t in (mean_q, cov_q, mean_p, cov_p)]
        return _kl_of_factors(difference, factor_q, factor_p)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        difference, factor_q, factor_p = ctx.saved_tensors
        inverse_p = torch.cholesky_inverse(factor_p)
        weighted = torch.cholesky_solve(difference.unsqueeze(-1), factor_p)
        d_mean = gradient.unsqueeze(-1) * weighted.squeeze(-1)
        scale = 0.5 * gradient[..., None, None]
        d_cov_p = None
        if ctx.needs_input_grad[3]:
            whitened = torch.cholesky_solve(factor_q, factor_p)
            d_cov_p = scale * (inverse_p - whitened @ whitened.mT - weighted @ weighted.mT)
        gradients = (d_mean, scale * (inverse_p - torch.cholesky_inverse(factor_q)), -d_mean, d_cov_p)
        return *(None if d is None else d.sum_to_size(at) for d, at in zip(gradients, ctx.shapes, strict=True)), None


def regularised_gaussian_kl(mean_q: Tensor, cov_q: Tensor, mean_p: Tensor, cov_p: Tensor, gamma: float) -> Tensor:
    """Regularised KL of two Gaussian measures estimated at M points (Cinquin & Bamler 2024, eq. 2.9).

    The ordinary KL with gamma * M added to both diagonals: finite for singular covariances, and convergent as
    M grows. Shapes and failures as :func:`gaussian_kl_full`. A small gamma needs covariances formed in
    float64: the rounding of a singular float32 Gram matrix exceeds gamma * M = 5e-8, say, and gives NaN. Its
    gradient is in closed form, at a third of the operations that autograd takes through both factors.
    """
    double = (t.double() for t in (mean_q, cov_q, mean_p, cov_p))
    return _KL.apply(*double, gamma * mean_q.shape[-1]).to(mean_q.dtype)


def gaussian_kl_diagonal(mean_q: Tensor, var_q: Tensor, mean_p: Tensor, var_p: Tensor) -> Tensor:
    """KL(N(mean_q, diag var_q) || N(mean_p, diag var_p)), ``[..., M]`` -> ``[...]``, in nats.

    1/2 sum_i [ var_q/var_p + (mean_q - mean_p)^2/var_p - 1 - log(var_q/var_p) ].
    """
    ratio = var_q / var_p
    return 0.5 * (ratio + (mean_q - mean_p).square() / var_p - 1 - ratio.log()).sum(-1)


def gaussian_kl_weights(
    mean: Mapping[str, Tensor],
    log_var: Mapping[str, Tensor],
    prior_mean: Mapping[str, Tensor | float] | float = 0.0,
    prior_var: Mapping[str, Tensor | float] | float = 1.0,
) -> Tensor:
    """KL of a mean-field Gaussian over weights from its prior, dicts of ``[R, *shape]`` -> ``[R]``.

    Weights without a log-variance are points, which are not counted. The prior is one number for all weights, or per
    name a number or tensor that broadcasts. Posterior variances are given by their logarithm (log_var = 2 log std).
    """
    if not log_var:
        point = next(iter(mean.values()))
        return point.new_zeros(len(point))
    if isinstance(prior_mean, Mapping) or isinstance(prior_var, Mapping):
        means, variances = (
            at if isinstance(at, Mapping) else dict.fromkeys(log_var, at) for at in (prior_mean, prior_var)
        )
        terms = [_terms(mean[k], own, means[k], variances[k]) for k, own in log_var.items()]
        return 0.5 * reduce(add, (each.reshape(len(each), -1).sum(1) for each in terms))
    return _WeightsKL.apply(prior_mean, prior_var, *(mean[k] for k in log_var), *log_var.values())


def _terms(mean: Tensor, log_var: Tensor, prior_mean: Tensor | float, prior_var: Tensor | float) -> Tensor:
    """Twice the KL of each weight."""
    var_p = prior_var.to(mean) if isinstance(prior_var, Tensor) else mean.new_full((), prior_var)
    log_ratio = log_var - var_p.log()
    return log_ratio.exp() + (mean - prior_mean).square() / var_p - 1 - log_ratio


class _WeightsKL(torch.autograd.Function):
    """KL ``[R]`` of weights from one prior ``N(mean, var)``: means of all tensors, then their log-variances.

    Gradients by the operations of autograd, so to the same bits, without its views of every tensor.
    """

    @staticmethod
    def forward(ctx: Any, prior_mean: float, prior_var: float, *posterior: Tensor) -> Tensor:
        count = len(posterior) // 2
        mean, log_var = (_rows(each) for each in (posterior[:count], posterior[count:]))
        var_p = mean.new_full((), prior_var)
        away, log_ratio = mean - prior_mean, log_var - var_p.log()
        ratio = log_ratio.exp()
        ctx.save_for_backward(away, ratio, var_p)
        ctx.shapes = [each.shape for each in posterior[:count]]
        terms = ratio + away.square() / var_p - 1 - log_ratio
        return 0.5 * reduce(add, (own.sum(1) for own in terms.split(_sizes(ctx.shapes), 1)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        away, ratio, var_p = ctx.saved_tensors
        half = (0.5 * gradient).unsqueeze(1)
        gradients = half / var_p * (2 * away), half * ratio - half
        rows = (own.split(_sizes(ctx.shapes), 1) for own in gradients)
        return None, None, *(own.view(shape) for each in rows for own, shape in zip(each, ctx.shapes, strict=True))


def _rows(tensors: Sequence[Tensor]) -> Tensor:
    """Return tensors ``[R, *shape]`` as one of rows ``[R, P]``."""
    return torch.cat([each.reshape(len(each), -1) for each in tensors], 1)


def _sizes(shapes: Sequence[torch.Size]) -> list[int]:
    return [shape[1:].numel() for shape in shapes]


def sum_of_squares(tensors: Iterable[Tensor]) -> Tensor:
    """Return the sum of squares ``[R]`` of the numbers in tensors ``[R, ...]``."""
    return _SumOfSquares.apply(*tensors)


class _SumOfSquares(torch.autograd.Function):
    """Sum of squares. Gradients have the bits of those that autograd makes by three operations for each tensor."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return reduce(add, (each.square().sum(tuple(range(1, each.dim()))) for each in tensors))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        twice, tensors = 2 * gradient, ctx.saved_tensors
        return torch._foreach_mul(tensors, [twice.view(-1, *[1] * (each.dim() - 1)) for each in tensors])
