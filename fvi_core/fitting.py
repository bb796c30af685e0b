"""Fits between training and prediction: observation noise, an exact posterior, a temperature.

The likelihood fits first, then the family, then the method's fit part, if it has one; each takes the parameters that
the previous fit returned. The result is stored, so later evaluations do not fit again.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from fvi_core.data import TrainingData, without_validation
from fvi_core.families.base import Family, FitData, Functions, NotSupported
from fvi_core.held import FIT
from fvi_core.networks import Network, Parameters
from fvi_core.random import Streams

PREFIX = FIT
"""Prefix of the names of a fit part's own parameters."""


class FitFailed(ValueError):
    """Failure of the fit to one replica: its run fails with this reason, other replicas are not affected."""


class Fit:
    """Contract of a fit part: it changes trained parameters last, and draws the functions that predict.

    A subclass is a dataclass of hyper-parameters. Names of the parameters that it adds begin with ``PREFIX``; the
    family does not get these parameters.
    """

    name: ClassVar[str]

    def check(self, network: Network, family: Family) -> None:
        """Raise ValueError or NotSupported, before training, for a network or family that the part cannot fit."""

    @property
    def needs_validation(self) -> bool:
        """Whether the part is fitted to validation data, and fails without."""
        return False

    def check_data(self, data: TrainingData) -> None:
        """Raise ValueError, before training, where the part is fitted to validation data and there are none."""
        if self.needs_validation and data.validation is None:
            raise ValueError(without_validation(f"fit {self.name!r}"))

    def __call__(self, parameters: Parameters, fitting: FitData) -> Parameters:
        """Return the parameters for prediction, ``[R, ...]``. Raises :class:`FitFailed`."""
        raise NotImplementedError

    def numbers(self, own: Parameters) -> dict[str, float]:
        """Return numbers for the record, by name of a metric, of the ``own`` parameters ``[1, ...]`` of one replica."""
        return {}

    def functions(
        self, network: Network, family: Family, parameters: Parameters, own: Parameters, samples: int, streams: Streams
    ) -> Functions:
        """Draw functions for prediction from the family's parameters and the part's ``own`` (without ``PREFIX``)."""
        return family.functions(network, parameters, samples, streams)

    def weights(
        self, network: Network, parameters: Parameters, own: Parameters, samples: int, streams: Streams
    ) -> Parameters:
        """Draw network parameters ``[R, S or 1, *shape]`` from the part's distribution over weights."""
        raise NotSupported(f"functions of {self.name!r} are not the module at drawn weights; use predict")

    def marginals(
        self, network: Network, family: Family, parameters: Parameters, own: Parameters, x: Tensor
    ) -> tuple[Tensor, Tensor] | None:
        """Return mean and variance ``[R, N, Q]`` of the functions in closed form, else None."""
        return family.marginals(network, parameters, x)
