"""Contract of a Gaussian posterior over one network's weights: its precision is a curvature plus a prior precision.

The curvature is the generalised Gauss-Newton matrix ``H = sum_n J_n^T L_n J_n`` at the trained weights, with J_n the
Jacobian of the outputs f(x_n) and L_n the second derivative of ``-log p(y_n | f)`` (Immer et al. 2021, sec. 2), whole
or in an approximation. Nothing here has an axis for replicas; curvatures are float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.curvature import Recorded, inputs_at_once, record
from fvi_core.families.base import FitData
from fvi_core.fitting import FitFailed
from fvi_core.likelihoods import Params
from fvi_core.networks import Network, Parameters
from fvi_core.random import Streams
from fvi_core.telling import counted

MOST = 10_000
"""Most rows of a matrix that is held as a whole: 0.8 GB, of which a fit needs about three times as much."""
CURVATURE = "curvature/"

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Around:
    """Point of a curvature: trained parameters ``[*shape]`` of network and likelihood, and the data."""

    parameters: Parameters
    likelihood: Params
    fitting: FitData

    @property
    def network(self) -> Network:
        return self.fitting.network

    def passes(self, numbers: int, head: bool = False) -> Iterator[tuple[Recorded, tuple[Tensor, ...]]]:
        """Yield passes over the training data, by batches, with the columns ``[N, Q]`` of the roots of all ``L_n``.

        ``numbers``: numbers held for each input.
        """
        size = inputs_at_once(self.network, numbers)
        costs = [1.0] * -(-self.fitting.n_train // size)
        for x, _ in counted("curvature, batch", self.fitting.batches(size), costs):
            recorded = record(self.network, self.parameters, x[0], head)
            f = recorded.outputs.detach()[None, None]
            yield recorded, self.fitting.likelihood.curvature_root(self.likelihood, f)[0, 0].unbind(-1)


class Posterior:
    """Contract of a covariance structure: curvature once, then posteriors for any prior precision."""

    head = False  # whether only the last layer, in which a network is linear, has random weights

    def check(self, network: Network) -> None:
        """Raise ValueError for a network whose matrices would not fit in memory."""

    def curvature(self, around: Around) -> Tensors:
        """Return the curvature, summed over the training data."""
        raise NotImplementedError

    def eigenvalues(self, curvature: Tensors) -> Tensor:
        """Return the curvature's eigenvalues, one for each random weight; none is negative."""
        raise NotImplementedError

    def chosen(self, flat: Tensor, curvature: Tensors) -> Tensor:
        """Return the random weights among all weights ``[P]``."""
        raise NotImplementedError

    def fitted(self, curvature: Tensors, precision: float) -> Tensors:
        """Return the tensors that :meth:`draw` and :meth:`variance` take. Raises :class:`FitFailed`."""
        raise NotImplementedError

    def draw(self, network: Network, own: Tensors, samples: int, streams: Streams) -> Parameters:
        """Random steps ``[S, *shape]`` away from the trained weights, of one stream."""
        raise NotImplementedError

    def variance(self, network: Network, own: Tensors, recorded: Recorded, direction: Tensor) -> Tensor:
        """Variance ``[N]`` of ``sum_q direction[n, q] f_q(x_n)`` in the linearised network."""
        raise NotImplementedError

    def numbers(self, network: Network) -> int:
        """Return how many numbers a pass holds for each input."""
        raise NotImplementedError


def within(rows: int, what: str, instead: str) -> None:
    """Raise ValueError for a matrix of more than ``MOST`` rows."""
    if rows > MOST:
        raise ValueError(
            f"{what} has {rows:,} rows and columns ({rows**2 * 8 / 1e9:.1f} GB), more than {MOST:,}, and does not fit "
            f"in memory; choose {instead}, or a smaller network"
        )


def require_finite(sums: Tensors) -> None:
    """Raise FitFailed for sums that are no numbers."""
    if any(bool((~torch.isfinite(value)).any()) for value in sums.values()):
        raise FitFailed(
            "the curvature is not finite, since outputs or their gradients are not; train with a smaller learning "
            "rate, or in float64"
        )
