"""Make splits of tables: cut rows, standardise by the training subset, draw inputs where uncertainty is compared."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .checks import BadData
from .contract import Arrays, EvaluationSet, Split

SUBSETS = ("train", "validation", "test")
LARGEST = 1e150  # squares of larger numbers, and sums of them, overflow
SEVERAL = "; for several targets return a datasets.Split, as docs/extend.md says"
LARGEST_SINGLE = float(np.finfo(np.float32).max)


def assemble(
    name: str,
    version: str,
    split: int,
    scheme: str,
    x: np.ndarray,
    y: np.ndarray,
    rows: dict[str, np.ndarray],
    *,
    classes: int = 0,
    standardise: bool = True,
) -> Split:
    """Cut x [N, D] and y [N] into subsets, standardised by the training subset's mean and standard deviation.

    rows: row numbers of "train", "test" and optionally "validation". classes: number of classes, 0 for regression.
    Raises BadData for other shapes or subsets, for a training or test subset without rows, and for numbers that are too
    large or too close together to be standardised.
    """
    empty = [subset for subset in ("train", "test") if not len(rows.get(subset, ()))]
    unknown = [subset for subset in rows if subset not in SUBSETS]
    if empty or unknown:
        found = f"none for {' and '.join(empty)}" if empty else f"rows for {', '.join(map(repr, unknown))}"
        raise BadData(
            f"data set {name}, split {split}: expected row numbers for 'train' and 'test', perhaps 'validation', found "
            f"{found}; give them in rows"
        )
    if x.ndim != 2 or y.shape != x.shape[:1]:
        remedy = "; give x[:, None]" if x.ndim == 1 else "; give y[:, 0]" if y.shape == (len(x), 1) else ""
        remedy = remedy or SEVERAL * (y.ndim == 2 and not classes)
        raise BadData(
            f"data set {name}: expected inputs [N, D] and targets [N], found {list(x.shape)} and {list(y.shape)}"
            f"{remedy}"
        )
    _check_sizes(f"data set {name}, inputs", x, standardise)
    if not classes:
        _check_sizes(f"data set {name}, targets", y[:, None], standardise)
    x_mean, x_std = standardisation(x[rows["train"]]) if standardise else (0.0, 1.0)
    (y_mean,), (y_std,) = ((0.0,), (1.0,)) if classes or not standardise else standardisation(y[rows["train"], None])
    targets = y if classes else (y - y_mean) / y_std
    subsets = {
        subset: Arrays(((x[index] - x_mean) / x_std).astype(np.float32), targets[index])
        for subset, index in rows.items()
    }
    low, high = subsets["train"].x.min(0), subsets["train"].x.max(0)
    task = "classification" if classes else "regression"
    return Split(
        *(name, version, split, scheme, task, classes or 1, subsets["train"], subsets["test"], low, high),
        validation=subsets.get("validation"),
        y_mean=float(y_mean),
        y_std=float(y_std),
        rows=rows,
        evaluations=compared_inputs(subsets["train"], low, high, len(subsets["test"])),
    )


def _check_sizes(where: str, values: np.ndarray, standardise: bool) -> None:
    largest = LARGEST if standardise else LARGEST_SINGLE
    wrong = np.argwhere(np.abs(values) > largest)
    if len(wrong):
        row, column = wrong[0]
        raise BadData(
            f"{where}: expected numbers up to {largest:.3g}, found {values[row, column]:g} in row {row}, column "
            f"{column} (from 0); rescale the column"
        )


def standardisation(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation (ddof 0) of each column of x [N, D]; 1 for a constant column.

    Sums are exactly rounded, so that fingerprints do not depend on the order of addition. Raises BadData for a column
    whose deviation underflows.
    """
    mean = np.array([math.fsum(column) / len(column) for column in x.T])
    std = np.array([math.sqrt(math.fsum((column - m) ** 2) / len(column)) for column, m in zip(x.T, mean)])
    varies = np.ptp(x, axis=0) > 0
    if (varies & (std == 0)).any():
        column = int(np.flatnonzero(varies & (std == 0))[0])
        raise BadData(
            f"column {column} (from 0): expected numbers that differ by more than 1e-150, found a range of "
            f"{np.ptp(x[:, column]):g}; rescale the column"
        )
    return mean, np.where(varies, std, 1.0)


def stratified(y: np.ndarray, seed: int, fraction: float, each: bool = False) -> dict[str, np.ndarray]:
    """Return rows of "train" (`fraction` of each class, rounded) and "test", each in random order.

    each: put at least one row of each class in both; every class then needs two rows.
    """
    random = np.random.RandomState(seed)
    train, test = [], []
    for label in np.unique(y):
        members = random.permutation(np.flatnonzero(y == label))
        n = round(fraction * len(members))
        n = min(max(n, 1), len(members) - 1) if each else n
        train.append(members[:n])
        test.append(members[n:])
    return {"train": random.permutation(np.concatenate(train)), "test": random.permutation(np.concatenate(test))}


def compared_inputs(train: Arrays, low: np.ndarray, high: np.ndarray, n: int) -> dict[str, Callable[[], EvaluationSet]]:
    """Return n training pairs ("train") and n uniform inputs ("ood-uniform"), as in Pequignot et al. 2020, fig. 2."""

    def uniform() -> EvaluationSet:
        draws = np.random.RandomState(0).uniform(low, high, (n, *low.shape)).astype(np.float32)
        return EvaluationSet("ood-uniform", "ood", "ood=uniform", np.clip(draws, low, high), None)

    return {
        "train": lambda: EvaluationSet("train", "id", "inputs=train", train.x[:n], train.y[:n]),
        "ood-uniform": uniform,
    }
