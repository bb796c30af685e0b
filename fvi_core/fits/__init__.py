"""Fit parts: what a method may do to trained parameters before they predict. Importing this package registers them."""

from fvi_core.fits import laplace, temperature  # noqa: F401
