"""Tools for developers: a toy SLURM cluster, benchmarks of training steps and of the site."""
