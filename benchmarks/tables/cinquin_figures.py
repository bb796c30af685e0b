"""cinquin2024, figures 1, 4, 6, 7, 8, 11, 14, 18 and 19: GFSVI on the sine by kernel, noise of the data, length-scale,
points, network and gamma, beside FVI, GWI or the exact process, each beside the exact posterior of its own prior.
"""

from __future__ import annotations

import math

from benchmarks.tables import toys
from benchmarks.tables.recipes import Parts, Recipe, ReferenceRequest, merge, seeds
from benchmarks.tables.spec import Cell, Column, Row, Table

DATA = "cinquin_1d"
KERNELS = {"RBF": "rbf", "Matern 1/2": "matern12"}
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


def _halves(points: int) -> Parts:
    parts = [{"name": name, "points": points // 2} for name in ("training_batch", "uniform_box")]
    return {"context": {"name": "mixture", "parts": parts}}


def _network(activation: str, width: int) -> Parts:
    return {"network": {"hidden": [width, width], "activation": activation}}


PERIODIC: dict[tuple[str, str], Parts] = {
    ("GFSVI", "periodic, gamma 0.001"): merge(_kernel("periodic"), {"divergence": {"gamma": 1e-3}})
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
            ("GFSVI", f"{points} points, {name}"): merge(_kernel(name), {"context": {"points": points}})
            for name in KERNELS
            for points in (10, 100)
        },
    ),
    "8": (
        "points of the divergence, beside FVI",
        {
            **{
                ("GFSVI", f"{points} points"): merge(_kernel("RBF"), {"context": {"points": points}})
                for points in (10, 100)
            },
            **{("FVI", f"{points} points"): merge(_kernel("RBF"), _halves(points)) for points in (10, 100)},
        },
    ),
    "11": (
        "network and prior",
        {
            ("GFSVI", f"2x{width} {activation}, {name}"): merge(_kernel(name), _network(activation, width))
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
            ("GFSVI", f"{activation}, {name}"): merge(_kernel(name), _network(activation, 30))
            for name in KERNELS
            for activation in ACTIVATIONS
        },
    ),
    "18": (
        "gamma",
        {
            ("GFSVI", f"gamma {gamma:g}, {name}"): merge(_kernel(name), {"divergence": {"gamma": gamma}})
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
            parts = merge(parts, {"context": {"points": POINTS[protocol]}})
        parts = merge(merge(parts, by_variant.get(row.variant, {})), {"training": {"epochs": epochs}})
        if protocol == "smoke":
            parts = merge(parts, {"training": {"samples": min(10, parts["training"]["samples"])}})
        samples = 50 if protocol == "smoke" else DRAWN.get(number, 200)
        sets = EVALUATED.get(number, ("test", "grid"))
        beside = None if row.method == "GP" else ReferenceRequest("grid", exact=True)  # which is exact itself
        return Recipe(parts, seeds(SEEDS[protocol]), samples=samples, sets=sets, reference=beside)

    return Table(
        f"cinquin2024-figure-{number}",
        f"y = sin(2 pi x) by {title} (figure {number})",
        tuple(
            Row(f"{method}, {label}", None, {"FVI": "FBNN"}.get(method, method), f"{method}, {label}")
            for method, label in variants
        ),
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


TABLES = tuple(_table(number) for number in BY_FIGURE)
