"""Fit parts: changes to trained parameters before prediction. Importing this package registers them."""

from fvi_core.fits import laplace, temperature  # noqa: F401
