"""Networks as pure functions of their parameters. Importing this package registers every network."""

from fvi_core.networks import by_name, field, plain, residual  # noqa: F401
from fvi_core.networks.layers import (
    ACTIVATIONS,
    SLOPED,
    Activation,
    BatchNorm,
    Conv2d,
    Linear,
    Parameters,
    ParametricLayer,
    PlacesLayer,
)
from fvi_core.networks.module import ModuleNetwork
from fvi_core.networks.network import HEAD, Network, Tape, build_network
from fvi_core.networks.opaque import Opaque, UnfitModule

__all__ = [
    "ACTIVATIONS",
    "HEAD",
    "SLOPED",
    "Activation",
    "BatchNorm",
    "Conv2d",
    "Linear",
    "ModuleNetwork",
    "Network",
    "Opaque",
    "Parameters",
    "ParametricLayer",
    "PlacesLayer",
    "Tape",
    "UnfitModule",
    "build_network",
]
