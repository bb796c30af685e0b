"""Protocol short of the tables on CIFAR-10: a paper's settings reduced to hours without a GPU."""

from __future__ import annotations

from benchmarks.tables.spec import LEFT_OUT, Parts, merge

SEEDS, MEMBERS, EPOCHS, WIDTH, IMAGES = 3, 3, 15, 16, 1000
NARROWED = 64 // WIDTH
"""Divisor of the numbers of channels, and so of features."""
PEAK = 0.1
"""Learning rate at the top of the cycle."""
IN_BFLOAT16: Parts = {"training": {"precision": "bfloat16"}}


def shortened(parts: Parts, cycle: bool = True) -> Parts:
    """Return a row's parts with a narrow ResNet-18, few epochs and, unless ``cycle`` is off, one learning
    rate cycle.
    """
    parts = merge(parts, merge(IN_BFLOAT16, {"network": {"width": WIDTH}, "training": {"epochs": EPOCHS}}))
    own: Parts = {"training": {"optimiser": {"lr": PEAK}, "schedule": {"name": "one_cycle"}}}
    return merge(parts, own) if cycle else parts


def some(evaluation_set: str) -> str:
    """Return a corrupted or attacked set of a thousand images."""
    return f"{evaluation_set}-of-{IMAGES}"


REDUCTION = (
    f"a ResNet-18 of {WIDTH} to {8 * WIDTH} channels in place of 64 to 512, {EPOCHS} epochs in place of 200 or 250, "
    f"SGD in one cycle of the learning rate up to {PEAK:g} and down, products and convolutions in bfloat16, "
    f"{SEEDS} seeds, ensembles of {MEMBERS}"
)
_RATE = (
    "Protocol short: the top of the learning rate's cycle was looked at for MAP of dirichlet2022 alone, on 5,000 "
    "training images kept apart for validation, and is that of all rows. Two epochs of 22,500 images gave a validation "
    "accuracy of 55.3 % at .03, 51.7 % at .1 and 49.7 % at .3; four epochs of 45,000 gave 76.5 % at .03 and 79.2 % at "
    ".1, which was taken; these trials have no records. Whole runs of 15 epochs were not made for it; epochs and "
    "width were not varied."
)
PAPER_COST = (
    "Protocol paper is for a GPU and was not run: by timed epochs (docs/speed.md) a run of MAP takes some 57 hours of "
    "an AMD Zen 5 core, one of FSVI 97, and an ensemble as many times that as it has networks."
)
NOTES = (_RATE, PAPER_COST, LEFT_OUT)
