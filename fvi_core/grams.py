"""Terms of ``J S J^T`` of linear layers, summed in double precision without forming whole Jacobians.

Entry (i, j) of a layer's weights adds ``(a_i delta_j)_n (a_i delta_j)_m var_ij`` for inputs n and m, where a are the
layer's inputs and delta the gradients of one output of the network in the layer's outputs. Gradients are in closed form
and cost one more product: a step needs the lower half of ``A A^T`` for the scaled rows A of the Jacobian and, with the
gradient G, ``(G + G^T) A``.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fvi_core.products import product

BLOCK = 2**19
"""Most elements of a layer's Jacobian held at once (4 MiB); backward passes recompute them."""
TILE = 128
"""Points whose products with those before them are one product of matrices: half of a Gram matrix is its mirror."""


def layer_gram(a: Tensor, delta: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the term of a linear layer for each output of the network, ``[R, Q, N, N]`` in float64.

    Args: a ``[R, N, in]``; delta ``[R, Q, N, out]``; log-variances of weights ``[R, in, out]`` and biases ``[R, out]``.
    """
    a = torch.cat([a, torch.ones_like(a[..., :1])], -1)  # a bias is one more weight
    log_var = torch.cat([weight, bias.unsqueeze(-2)], -2)
    few = a.shape[1] <= min(a.shape[2], delta.shape[3])  # else the rows of the Jacobian are smaller
    return (_SharedGram if few else _RowsGram).apply(a.double(), delta.double(), log_var.double())


class _RowsGram(torch.autograd.Function):
    """Gram matrix from rows of the Jacobian, by blocks of the layer's inputs and replica by replica."""

    @staticmethod
    def forward(ctx, a: Tensor, delta: Tensor, log_var: Tensor) -> Tensor:
        ctx.save_for_backward(a, delta, log_var)
        gram = a.new_zeros(*delta.shape[:3], a.shape[1])
        for r, q, block, std in _blocks(a, delta, log_var):
            _add_lower(gram[r, q], _rows(a[r, :, block], delta[r, q], std))
        return gram.tril() + gram.tril(-1).mT

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        a, delta, log_var = ctx.saved_tensors
        d_a, d_delta, d_log_var = torch.zeros_like(a), torch.zeros_like(delta), torch.zeros_like(log_var)
        gradient = gradient + gradient.mT
        for r, q, block, std in _blocks(a, delta, log_var):
            part, own = a[r, :, block], delta[r, q]
            rows = _rows(part, own, std)
            moved = torch.mm(gradient[r, q], rows)
            d_log_var[r, block] += (rows.mul_(moved)).sum(0).view_as(std)
            if any(ctx.needs_input_grad[:2]):
                moved = moved.view(len(part), *std.shape).mul_(std)
                d_a[r, :, block] += torch.bmm(moved, own.unsqueeze(-1)).squeeze(-1)
                d_delta[r, q] += torch.bmm(part.unsqueeze(1), moved).squeeze(1)
        return d_a, d_delta, 0.5 * d_log_var


class _SharedGram(torch.autograd.Function):
    """Gram matrix from ``sum_i a_in a_im var_ij`` of every pair of points and unit j, shared by all outputs."""

    @staticmethod
    def forward(ctx, a: Tensor, delta: Tensor, log_var: Tensor) -> Tensor:
        var, n = log_var.exp(), a.shape[1]
        pairs = (a.unsqueeze(2) * a.unsqueeze(1)).flatten(1, 2)
        shared = product(pairs, var).unflatten(1, (n, n)).unsqueeze(1)  # [R, 1, N, N, out]
        both = delta.unsqueeze(3) * delta.unsqueeze(2)
        ctx.save_for_backward(a, delta, var, pairs, shared, both)
        return (shared * both).sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        a, delta, var, pairs, shared, both = ctx.saved_tensors
        gradient = gradient + gradient.mT
        d_shared = (gradient.unsqueeze(-1) * both).sum(1).flatten(1, 2)  # for both points of a pair
        d_log_var = 0.5 * var * product(pairs.mT, d_shared)
        if not any(ctx.needs_input_grad[:2]):
            return None, None, d_log_var
        d_pairs = product(d_shared, var.mT).unflatten(1, (a.shape[1], -1))
        d_a = (d_pairs * a.unsqueeze(1)).sum(2)
        d_delta = (gradient.unsqueeze(-1) * shared * delta.unsqueeze(2)).sum(3)
        return d_a, d_delta, d_log_var


def _blocks(a: Tensor, delta: Tensor, log_var: Tensor) -> Iterator[tuple[int, int, slice, Tensor]]:
    """Yield replica, output, some of the layer's inputs and the standard deviations of their weights ``[in, out]``."""
    size = max(1, BLOCK // (delta.shape[2] * delta.shape[3]))
    for r in range(len(a)):
        std = torch.exp(0.5 * log_var[r])
        for q in range(delta.shape[1]):
            for start in range(0, a.shape[2], size):
                block = slice(start, start + size)
                yield r, q, block, std[block]


def _rows(a: Tensor, delta: Tensor, std: Tensor) -> Tensor:
    """Scaled rows of the Jacobian ``[N, in out]`` for a ``[N, in]``, delta ``[N, out]``, std ``[in, out]``."""
    return (a.unsqueeze(-1) * delta.unsqueeze(-2)).mul_(std).flatten(1)


def _add_lower(gram: Tensor, rows: Tensor) -> None:
    """Add ``A A^T`` of ``A [N, P]`` to gram, below the diagonal and in part above it."""
    for start in range(0, len(rows), TILE):
        end = start + TILE
        gram[start:end, :end].addmm_(rows[start:end], rows[:end].mT)
