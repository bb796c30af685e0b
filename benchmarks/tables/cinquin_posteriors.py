"""cinquin2024, table 7: squared distances of approximations from the posterior of an exact Gaussian process.

Table 7 has the settings that a script of the first author's next paper has for the same sets and rows. Tables beside it
are readings: the distance in place of its square, and the exact posterior of each run's own prior.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.tables import cinquin
from benchmarks.tables.cinquin_candidates import FVI, LATER, MARGIN, PAPER, SMALL, candidate, mixture, settings
from benchmarks.tables.cinquin_readings import collapsed
from benchmarks.tables.recipes import Parts, Recipe, ReferenceRequest, folds, layered, make_configs
from benchmarks.tables.spec import Cell, Column, Row, Table, changed

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
        "network.hidden": [100, 100],
        "context": mixture(batch, uniform),
        "prior": {**_FIT, "fit_batch": 2000},
    }
    return layered(parts, own, {"divergence.gamma": 1e-15} if method == "GFSVI" else {})


def own_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Five folds, 1,000 draws of each posterior at the test inputs, and of the exact one of the run's own prior."""
    smoke = protocol == "smoke"
    parts = _own_parts(row.made_by, protocol)
    if smoke:
        fewer = {} if row.made_by == "Sparse GP" else {"prior.fit_steps": 5}
        parts = layered(parts, {"training": {"epochs": 5, "samples": 1 if row.made_by == "GFSVI" else 5}}, fewer)
    count, samples = (2, 20) if smoke else (5, 1000)
    return Recipe(parts, folds(count), PAPER, samples=samples, reference=ReferenceRequest(exact=True))


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
        "prior": {"fit_transform": "softplus", "fit_start": "one"},
    }


def recipe(row: Row, dataset: str, protocol: str, init_std: float | None = None) -> Recipe:
    """Five folds, 1,000 draws of each posterior at the test inputs, and of the exact RBF process of the same fold."""
    base = own_recipe(row, dataset, protocol).with_parts(_later(row.made_by, protocol))
    against = {REFERENCE: make_configs("GP", dataset, protocol, reference_recipe(dataset, protocol, init_std))}
    return replace(base, reference=ReferenceRequest(against=against))


def reference_recipe(dataset: str, protocol: str, init_std: float | None = None) -> Recipe:
    """Return the exact process with the RBF kernel of table 1, whose noise has a floor, without which wine's falls to
    0, and starts as in table 1 or at ``init_std``.
    """
    base = candidate("GP", "rbf", dataset, protocol)
    assert base is not None, "every small set has an exact process at every protocol"
    start = {} if init_std is None else {"init_std": init_std}
    return base.with_parts({"likelihood": {"min_std": FLOOR} | start})


_LENGTHS: dict[str, Parts] = {
    "early stopping": {},
    "3,000 epochs": {"training": {"epochs": 3000, "early_stopping": None}},
}


def length_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """GFSVI of table 7-squared with another end of its training."""
    base = own_recipe(row, dataset, protocol)
    return base if protocol == "smoke" else base.with_parts(_LENGTHS[row.variant])


_GAMMAS: dict[str, Parts] = {gamma: {"divergence.gamma": float(gamma)} for gamma in ("1e-15", "1e-10")}
"""Numbers on the diagonals of both covariances: as in table 7-squared, and larger."""
_HELD = "kernel of the prior"


def squared_recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return a row by its own prior; the sparse process with a kernel trained or held, as GFSVI's prior was fitted."""
    base = own_recipe(row, dataset, protocol)
    held: Parts = {"family": {"fit_steps": 5 if protocol == "smoke" else _FIT["fit_steps"], "kernel": _FIT["kernel"]}}
    return base.with_parts(held) if row.variant == _HELD else base


_COLLAPSED, _LONGER = "collapsed bound", "10,000 steps"


def inducing_recipe(row: Row, dataset: str, protocol: str, init_std: float | None = None) -> Recipe:
    """Return the sparse process of table 7, with inducing values in closed form, or after more steps; the reference's
    noise may start elsewhere."""
    base = recipe(row, dataset, protocol, init_std)
    if row.variant == _LONGER:
        steps = 5 if protocol == "smoke" else 10_000
        return base.with_parts({"training": {"epochs": steps, "schedule": {"name": "cosine"}}})
    return collapsed(base, dataset, protocol) if row.variant == _COLLAPSED else base


_SMOKE = "5 steps, 2 folds, 10 points, 20 draws"


def _columns(metric: str, reference: str = "exact_gp") -> tuple[Column, ...]:
    own, published = (f"reference={label}" for label in (reference, "exact_gp"))
    return tuple(Column(Cell(d, own, metric), d, Cell(d, published, METRIC), digits=4) for d in SMALL)


_reading = partial(cinquin.beside, "7", smoke=_SMOKE)
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
        reductions={
            "short": "100 points of the divergence in place of 500, at most 3,000 steps",
            "smoke": _SMOKE,
        },
    ),
    _reading(
        "root",
        "Wasserstein-2 distance to an exact process at the test inputs, of the runs of table 7",
        ROWS,
        _columns(METRIC, REFERENCE),
        recipe,
    ),
    _reading(
        "own",
        "Wasserstein-2 distance to the exact posterior of each run's own prior",
        ROWS,
        _columns(METRIC),
        own_recipe,
    ),
    _reading(
        "epochs",
        "GFSVI by the end of its training: Wasserstein-2 distance to the exact posterior",
        cinquin.variants("GFSVI", *_LENGTHS),
        _columns(METRIC),
        length_recipe,
    ),
    _reading(
        "collapsed",
        "Sparse GP by the collapsed bound: squared Wasserstein-2 distance to an exact process at the test inputs",
        cinquin.variants("Sparse GP", _COLLAPSED),
        _columns(SQUARED, REFERENCE),
        inducing_recipe,
    ),
    _reading(
        "steps",
        "Sparse GP after more steps: squared Wasserstein-2 distance to an exact process at the test inputs",
        cinquin.variants("Sparse GP", _LONGER),
        _columns(SQUARED, REFERENCE),
        inducing_recipe,
    ),
    _reading(
        "reference",
        "Sparse GP beside an exact process whose noise starts at 1",
        (
            Row("Sparse GP, reference from 1", "Sparse GP", "Sparse GP"),
            Row("Sparse GP, collapsed", "Sparse GP", "Sparse GP", _COLLAPSED),
        ),
        _columns(SQUARED, REFERENCE),
        partial(inducing_recipe, init_std=1.0),
    ),
    _reading(
        "squared",
        "Squared Wasserstein-2 distance to the exact posterior, beside what the paper calls the distance",
        (*ROWS, *cinquin.variants("Sparse GP", _HELD)),
        _columns(SQUARED),
        squared_recipe,
    ),
    _reading(
        "gamma",
        "GFSVI on energy by gamma: distance to the exact posterior, and its square",
        tuple(Row(f"GFSVI, gamma {gamma}", "GFSVI", "GFSVI", gamma) for gamma in _GAMMAS),
        tuple(
            replace(column, label=label)
            for metric, label in ((METRIC, "energy"), (SQUARED, "energy, squared"))
            for column in _columns(metric)
            if column.cell.dataset == "energy"
        ),
        changed(own_recipe, _GAMMAS),
    ),
)
