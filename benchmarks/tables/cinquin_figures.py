"""cinquin2024's figures without a table.

1, 4, 6, 7, 8, 11, 14, 18 and 19: GFSVI on the sine by kernel, noise of the data, length-scale, points, network and
gamma, beside FVI, GWI or the exact process, each beside the exact posterior of its own prior. 15 and 16: validation
expected log-likelihood by the length of training.

Each length is a training of its own. Without early stopping and with a constant learning rate, the shorter trainings
are stages of the longest, draw for draw.
"""

from __future__ import annotations

import math

from benchmarks.tables import cinquin_images, toys
from benchmarks.tables.cinquin import METHODS, METRIC
from benchmarks.tables.cinquin_candidates import CANDIDATES, PAPER, mixture, settings
from benchmarks.tables.recipes import Parts, Recipe, ReferenceRequest, folds, layered, seeds
from benchmarks.tables.spec import Cell, Column, Row, Table

DATA = "cinquin_1d"
KERNELS = ("RBF", "Matern 1/2")
MORE_KERNELS = {
    "Matern 1/2": "matern12",
    "Matern 3/2": "matern32",
    "Matern 5/2": "matern52",
    "RBF": "rbf",
    "periodic": "periodic",
}
ACTIVATIONS = ("tanh", "relu", "softplus")
SETS = {"4": (DATA, f"{DATA}_noisy")}
"""Data sets by figure; figures that are absent have DATA alone."""
EVALUATED = {"19": ("test", "grid", "spectrum")}
DRAWN = {"19": 1000}
"""Functions drawn in evaluation under protocol ``paper``, by figure; 200 where absent."""
EPOCHS = {"paper": 10_000, "short": 2000, "smoke": 3}
SEEDS = {"paper": 5, "short": 1, "smoke": 1}
POINTS = {"paper": 500, "short": 100, "smoke": 100}
"""Points of GFSVI's divergence where a row names none."""


def _kernel(name: str, length: float | None = None) -> Parts:
    kernel = {"kernel": {"name": MORE_KERNELS[name], "ard": False}}
    return {"prior": kernel if length is None else {**kernel, "parameters": {"log_lengthscale": math.log(length)}}}


def _network(activation: str, width: int) -> Parts:
    return {"network": {"hidden": [width, width], "activation": activation}}


