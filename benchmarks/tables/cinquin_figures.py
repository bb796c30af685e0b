"""cinquin2024, figures 6, 7, 8, 11 and 18: GFSVI on the sine by length-scale, points, network and gamma, each beside
the exact posterior of its own prior.
"""

from __future__ import annotations

import math

from benchmarks.tables import toys
from benchmarks.tables.spec import Cell, Column, Parts, Recipe, Reference, Row, Table, merge

DATA = "cinquin_1d"
KERNELS = {"RBF": "rbf", "Matern 1/2": "matern12"}
EPOCHS = {"paper": 10_000, "short": 2000, "smoke": 3}
SEEDS = {"paper": 3, "short": 1, "smoke": 1}


def _kernel(name: str, length: float | None = None) -> Parts:
    kernel = {"kernel": {"name": KERNELS[name], "ard": False}}
    return {"prior": kernel if length is None else {**kernel, "parameters": {"log_lengthscale": math.log(length)}}}


def _halves(points: int) -> Parts:
    parts = [{"name": name, "points": points // 2} for name in ("training_batch", "uniform_box")]
    return {"context": {"name": "mixture", "parts": parts}}


def _network(activation: str, width: int) -> Parts:
    return {"network": {"hidden": [width, width], "activation": activation}}


BY_FIGURE: dict[str, tuple[str, dict[tuple[str, str], Parts]]] = {
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
        """The settings of table ``toys`` with the change of the row."""
        parts = toys.parts_of(Row("", method=row.method, variant="rbf", added=row.added), dataset, "paper")
        if parts is None:
            return None
        parts = merge(merge(parts, by_variant.get(row.variant, {})), {"training": {"epochs": EPOCHS[protocol]}})
        if protocol == "smoke":
            parts = merge(parts, {"training": {"samples": min(10, parts["training"]["samples"])}})
        seeds = tuple((0, seed) for seed in range(SEEDS[protocol]))
        samples = 50 if protocol == "smoke" else 200
        return Recipe(parts, seeds, samples=samples, sets=("test", "grid"), reference=Reference("grid", exact=True))

    return Table(
        f"cinquin2024-figure-{number}",
        f"y = sin(2 pi x) by {title} (figure {number})",
        tuple(
            Row(f"{method}, {label}", None, {"FVI": "FBNN"}.get(method, method), f"{method}, {label}")
            for method, label in variants
        ),
        (
            Column(Cell(DATA, "", "rmse"), "RMSE"),
            *(
                Column(Cell(DATA, "reference=exact_gp;inputs=grid", metric), f"{label} to the exact posterior")
                for metric, label in (("mean_distance", "mean"), ("std_distance", "sd"))
            ),
        ),
        recipe,
        notes=dict.fromkeys(
            ("paper", "short"),
            (
                "Settings of table toys but for what a row names. Kernels without a length-scale in the row are fitted "
                "by marginal likelihood, with one they have variance 1. The paper says for which values it shows "
                "figures 7 and 8 (10 and 100 points) and 11 (widths 30 and 100); length-scales and gammas are ours.",
                "Distances on the plotted grid from the exact posterior of the row's own prior and noise.",
            ),
        ),
        reductions={"short": "2,000 epochs in place of 10,000, one seed", "smoke": "3 epochs, one seed"},
    )


TABLES = tuple(_table(number) for number in BY_FIGURE)
