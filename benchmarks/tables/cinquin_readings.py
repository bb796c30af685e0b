"""Readings of cinquin2024's tables 1, 6 and 4: settings that the paper does not print, or that the authors' later code
has."""

from __future__ import annotations

from dataclasses import replace

import datasets
from benchmarks.tables import cinquin
from benchmarks.tables.cinquin import METHODS, PAPER, beside, variants, varied
from benchmarks.tables.cinquin_candidates import CANDIDATES, LARGE, LATER, MARGIN, SMALL, candidate, recipe_with
from benchmarks.tables.recipes import Parts, Recipe, layered
from benchmarks.tables.spec import Cell, Column, Row, Table, changed
from datasets import song

COMPARED = ("TFSVI", "MFVI", "VIP", "Laplace", "GWI")
"""Rows of table 1 whose every candidate is evaluated on test folds."""


def candidates_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the trainings of the selection on all folds, evaluated on test folds too; nothing is chosen here."""
    return candidate(row.made_by, row.variant if protocol == "paper" else None, dataset, protocol)


_WIDE: Parts = {"family": {"log_var_init": [-2.0, -2.0]}}
_LONG: Parts = {"training": {"epochs": 3000, "early_stopping": None}}
MFVI: dict[str, Parts] = {
    "early stopping": {},
    "3,000 steps": _LONG,
    "wide start, early stopping": _WIDE,
    "wide start, 3,000 steps": layered(_WIDE, _LONG),
}
"""Starts and ends of MFVI's training, of the first candidate of table 1."""
WIDE_ALONE = "wide start alone"  # of the chosen candidate


def mfvi_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the first candidate of table 1 with another start or end, or the chosen one with another start."""
    if row.variant == WIDE_ALONE:
        base = cinquin.recipe(row, dataset, protocol)
        return base and base.with_parts(_WIDE)
    first = CANDIDATES[protocol].get("MFVI", {}).get("variance 1")
    return None if first is None else recipe_with("MFVI", layered(first, MFVI[row.variant]), dataset, protocol)


_PREDICTIVE = "validation, predictive log-likelihood"
LAPLACE: dict[str, Parts] = {
    "validation, expected log-likelihood": {},
    _PREDICTIVE: {"fit": {"criterion": "predictive"}},
    "evidence": {"fit": {"precision": "evidence", "criterion": "predictive"}},
    f"relu, {_PREDICTIVE}": {"network": {"activation": "relu"}, "fit": {"criterion": "predictive"}},
    "Kronecker factors": {"fit": {"structure": "kronecker"}},
    "all correlations": {"fit": {"structure": "full"}},
}
"""Choices of Laplace's prior precision, and its correlations."""
LONGER = "ten times the patience"
PATIENT: dict[str, Parts] = {
    LONGER: {},
    f"lr .001, {LONGER}": CANDIDATES["paper"]["Laplace"]["tanh, lr .001"],
}
ANNEALED = "50,000 steps, rate to 0"  # on naval, the one set whose validation loss falls to the last step


def patient(recipe: Recipe, protocol: str) -> Recipe:
    """Return a recipe with ten times the patience, for ten times as many epochs at most."""
    training = recipe.parts["training"]
    longer = training["epochs"] * (1 if protocol == "smoke" else 10)
    patience = 10 * training["early_stopping"]["patience"]
    return recipe.with_parts({"training": {"epochs": longer, "early_stopping": {"patience": patience}}})


def patience_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the row of table 1 with a later end of its training."""
    base = cinquin.recipe(row, dataset, protocol)
    return base and patient(base, protocol)


def laplace_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the first candidate of table 1, with another choice of its prior precision, more of its correlations, or
    longer training."""
    first = candidate("Laplace", "tanh" if protocol == "paper" else None, dataset, protocol)
    if first is None:
        return None
    if row.variant in PATIENT:
        return patient(first, protocol).with_parts(PATIENT[row.variant])
    if row.variant == ANNEALED:
        cooled = {
            "epochs": 5 if protocol == "smoke" else 10_000,
            "schedule": {"name": "cosine"},
            "early_stopping": None,
        }
        return first.with_parts({"training": cooled}) if dataset == "naval" else None
    return first.with_parts(LAPLACE[row.variant]) if row.variant in LAPLACE else None


_ENDS = "rate and end"
_LATER_END: Parts = layered(LATER, {"training": {"epochs": 10_000}})
OF_LATER_CODE: dict[str, tuple[str, Parts]] = {
    **{f"{label}, {_ENDS}": (label, _LATER_END) for label in ("FVI", "TFSVI", "MFVI", "Laplace", "GWI", "VIP")},
    "FVI, all eigenvalues": ("FVI", {"divergence": {"share": 1.0}}),
    "GFSVI, wider box": ("GFSVI", {"context": {"margin": MARGIN}}),
    "GWI, one length-scale": ("GWI", {"family": {"kernel": {"ard": False}}}),
    **{f"{label}, Haiku": (label, {"network": {"init": "haiku"}}) for label in ("MFVI", "Laplace", "GWI", "VIP")},
}
"""Settings of the authors' later code, and initial weights of the library that the paper names, by label: the label in
table 1, and the changed parts."""
_SOFTPLUS: Parts = {"fit_transform": "softplus", "fit_start": "one"}
FITTED: dict[str, tuple[str, Parts]] = {
    "GFSVI, softplus": ("GFSVI", {"prior": _SOFTPLUS}),
    "GWI, softplus": ("GWI", {"family": _SOFTPLUS}),
    "GWI, softplus, one length-scale": ("GWI", {"family": {**_SOFTPLUS, "kernel": {"ard": False}}}),
}
"""The fit of kernels in that code, by label."""


