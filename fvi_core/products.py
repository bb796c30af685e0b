"""Products of matrices whose last bits do not depend on how many replicas are computed side by side."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor


def product(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """``a b + bias`` for ``a [B, N, K]``, ``b [B, K, M]`` and a bias that broadcasts to ``[B, N, M]``.

    A batch of one product of one row or column is computed twice: MKL takes another kernel for it than for larger
    batches, and it rounds otherwise. So are its gradients. Not on other devices, nor in
    mixed precision.
    """
    few = len(a) == 1 and 1 in (*a.shape[1:], b.shape[2])
    if few and a.is_cpu and not torch.is_autocast_enabled("cpu"):
        plain = not torch.is_grad_enabled() and not torch._C._are_functorch_transforms_active()
        return (_Alone.forward if plain else _Alone.apply)(a, b, bias)
    return torch.bmm(a, b) if bias is None else torch.baddbmm(bias, a, b)


class _Alone(torch.autograd.Function):
    """Product of a batch of one, computed as the first of two equal ones. Slices of a doubled batch would give its
    gradients the first's bits only with a batch's memory layout, which slices do not preserve."""

    generate_vmap_rule = True

    @classmethod
    def apply(cls, *operands: Tensor | None) -> Tensor:
        if torch._C._are_functorch_transforms_active():
            return super().apply(*operands)
        # Without reading the signature of `forward` anew.
        return super(torch.autograd.Function, cls).apply(*operands)  # type: ignore[misc]

    @staticmethod
    def forward(a: Tensor, b: Tensor, bias: Tensor | None) -> Tensor:
        twice = (x.expand(2, -1, -1) for x in (a, b))
        return (torch.bmm(*twice) if bias is None else torch.baddbmm(bias.expand(2, -1, -1), *twice))[:1]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor) -> None:
        a, b, bias = inputs
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)
        ctx.bias = None if bias is None else bias.shape

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        to_a, to_b, to_bias = ctx.needs_input_grad
        return (
            product(gradient, b.mT) if to_a else None,
            product(a.mT, gradient) if to_b else None,
            gradient.expand(2, -1, -1).sum_to_size(2, *ctx.bias[1:])[:1] if to_bias else None,
        )

    @staticmethod
    def jvp(ctx: Any, a_change: Tensor | None, b_change: Tensor | None, bias_change: Tensor | None) -> Tensor:
        a, b = ctx.saved_tensors
        moved = a.new_zeros(1, a.shape[1], b.shape[2]) if bias_change is None else bias_change
        if a_change is not None:
            moved = product(a_change, b, moved)
        return moved.expand(1, a.shape[1], b.shape[2]) if b_change is None else product(a, b_change, moved)


# torch inspects a function with `setup_context` at every call, unless its signature is there.
_Alone.forward.__signature__ = inspect.signature(_Alone.forward)  # type: ignore[attr-defined]
