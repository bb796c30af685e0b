"""Products of matrices whose last bits do not depend on how many replicas are computed side by side."""

from __future__ import annotations

import torch
from torch import Tensor


def product(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """``a b + bias`` for ``a [B, N, K]``, ``b [B, K, M]`` and a bias that broadcasts to ``[B, N, M]``.

    A batch of one product of one row is computed twice: with AVX-512, MKL takes another kernel for it than for larger
    batches, and it rounds otherwise.
    """
    # The bias too: its gradient is then a sum over as many axes as in a batch.
    if a.shape[:2] == (1, 1):
        twice = None if bias is None else bias.expand(2, -1, -1)
        return product(a.expand(2, -1, -1), b.expand(2, -1, -1), twice)[:1]
    return torch.bmm(a, b) if bias is None else torch.baddbmm(bias, a, b)
