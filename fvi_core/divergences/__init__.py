"""How two distributions over functions are compared. Importing this package registers every divergence."""

from fvi_core.divergences import dirichlet, gaussian, inducing, nearest_neighbour, wasserstein, weight  # noqa: F401
from fvi_core.divergences.base import Divergence, Step

__all__ = ["Divergence", "Step"]
