"""Priors over functions. Importing this package registers every prior."""

from fvi_core.priors import function, weight  # noqa: F401
from fvi_core.priors.base import Prior

__all__ = ["Prior"]
