"""Products of matrices whose last bits do not depend on how many replicas are computed side by side."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor


def product(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """``a b + bias`` for ``a [B, N, K]``, ``b [B, K, M]`` and a bias that broadcasts to ``[B, N, M]``.

    A batch of one product of one row or column is computed twice: MKL takes another kernel for it than for larger
    batches, and it rounds otherwise. So are its gradients. Not on other devices, nor in mixed
    precision.
    """
    few = a.shape[0] == 1 and 1 in (*a.shape[1:], b.shape[2])
    if few and a.is_cpu and not torch.is_autocast_enabled("cpu"):
        if torch._C._are_functorch_transforms_active():
            return _AloneTransformed.apply(a, b, bias)
        return _Alone.apply(a, b, bias) if torch.is_grad_enabled() else _doubled(a, b, bias)
    return torch.bmm(a, b) if bias is None else torch.baddbmm(bias, a, b)


def _doubled(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return the product of a batch of one, computed as the first of two equal ones."""
    a, b = a.expand(2, -1, -1), b.expand(2, -1, -1)
    return (torch.bmm(a, b) if bias is None else torch.baddbmm(bias.expand(2, -1, -1), a, b))[:1]


class _Alone(torch.autograd.Function):
    """Product of a batch of one. Slices of a doubled batch would give its gradients the first's bits only with a
    batch's memory layout, which slices do not preserve."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)
        ctx.bias = None if bias is None else bias.shape
        return _doubled(a, b, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        to_a, to_b, to_bias = ctx.needs_input_grad
        times = product if torch.is_grad_enabled() else _doubled
        return (
            times(gradient, b.mT) if to_a else None,
            times(a.mT, gradient) if to_b else None,
            gradient.expand(2, -1, -1).sum_to_size(2, *ctx.bias[1:])[:1] if to_bias else None,
        )

    @staticmethod
    def jvp(ctx: Any, a_change: Tensor | None, b_change: Tensor | None, bias_change: Tensor | None) -> Tensor:
        a, b = ctx.saved_tensors
        moved = a.new_zeros(1, a.shape[1], b.shape[2]) if bias_change is None else bias_change
        if a_change is not None:
            moved = product(a_change, b, moved)
        return moved.expand(1, a.shape[1], b.shape[2]) if b_change is None else product(a, b_change, moved)


class _AloneTransformed(torch.autograd.Function):
    """:class:`_Alone` for ``torch.func``, whose contract makes every call slower."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor, b: Tensor, bias: Tensor | None) -> Tensor:
        return _doubled(a, b, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor) -> None:
        a, b, bias = inputs
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)
        ctx.bias = None if bias is None else bias.shape

    backward, jvp = staticmethod(_Alone.backward), staticmethod(_Alone.jvp)


# torch inspects a function with `setup_context` at every call, unless its signature is there.
_AloneTransformed.forward.__signature__ = inspect.signature(_AloneTransformed.forward)  # type: ignore[attr-defined]
