"""Settings of every method in cinquin2024's regression tables, and the candidates that validation folds choose from, by
protocol."""

from __future__ import annotations

from dataclasses import replace

import datasets
from benchmarks.tables.recipes import Parts, Recipe, folds, layered

PAPER = "cinquin2024"
SMALL = ("boston", "concrete", "energy", "wine", "yacht")
LARGE = ("kin8nm", "naval", "power", "protein")
PROCESSES = ("GP", "Sparse GP")
"""Methods whose candidates are compared by the log marginal likelihood of validation subsets (App. C.3)."""
BATCH, PATIENCE = 2000, 200
MARGIN = 0.5
"""Margin of measurement points around the box of the inputs: half of its width on each side, for every table in the
authors' later code, and for images in App. C.4."""
LATER = layered(
    {"training.optimiser.lr": 0.001, "training.early_stopping": {"patience": 1000, "every": 100, "objective": True}}
)
"""Upper end of the learning rates, and end of training, in the authors' later code."""
FASTER = layered(
    {"training.optimiser.lr": 0.005, "training.early_stopping": {"patience": 200, "every": 20, "objective": True}}
)
"""Training at five times the rate with a fifth of the patience, which costs about a quarter."""


def mixture(batch: int, box: int, **more: float) -> Parts:
    """Return points of the batch and of the box."""
    parts = [{"name": "training_batch", "points": batch}, {"name": "uniform_box", "points": box, **more}]
    return {"name": "mixture", "parts": parts}


FVI = layered(FASTER, {"family.log_var_init": [-10.0, -10.0], "context": mixture(450, 50, margin=MARGIN)})
"""FVI of tables 1, 4 and 6; standard deviations start at 0.0067, as in the authors' port of the code of Sun et al."""
ALL_LAYERS = layered(
    FASTER,
    {
        "context.margin": MARGIN,
        "divergence.jacobian": "full",
        "prior": {"features": "current", "jacobian": "full"},
        "training.epochs": 2000,
    },
)
"""TFSVI of tables 1, 4 and 6: both distributions over all weights, pushed forward at the current mean (App. C.3). A
step costs 0.15 s: its end is 2,000 steps, when the objective still falls."""
_RELU: Parts = {"network": {"activation": "relu"}}
_SLOW: Parts = {"training": {"optimiser": {"lr": 0.001}}}


def _kernels(place: str, *names: str, ard: bool = False) -> dict[str, Parts]:
    return {f"{name}{' ard' * ard}": {place: {"kernel": {"name": name, "ard": ard}}} for name in names}


def _variances(*values: float) -> dict[str, Parts]:
    return {f"variance {v:g}": {"prior": {"variance": v}} for v in values}


def _on(base: Parts, candidates: dict[str, Parts]) -> dict[str, Parts]:
    """Return the candidates with settings that all of them share, and the first of them with another activation."""
    label, first = next(iter(candidates.items()))
    return {
        name: layered(base, parts) for name, parts in (candidates | {f"{label}, relu": layered(first, _RELU)}).items()
    }


def _around(candidates: dict[str, Parts]) -> dict[str, Parts]:
    """Add the first of the candidates with another activation, and with a lower learning rate."""
    label, first = next(iter(candidates.items()))
    return {**candidates, f"{label}, relu": layered(first, _RELU), f"{label}, lr .001": layered(first, _SLOW)}


_TRIED = ("rbf", "matern52")
_EVERY = ("rbf", "matern12", "matern32", "matern52", "linear", "rational_quadratic")
_RBF = {"name": "rbf", "ard": False}
_SHORT: dict[str, dict[str, Parts]] = {
    "GFSVI": {
        **_kernels("prior", *_TRIED),
        **_kernels("prior", *_TRIED, ard=True),
        "rbf, 2,000 fitting steps": {"prior": {"kernel": _RBF, "fit_steps": 2000}},
        "rbf, 2x100": {"prior": {"kernel": _RBF}, "network": {"hidden": [100, 100]}},
    },
    "FBNN": _kernels("prior", *_TRIED),
    "FSVI": _variances(1.0, 10.0),
    "MFVI": _variances(0.1, 1.0),
    "VIP": {f"{n} draws": {"family": {"draws": n}} for n in (20, 100)},
    "GWI": dict(zip(_TRIED, _kernels("family", *_TRIED, ard=True).values())),
    "Sparse GP": _kernels("family", *_TRIED),
    "GP": {
        **_kernels("family", *_TRIED),
        "rbf, 100 steps": {"family": {"kernel": _RBF}, "training": {"epochs": 100}},
    },
}
_PAPER: dict[str, dict[str, Parts]] = {
    "GFSVI": _around({**_kernels("prior", *_EVERY), **_kernels("prior", "rbf", ard=True)}),
    "FBNN": _on(FVI, _kernels("prior", *_EVERY)),
    "FSVI": _on(ALL_LAYERS, _variances(1.0, 0.1, 10.0, 0.01, 100.0, 0.001)),
    "MFVI": _around(_variances(1.0, 0.1, 10.0)),
    "VIP": _around(_SHORT["VIP"]),
    "Laplace": {"tanh": {}, "relu": _RELU, "tanh, lr .001": _SLOW},
    "GWI": _around(_SHORT["GWI"]),
    "Sparse GP": _kernels("family", *_EVERY),
    "GP": _kernels("family", *_EVERY),
}
CANDIDATES = {"paper": _PAPER, "short": _SHORT, "smoke": _SHORT}
"""Parts of the candidates by protocol, method and label. A method that is absent has one recipe."""
BESIDE = _kernels("family", "rbf", ard=True)
"""Parts, by label, that both processes are tried with and that cannot be chosen, since the paper does not name them."""
COMPARED: dict[str, dict[str, int]] = {"paper": dict.fromkeys(("GFSVI", "FBNN", "FSVI", "VIP", "GWI"), 1)}
"""Protocol -> method -> the first folds whose validation subsets candidates are compared on; all five where absent."""
POINTS = {"paper": (500, 450, 50), "short": (100, 90, 10), "smoke": (100, 90, 10)}
"""Protocol -> points of the divergence; for FVI, from the batch and from the box."""


