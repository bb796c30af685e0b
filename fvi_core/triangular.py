"""Cholesky factors of covariances, the triangular algebra upon them, and why a covariance has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Factorisation:
    """Cholesky factorisation that was tried: of the matrix ``[R or 1, ..., M, M]``, with ``added`` on its diagonal;
    ``failed`` ``[R or 1, ...]``: where it has no factor. ``of`` names the matrix, ``advice`` is a possible remedy."""

    matrix: Tensor
    added: Tensor
    failed: Tensor
    of: str
    advice: str

    @torch.no_grad()
    def cause(self, replica: int) -> str:
        """Why the matrix of the replica at this place has no factor; empty where it has one."""
        place = replica if len(self.failed) > 1 else 0
        failed = self.failed[place].flatten()
        if not failed.any():
            return ""
        size = self.matrix.shape[-1]
        matrix = self.matrix[place].reshape(-1, size, size)[failed][0]
        named = f"{self.of}, {size} x {size}"
        if not torch.isfinite(matrix).all():
            return f"{named}, is not finite"
        variances = matrix.diagonal()
        added = float(self.added.broadcast_to(self.matrix.shape)[place].diagonal(dim1=-2, dim2=-1).min())
        rounding = float(variances.sum()) * torch.finfo(matrix.dtype).eps
        exceeded = f", while rounding its entries makes errors of up to {rounding:.1g}" if added < rounding else ""
        fault = f"{named} with variances up to {float(variances.max()):.3g}, is not positive definite with {added:.3g}"
        return "; ".join(filter(None, (f"{fault} added to its diagonal{exceeded}", self.advice)))


_tried: ContextVar[list[Factorisation] | None] = ContextVar("factorisations", default=None)


@contextmanager
def watched() -> Iterator[list[Factorisation]]:
    """All factorisations inside, in their order; it does not look at any, so costs a GPU no wait."""
    tried: list[Factorisation] = []
    token = _tried.set(tried)
    try:
        yield tried
    finally:
        _tried.reset(token)


def first_cause(tried: Sequence[Factorisation], replica: int) -> str:
    """Why the first of these that failed for the replica at this place did; empty where none did."""
    return next(filter(None, (each.cause(replica) for each in tried)), "")


def cholesky(covariance: Tensor, jitter: float | Tensor = 0.0, of: str = "a covariance", advice: str = "") -> Tensor:
    """Lower factor L of covariance + jitter * I, ``[..., M, M]``; all NaN where not positive definite.

    The NaN reaches values and gradients of that batch element alone, so one failed replica never stops the others.
    ``jitter``: a number, or in place of jitter * I a diagonal matrix that broadcasts with the covariance. ``of`` and
    ``advice`` are for messages, by way of :func:`watched`.
    """
    if not isinstance(jitter, Tensor):
        jitter = jitter * torch.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)
    matrix = covariance + jitter
    factor, info = torch.linalg.cholesky_ex(matrix)
    tried = _tried.get()
    if tried is not None:
        tried.append(Factorisation(matrix, jitter, info != 0, of, advice))
    times = factor.mul if factor.requires_grad else factor.mul_  # in place where no gradient needs the factor
    return times(torch.where(info == 0, 1.0, torch.nan).to(factor.dtype)[..., None, None])


def solve_lower(factor: Tensor, right: Tensor) -> Tensor:
    """X of L X = B, lower triangular L ``[..., M, M]``, B ``[..., M, C]``; leading dimensions broadcast.

    A factor shared along the axis before the matrix (outputs, never replicas) is used once with wider
    right-hand sides.
    """
    # The first axis holds replicas: in one joint solve a replica's last bits would depend on its neighbours.
    if right.dim() == factor.dim() > 3 and factor.shape[-3] == 1 < right.shape[-3]:
        columns = right.movedim(-3, -1)
        solved = torch.linalg.solve_triangular(factor.squeeze(-3), columns.flatten(-2), upper=False)
        return solved.unflatten(-1, columns.shape[-2:]).movedim(-1, -3)
    return torch.linalg.solve_triangular(factor, right, upper=False)


def log_determinant(factor: Tensor) -> Tensor:
    """log det(L L^T) of a lower factor ``[..., M, M]`` -> ``[...]``."""
    return 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def lower_triangle(raw: Tensor) -> Tensor:
    """Return a lower factor from free numbers ``[..., M, M]``: those below the diagonal, and exponentials on it."""
    return raw.tril(-1) + torch.diag_embed(raw.diagonal(dim1=-2, dim2=-1).exp())
