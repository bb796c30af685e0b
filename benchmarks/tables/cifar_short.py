"""Protocol short of the tables on CIFAR-10: what a paper's settings become where hours are at hand, and no GPU."""

from __future__ import annotations

from benchmarks.tables.spec import Parts, merge

SEEDS, MEMBERS, EPOCHS, WIDTH, IMAGES = 3, 3, 15, 16, 1000
NARROWED = 64 // WIDTH
"""By what the numbers of channels, and so of features, are divided."""
PEAK = 0.1
"""Learning rate at the top of the cycle."""
IN_BFLOAT16: Parts = {"training": {"precision": "bfloat16"}}


def shortened(parts: Parts, cycle: bool = True) -> Parts:
    """A row's parts with a narrow ResNet-18, few epochs and, unless ``cycle`` is off, one learning rate cycle."""
    parts = merge(parts, merge(IN_BFLOAT16, {"network": {"width": WIDTH}, "training": {"epochs": EPOCHS}}))
    own: Parts = {"training": {"optimiser": {"lr": PEAK}, "schedule": {"name": "one_cycle"}}}
    return merge(parts, own) if cycle else parts


def some(evaluation_set: str) -> str:
    """A corrupted or attacked set of a thousand images."""
    return f"{evaluation_set}-of-{IMAGES}"


REDUCTION = (
    f"a ResNet-18 of {WIDTH} to {8 * WIDTH} channels in place of 64 to 512, {EPOCHS} epochs in place of 200 or 250, "
    f"SGD in one cycle of the learning rate up to {PEAK:g} and down, products and convolutions in bfloat16, "
    f"{SEEDS} seeds, ensembles of {MEMBERS}"
)
NOTE = (
    "Protocol short: the top of the learning rate's cycle was looked at for MAP of dirichlet2022 alone, on 5,000 "
    "training images kept apart for validation, and is that of all rows. Two epochs of 22,500 images gave a validation "
    "accuracy of 55.3 % at .03, 51.7 % at .1 and 49.7 % at .3; four epochs of 45,000 gave 76.5 % at .03 and 79.2 % at "
    ".1, which was taken; these trials have no records. Whole runs of 15 epochs were not made for it; epochs and "
    "width were not varied. Rows and seeds that lack are left out for hours: by records a run took .1 to .9 core-hours "
    "on an AMD Zen 5 core, so three seeds of the rows of rudner2022, dirichlet2022 and rudner2021 that have records "
    "some 31, those without, FSVI Ensemble and DUQ, not counted. Protocol paper would take there over 400 for the rows "
    "of rudner2022 that could be timed alone: it is for a GPU."
)
