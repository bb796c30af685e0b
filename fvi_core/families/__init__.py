"""Families of distributions over functions. Importing this package registers every family."""

from fvi_core.families import (  # noqa: F401
    centroids,
    ensemble,
    exact_gp,
    gwi,
    hypernetwork,
    implicit_process,
    mean_field,
    point,
    radial,
    rank1,
    sparse_gp,
    swag,
)
from fvi_core.families.base import Family, Functions

__all__ = ["Family", "Functions"]
