"""Experiment: one run from data and parts to training, predictions and metrics."""