PERIODIC: dict[tuple[str, str], Parts] = {
    ("GFSVI", "periodic, gamma 0.001"): layered(_kernel("periodic"), {"divergence": {"gamma": 1e-3}})
}
BY_FIGURE: dict[str, tuple[str, dict[tuple[str, str], Parts]]] = {
    "1": ("kernel of the prior", {("GFSVI", name): _kernel(name) for name in MORE_KERNELS} | PERIODIC),
    "4": (
        "noise of the data",
        {
            ("GFSVI", "RBF"): _kernel("RBF"),
            ("GP", "RBF"): {"family": _kernel("RBF")["prior"]},
        },
    ),
    "6": (
        "length-scale of the prior",
        {("GFSVI", f"length-scale {length:g}"): _kernel("RBF", length) for length in (0.1, 0.25, 0.5, 1.0)},
    ),
    "7": (
        "points of the divergence",
        {
            ("GFSVI", f"{points} points, {name}"): layered(_kernel(name), {"context": {"points": points}})
            for name in KERNELS
            for points in (10, 100)
        },
    ),
    "8": (
        "points of the divergence, beside FVI",
        {
            **{
                ("GFSVI", f"{points} points"): layered(_kernel("RBF"), {"context": {"points": points}})
                for points in (10, 100)
            },
            **{
                ("FVI", f"{points} points"): layered(_kernel("RBF"), {"context": mixture(points // 2, points // 2)})
                for points in (10, 100)
            },
        },
    ),
    "11": (
        "network and prior",
        {
            ("GFSVI", f"2x{width} {activation}, {name}"): layered(_kernel(name), _network(activation, width))
            for name in KERNELS
            for activation, width in (("relu", 30), ("relu", 100), ("tanh", 30))
        },
    ),
    "14": (
        "a periodic prior in GWI and in GFSVI",
        {
            ("GWI", "periodic"): {
                "family": _kernel("periodic")["prior"],
                "training": {"dtype": "float64", "samples": 1},
            },
            ("GFSVI", "periodic"): _kernel("periodic"),
            **PERIODIC,
        },
    ),
    "19": (
        "activation and prior, with eigenvalues",
        {
            ("GFSVI", f"{activation}, {name}"): layered(_kernel(name), _network(activation, 30))
            for name in KERNELS
            for activation in ACTIVATIONS
        },
    ),
    "18": (
        "gamma",
        {
            ("GFSVI", f"gamma {gamma:g}, {name}"): layered(_kernel(name), {"divergence": {"gamma": gamma}})
            for name in KERNELS
            for gamma in (1e-10, 1e-5, 1e-2)
        },
    ),
}


def _table(number: str) -> Table:
    title, variants = BY_FIGURE[number]
    by_variant = {f"{method}, {label}": changes for (method, label), changes in variants.items()}

    def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
        """Return the settings of table ``toys`` with the change of the row."""
        known = Row("", method=row.method, variant="rbf", added=row.added or row.method == "GWI")
        parts = toys.parts_of(known, DATA, "paper")
        if parts is None:
            return None
        epochs = min(EPOCHS[protocol], parts["training"]["epochs"]) if row.method == "GP" else EPOCHS[protocol]
        if row.method == "GFSVI":
            parts = layered(parts, {"context.points": POINTS[protocol]})
        parts = layered(parts, by_variant.get(row.variant, {}), {"training.epochs": epochs})
        if protocol == "smoke":
            parts = layered(parts, {"training": {"samples": min(10, parts["training"]["samples"])}})
        samples = 50 if protocol == "smoke" else DRAWN.get(number, 200)
        sets = EVALUATED.get(number, ("test", "grid"))
        beside = None if row.method == "GP" else ReferenceRequest("grid", exact=True)  # which is exact itself
        return Recipe(parts, seeds(SEEDS[protocol]), samples=samples, sets=sets, reference=beside)

    return Table(
        f"cinquin2024-figure-{number}",
        f"y = sin(2 pi x) by {title} (figure {number})",
        tuple(Row(f"{method}, {label}", None, METHODS[method], f"{method}, {label}") for method, label in variants),
        tuple(
            Column(Cell(name, condition, metric), label if name == DATA else f"{label}, noise 1")
            for name in SETS.get(number, (DATA,))
            for condition, metric, label in (
                ("", "rmse", "RMSE"),
                ("reference=exact_gp;inputs=grid", "mean_distance", "mean to the exact posterior"),
                ("reference=exact_gp;inputs=grid", "std_distance", "sd to the exact posterior"),
            )
        ),
        recipe,
        reductions={
            "short": "2,000 epochs in place of 10,000, 100 points in place of 500, one seed",
            "smoke": "3 epochs, one seed",
        },
    )


LABELS = ("GFSVI", "TFSVI", "MFVI")
STEPS = (1, 3, 10, 30, 100, 300, 1000, 3000)
PASSES = (1, 2, 4, 8)
_FOLDS = {"paper": 5, "short": 2, "smoke": 1}
_SEEDS = {"paper": 3, "short": 1, "smoke": 1}
_SETS = ("test", "validation")


def _rows(lengths: tuple[int, ...], unit: str) -> tuple[Row, ...]:
    return tuple(Row(f"{label}, {n} {unit}", None, METHODS[label], f"{n}") for label in LABELS for n in lengths)


def _length(row: Row, lengths: tuple[int, ...], protocol: str) -> Parts:
    """Return as many epochs as the row says, and the most for a row that a user adds."""
    place = lengths.index(int(row.variant)) if row.variant else len(lengths) - 1
    epochs = place + 1 if protocol == "smoke" else lengths[place]
    return {"training": {"epochs": epochs, "early_stopping": None}}


def _boston(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return settings of table cinquin2024-9, which has 100 points, with the first candidate of each method."""
    parts = layered(
        settings(row.made_by, "short"),
        next(iter(CANDIDATES["short"].get(row.made_by, {"": {}}).values())),
        {"prior.fit_steps": 5} if protocol == "smoke" and row.made_by == "GFSVI" else {},
        _length(row, STEPS, protocol),
    )
    return Recipe(parts, folds(_FOLDS[protocol]), PAPER, samples=100, sets=_SETS)


def _mnist(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return settings of table cinquin2024-2 with KMNIST as measurement points."""
    context = "kmnist" if row.made_by in cinquin_images.METHODS.values() else ""
    image_row = Row(row.label, method=row.method, variant=context)
    base = cinquin_images.recipe(image_row, dataset, "smoke" if protocol == "smoke" else "paper")
    parts = layered(base.parts, _length(row, PASSES, protocol))
    samples = 2 if protocol == "smoke" else 20
    return Recipe(parts, folds(_SEEDS[protocol]), cinquin_images.SCHEME, samples=samples, sets=_SETS)


TABLES = (
    *map(_table, BY_FIGURE),
    Table(
        f"{PAPER}-figure-15",
        "Validation expected log-likelihood on Boston by steps (figure 15)",
        _rows(STEPS, "steps"),
        (Column(Cell("boston", "part=validation", METRIC), "validation"),),
        _boston,
        reductions={"short": "2 folds", "smoke": "1 to 8 steps, 1 fold"},
    ),
    Table(
        f"{PAPER}-figure-16",
        "Validation expected log-likelihood on MNIST by passes over the training images (figure 16)",
        _rows(PASSES, "passes"),
        (Column(Cell("mnist", "part=validation", "expected_log_likelihood"), "validation"),),
        _mnist,
        reductions={"short": "1 seed", "smoke": "a small network, 1 to 4 passes of batches of 2,000, 2 draws"},
    ),
)