def later_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the row of table 1 (its first candidate where none is chosen yet), with the reading's changes."""
    readings = OF_LATER_CODE | FITTED
    if row.label not in readings:
        return None
    first = next(iter(CANDIDATES[protocol].get(row.made_by, ())), None)
    base = cinquin.recipe(row, dataset, protocol) or candidate(row.made_by, first, dataset, protocol)
    changes = readings[row.label][1]
    return base if base is None or (protocol == "smoke" and changes is _LATER_END) else base.with_parts(changes)


def _rows(readings: dict[str, tuple[str, Parts]]) -> tuple[Row, ...]:
    return tuple(Row(label, method, METHODS[method]) for label, (method, _) in readings.items())


OF_TABLES = "gamma 1e-10"
GAMMAS: dict[str, Parts] = {
    f"gamma {gamma}": {"divergence.gamma": float(gamma)} for gamma in ("1e-10", "1e-15", "1e-5", "1e-2")
}
"""Gamma of the paper's tables, of its distances to the exact posterior (App. C.6), and two that are ours."""
_OF_GAMMAS = tuple(
    row if row.variant == OF_TABLES else replace(row, published=None) for row in variants("GFSVI", *GAMMAS)
)


INDUCING: dict[str, Parts] = {f"{points:,} inducing points": {"family.points": points} for points in (250, 500)}
"""More inducing points than table 1; the paper does not print their number."""
COLLAPSED_STEPS = 2000


def collapsed_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the row of table 1 with inducing values in closed form, as many steps, each on all training data."""
    base = cinquin.recipe(row, dataset, protocol)
    return base and collapsed(base, dataset, protocol)


def collapsed(recipe: Recipe, dataset: str, protocol: str) -> Recipe:
    """Return the recipe of a sparse process with inducing values in closed form."""
    family = {**recipe.parts.get("family", {}), "name": "collapsed_gp"}
    epochs = 5 if protocol == "smoke" else COLLAPSED_STEPS
    steps = {"epochs": epochs, "batch_size": datasets.describe(dataset, PAPER).n_train}
    parts = recipe.parts | {"family": family, "divergence": None}
    return replace(recipe, parts=parts).with_parts({"training": {**steps, "schedule": {"name": "cosine"}}})


def songs_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the trainings of table 1, evaluated on both sets of songs."""
    base = cinquin.recipe(row, dataset, protocol) if dataset in SMALL else None
    return base and replace(base, sets=("test", *song.SETS))


def _songs(suffix: str, title: str, condition: str, metric: str) -> Table:
    return beside(
        "4",
        suffix,
        f"Telling songs from test points: {title}",
        cinquin.ROWS,
        tuple(Column(Cell(d, condition, metric), d, Cell(d, "", "ood_accuracy")) for d in SMALL),
        songs_recipe,
        cinquin.REDUCTIONS["smoke"],
    )


TABLES = (
    *varied(
        "candidates",
        "Networks by activation, learning rate, kernel and prior",
        tuple(row for label in COMPARED for row in variants(label, *CANDIDATES["paper"][METHODS[label]])),
        SMALL,
        candidates_recipe,
    ),
    *varied(
        "mfvi",
        "MFVI by where its training starts and ends",
        variants("MFVI", *MFVI, WIDE_ALONE),
        (*SMALL, "kin8nm", "naval", "power"),
        mfvi_recipe,
    ),
    *varied(
        "laplace",
        "Laplace by what chooses its prior precision, by its correlations, and by when training stops",
        variants("Laplace", *LAPLACE, *PATIENT, ANNEALED),
        SMALL + LARGE,
        laplace_recipe,
    ),
    *varied(
        "patience",
        "GWI with ten times the patience",
        variants("GWI", LONGER),
        (*SMALL, "kin8nm", "power"),
        patience_recipe,
    ),
    *varied("later", "Rows with settings of the authors' later code", _rows(OF_LATER_CODE), SMALL, later_recipe),
    *varied(
        "softplus",
        "Kernels fitted in softplus numbers, as in the authors' later code",
        _rows(FITTED),
        (*SMALL, "kin8nm", "power"),
        later_recipe,
    ),
    *varied("gamma", "GFSVI by gamma", _OF_GAMMAS, SMALL, changed(cinquin.recipe, GAMMAS)),
    *varied(
        "inducing",
        "Sparse GP by its number of inducing points",
        variants("Sparse GP", *INDUCING),
        ("wine", "kin8nm"),
        changed(cinquin.recipe, INDUCING),
    ),
    *varied(
        "collapsed",
        "Sparse GP by the collapsed bound",
        variants("Sparse GP", "collapsed bound"),
        (*SMALL, "naval"),
        collapsed_recipe,
    ),
    _songs("songs", "songs with the year as their first feature", "ood=song-year", "ood_accuracy"),
    _songs("tree", "threshold by log-loss", "ood=song", "ood_accuracy_log_loss"),
    _songs("songs-tree", "songs with the year, threshold by log-loss", "ood=song-year", "ood_accuracy_log_loss"),
)
