"""The contract of a divergence: one training step in, one number for each replica out."""

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
    """All that a divergence may ask of one training step.

    ``x [R, B, ...]`` are the batch inputs, ``functions`` the draw that the likelihood term used and ``values [R, S, B,
    Q]`` its values at x, so that a divergence on the training batch needs no second forward pass. ``sample_context()``
    draws a context set ``[R, K, ...]``; it is ``x`` itself when the context is the training batch. ``parameters`` are
    the trained ones; ``buffers`` are those that are kept (running statistics), for a divergence that needs the network
    as it predicts. ``marginals`` are mean and variance ``[R, B, Q]`` at x, where the likelihood term was made of these
    and not of a draw.
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


class Divergence:
    """``D(q || p)`` of one step, ``[R]``. A subclass is a dataclass of hyper-parameters."""

    name: ClassVar[str]

    def __call__(self, step: Step) -> Tensor:
        raise NotImplementedError

    def weight_prior(self, prior: Prior) -> tuple[float, float] | None:
        """Mean and precision of the Gaussian whose negative log-density at the weights it is, where it is one; else
        None.
        """
        return None
