"""Contract of a family: variational parameters in, random functions out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from fvi_core.blocks import evaluate, networks_at_once, rows_at_once
from fvi_core.data import Scale, TrainingData, TrainingSet, without_validation
from fvi_core.gaussian import gaussian_kl_weights
from fvi_core.held import Held, only_buffers
from fvi_core.likelihoods import Likelihood
from fvi_core.networks import BatchNorm, Network, Parameters, ParametricLayer
from fvi_core.products import product
from fvi_core.random import Streams

Functions = Callable[[Tensor], Tensor]
"""S random functions of each replica: inputs ``[R, N, ...]`` to values ``[R, S, N, Q]``; every call uses one draw.

Functions with a last layer have ``features``, its inputs ``[R, N, F]`` in the first function; others none, or None.
"""
DRAWS = 100
"""Functions drawn to estimate a mean function in a fit; evaluations set their own number."""


@dataclass(frozen=True)
class AffineImage:
    """Points ``u A + c``: coordinates u ``[R, S, K]``, matrix A ``[R, K, P]``, offset c ``[R, P]``."""

    coordinates: Tensor
    matrix: Tensor
    offset: Tensor

    def points(self) -> Tensor:
        """``[R, S, P]``."""
        return product(self.coordinates, self.matrix, self.offset.unsqueeze(1))


class Family:
    """A distribution over functions with trainable parameters ``dict[str, Tensor [R, ...]]``.

    A subclass is a dataclass of hyper-parameters with :meth:`init` and :meth:`weights`, or :meth:`functions` if these
    are not the network at drawn weights; some divergences need optional methods, which raise ``NotSupported`` by
    default. Parameters whose names start with ``BUFFER`` are not trained: family and network get them in prediction but
    not in training steps. Parameters named ``CONSTANT...`` never change and are always passed; parameters named
    ``FOLLOWING...`` are always passed, and only :meth:`after_step` changes them.
    """

    name: ClassVar[str]
    pointwise: ClassVar[bool] = True  # values at some inputs need no values at others
    closed_form: ClassVar[bool] = False  # marginals exist and are cheap enough for training
    independent_outputs: ClassVar[bool] = True  # of a family with marginals: the outputs at an input are independent
    label_likelihood: ClassVar[str] = "categorical"  # where a user chooses none for labels
    members: ClassVar[int] = 1  # networks whose functions a prediction needs all of
    reads_numbers: ClassVar[bool] = False  # in each step, from the device (see :mod:`fvi_core.graphs`)
    networks: ClassVar[int] = 1  # whose parameters are trained as one family's
    shared_by: ClassVar[int] = 1  # members to which a training batch is dealt out, each a run of its points

    @property
    def draws_networks(self) -> bool:
        """Whether :meth:`functions` returns :class:`DrawnNetworks`."""
        return type(self).functions is Family.functions

    def init(self, network: Network, streams: Streams) -> Parameters:
        """Return initial variational parameters, one draw for each replica, and the network's buffers."""
        raise NotImplementedError

    def prepare(self, network: Network, parameters: Parameters, train: TrainingSet, streams: Streams) -> Parameters:
        """Return initial parameters that depend on the training set (inducing points), given the parameters of
        :meth:`init`."""
        return parameters

    def initial_network(self, network: Network, parameters: Parameters) -> Parameters:
        """Return the network weights ``[R, *shape]`` among initial parameters; priors are linearised around them."""
        return {name: parameters[name] for name in network.shapes if name in parameters}

    def independent(self) -> tuple[Family, int]:
        """Return the family to train independently and the number of members that form this one: itself, 1."""
        return self, 1

    def member_streams(self, streams: Streams) -> Streams:
        """Return streams of M independently trained members for each replica, member m of replica r at r*M + m."""
        return streams

    def joined(self, parameters: Parameters) -> Parameters:
        """Turn parameters ``[R*M, ...]`` of independently trained members into this family's ``[R, ...]``."""
        return parameters

    def sampled(self, positions: Sequence[Parameters]) -> Parameters:
        """Return parameters of the uniform distribution over positions of a chain, each as :meth:`init` returns it."""
        raise NotSupported(f"family {self.name!r} does not hold the positions of a chain; use family 'samples'")

    def after_step(self, network: Network, parameters: Parameters, x: Tensor, y: Tensor) -> Parameters:
        """Return new values of parameters that follow the weights, after a training step on the batch x, y."""
        return {}

    def after_epoch(self, network: Network, parameters: Parameters, epoch: int, epochs: int) -> Parameters:
        """Return new values of buffers, after ``epoch`` of ``epochs``."""
        return {}

    def condition(self, parameters: Parameters, fitting: FitData) -> Parameters:
        """Return parameters for prediction after training; an exact model stores its training set in them.

        They include the likelihood's, already fitted (see :mod:`fvi_core.fitting`).
        """
        return parameters

    def remarks(self, parameters: Parameters) -> list[str]:
        """Return facts about trained parameters that their user must know; they become warnings of the training."""
        return []

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        """Draw ``samples`` functions of each replica; a family with fewer distinct functions may return fewer.

        The default is the network at drawn :meth:`weights`. A subclass that overrides this method and still returns
        :class:`DrawnNetworks` sets ``draws_networks = True``.
        """
        drawn = self.weights(network, parameters, samples, streams)
        return DrawnNetworks(network, buffers_of(parameters) | drawn)  # where weights() leaves out running statistics

    def weights(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Parameters:
        """Draw network parameters ``[R, S, *shape]``."""
        raise NotSupported(f"family {self.name!r} does not draw network parameters")

    def affine_image(
        self, network: Network, parameters: Parameters, samples: int, streams: Streams
    ) -> AffineImage | None:
        """Draw flat network parameters as an affine image of few coordinates; None for a family without such form."""
        return None

    def gaussian_weights(self, parameters: Parameters) -> tuple[Parameters, Parameters]:
        """Return means and log-variances ``[R, *shape]`` of an independent Gaussian over network parameters; parameters
        without a log-variance are constants.
        """
        raise NotSupported(f"family {self.name!r} is not a Gaussian over network parameters")

    def weight_kl(
        self, network: Network, parameters: Parameters, mean: float, variance: float, functions: Functions | None
    ) -> Tensor:
        """KL ``[R]`` of the distribution over network parameters from independent ``N(mean, variance)``.

        ``functions`` are a draw that a Monte Carlo estimate may use.
        """
        return gaussian_kl_weights(*self.gaussian_weights(parameters), mean, variance)

    def tied_weight_kl(self, network: Network, parameters: Parameters, gain: float) -> Tensor:
        """KL ``[R]`` of the distribution over network parameters from ``N(m, gain / fan_in)``, m its own means."""
        means, log_vars = self.gaussian_weights(parameters)
        variances = {name: gain / layer.fan_in for layer in network.parametrised for name in layer.shapes}
        return gaussian_kl_weights(means, log_vars, means, variances)

    def inducing_values(self, parameters: Parameters) -> tuple[Tensor, Tensor]:
        """Mean ``[R, Q, M]`` and lower factor of the covariance ``[R, Q, M, M]`` of each output's whitened values at
        inducing points, whose prior is ``N(0, I)``.
        """
        raise NotSupported(f"family {self.name!r} has no inducing points")

    def process(self, parameters: Parameters) -> Process:
        """Return the Gaussian process of the functions about their mean, with its prior process."""
        raise NotSupported(f"family {self.name!r} is not a Gaussian process with a prior process of its own")

    def marginals(self, network: Network, parameters: Parameters, x: Tensor) -> tuple[Tensor, Tensor] | None:
        """Mean and variance ``[R, N, Q]`` of f(x) where they have a closed form, else None."""
        return None

    def log_evidence(self, held: Held, likelihood: Likelihood, x: Tensor, y: Tensor) -> Tensor | None:
        """Return the log marginal likelihood ``[R]`` of an exact model, then the whole objective; else None."""
        return None


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
        replica = slice(r, r + 1)
        validation = None if self.validation is None else (self.validation[0][replica], self.validation[1][replica])
        return replace(
            self, held=self.held[replica], y=self.y[replica], streams=self.streams.subset([r]), validation=validation
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
            raise ValueError(without_validation("fit"))
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
        functions = self.family.functions(self.network, Held.of(parameters).family, draws, streams)
        points = (self.validation[0] if validation and self.validation else self.held).shape[1]
        size = points_at_once(functions, self.network, draws, self.held.device) if self.family.pointwise else points
        for x, _ in self.batches(size, validation):
            yield functions(x)

    def of_members(self, family: Family, count: int, streams: Streams) -> FitData:
        """Return the inputs of separate fits to ``count`` members of every replica: ``[R*count, ...]``."""
        held, y = for_members(self.held, count), for_members(self.y, count)
        validation = None
        if self.validation is not None:
            validation = for_members(self.validation[0], count), for_members(self.validation[1], count)
        return replace(self, family=family, held=held, y=y, streams=streams, validation=validation)


class Process(Protocol):
    """Gaussian process for each output, and the prior that all outputs share, in float64."""

    def covariance(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Posterior covariance ``[R, Q, N, M]`` of each output at x1 ``[R, N, ...]`` and x2 ``[R, M, ...]``."""
        ...

    def prior_covariance(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Prior covariance ``[R, N, M]``, shared by the outputs."""
        ...

    def prior_variance(self, x: Tensor) -> Tensor:
        """Prior variance ``[R, N]``."""
        ...


class NotSupported(TypeError):
    """A divergence or prior needs a method that a family lacks; the message names the pair."""


@dataclass(frozen=True)
class DrawnNetworks:
    """Random functions: the network at random parameters ``[R, S, *shape]``."""

    network: Network
    parameters: Parameters

    def __call__(self, x: Tensor) -> Tensor:
        return evaluate(self.network, self.parameters, x)

    def features(self, x: Tensor) -> Tensor:
        """Inputs of the last layer in the first function, ``[R, N, F]``."""
        return self.network.features({name: value[:, :1] for name, value in self.parameters.items()}, x).squeeze(1)


def points_at_once(functions: Functions, network: Network, samples: int, device: torch.device) -> int:
    """Return at how many inputs ``samples`` drawn functions are evaluated together."""
    if network.convolutional and isinstance(functions, DrawnNetworks):
        samples = networks_at_once(network, functions.parameters, samples)
    return rows_at_once(network, samples, device)


def for_members(x: Tensor, count: int) -> Tensor:
    """Repeat data ``[R, ...]`` for the ``count`` members of every replica, ``[R*count, ...]``."""
    if not isinstance(x, Tensor):  # data that are read again at each epoch refuse access to their values
        return x
    # Expanded before it is flattened: for one replica the members' data are a view, for more a copy.
    return x.unsqueeze(1).expand(-1, count, *x.shape[1:]).flatten(0, 1)


def buffers_of(parameters: Parameters) -> Parameters:
    """Return the buffers among the parameters, not trained and shared by all samples: ``[R, 1, *shape]``."""
    return {name: value.unsqueeze(1) for name, value in only_buffers(parameters).items()}


def random_layers(network: Network, which: str) -> list[ParametricLayer]:
    """Return the layers that a family draws: "all"; "weighted", linear and convolutional layers; "hidden", the weighted
    layers except the last; "last".

    Raises NotSupported for a network without hidden layers if nothing would be random.
    """
    weighted = [layer for layer in network.parametrised if not isinstance(layer, BatchNorm)]
    hidden = [layer for layer in weighted if layer is not network.head]
    layers = {"all": network.parametrised, "weighted": weighted, "hidden": hidden, "last": [network.head]}[which]
    if not layers:
        raise NotSupported("layers 'hidden': the network has none; use layers 'all', or another network")
    return layers
