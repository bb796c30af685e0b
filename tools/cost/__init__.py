"""What a training step costs, on random arrays of the data's shapes, and the runner beside it: no data set is read.

    python -m tools.cost [fsvi] [stacked] [hyvi] [catalogue] [gfsvi] [overhead] [mlp] [cnn] [resnet]
                         [--repeats N] [--output FOLDER] [--keep] [--against COMMIT]

What is compared is timed in turns, so that a ratio is of one run and a slow minute slows both sides; every
number is the median of its turns. Process time (of all threads) stands beside wall time: on a busy machine
wall time counts the waiting too.
"""
