"""Divergences between distributions over functions. Importing this package registers every divergence."""

from fvi_core.divergences import (  # noqa: F401
    dirichlet,
    gaussian,
    input_gradient,
    nearest_neighbour,
    spectral,
    weight,
)
from fvi_core.divergences.base import Divergence, Step

__all__ = ["Divergence", "Step"]
