"""The median distance of samples in every dimension, which the spectral Stein gradient estimator has for its widths."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fvi_core.compiled import njit, numba

HALVINGS = 40
"""Most halvings of the range that holds the median: more do not help where many gaps are equal."""


def median_gaps(x: Tensor) -> Tensor:
    """The lower median of ``|x_i - x_j|`` over all S^2 pairs of samples ``[R, S, M]`` -> ``[R, M]``.

    Of samples in order, every gap stands for two pairs, and S pairs are 0. nan where their range is not finite.
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
        """How many gaps of ordered samples are at most so large."""
        count, j = 0, 1
        for i in range(len(row) - 1):
            j = max(j, i + 1)
            while j < len(row) and row[j] - row[i] <= bound:
                j += 1
            count += j - i - 1
        return count

    @njit()
    def _of_rows(rows, place):
        """For each row of ordered samples, of all gaps in order the one at ``place``, counted from 0.

        The range that holds it is halved until few gaps are left in it; only those are sorted, so that thousands of
        gaps need be neither kept nor compared with each other.
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
