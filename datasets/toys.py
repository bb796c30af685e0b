"""Toy data sets: two moons, curves, Snelson's. Each has an evaluation set "grid" over the plotted range.

Generated sets use the split number as random seed (split s of the Dirichlet moons is random_state 456 + s), 1,000 fresh
draws as test subset, and the plotted range as box (low, high). Of them only the moons of Cinquin and Bamler have
inputs standardised by the training subset, as in the code of the authors' next paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .checks import read_table
from .contract import Arrays, Description, EvaluationSet, Pool, Split
from .fetch import Folder, locate
from .tabular import assemble, compared_inputs, standardisation

VERSION = "1"
N_TEST = 1000
N_SPLITS = 10
N_SPECTRUM = 200  # points at which the covariance of functions is evaluated
TEST_SEED = 1_000_000  # added to the seed of the training subset

GRID = "the plotted grid"  # source of contexts
SNELSON = "snelson"
SNELSON_FILES = ("snelson/snelson_train_inputs.dat", "snelson/snelson_train_outputs.dat")
SNELSON_ROWS, SNELSON_TRAIN = 200, 148
SNELSON_GAP = (1.5, 3.0)  # in the units of the file; as in the code of Rudner et al. (2022)
SNELSON_BOX = 8.0  # of the uniform context, standardised units; the grid goes to 10
Draw = Callable[[int, int], tuple[np.ndarray, np.ndarray]]  # (n, seed) -> x [n, D], y [n]


@dataclass(frozen=True)
class Toy:
    """Distribution of a toy data set. step: spacing of the grid over the plotted box from low to high.

    standardised: inputs are standardised by the training subset, and the box is in these units.
    """

    draw: Draw
    n_train: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    step: float
    task: str = "regression"
    first_seed: int = 0
    standardised: bool = False
    version: str = VERSION

    @property
    def n_outputs(self) -> int:
        return 2 if self.task == "classification" else 1


def moons(noise: float, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw two half circles with N(0, noise^2) noise; labels 0 (upper), 1 (lower)."""
    from sklearn.datasets import make_moons  # here, since it takes a second to load

    return make_moons(n, noise=noise, random_state=seed)


