"""Families of distributions over functions. Importing this package registers every family."""

# The order in which `benchmarks parts` lists families.
from fvi_core.families import (  # noqa: F401, I001
    centroids,
    sparse_gp,
    point,
    ensemble,
    mean_field,
    gwi,
    hypernetwork,
    implicit_process,
    linearised,
    radial,
    rank1,
    samples,
    swag,
    exact_gp,
)
from fvi_core.families.base import Family, Functions

__all__ = ["Family", "Functions"]
