"""Protocol short of the tables on CIFAR-10: a paper's settings reduced to hours without a GPU."""

from __future__ import annotations

from benchmarks.tables.recipes import Parts, layered

SEEDS, MEMBERS, EPOCHS, WIDTH, IMAGES = 3, 3, 15, 16, 1000
NARROWED = 64 // WIDTH
"""Divisor of the numbers of channels, and so of features."""
PEAK = 0.1
"""Learning rate at the top of the cycle."""
IN_BFLOAT16 = {"training.precision": "bfloat16"}


def shortened(parts: Parts, cycle: bool = True) -> Parts:
    """Return a row's parts with a narrow ResNet-18, few epochs and, unless ``cycle`` is off, one learning
    rate cycle.
    """
    own = {"training.optimiser.lr": PEAK, "training.schedule": {"name": "one_cycle"}}
    return layered(parts, IN_BFLOAT16, {"network.width": WIDTH, "training.epochs": EPOCHS}, own if cycle else {})


def some(evaluation_set: str) -> str:
    """Return a corrupted or attacked set of a thousand images."""
    return f"{evaluation_set}-of-{IMAGES}"


REDUCTION = (
    f"a ResNet-18 of {WIDTH} to {8 * WIDTH} channels in place of 64 to 512, {EPOCHS} epochs in place of 200 or 250, "
    f"SGD in one cycle of the learning rate up to {PEAK:g} and down, products and convolutions in bfloat16, "
    f"{SEEDS} seeds, ensembles of {MEMBERS}"
)
