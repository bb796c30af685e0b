"""Hundreds of one-hidden-layer ReLU networks with one output at shared inputs, on a CPU: one fused pass with Numba.

In predictor-space inference (pequignot2020 eq. 9) every step evaluates about a thousand small networks at 200 inputs.
As tensor operations the hidden activations (tens of megabytes) go through memory many times; here they live in
registers and in the first-level cache. Values and gradients are those of the network, up to float32 rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fvi_core.networks import Network, Parameters

try:
    import numba
except ImportError:  # the tensor path of blocks.py then serves
    numba = None  # type: ignore[assignment]  # None tells that it is absent


if numba is not None:

    @numba.njit(fastmath=True, cache=True)
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

    @numba.njit(fastmath=True, cache=True)
    def _project(z, x, out):
        """``out = x . z``: x [D, T], z [T], out [D]; four inputs at a time."""
        features, points = x.shape
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

    @numba.njit(fastmath=True, cache=True)
    def _forward(weight1, bias1, weight2, bias2, x, out):
        """weight1 [S, D, H], bias1 [S, H], weight2 [S, H], bias2 [S], x [D, T] -> out [S, T]."""
        z = out[0].copy()
        for s in range(weight1.shape[0]):
            f = out[s]
            f[:] = bias2[s]
            for h in range(weight1.shape[2]):
                _hidden(weight1[s, :, h], bias1[s, h], x, z)
                w = weight2[s, h]
                for t in range(len(f)):
                    f[t] += w * max(z[t], numba.float32(0))

    @numba.njit(fastmath=True, cache=True)
    def _backward(weight1, bias1, weight2, x, g, d_weight1, d_bias1, d_weight2):
        """Gradients for g [S, T], the gradient of the values; hidden activations are computed again."""
        _features, points = x.shape
        z = g[0].copy()
        for s in range(weight1.shape[0]):
            gs = g[s]
            for h in range(weight1.shape[2]):
                _hidden(weight1[s, :, h], bias1[s, h], x, z)
                w = weight2[s, h]
                total2 = numba.float32(0)
                total = numba.float32(0)
                for t in range(points):
                    active = z[t] > 0
                    total2 += gs[t] * z[t] if active else numba.float32(0)
                    z[t] = gs[t] * w if active else numba.float32(0)
                    total += z[t]
                d_weight2[s, h] = total2
                d_bias1[s, h] = total
                _project(z, x, d_weight1[s, :, h])


def fits(network: Network, x: Tensor) -> bool:
    """Whether this network at these inputs is one that :func:`evaluate` computes."""
    return numba is not None and x.device.type == "cpu" and x.dtype == torch.float32 and network.shallow


def evaluate(parameters: Parameters, x: Tensor) -> Tensor:
    """``[R, S, N, 1]`` for parameters ``[R, S, *shape]`` of a network that fits and inputs ``[R, N, D]``."""
    weight1, bias1, weight2, bias2 = parameters.values()
    values = [_Shallow.apply(x[r], weight1[r], bias1[r], weight2[r, ..., 0], bias2[r, ..., 0]) for r in range(len(x))]
    return torch.stack(values).unsqueeze(-1)


class _Shallow(torch.autograd.Function):
    """Function values ``[S, N]`` of S networks at ``x [N, D]``; gradients to the parameters only."""

    @staticmethod
    def forward(ctx, x: Tensor, weight1: Tensor, bias1: Tensor, weight2: Tensor, bias2: Tensor) -> Tensor:
        x = x.t().contiguous()
        ctx.save_for_backward(x, weight1, bias1, weight2)
        out = x.new_empty(weight1.shape[0], x.shape[1])
        _forward(*(t.numpy() for t in (weight1, bias1, weight2, bias2, x, out)))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        x, weight1, bias1, weight2 = ctx.saved_tensors
        gradient = gradient.contiguous()
        made = [t.new_empty(t.shape) for t in (weight1, bias1, weight2)]
        _backward(*(t.numpy() for t in (weight1, bias1, weight2, x, gradient, *made)))
        return None, *made, gradient.sum(-1)
