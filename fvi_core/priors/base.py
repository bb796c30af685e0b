"""Contract of a prior over functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor

from fvi_core.data import TrainingSet
from fvi_core.families.base import Functions, NotSupported
from fvi_core.networks import Network, Parameters
from fvi_core.random import Streams


class Prior:
    """Distribution over functions. A subclass is a dataclass of hyper-parameters that implements some views.

    Each divergence uses one view: Gaussian weights, samples, Gaussian moments at a context, or Dirichlet
    concentrations; views not implemented raise ``NotSupported``.
    """

    name: ClassVar[str]

    def init(self, network: Network, initial: Parameters, train: TrainingSet, streams: Streams) -> dict[str, Tensor]:
        """Return constants ``[R, ...]``, made once before training (fitted hyper-parameters, a draw of features)."""
        return {}

    def following(self, parameters: Parameters, mean: Callable[[], Parameters]) -> Parameters:
        """Return the constants at a training step; ``mean()`` returns the family's mean weights ``[R, *shape]``."""
        return parameters

    def gaussian_weights(self) -> tuple[float, float]:
        """Return mean and variance of every weight."""
        raise NotSupported(f"prior {self.name!r} is not a Gaussian over network parameters")

    def flat_weights(self, network: Network, samples: int, streams: Streams) -> Tensor:
        """Draw flat network parameters ``[R, S, P]``."""
        raise NotSupported(f"prior {self.name!r} does not draw network parameters")

    def weights(self, network: Network, samples: int, streams: Streams) -> Parameters:
        """Draw network parameters ``[R, S, *shape]``."""
        return network.unflatten(self.flat_weights(network, samples, streams))

    def functions(self, network: Network, parameters: Parameters, samples: int, streams: Streams) -> Functions:
        """Draw functions."""
        raise NotSupported(f"prior {self.name!r} does not draw functions")

    def moments(self, network: Network, parameters: Parameters, x: Tensor, covariance: str) -> tuple[Tensor, Tensor]:
        """Mean ``[R, Q or 1, K]`` and covariance ``[R, Q or 1, K, K]`` or variance ``[R, Q or 1, K]`` at x."""
        raise NotSupported(f"prior {self.name!r} has no Gaussian moments at a context")

    def concentration(self, n_classes: int, device: torch.device | str = "cpu") -> Tensor:
        """Dirichlet concentrations ``[K]``."""
        raise NotSupported(f"prior {self.name!r} is not a Dirichlet over class probabilities")
