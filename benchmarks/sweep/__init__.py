"""Sweeps of many runs: plan, estimate, training, progress."""
