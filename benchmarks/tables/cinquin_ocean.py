"""cinquin2024, table 3: surface currents of the Gulf of Mexico, from 20 velocities of drifting buoys.

The runs also have the data of figure 3: the mean velocity on a grid, and its squared errors.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from benchmarks.tables.cinquin import METHODS, PAPER, beside, variants
from benchmarks.tables.recipes import Parts, Recipe, layered, seeds
from benchmarks.tables.spec import Row, Table, changed, column

NAME, DATA = "cinquin2024-3", "gulf_drifters"
ROWS = tuple(Row(label, label, METHODS[label]) for label in ("GFSVI", "TFSVI", "VIP", "GP"))
NOISES = {"noise from .01": 0.01, "noise from .005": 0.005, "noise from .001": 0.001}
STARTS = tuple(row for label in ("GFSVI", "TFSVI", "GP") for row in variants(label, *NOISES))
STEPS = {f"{steps} steps": steps for steps in (50, 100, 200, 300, 400, 800)}
LENGTHS = variants("VIP", "100 steps", "200 steps", "300 steps", "400 steps", "800 steps")
SHORTER = (
    *variants("GFSVI", "50 steps", "100 steps"),
    *variants("TFSVI", "50 steps", "100 steps"),
    *variants("VIP", "100 steps", "200 steps", "300 steps"),
)
HELD: dict[str, Parts] = {"noise held": {"likelihood.learned": False}}
FIXED = (*variants("GFSVI", *HELD), *variants("VIP", *HELD))
SCALED = "scaled"
PLACES = {
    "name": "grid",
    "low": [-1.70981871, -1.70385883],
    "high": [2.01992571, 2.40336468],
    "step": None,
    "counts": [10, 8],
}
"""Places whose 2 components make the 160 fixed points, in the box of the script of the first author's next paper."""
X_STD, Y_STD = (1.87364991, 0.84454863), 0.17750018
"""Scales of inputs and velocities in that script's prior; scheme "scaled" computes the same."""


def _logarithms(lengthscale: float, variance: float) -> tuple[list[float], float]:
    return [math.log(lengthscale / std) for std in X_STD], math.log(variance / Y_STD**2)


_POTENTIAL, _STREAM = _logarithms(7.91214829, 0.25026575), _logarithms(1.13632106, 0.02812761)
PRIOR: Parts = {
    "kernel": {"name": "helmholtz", "field": "helmholtz", "ard": True},
    "fit_steps": 0,
    "parameters": {
        "potential.log_lengthscale": _POTENTIAL[0],
        "potential.log_variance": _POTENTIAL[1],
        "stream.log_lengthscale": _STREAM[0],
        "stream.log_variance": _STREAM[1],
    },
}
"""GFSVI's prior: that script's kernel in scaled units; its numbers are length-scales in degrees and variances in
(m/s)^2."""
NOISE = 1e-3**0.5
"""Initial noise of the exact process in that script, a variance of 0.001 (m/s)^2."""
GRID = {"name": "grid", "low": [-2.86, -1.595], "high": [3.44, 2.185], "step": 0.42}
"""16 x 10 points, degrees from the mean of the training inputs, about the middle of the grid of test points."""
_KERNEL = {"name": "helmholtz", "field": "helmholtz"}


def _raw_parts(method: str, noise: float) -> Parts:
    """App. C.2: both potentials 2 x 50 tanh, 160 fixed context points, TFSVI's prior of standard deviation 0.5; the
    learned noise starts at ``noise`` m/s. Inputs in degrees, velocities in m/s.
    """
    common = {
        "network": {"name": "vector_field", "hidden": [50, 50], "activation": "tanh"},
        "likelihood": {"name": "gaussian", "init_std": noise},
        "training": {"epochs": 2000, "batch_size": 20, "samples": 10, "dtype": "float64"},
        "training.optimiser": {"name": "adam", "lr": 0.005},
    }
    of_functions = {"context": GRID, "divergence.outputs": "joint"}
    own: dict[str, Parts] = {
        "GFSVI": of_functions | {"prior.kernel": _KERNEL, "training.samples": 1},
        "FSVI": of_functions | {"prior.variance": 0.25},
        "GP": {"family.kernel": _KERNEL, "training.epochs": 1000, "training.optimiser.lr": 0.02},
    }
    return layered(common, own.get(method, {}))


def raw_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Five random seeds on the one data set, in degrees and m/s."""
    parts = _raw_parts(row.made_by, NOISES.get(row.variant, 0.1))
    if row.variant in STEPS:
        parts = layered(parts, {"training.epochs": STEPS[row.variant]})
    if protocol == "smoke":
        parts = layered(parts, {"training.epochs": 5}, {"prior.fit_steps": 5} if row.made_by == "GFSVI" else {})
    return Recipe(parts, seeds(2 if protocol == "smoke" else 5), samples=100, sets=("test", "grid"))


def _later(method: str) -> Parts:
    """Return the changes by the script of the first author's next paper, or by the paper's words."""
    own: dict[str, Parts] = {
        "GP": {"training.optimiser.lr": 0.1},
        "GFSVI": {"context": PLACES, "prior": PRIOR},
        "FSVI": {
            "context": PLACES,
            "divergence.jacobian": "full",
            "prior": {"features": "current", "jacobian": "full"},
        },
    }
    return layered({"likelihood.init_std": NOISE if method == "GP" else NOISE / Y_STD}, own.get(method, {}))


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Five random seeds; networks on scaled data, the exact process on raw ones."""
    base = raw_recipe(row, dataset, protocol).with_parts(_later(row.made_by))
    return replace(base, scheme="" if row.made_by == "GP" else SCALED)


def shorter_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return the table's row after fewer steps."""
    base = recipe(row, dataset, protocol)
    return base if protocol == "smoke" else base.with_parts({"training": {"epochs": STEPS[row.variant]}})


_COLUMNS = tuple(
    column(DATA, metric, label) for metric, label in (("expected_log_likelihood", "expected LL"), ("mse", "MSE"))
)
_SMOKE = "5 steps, 2 seeds"
_reading = partial(beside, "3", columns=_COLUMNS, smoke=_SMOKE)
TABLES = (
    Table(
        NAME,
        "Ocean currents in the Gulf of Mexico",
        ROWS,
        _COLUMNS,
        recipe,
        protocols=("paper", "smoke"),
        paper=PAPER,
        number="3",
        deviations=True,
        reductions={"smoke": _SMOKE},
    ),
    _reading("degrees", "Ocean currents in degrees and metres a second", ROWS, make=raw_recipe),
    _reading("noise", "Ocean currents with a smaller noise at the start of training", STARTS, make=raw_recipe),
    _reading("steps", "Ocean currents after fewer steps of training", LENGTHS, make=raw_recipe),
    _reading("shorter", "Ocean currents on scaled data after fewer steps of training", SHORTER, make=shorter_recipe),
    _reading(
        "held", "Ocean currents with the noise held at a variance of 0.001 (m/s)^2", FIXED, make=changed(recipe, HELD)
    ),
)