def labels(method: str) -> tuple[str, ...]:
    """Return the labels of a method's candidates in all protocols, without repeats."""
    return tuple(dict.fromkeys(label for own in CANDIDATES.values() for label in own.get(method, {})))


def settings(method: str, protocol: str) -> Parts:
    """Return the settings of App. C.3, with the reductions of the protocol."""
    points, of_batch, of_box = POINTS[protocol]
    common = {
        "network": {"name": "mlp", "hidden": [50, 50], "activation": "tanh"},
        "likelihood": {"name": "gaussian", "init_std": 0.5},
        "training": {"epochs": 10_000 if protocol == "paper" else 3000, "batch_size": BATCH, "samples": 10},
        "training.optimiser": {"name": "adam", "lr": 0.005},
        "training.early_stopping": {"patience": PATIENCE, "every": 10},
    }
    double = {"training.dtype": "float64"}
    fitted = {"prior": {"fit_steps": 300, "fit_batch": 128}}
    process = double | {"training.early_stopping": None}
    own: dict[str, Parts] = {
        "GFSVI": double | fitted | {"context.points": points, "training.samples": 1},
        "FBNN": fitted | {"context": mixture(of_batch, of_box), "training.samples": 100},
        "FSVI": double | {"context.points": points},
        "Laplace": {"fit": {"precision": "validation", "criterion": "expected"}},
        "GWI": double | {"training.samples": 1},
        "Sparse GP": process | {"training.epochs": 2000, "training.optimiser.lr": 0.02},
        "GP": process | {"training.epochs": 500, "training.optimiser.lr": 0.05},
    }
    return layered(common, own.get(method, {}))


def candidate(method: str, label: str | None, dataset: str, protocol: str) -> Recipe | None:
    """Return one candidate's runs (label None: of a method that has none); None where the protocol has no such
    candidate.

    All tables share their trainings. The selection reads the validation subset of each fold and nothing else.
    """
    changes = CANDIDATES[protocol].get(method, {}).get(label) if label else {}
    return None if changes is None else recipe_with(method, changes, dataset, protocol)


def recipe_with(method: str, changes: Parts, dataset: str, protocol: str) -> Recipe | None:
    """Return the runs of a method's settings with changes; None where the protocol does not have them."""
    if not covered(method, dataset, protocol):
        return None
    parts = _in_steps(layered(settings(method, protocol), changes), dataset)
    if protocol == "smoke":
        fewer = {"GFSVI": "prior", "FBNN": "prior", "GWI": "family"}
        steps = {f"{fewer[method]}.fit_steps": 5} if method in fewer else {}
        parts = layered(parts, {"training.epochs": 5}, steps)
    return Recipe(parts, folds(2 if protocol == "smoke" else 5), PAPER, samples=100, sets=("test", "validation"))


def compared(method: str, label: str | None, dataset: str, protocol: str) -> Recipe | None:
    """Return one candidate's runs on the folds that compare candidates of its method, with the comparison as
    evaluation."""
    recipe = candidate(method, label, dataset, protocol)
    folds = COMPARED.get(protocol, {}).get(method)
    recipe = recipe and replace(recipe, replicates=recipe.replicates[:folds])
    return with_evidence(recipe) if recipe and method in PROCESSES else recipe


def with_evidence(recipe: Recipe) -> Recipe:
    """Return the recipe with the log marginal likelihood of its validation subsets as its only evaluation."""
    return replace(recipe, sets=("validation",), evidence="validation")


def covered(method: str, dataset: str, protocol: str) -> bool:
    """Return whether a method runs on a data set: the large ones have protocol paper alone, and no exact process."""
    return dataset in SMALL or (dataset in LARGE and protocol == "paper" and method != "GP")


def _in_steps(parts: Parts, dataset: str) -> Parts:
    """Return the parts with fewer epochs where an epoch has several batches: as many steps, and as many steps without
    a better validation loss.
    """
    steps = -(-datasets.describe(dataset, PAPER).n_train // BATCH)
    if steps == 1:
        return parts
    training = parts["training"]
    changes: Parts = {"epochs": -(-training["epochs"] // steps)}
    if stopping := training["early_stopping"]:
        changes["early_stopping"] = {"patience": -(-stopping["patience"] // steps), "every": 1}
    return layered(parts, {"training": changes})
