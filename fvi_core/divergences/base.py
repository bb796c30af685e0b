"""Contract of a divergence: one training step in, one number for each replica out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from fvi_core.families.base import Family, Functions
from fvi_core.networks import Network, Parameters
from fvi_core.priors.base import Prior
from fvi_core.random import Streams


@dataclass
class Step:
    """Inputs of a divergence at one training step.

    ``x [R, B, ...]``: batch inputs; ``functions``: the draw of the likelihood term; ``values [R, S, B, Q]``: its values
    at x, so that a divergence on the training batch needs no second forward pass. ``sample_context()`` draws a context
    set ``[R, K, ...]``, ``x`` itself if the context is the training batch. ``parameters``: trained parameters;
    ``buffers``: running statistics, for a divergence that needs the network in prediction mode. ``marginals``: mean and
    variance ``[R, B, Q]`` at x if the likelihood term used them instead of a draw.
    """

    network: Network
    family: Family
    parameters: Parameters
    prior: Prior
    prior_parameters: dict[str, Tensor]
    x: Tensor
    n_train: int
    functions: Functions | None
    values: Tensor | None
    sample_context: Callable[[], Tensor]
    streams: Streams
    prior_streams: Streams
    buffers: Parameters = field(default_factory=dict)
    marginals: tuple[Tensor, Tensor] | None = None

    def prior_moments(self, x: Tensor, covariance: str) -> tuple[Tensor, Tensor]:
        """Return mean and covariance of the prior at x (:meth:`Prior.moments`) at this step."""
        constants = self.prior.following(
            self.prior_parameters, lambda: self.family.gaussian_weights(self.parameters)[0]
        )
        return self.prior.moments(self.network, constants, x, covariance)


class Divergence:
    """``D(q || p)`` of one step, ``[R]``. A subclass is a dataclass of hyper-parameters."""

    name: ClassVar[str]
    reads_numbers: ClassVar[bool] = False  # in each step, from the device (see :mod:`fvi_core.graphs`)
    usual_samples: ClassVar[int] = 1  # functions in each training step of fvi.fit, where nobody says how many

    def __call__(self, step: Step) -> Tensor:
        raise NotImplementedError

    def check(self, family: Family, draws: int) -> None:
        """Raise NotSupported, before a prior is fitted, for a family or a number of draws with which no step succeeds.

        draws: the most functions that the likelihood term of a step draws; 0 where it is in closed form.
        """

    def weight_prior(self, prior: Prior) -> tuple[float, float] | None:
        """Return mean and precision of the Gaussian over weights whose negative log-density this is, or None."""
        return None
