"""Contract of a family: variational parameters in, random functions out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from torch import Tensor

from fvi_core.blocks import evaluate
from fvi_core.gaussian import gaussian_kl_weights
from fvi_core.networks import BUFFER, BatchNorm, Network, Parameters, ParametricLayer
from fvi_core.products import product
from fvi_core.random import Streams

if TYPE_CHECKING:
    from fvi_core.fitting import FitData
    from fvi_core.likelihoods import Likelihood
    from fvi_core.priors.base import TrainingSet

Functions = Callable[[Tensor], Tensor]
"""S random functions of each replica: inputs ``[R, N, ...]`` to values ``[R, S, N, Q]``; every call uses one draw."""


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

    A subclass is a dataclass of hyper-parameters with :meth:`init` and :meth:`functions`; some divergences need
    optional methods, which raise ``NotSupported`` by default. Parameters whose names start with ``BUFFER`` are not
    trained: family and network get them in prediction but not in training steps. Parameters named ``CONSTANT...`` never
    change and are always passed; parameters named ``FOLLOWING...`` are always passed, and only :meth:`after_step`
    changes them.
    """

    name: ClassVar[str]
    pointwise: ClassVar[bool] = True  # values at some inputs need no values at others
    closed_form: ClassVar[bool] = False  # marginals exist and are cheap enough for training
    draws_networks: ClassVar[bool] = False  # functions are DrawnNetworks

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

    def fit(self, parameters: Parameters, fitting: FitData) -> Parameters:
        """Return parameters for prediction after training; an exact model stores its training set in them.

        They include the likelihood's, already fitted (see :mod:`fvi_core.fitting`).
        """
        return parameters

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        """Draw ``samples`` functions of each replica; a family with fewer distinct functions may return fewer."""
        raise NotImplementedError

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

    def log_evidence(
        self,
        network: Network,
        parameters: Parameters,
        likelihood: Likelihood,
        likelihood_parameters: Parameters,
        x: Tensor,
        y: Tensor,
    ) -> Tensor | None:
        """Return the log marginal likelihood ``[R]`` of an exact model, then the whole objective; else None."""
        return None


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


def buffers_of(parameters: Parameters) -> Parameters:
    """Return the buffers among the parameters, not trained and shared by all samples: ``[R, 1, *shape]``."""
    return {name: value.unsqueeze(1) for name, value in parameters.items() if name.startswith(BUFFER)}


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
