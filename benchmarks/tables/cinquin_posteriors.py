"""cinquin2024, table 7: squared distances of approximations from the posterior of an exact Gaussian process.

Table 7 has the settings that a script of the first author's next paper has for the same sets and rows. Tables beside it
are readings: the distance in place of its square, and the exact posterior of each run's own prior.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import cinquin
from benchmarks.tables.cinquin_candidates import FVI, LATER, MARGIN, PAPER, SMALL, candidate, settings
from benchmarks.tables.spec import (
    LEFT_OUT,
    Cell,
    Column,
    Parts,
    Recipe,
    ReferenceRequest,
    Row,
    Table,
    make_configs,
    merge,
)

NAME, METRIC, SQUARED = "cinquin2024-7", "wasserstein2", "wasserstein2_squared"
REFERENCE = "rbf_gp"
"""Label of the exact process with a separately fitted RBF kernel."""
RATE, PATIENCE = 5e-4, 2000
FLOOR = 0.01
"""Standard deviation below which the reference's noise does not fall; GPyTorch's floor, a variance of 1e-4."""
ROWS = tuple(Row(label, label, cinquin.METHODS[label]) for label in ("GFSVI", "FVI", "Sparse GP"))
_FIT: Parts = {"kernel": {"name": "rbf", "ard": False}, "fit_steps": 500}
_POINTS = {"paper": (450, 50), "short": (90, 10), "smoke": (9, 1)}


def _own_parts(method: str, protocol: str) -> Parts:
    """App. C.6: 2x100 tanh, gamma 1e-15, 500 points of the batch and of the box; kernels by full-batch marginal
    likelihood. Rate, stopping and starts as table 1 had them before."""
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


def own_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Five folds, 1,000 draws of each posterior at the test inputs, and of the exact one of the run's own prior."""
    smoke = protocol == "smoke"
    parts = _own_parts(row.made_by, protocol)
    if smoke:
        fewer = {} if row.made_by == "Sparse GP" else {"prior": {"fit_steps": 5}}
        parts = merge(parts, {"training": {"epochs": 5, "samples": 1 if row.made_by == "GFSVI" else 5}} | fewer)
    folds = tuple((fold, fold) for fold in range(2 if smoke else 5))
    return Recipe(parts, folds, PAPER, samples=20 if smoke else 1000, reference=ReferenceRequest(exact=True))


def _later(method: str, protocol: str) -> Parts:
    """Return the changes by the script of the first author's next paper; none for the sparse process."""
    if method == "Sparse GP":
        return {}
    stopping = {**LATER["training"]["early_stopping"], "patience": PATIENCE}
    batch, uniform = _own_parts(method, protocol)["context"]["parts"]
    return {
        "training": {"optimiser": {"lr": RATE}, "early_stopping": stopping},
        "context": {"parts": [batch, {**uniform, "margin": MARGIN}]},
        "family": FVI["family"] if method == "FBNN" else {},
    }


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Five folds, 1,000 draws of each posterior at the test inputs, and of the exact RBF process of the same fold."""
    found = own_recipe(row, dataset, protocol).with_parts(_later(row.made_by, protocol))
    against = {REFERENCE: make_configs("GP", dataset, protocol, reference_recipe(dataset, protocol))}
    return replace(found, reference=ReferenceRequest(against=against))


def reference_recipe(dataset: str, protocol: str) -> Recipe:
    """Return the exact process with the RBF kernel of table 1, whose noise has a floor; without it wine's
    falls to 0.
    """
    found = candidate("GP", "rbf", dataset, protocol)
    assert found is not None, "every small set has an exact process at every protocol"
    return found.with_parts({"likelihood": {"min_std": FLOOR}})


_LENGTHS: dict[str, Parts] = {
    "early stopping": {},
    "3,000 epochs": {"training": {"epochs": 3000, "early_stopping": None}},
}


def length_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """GFSVI of table 7-squared with another end of its training."""
    found = own_recipe(row, dataset, protocol)
    return found if protocol == "smoke" else found.with_parts(_LENGTHS[row.variant])


_GAMMAS = {"1e-15": 1e-15, "1e-10": 1e-10}


def gamma_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """GFSVI of table 7-squared with larger numbers on the diagonals of both covariances."""
    return own_recipe(row, dataset, protocol).with_parts({"divergence": {"gamma": _GAMMAS[row.variant]}})


_HELD = "kernel of the prior"


def squared_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return a row by its own prior; the sparse process with a kernel trained or held, as GFSVI's prior was fitted."""
    found = own_recipe(row, dataset, protocol)
    held: Parts = {"family": {"fit_steps": 5 if protocol == "smoke" else _FIT["fit_steps"], "kernel": _FIT["kernel"]}}
    return found.with_parts(held) if row.variant == _HELD else found