def curve(
    function: Callable[[np.ndarray], np.ndarray], noise: float, n: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw y = function(x) + N(0, noise^2), x uniform on [-1, -0.5] and [0.5, 1]."""
    random = np.random.RandomState(seed)
    x = random.uniform(0.5, 1.0, n) * random.choice([-1.0, 1.0], n)
    y = function(x) + noise * random.standard_normal(n)
    return x[:, None], y.round(9)  # the last bits of a cosine differ between processors


def _cosine(x: np.ndarray) -> np.ndarray:
    return np.cos(4 * (x + 0.2))


def _sine(x: np.ndarray) -> np.ndarray:
    return np.sin(2 * np.pi * x)


TOYS = {
    "two_moons_rudner": Toy(partial(moons, 0.2), 200, (-4.0, -3.5), (5.0, 4.0), 0.25, "classification"),
    "two_moons_dirichlet": Toy(partial(moons, 0.2), 100, (-2.5, -2.0), (3.5, 2.5), 0.05, "classification", 456),
    "two_moons_cinquin": Toy(
        partial(moons, 0.1), 100, (-3.9, -3.9), (3.9, 3.9), 0.15, "classification", standardised=True, version="2"
    ),
    "pequignot_1d": Toy(partial(curve, _cosine, 0.1), 120, (-4.0,), (2.0,), 0.01),
    "cinquin_1d": Toy(partial(curve, _sine, 0.1), 100, (-2.0,), (2.0,), 0.01),
    "cinquin_1d_noisy": Toy(partial(curve, _sine, 1.0), 100, (-2.0,), (2.0,), 0.01),
}
ORIGINS = {
    "two_moons_rudner": "Rudner et al. 2021, fig. 1 and 4; size, noise and grid as in their code",
    "two_moons_dirichlet": "function-space VI with Dirichlet priors, fig. 3, app. F",
    "two_moons_cinquin": "Cinquin and Bamler 2024, fig. 9 and 10, app. C.1",
    "pequignot_1d": "Pequignot et al. 2020, sec. 4.1, fig. 1: y = cos(4 (x + 0.2)) + N(0, 0.1^2)",
    "cinquin_1d": "Cinquin and Bamler 2024, eq. C.1: y = sin(2 pi x) + N(0, 0.1^2)",
    "cinquin_1d_noisy": "Cinquin and Bamler 2024, fig. 4: y = sin(2 pi x) + N(0, 1)",
    SNELSON: "Snelson and Ghahramani 2006, files of GPflow/GPflow",
}


def describe(name: str, scheme: str) -> Description:
    if name == SNELSON:
        about, n_test = (name, "regression", VERSION, "", ("",), 1, 1, (1,)), SNELSON_ROWS - SNELSON_TRAIN
        return Description(*about, SNELSON_TRAIN, n_test, ORIGINS[name], SNELSON_FILES, validated=False)
    toy = TOYS[name]
    about = name, toy.task, toy.version, "", ("",), N_SPLITS, toy.n_outputs, (len(toy.low),)
    return Description(*about, toy.n_train, N_TEST, ORIGINS[name], (), validated=False)


def load(name: str, split: int, scheme: str = "", root: Folder = None) -> Split:
    if name == SNELSON:
        return load_snelson(root)
    toy = TOYS[name]
    seed = toy.first_seed + split
    low, high = np.array(toy.low, np.float32), np.array(toy.high, np.float32)
    (x, y), (test_x, test_y) = (toy.draw(n, s) for n, s in ((toy.n_train, seed), (N_TEST, TEST_SEED + seed)))
    if toy.standardised:
        mean, std = standardisation(x)
        x, test_x = (x - mean) / std, (test_x - mean) / std
    train, test = _arrays(x, y), _arrays(test_x, test_y)
    inputs = grid(toy.low, toy.high, toy.step)
    evaluations = {"grid": lambda: EvaluationSet("grid", "grid", "inputs=grid", inputs, None)}
    if toy.task == "regression":
        evaluations |= compared_inputs(train, low, high, toy.n_train)
        spread = np.random.RandomState(0).uniform(low, high, (N_SPECTRUM, len(low))).astype(np.float32)
        evaluations["spectrum"] = lambda: EvaluationSet("spectrum", "spectrum", "inputs=spectrum", spread, None)
    about, pools = (name, toy.version, split, "", toy.task, toy.n_outputs), {"grid": lambda: Pool(inputs, GRID)}
    return Split(*about, train, test, low, high, evaluations=evaluations, pools=pools)


def load_snelson(root: Folder = None) -> Split:
    """Return Snelson's 200 pairs; the pairs with 1.5 <= x <= 3, not used to standardise, are the test subset.

    Raises DataNotFound, BadData.
    """
    x, y = (read_table(locate(file, root), SNELSON_ROWS, 1) for file in SNELSON_FILES)
    gap = (x[:, 0] >= SNELSON_GAP[0]) & (x[:, 0] <= SNELSON_GAP[1])
    rows = {"train": np.flatnonzero(~gap), "test": np.flatnonzero(gap)}
    split = assemble(SNELSON, VERSION, 0, "", x, y[:, 0], rows)
    inputs = np.linspace(-10, 10, 500, dtype=np.float32)[:, None]
    high = np.full(1, SNELSON_BOX, np.float32)
    evaluations = {
        "grid": lambda: EvaluationSet("grid", "grid", "inputs=grid", inputs, None),
        **compared_inputs(split.train, -high, high, len(split.test)),
    }
    pools = {"grid": lambda: Pool(inputs, GRID)}
    return replace(split, low=-high, high=high, evaluations=evaluations, pools=pools)


def grid(low: tuple[float, ...], high: tuple[float, ...], step: float) -> np.ndarray:
    """Return points [G, D] of the regular grid from low to high, both included; the last coordinate runs fastest."""
    axes = [np.linspace(a, b, round((b - a) / step) + 1, dtype=np.float32) for a, b in zip(low, high)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _arrays(x: np.ndarray, y: np.ndarray) -> Arrays:
    return Arrays(x.astype(np.float32), y.astype(np.int64 if y.dtype.kind == "i" else np.float64))
