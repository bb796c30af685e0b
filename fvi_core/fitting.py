"""Fits between training and prediction: observation noise, an exact posterior, a temperature.

The likelihood fits first, then the family, then the method's fit part, if it has one; each takes the parameters that
the previous fit returned. The result is stored, so later evaluations do not fit again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from fvi_core.data import TrainingData
from fvi_core.families.base import Family, Functions
from fvi_core.images import Scale
from fvi_core.likelihoods import Likelihood, split_parameters
from fvi_core.networks import Network, Parameters
from fvi_core.random import Streams

CHUNK = 2**24
"""Most values of a layer computed at once outside training."""
RESIDUAL_CHUNK = 2**23
"""Most values of a layer computed at once for residual networks on a CPU: 32 MiB as float32, the largest block that the
C library reuses; returning larger blocks to the system makes prediction a quarter slower. Other networks use ``CHUNK``,
on which the masks of dropout by input, and so existing records, depend.
"""
ON_GPU = 8
"""Factor on these sizes for a GPU, which small pieces leave idle."""
DRAWS = 100
"""Functions drawn to estimate a mean function in a fit; evaluations set their own number."""
PREFIX = "fit/"
"""Prefix of the names of a fit part's own parameters."""


class FitFailed(ValueError):
    """Failure of the fit to one replica: its run fails with this reason, other replicas are not affected."""


@dataclass(frozen=True)
class FitData:
    """Inputs of a fit: the parts, the training data, random streams (one for each replica).

    ``held [R, N, ...]``: inputs as stored, perhaps pixels, which ``pixels`` turns into inputs of the network;
    ``y [R, N]``. ``validation``: such a pair of the validation subset, where the data set has one. ``weight_prior``:
    mean and precision of the Gaussian prior of every weight in training (see :meth:`Model.weight_prior`).
    """

    network: Network
    family: Family
    likelihood: Likelihood
    held: Tensor
    y: Tensor
    streams: Streams
    validation: tuple[Tensor, Tensor] | None = None
    pixels: Scale | None = None
    weight_prior: tuple[float, float] | None = None

    @classmethod
    def of(
        cls,
        network: Network,
        family: Family,
        likelihood: Likelihood,
        training_data: TrainingData,
        streams: Streams,
        weight_prior: tuple[float, float] | None = None,
    ) -> FitData:
        """Return the inputs of a fit to one replica's training data (see :meth:`TrainingData.of`)."""
        validation = None
        if training_data.validation is not None:
            x, y = training_data.validation[0]
            validation = x.unsqueeze(0), y.unsqueeze(0)
        data = (training_data.x, training_data.y, streams, validation, training_data.pixels)
        return cls(network, family, likelihood, *data, weight_prior)

    def of_replica(self, r: int) -> FitData:
        """Return the inputs of a fit to replica r alone; its tensors keep the axis of replicas."""
        one = slice(r, r + 1)
        validation = None if self.validation is None else (self.validation[0][one], self.validation[1][one])
        return replace(
            self, held=self.held[one], y=self.y[one], streams=self.streams.subset([r]), validation=validation
        )

    @property
    def n_train(self) -> int:
        """Training points of a replica."""
        return self.held.shape[1]

    @property
    def classification(self) -> bool:
        """Whether targets are labels."""
        return not self.y.is_floating_point()

    @property
    def x(self) -> Tensor:
        """All training inputs of the network; images then take four times the memory of their bytes."""
        return self.scale(self.held)

    def scale(self, x: Tensor) -> Tensor:
        """Turn stored inputs into inputs of the network."""
        return x if self.pixels is None else self.pixels(x)

    def batches(self, size: int, validation: bool = False) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield training (or validation) data in order, as inputs of the network ``x [R, B, ...]`` and ``y [R, B]``.

        Raises ValueError if the data set has no validation subset.
        """
        data = self.validation if validation else (self.held, self.y)
        if data is None:
            found = "the data set has no validation subset"
            raise ValueError(f"the fit needs validation data, but {found}; choose another split scheme")
        held, y = data
        for x, targets in zip(held.split(size, 1), y.split(size, 1), strict=True):
            yield self.scale(x), targets

    def some(self, count: int, streams: Streams) -> Tensor:
        """Return ``count`` random training inputs, or all if there are fewer, ``[R, count, ...]``."""
        order = streams.permutation(self.n_train)[:, :count]
        rows = torch.arange(len(self.held), device=self.held.device)[:, None]
        return self.scale(self.held[rows, order])

    @torch.no_grad()
    def functions_at(
        self, parameters: Parameters, streams: Streams, draws: int = DRAWS, validation: bool = False
    ) -> Iterator[Tensor]:
        """Yield values ``[R, S, B, Q]`` of one draw of functions at all training (or validation) inputs, by batches."""
        functions = self.family.functions(self.network, split_parameters(parameters)[0], draws, streams)
        points = (self.validation[0] if validation and self.validation else self.held).shape[1]
        size = rows_at_once(self.network, draws, self.held.device) if self.family.pointwise else points
        for x, _ in self.batches(size, validation):
            yield functions(x)

    def of_members(self, family: Family, count: int, streams: Streams) -> FitData:
        """Return the inputs of separate fits to ``count`` members of every replica: ``[R*count, ...]``."""

        def each(x: Tensor) -> Tensor:
            # Expanded before it is flattened: for one replica the members' data are a view, for more a copy.
            if not isinstance(x, Tensor):  # data that are read again at each epoch refuse access to their values
                return x
            return x.unsqueeze(1).expand(-1, count, *x.shape[1:]).flatten(0, 1)

        validation = None if self.validation is None else (each(self.validation[0]), each(self.validation[1]))
        return replace(
            self, family=family, held=each(self.held), y=each(self.y), streams=streams, validation=validation
        )


class Fit:
    """Contract of a fit part: it changes trained parameters last, and draws the functions that predict.

    A subclass is a dataclass of hyper-parameters. Names of the parameters that it adds begin with ``PREFIX``; the
    family does not get these parameters.
    """

    name: ClassVar[str]

    def check(self, network: Network, family: Family) -> None:
        """Raise ValueError or NotSupported, before training, for a network or family that the part cannot fit."""

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

    def marginals(
        self, network: Network, family: Family, parameters: Parameters, own: Parameters, x: Tensor
    ) -> tuple[Tensor, Tensor] | None:
        """Return mean and variance ``[R, N, Q]`` of the functions in closed form, else None."""
        return family.marginals(network, parameters, x)


def own_of(parameters: Parameters) -> tuple[Parameters, Parameters]:
    """Split fitted parameters into family and likelihood's, and the fit part's."""
    rest = {k: v for k, v in parameters.items() if not k.startswith(PREFIX)}
    return rest, {k.removeprefix(PREFIX): v for k, v in parameters.items() if k.startswith(PREFIX)}


def rows_at_once(network: Network, samples: int, device: torch.device) -> int:
    """Return at how many inputs ``samples`` functions are evaluated together."""
    if device.type == "cuda":
        chunk = CHUNK * ON_GPU
    else:
        chunk = RESIDUAL_CHUNK if network.residual else CHUNK
    return max(1, chunk // (samples * max(network.width, 1)))
