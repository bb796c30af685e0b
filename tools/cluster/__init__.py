"""A small SLURM cluster on this machine."""
