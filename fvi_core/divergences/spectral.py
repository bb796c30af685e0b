"""Function-space KL by the spectral Stein gradient estimator (Sun et al. 2019; the estimator: Shi et al. 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from fvi_core.compiled import njit, numba
from fvi_core.divergences.base import Divergence, Step
from fvi_core.families.base import Family, Functions, NotSupported
from fvi_core.registry import DIVERGENCES, checked, later
from fvi_core.triangular import cholesky, log_determinant, solve_lower

HALVINGS = 40
"""Most halvings of the range that holds the median: more do not help where many gaps are equal."""


@torch.no_grad()
def spectral_scores(samples: Tensor, share: float = 0.99) -> Tensor:
    """Estimates of ``grad log q`` at S samples of q, ``[R, S, M]`` -> ``[R, S, M]`` in float64 (Shi et al. 2018, eq. 12
    to 17).

    The score is ``sum_j beta_j psi_j``, psi_j eigenfunctions of the kernel ``exp(-1/2 sum_d ((x_d - x'_d) / l_d)^2)``
    under q by Nystrom's method, ``beta_j = -E_q grad psi_j``. The sum runs over the largest eigenvalues up to the
    fraction ``share`` of their total (1: all), at least one. ``l_d``: sqrt(M) times the median distance in dimension d.
    At the samples themselves ``psi_j(x_s) = sqrt(S) u_sj``, so that the estimate is one matrix product.
    """
    x = samples.double()
    lengths = bandwidths(x)
    scaled = x / lengths
    gram = (-0.5 * torch.cdist(scaled, scaled, compute_mode="donot_use_mm_for_euclid_dist").square()).exp()
    # LAPACK raises for NaN, for all replicas; scores of such samples are NaN by ``pushes``.
    values, vectors = torch.linalg.eigh(gram.nan_to_num())
    total = values.sum(-1, keepdim=True)
    above = values.flip(-1).cumsum(-1).flip(-1)  # including all larger ones
    used = (above < share * total) if share < 1 else torch.ones_like(values, dtype=torch.bool)
    used[..., -1] = True
    weights = torch.where(used & (values > 0), 1 / values, 0.0)
    pushes = (gram @ x - gram.sum(-1, keepdim=True) * x) / lengths.square()
    return vectors @ (weights.unsqueeze(-1) * (vectors.mT @ pushes))


def bandwidths(x: Tensor) -> Tensor:
    """``[R, 1, M]``: sqrt(M) times the median over all pairs of samples ``[R, S, M]``, 1 more where that is
    nearly 0.
    """
    median = median_gaps(x).unsqueeze(1)
    return math.sqrt(x.shape[-1]) * torch.where(median < 1e-6, median + 1, median)


@DIVERGENCES.register("spectral_kl")
@dataclass(frozen=True)
class SpectralKL(Divergence):
    """Surrogate whose gradient, not value, estimates the gradient of ``KL(q(f(C)) || p(f(C)))`` (Sun et al. 2019).

    ``E_q <stop(grad log q(f)), f> - E_q log p(f)``: the score of q is estimated from the likelihood term's draws
    (training's ``samples``), or from ``draws`` further ones, at all context points together; p has closed-form moments.
    ``outputs`` "joint": scores of all outputs together; "independent": of each output separately, with their
    divergences summed. ``noise``: standard deviation added to function values, in q by draws and in p by its variance;
    it prevents singular q and p. ``share``: see :func:`spectral_scores`. Raises ValueError for other ``outputs``.
    """

    reads_numbers = True
    usual_samples = 10

    noise: float = checked(0.01, least=0)
    share: float = checked(0.99, above=0, most=1)
    outputs: str = later("joint", among=("joint", "independent"))
    draws: int | None = later(None, least=2)

    def check(self, family: Family, draws: int) -> None:
        if not draws:
            raise NotSupported(
                f"divergence {self.name!r} needs draws of functions, family {family.name!r} is trained in closed form"
            )
        self._check_number(self.draws or draws, family)

    def _check_number(self, draws: int, family: Family) -> None:
        if draws < 2:
            raise NotSupported(
                f"divergence {self.name!r} needs two or more draws of functions in each training step, found one of "
                f"family {family.name!r}: set the training's samples, for example to {self.usual_samples}"
            )

    def __call__(self, step: Step) -> Tensor:
        self.check(step.family, 0 if step.functions is None else 2)
        x = step.sample_context()
        functions = cast(Functions, step.functions)
        if self.draws is not None:
            functions = step.family.functions(step.network, step.parameters, self.draws, step.streams)
        f = functions(x).double()
        self._check_number(f.shape[1], step.family)
        f = f + self.noise * step.streams.normal(*f.shape[1:]).double()
        return (self._scores(f.detach()) * f).sum((2, 3)).mean(1) + self._cross_entropy(step, x, f)

    def _scores(self, f: Tensor) -> Tensor:
        """Estimates of ``grad log q`` at draws ``[R, S, K, Q]``, in the same shape."""
        if self.outputs == "joint":
            return spectral_scores(f.flatten(2), self.share).view_as(f)
        apart = f.permute(0, 3, 1, 2).flatten(0, 1)  # [R Q, S, K]
        return spectral_scores(apart, self.share).unflatten(0, (len(f), -1)).permute(0, 2, 3, 1)

    def _cross_entropy(self, step: Step, x: Tensor, f: Tensor) -> Tensor:
        """``-mean_s log p(f_s)``, ``[R]``, of values ``[R, S, K, Q]`` with independent outputs."""
        mean, covariance = step.prior_moments(x, "full")
        named = "the prior's covariance at the context points"
        factor = cholesky(covariance.double(), self.noise**2, named, "more noise may help")  # [R, 1 or Q, K, K]
        gap = f.permute(0, 3, 2, 1) - mean.double().unsqueeze(-1)  # [R, Q, K, S]
        squares = solve_lower(factor, gap).square().sum((1, 2)).mean(-1)
        constants = (log_determinant(factor) + f.shape[2] * math.log(2 * math.pi)).expand(gap.shape[:2]).sum(1)
        return 0.5 * (squares + constants)


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
    median = gaps.kthvalue(place + 1, -1).values
    return torch.where((ordered[..., -1] - ordered[..., 0]).isfinite(), median, torch.nan)


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
        medians, left = np.empty(len(rows), rows.dtype), np.empty(samples * (samples - 1) // 2, rows.dtype)
        for r in range(len(rows)):
            row = rows[r]
            low, high, below = -1.0, row[-1] - row[0], 0
            if not np.isfinite(high):
                medians[r] = np.nan
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
            medians[r] = np.sort(left[:size])[place - below]
        return medians
