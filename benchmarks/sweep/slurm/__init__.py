"""Sweeps on a SLURM cluster."""
