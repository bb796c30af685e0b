"""Scores of predictions, as functions of NumPy arrays, for the tables of the suite and for ``Posterior.score``."""
