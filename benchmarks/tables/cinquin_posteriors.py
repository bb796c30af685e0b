"""cinquin2024, table 7: how far approximations are from the exact posterior of their own Gaussian process prior."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import cinquin
from benchmarks.tables.cinquin_candidates import PAPER, SMALL, settings
from benchmarks.tables.spec import LEFT_OUT, Cell, Column, Parts, Recipe, Reference, Row, Table, merge

NAME, METRIC = "cinquin2024-7", "wasserstein2"
ROWS = tuple(Row(label, label, cinquin.METHODS[label]) for label in ("GFSVI", "FVI", "Sparse GP"))
_FIT: Parts = {"kernel": {"name": "rbf", "ard": False}, "fit_steps": 500}
_POINTS = {"paper": (450, 50), "short": (90, 10), "smoke": (9, 1)}


def _parts(method: str, protocol: str) -> Parts:
    """App. C.6: 2x100 tanh, gamma 1e-15, 500 points of the batch and of the box; kernels by full-batch marginal
    likelihood."""
    parts = settings(method, "short" if protocol == "smoke" else protocol)
    if method == "Sparse GP":
        return parts
    batch, uniform = _POINTS[protocol]
    own: Parts = {
        "network": {"hidden": [100, 100]},
        "context": {
            "name": "mixture",
            "parts": [{"name": "training_batch", "points": batch}, {"name": "uniform_box", "points": uniform}],
        },
        "prior": {**_FIT, "fit_batch": 2000},
    }
    return merge(parts, merge(own, {"divergence": {"gamma": 1e-15}} if method == "GFSVI" else {}))


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Five folds, 1,000 draws of each posterior at the test inputs."""
    smoke = protocol == "smoke"
    parts = _parts(row.made_by, protocol)
    if smoke:
        fewer = {} if row.made_by == "Sparse GP" else {"prior": {"fit_steps": 5}}
        parts = merge(parts, {"training": {"epochs": 5, "samples": 1 if row.made_by == "GFSVI" else 5}} | fewer)
    folds = tuple((fold, fold) for fold in range(2 if smoke else 5))
    return Recipe(parts, folds, PAPER, samples=20 if smoke else 1000, reference=Reference(exact=True))


_LENGTHS: dict[str, Parts] = {
    "early stopping": {},
    "3,000 epochs": {"training": {"epochs": 3000, "early_stopping": None}},
}


def length_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """GFSVI of table 7 with another end of its training."""
    found = recipe(row, dataset, protocol)
    return found if protocol == "smoke" else found.with_parts(_LENGTHS[row.variant])


_GAMMAS = {"1e-15": 1e-15, "1e-10": 1e-10}


def gamma_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """GFSVI of table 7 with more on the diagonals of both covariances."""
    return recipe(row, dataset, protocol).with_parts({"divergence": {"gamma": _GAMMAS[row.variant]}})


_HELD = "kernel of the prior"


def squared_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """A row of table 7; the sparse process with a kernel trained or held, as GFSVI's prior was fitted."""
    found = recipe(row, dataset, protocol)
    held: Parts = {"family": {"fit_steps": 5 if protocol == "smoke" else _FIT["fit_steps"], "kernel": _FIT["kernel"]}}
    return found.with_parts(held) if row.variant == _HELD else found