_NOTES = (
    "Squares: mean over test inputs of the squared distance on the line between 1,000 draws of f(x) and 1,000 of the "
    "reference, standardised targets. The paper says average metric, in the caption point-wise, and uses the Python "
    "Optimal Transport library; the script of its first author's next paper, with the same sets and rows, calls its "
    "emd2_1d with squared costs and takes no root. Table cinquin2024-7-root has the roots.",
    f"Reference: the posterior of an exact process with one RBF kernel, fitted to the same training part by itself, as "
    f"in that script (500 steps of Adam at .05; noise above {FLOOR:g}, GPyTorch's floor). Tables cinquin2024-7-own and "
    "cinquin2024-7-squared: the exact posterior of each run's own prior and noise.",
    f"GFSVI and FVI: learning rate {RATE:g}, validation value of the whole objective at every 100th step, patience "
    f"{PATIENCE:,}, at most 10,000 steps, uniform points on the box of the inputs widened by half of its width on each "
    "side, FVI from standard deviations of .0067: as in that code. The paper says that rate and points are the same "
    "for both, and not which.",
    "Kernels of GFSVI and FVI maximise the marginal likelihood of all training data before training, in 500 steps at "
    ".05; the sparse process's is trained with its bound, 2,000 steps at .02.",
    "450 points of the batch, or all where there are fewer, and 50 of the box: of its 500 the paper says that they are "
    "sampled jointly from both.",
    "The published mean ranks are 1.0 (GFSVI) and 1.6 (FVI).",
    "GFSVI on energy fails at the first step: the marginal likelihood asks for a kernel variance of 2e6, whose "
    "covariance of 500 points is in double precision not positive definite with gamma 1e-15 (table "
    "cinquin2024-7-gamma).",
)
_OWN_NOTES = (
    "Exact: the posterior of each run's own prior, with the hyper-parameters and the noise that it was trained with: "
    "the distance is of the approximation alone. Learning rate .005, patience 200 of the validation likelihood, box "
    "without a margin, FVI from standard deviations of .135: settings that table 7 had before it followed the code of "
    "the first author's next paper.",
    "Draws alone make distances of about a twentieth of the standard deviation.",
    "GFSVI on yacht stops early, after 570 to 2,980 steps, and is far from its exact posterior: .076. After 3,000 "
    "steps (table cinquin2024-7-epochs) it is at .036, ten times the published .0036; more steps were not tried.",
)
_SQUARED_NOTES = (
    "The runs of table cinquin2024-7-own, measured by the mean over test inputs of the squared distance.",
    f"{_HELD}: its hyper-parameters maximise the marginal likelihood of all training data before training, as those of "
    "GFSVI and FVI do, and are held; inducing points, values and noise are trained, for 2,000 "
    "steps as in the row above.",
    "On energy that kernel has a variance of 2e6, and the process is still far from its exact posterior after 2,000 "
    "steps; more were not tried.",
)
_GAMMA_NOTES = (
    "Settings of table cinquin2024-7-own but for gamma, of which 500 times is added to the diagonals of both "
    "covariances; the paper has 1e-15 here and 1e-10 in its other experiments. The first row's runs fail: rounding "
    "makes errors of up to 3e-7 in the prior's covariance.",
)
_SMOKE = "5 steps, 2 folds, 10 points, 20 draws"


def _columns(metric: str, reference: str = "exact_gp") -> tuple[Column, ...]:
    own, published = (f"reference={label}" for label in (reference, "exact_gp"))
    return tuple(Column(Cell(d, own, metric), d, Cell(d, published, METRIC), digits=4) for d in SMALL)


TABLES = (
    Table(
        NAME,
        "Squared Wasserstein-2 distance to an exact process at the test inputs",
        ROWS,
        _columns(SQUARED, REFERENCE),
        recipe,
        paper=PAPER,
        deviations=True,
        number="7",
        ranked=("GFSVI", "FVI"),
        notes={"paper": (*_NOTES, LEFT_OUT), "short": _NOTES},
        reductions={
            "short": "100 points of the divergence in place of 500, at most 3,000 steps",
            "smoke": _SMOKE,
        },
    ),
    Table(
        f"{NAME}-root",
        "Wasserstein-2 distance to an exact process at the test inputs, of the runs of table 7",
        ROWS,
        _columns(METRIC, REFERENCE),
        recipe,
        protocols=("paper", "smoke"),
        paper=PAPER,
        deviations=True,
        number="7",
        notes={"paper": ("The runs of table cinquin2024-7, measured by the mean over test inputs of the distance.",)},
        reductions={"smoke": _SMOKE},
    ),
    Table(
        f"{NAME}-own",
        "Wasserstein-2 distance to the exact posterior of each run's own prior",
        ROWS,
        _columns(METRIC),
        own_recipe,
        protocols=("paper", "smoke"),
        paper=PAPER,
        deviations=True,
        number="7",
        notes={"paper": (*_OWN_NOTES, LEFT_OUT)},
        reductions={"smoke": _SMOKE},
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
                "Settings of table cinquin2024-7-own. Early stopping: patience 200 steps, at most 10,000. Noise and "
                "kernel of the exact posterior are each run's own, so a run that has learned less noise has a narrower "
                "one.",
            )
        },
        reductions={"smoke": _SMOKE},
    ),
    Table(
        "cinquin2024-7-squared",
        "Squared Wasserstein-2 distance to the exact posterior, beside what the paper calls the distance",
        (*ROWS, Row(f"Sparse GP, {_HELD}", "Sparse GP", "Sparse GP", _HELD)),
        _columns(SQUARED),
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
            for metric, label in ((METRIC, "energy"), (SQUARED, "energy, squared"))
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
