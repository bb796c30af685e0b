"""Benchmarks of training steps and of the runner, on random arrays of the data's shapes; no data set is read.

    python -m tools.cost [fsvi] [stacked] [hyvi] [catalogue] [gfsvi] [overhead] [mlp] [cnn] [resnet]
                         [linearised] [draws] [modules] [small] [--repeats N] [--output FOLDER]

Compared trainings are timed in turns, so that a slow minute slows both sides of a ratio; every number is the median of
its turns. Process time (of all threads) stands beside wall time, which on a busy machine includes waiting.
"""