_NOTES = (
    "Exact: the posterior of each run's own prior, with the hyper-parameters and the noise that it was trained with: "
    "the distance is of the approximation alone. Kernels of GFSVI and FVI maximise the marginal likelihood of all "
    "training data before training, and so are the same; the sparse process's is trained with its bound. The paper "
    'says "the same prior", and not how it was chosen, nor with which noise.',
    "Distance on the line between 1,000 draws of f(x) and 1,000 of the exact posterior, at each test input by itself, "
    "mean over inputs, standardised targets. The paper says average metric, in the caption point-wise, and uses the "
    "Python Optimal Transport library, whose functions give the square unless its root is taken. Draws alone make "
    "distances of about a twentieth of the standard deviation.",
    "450 points of the batch, or all where there are fewer, and 50 of the box: of its 500 the paper says that they are "
    "sampled jointly from both. Learning rate .005, patience 200, as in table 1.",
    "The published mean ranks are 1.0 (GFSVI) and 1.6 (FVI).",
    "Squares of the distances (table cinquin2024-7-squared) are of the published order: GFSVI has .5 to 2.8 times the "
    "published numbers, where the distances have 2 to 21 times. FVI on boston has .0431, published .0469; a sparse "
    "process whose kernel is GFSVI's has .0126 on concrete, published .0125. So squares are most likely what the paper "
    "has; GFSVI differs as squares too, and sparse processes on wine, energy and yacht.",
    "GFSVI on yacht stops early, after 570 to 2,980 steps, and is far from its exact posterior: .076. After 3,000 "
    "steps (table cinquin2024-7-epochs) it is at .036, ten times the published .0036; more steps were not tried.",
    "GFSVI on energy: all five runs fail at the first step. The marginal likelihood asks for a kernel variance of 2e6 "
    "at a length scale of 21 (first fold), and its covariance of the 500 points, with eigenvalues up to 1e9 (seen "
    "beside the runs, without a record), is in double precision not positive definite with gamma 1e-15. With 1e-10 "
    "(table cinquin2024-7-gamma) 800 steps went well, of which there is no record; it was not trained to its end.",
)
_SQUARED_NOTES = (
    "The runs of table cinquin2024-7, measured by the mean over test inputs of the squared distance: functions of "
    "Python Optimal Transport, which the paper uses, give squares unless their root is taken.",
    f"{_HELD}: its hyper-parameters maximise the marginal likelihood of all training data before training, as those of "
    "GFSVI and FVI do, and are held; inducing points, values and noise are trained, for 2,000 "
    "steps as in the row above.",
    "On energy that kernel has a variance of 2e6, and the process is still far from its exact posterior after 2,000 "
    "steps; more were not tried.",
)
_GAMMA_NOTES = (
    "Settings of table cinquin2024-7 but for gamma, of which 500 times is added to the diagonals of both covariances; "
    "the paper has 1e-15 here and 1e-10 in its other experiments. The first row's runs fail: rounding makes errors of "
    "up to 3e-7 in the prior's covariance.",
)
_SMOKE = "5 steps, 2 folds, 10 points, 20 draws"


def _columns(metric: str) -> tuple[Column, ...]:
    where = "reference=exact_gp"
    return tuple(Column(Cell(d, where, metric), d, Cell(d, where, METRIC), digits=4) for d in SMALL)


TABLES = (
    Table(
        NAME,
        "Wasserstein-2 distance to the exact posterior at the test inputs",
        ROWS,
        _columns(METRIC),
        recipe,
        paper=PAPER,
        deviations=True,
        number="7",
        ranked=("GFSVI", "FVI"),
        notes={"paper": (*_NOTES, LEFT_OUT), "short": _NOTES},
        reductions={
            "short": "100 points of the divergence in place of 500",
            "smoke": _SMOKE,
        },
    ),
    Table(
        "cinquin2024-7-epochs",
        "GFSVI by the end of its training: Wasserstein-2 distance to the exact posterior",
        tuple(Row(f"GFSVI, {label}", "GFSVI", "GFSVI", label) for label in _LENGTHS),
        _columns(METRIC),
        length_recipe,
        protocols=("paper", "smoke"),
        paper=PAPER,
        deviations=True,
        number="7",
        notes={
            "paper": (
                "Settings of table cinquin2024-7. Early stopping: patience 200 steps, at most 10,000. Noise and kernel "
                "of the exact posterior are each run's own, so a run that has learned less noise has a narrower one.",
            )
        },
        reductions={"smoke": _SMOKE},
    ),
    Table(
        "cinquin2024-7-squared",
        "Squared Wasserstein-2 distance to the exact posterior, beside what the paper calls the distance",
        (*ROWS, Row(f"Sparse GP, {_HELD}", "Sparse GP", "Sparse GP", _HELD)),
        _columns("wasserstein2_squared"),
        squared_recipe,
        protocols=("paper", "smoke"),
        paper=PAPER,
        deviations=True,
        number="7",
        notes={"paper": _SQUARED_NOTES},
        reductions={"smoke": _SMOKE},
    ),
    Table(
        "cinquin2024-7-gamma",
        "GFSVI on energy by gamma: distance to the exact posterior, and its square",
        tuple(Row(f"GFSVI, gamma {gamma}", "GFSVI", "GFSVI", gamma) for gamma in _GAMMAS),
        tuple(
            replace(column, label=label)
            for metric, label in ((METRIC, "energy"), ("wasserstein2_squared", "energy, squared"))
            for column in _columns(metric)
            if column.cell.dataset == "energy"
        ),
        gamma_recipe,
        protocols=("paper", "smoke"),
        paper=PAPER,
        deviations=True,
        number="7",
        notes={"paper": _GAMMA_NOTES},
        reductions={"smoke": _SMOKE},
    ),
)
