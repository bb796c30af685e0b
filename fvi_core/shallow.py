"""Hundreds of one-hidden-layer ReLU networks with one output at shared inputs, on a CPU: one fused pass with Numba.

In predictor-space inference (pequignot2020 eq. 9) every step evaluates about a thousand small networks at 200 inputs.
With tensor operations the hidden activations (tens of megabytes) pass through memory many times; here they stay in
registers and the first-level cache. Values and gradients equal the network's up to float32 rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fvi_core.compiled import njit, numba
from fvi_core.networks import Network, Parameters

LANES = 16
"""Inputs are padded with zeros to a multiple of this: a rest after whole vector registers costs as much as several."""
UNROLLED = 16
"""Features up to which a hidden unit is computed in one loop; LLVM does not unroll longer loops."""


if numba is not None:  # otherwise the tensor path of blocks.py serves
    from numba.np.unsafe.ndarray import to_fixed_tuple

    ORDERED = {"contract", "nnan", "ninf", "nsz"}  # sums stay in the order of the code

    @njit(fastmath=True)
    def _hidden(weight, bias, x, z):
        """``z = bias + weight . x`` for one unit: weight [D] (of any stride), x [D, T], z [T]; four inputs at a
        time.
        """
        features, points = x.shape
        for t in range(points):
            z[t] = bias
        d = 0
        while d + 4 <= features:
            a, b, c, e = weight[d], weight[d + 1], weight[d + 2], weight[d + 3]
            xa, xb, xc, xe = x[d], x[d + 1], x[d + 2], x[d + 3]
            for t in range(points):
                z[t] += a * xa[t] + b * xb[t] + c * xc[t] + e * xe[t]
            d += 4
        while d < features:
            a, xa = weight[d], x[d]
            for t in range(points):
                z[t] += a * xa[t]
            d += 1

    @njit(fastmath=True)
    def _project(z, x, out):
        """``out = x . z``: z [T], x [D, T or more], out [D]; four inputs at a time."""
        features, points = x.shape[0], len(z)
        d = 0
        while d + 4 <= features:
            xa, xb, xc, xe = x[d], x[d + 1], x[d + 2], x[d + 3]
            a = b = c = e = numba.float32(0)
            for t in range(points):
                a += z[t] * xa[t]
                b += z[t] * xb[t]
                c += z[t] * xc[t]
                e += z[t] * xe[t]
            out[d], out[d + 1], out[d + 2], out[d + 3] = a, b, c, e
            d += 4
        while d < features:
            xa = x[d]
            a = numba.float32(0)
            for t in range(points):
                a += z[t] * xa[t]
            out[d] = a
            d += 1


@lru_cache(maxsize=16)
def _kernels(features: int) -> tuple[Callable, Callable]:
    """The passes for so many features, a constant to the compiler: all terms of a unit then stay in registers."""
    unrolled = features <= UNROLLED

    @njit(fastmath=ORDERED)
    def forward(weight1, bias1, weight2, bias2, x, out):
        """weight1 [R, S, D, H], bias1, weight2 [R, S, H], bias2 [R, S], x [R, D, padded T] -> out [R, S, T]."""
        padded = x.shape[2]
        f, z = np.empty(padded, x.dtype), np.empty(padded, x.dtype)
        for r in range(weight1.shape[0]):
            flat = x[r].reshape(-1)
            for s in range(weight1.shape[1]):
                f[:] = bias2[r, s]
                for h in range(weight1.shape[3]):
                    w = weight2[r, s, h]
                    if unrolled:
                        bias = bias1[r, s, h]
                        terms = to_fixed_tuple(weight1[r, s, :, h], features)  # type: ignore[call-arg, var-annotated]
                        for t in range(padded):
                            a = bias
                            for d in range(features):
                                a += terms[d] * flat[d * padded + t]
                            f[t] += w * max(a, numba.float32(0))
                    else:
                        _hidden(weight1[r, s, :, h], bias1[r, s, h], x[r], z)
                        for t in range(padded):
                            f[t] += w * max(z[t], numba.float32(0))
                out[r, s] = f[: out.shape[2]]

    @njit(fastmath=True)
    def backward(weight1, bias1, weight2, x, g, d_weight1, d_bias1, d_weight2):
        """Gradients for g [R, S, T], the gradient of the values; hidden activations are computed again."""
        padded, points = x.shape[2], g.shape[2]
        whole = np.empty(padded, x.dtype)
        z = whole[:points]
        for r in range(weight1.shape[0]):
            flat = x[r].reshape(-1)
            for s in range(weight1.shape[1]):
                gs = g[r, s]
                for h in range(weight1.shape[3]):
                    if unrolled:
                        bias = bias1[r, s, h]
                        terms = to_fixed_tuple(weight1[r, s, :, h], features)  # type: ignore[call-arg, var-annotated]
                        for t in range(padded):
                            a = bias
                            for d in range(features):
                                a += terms[d] * flat[d * padded + t]
                            whole[t] = a
                    else:
                        _hidden(weight1[r, s, :, h], bias1[r, s, h], x[r], whole)
                    w = weight2[r, s, h]
                    total2 = numba.float32(0)
                    total = numba.float32(0)
                    for t in range(points):
                        active = z[t] > 0
                        total2 += gs[t] * z[t] if active else numba.float32(0)
                        z[t] = gs[t] * w if active else numba.float32(0)
                        total += z[t]
                    d_weight2[r, s, h] = total2
                    d_bias1[r, s, h] = total
                    _project(z, x[r], d_weight1[r, s, :, h])

    return forward, backward


def fits(network: Network, x: Tensor) -> bool:
    """Whether this network at these inputs is one that :func:`evaluate` computes."""
    return numba is not None and x.device.type == "cpu" and x.dtype == torch.float32 and network.shallow


def evaluate(parameters: Parameters, x: Tensor) -> Tensor:
    """``[R, S, N, 1]`` for parameters ``[R, S, *shape]`` of a network that fits and inputs ``[R, N, D]``."""
    weight1, bias1, weight2, bias2 = parameters.values()
    return _Shallow.apply(x, weight1, bias1, weight2.squeeze(-1), bias2.squeeze(-1)).unsqueeze(-1)


class _Shallow(torch.autograd.Function):
    """Function values ``[R, S, N]`` of S networks at ``x [R, N, D]``; gradients to the parameters only."""

    @staticmethod
    def forward(ctx, x: Tensor, weight1: Tensor, bias1: Tensor, weight2: Tensor, bias2: Tensor) -> Tensor:
        replicas, points, features = x.shape
        ctx.kernels = forward, _ = _kernels(features)
        padded = x.new_zeros(replicas, features, -(-points // LANES) * LANES)
        padded[..., :points] = x.transpose(1, 2)
        ctx.save_for_backward(padded, weight1, bias1, weight2)
        out = x.new_empty(replicas, weight1.shape[1], points)
        forward(*(t.numpy() for t in (weight1, bias1, weight2, bias2, padded, out)))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        x, weight1, bias1, weight2 = ctx.saved_tensors
        gradient = gradient.contiguous()
        gradients = [t.new_empty(t.shape) for t in (weight1, bias1, weight2)]
        ctx.kernels[1](*(t.numpy() for t in (weight1, bias1, weight2, x, gradient, *gradients)))
        return None, *gradients, gradient.sum(-1)
