"""Median distance of samples in every dimension, for the widths of the spectral Stein gradient estimator."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fvi_core.compiled import njit, numba

HALVINGS = 40
"""Most halvings of the range that holds the median: more do not help where many gaps are equal."""


def median_gaps(x: Tensor) -> Tensor:
    """Return the lower median of ``|x_i - x_j|`` over all S^2 pairs of samples ``[R, S, M]`` -> ``[R, M]``.

    Every gap between ordered samples counts for two pairs, and S pairs are 0. NaN if the range is not finite.
    """
    s = x.shape[1]
    place = ((s * s - 1) // 2 - s) // 2
    if place < 0:
        return torch.zeros_like(x[:, 0])
    ordered = x.mT.sort(-1).values
    if numba is not None and x.device.type == "cpu":
        return torch.from_numpy(_of_rows(ordered.flatten(0, 1).numpy(), place)).view(ordered.shape[:2])
    gaps = torch.cat([ordered[..., lag:] - ordered[..., :-lag] for lag in range(1, s)], -1)
    found = gaps.kthvalue(place + 1, -1).values
    return torch.where((ordered[..., -1] - ordered[..., 0]).isfinite(), found, torch.nan)


if numba is not None:

    @njit()
    def _not_above(row, bound):
        """Return how many gaps of ordered samples are at most ``bound``."""
        count, j = 0, 1
        for i in range(len(row) - 1):
            j = max(j, i + 1)
            while j < len(row) and row[j] - row[i] <= bound:
                j += 1
            count += j - i - 1
        return count

    @njit()
    def _of_rows(rows, place):
        """Return the gap of rank ``place``, from 0, for each row of ordered samples.

        The range of the gap is halved until few gaps are left in it; only these are stored and sorted.
        """
        samples = rows.shape[1]
        found, left = np.empty(len(rows), rows.dtype), np.empty(samples * (samples - 1) // 2, rows.dtype)
        for r in range(len(rows)):
            row = rows[r]
            low, high, below = -1.0, row[-1] - row[0], 0
            if not np.isfinite(high):
                found[r] = np.nan
                continue
            inside = len(left)
            for _ in range(HALVINGS):
                if inside <= samples:
                    break
                middle = max(low, 0.0) / 2 + high / 2
                count = _not_above(row, middle)
                if count > place:
                    high, inside = middle, count - below
                else:
                    low, inside, below = middle, inside - (count - below), count
            size, start = 0, 1
            for i in range(samples - 1):
                start = max(start, i + 1)
                while start < samples and row[start] - row[i] <= low:
                    start += 1
                for j in range(start, samples):
                    gap = row[j] - row[i]
                    if gap > high:
                        break
                    left[size] = gap
                    size += 1
            found[r] = np.sort(left[:size])[place - below]
        return found
