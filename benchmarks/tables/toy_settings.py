"""Settings of the papers' one-dimensional and two-moons figures, a function for each data set: from paper and authors'
code, and the reductions of protocol ``short`` (``SHORT``).

reports/protocols/ has the sources of every setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks.tables.recipes import Parts, layered
from benchmarks.tables.spec import Row

VAGUE = "prior variance 1e6"
"""The variant of a row of rudner2021 with the prior variance of its supplement; the others have 10."""


def _settings(row: Row, common: Parts, own: dict[str, Parts]) -> Parts | None:
    """Return the common settings with the row's own; None for a row that the figure does not have."""
    return layered(common, own.get(row.made_by, {})) if row.added or row.made_by in own else None


def _deviation(std: float) -> list[float]:
    """Bounds of initial log-variances that are all of this standard deviation."""
    return [2 * math.log(std)] * 2


def pequignot_1d(row: Row) -> Parts | None:
    """pequignot2020 sections 4.1 to 4.3, App. E and the authors' WaveOOS.py: 50 tanh units, noise 0.1, T = 50,
    ensembles of 10.

    The ensemble minimises the mean square error at rate 0.01: with noise 0.1 the log-likelihood is -50 times that
    error, so the rate here is a 50th.
    """
    n_train, noise, patience = 120, 0.1, 30
    common = {
        "network": {"name": "mlp", "hidden": [50], "activation": "tanh"},
        "likelihood": {"name": "gaussian", "init_std": noise, "learned": False},
        "training": {"epochs": 2000, "batch_size": 50, "samples": 100, "optimiser": {"name": "adam", "lr": 0.005}},
        "training.schedule": {"name": "plateau", "factor": 0.7, "patience": patience, "min_lr": 1e-4},
    }
    prior = {"prior.variance": 0.25}
    longer = prior | {"training.epochs": 4000, "training.schedule.patience": 3 * patience}
    plain = {"training.samples": 1, "training.schedule": {"name": "constant"}}
    own: dict[str, Parts] = {
        "MC Dropout": plain
        | {
            "family.rate": 0.05,
            "training.batch_size": n_train,
            # The authors' loss is a sum over points, ours a mean.
            "training.optimiser": {"lr": 1e-3, "weight_decay": 0.1 / n_train**0.5 / n_train},
        },
        "Deep Ensemble": plain
        | {
            "family.size": 10,
            "training.epochs": 3000,
            "training.optimiser": {"name": "sgd", "lr": 0.01 * 2 * noise**2, "momentum": 0.9},
        },
        "MFVI": longer | {"family": {"mean_init": 1.0, "log_var_init": _deviation(1e-5)}},
        # Zero means leave a tanh network flat: every unit starts, and stays, the same. So it is in the authors' script.
        "FuNN-MFVI": longer
        | {
            "family": {"mean_init": 0.0, "log_var_init": _deviation(1e-3)},
            "divergence.k": 5,
            "context.points": 50,
        },
        "NN-HyVI": prior,
        "FuNN-HyVI": prior | {"context.points": 50},
        "HMC": {"prior.variance": 0.5},
    }
    return _settings(row, common, own)


_GP: Parts = {"training": {"dtype": "float64", "epochs": 500, "optimiser": {"lr": 0.05}}}


def snelson(row: Row) -> Parts | None:
    """Return the settings of the command in regression.py of rudner2022's code: 2x100 tanh, 200,000 full-batch steps of
    Adam at 5e-4, 5 draws, noise 1 in standardised units, context of 5 uniform points on [-8, 8] and 5 training inputs.

    rudner2021's supplement: MFVI is stopped early, members of the ensemble have weight decay 0.1.
    """
    epochs = 200_000
    common = {
        "network": {"name": "mlp", "hidden": [100, 100], "activation": "tanh"},
        "likelihood": {"name": "gaussian", "init_std": 1.0, "learned": False},
        "training": {"epochs": epochs, "batch_size": 200, "samples": 5, "optimiser": {"name": "adam", "lr": 5e-4}},
    }
    parts = [{"name": "uniform_box", "points": 5}, {"name": "training_batch", "points": 5}]
    own = _rudner(row, epochs, {"name": "mixture", "parts": parts})
    if row.variant == "rbf":
        own["GP"] = _GP | {"likelihood": {"init_std": 0.3, "learned": True}}
    return _settings(row, common, own)


def _rudner(row: Row, epochs: int, context: Parts) -> dict[str, Parts]:
    """Methods of rudner2021's figures: a prior of variance 10 (or 1e6) on function values; of eq. 14 of rudner2022,
    variance 1 of the last layer's weights and the jitter of its code's full covariances.
    """
    return {
        "MFVI": {"training.epochs": epochs // 3},
        "Deep Ensemble": {
            "training.samples": 1,
            "divergence.name": "weight_penalty",
            "prior": {"name": "gaussian_weights", "variance": 10.0},
        },
        "FSVI (rudner2021)": {"context": context, "prior.variance": 1e6 if row.variant == VAGUE else 10.0},
        "FSVI": {"context": context, "prior.variance": 1.0, "divergence.jitter": 1e-3},
    }


def cinquin_1d(row: Row) -> Parts | None:
    """cinquin2024 App. C.1: 2x30 tanh, prior scales 0.2 (TFSVI) and 0.75 (MFVI), kernels by marginal likelihood, 500
    points of the divergence; full batches.
    """
    common = {
        "network": {"name": "mlp", "hidden": [30, 30], "activation": "tanh"},
        "likelihood": {"name": "gaussian", "init_std": 0.2},
        "training": {"epochs": 2000, "batch_size": 1000, "samples": 10, "optimiser": {"name": "adam", "lr": 0.005}},
    }
    own = _cinquin(row, 0.2**2, 10_000)
    own["GFSVI"] |= {"training.samples": 1}  # its data term is in closed form
    own |= {name: {"prior.variance": 0.75**2} for name in ("MFVI", "Laplace")}
    own["GP"] = _GP | {"family.kernel": {"name": row.variant, "ard": False}}
    return _settings(row, common, own)


def two_moons_cinquin(row: Row) -> Parts | None:
    """cinquin2024 App. C.1: 2x100 tanh, prior scales 0.8 (MFVI) and 1 (TFSVI, Laplace), processes as priors by Milios
    et al.'s labels, 500 points of the divergence.
    """
    own = _cinquin(row, 1.0, 3000) | {
        "MFVI": {"prior.variance": 0.64},
        "Laplace": {"prior.variance": 1.0},
        "HMC": {"prior.variance": 1.0},
    }
    return _settings(row, _moons([100, 100], "tanh", 1000, 0.003, samples=5), own)


def _cinquin(row: Row, variance: float, epochs: int) -> dict[str, Parts]:
    """Methods in function space of cinquin2024. TFSVI: the pushforward of the weights' distribution and prior (App.
    C.3), about the current means. FVI: standard deviations of softplus(-5), as in the code of the authors' next paper.
    """
    kernel = {"prior.kernel": {"name": row.variant, "ard": False}, "training.epochs": epochs}
    # all 100 training inputs and 400 uniform points
    context = {"name": "mixture", "parts": [{"name": "training_batch"}, {"name": "uniform_box", "points": 400}]}
    return {
        "FSVI": {
            "prior": {"jacobian": "full", "features": "current", "variance": variance},
            "divergence.jacobian": "full",
            "context.points": 500,
        },
        "GFSVI": kernel | {"context.points": 500, "training.dtype": "float64"},
        "FBNN": kernel | {"family.log_var_init": [-10.0, -10.0], "context": context, "training.samples": 100},
    }


def _moons(hidden: list[int], activation: str, epochs: int, lr: float, samples: int) -> Parts:
    return {
        "network": {"name": "mlp", "hidden": hidden, "activation": activation},
        "likelihood": {"name": "categorical"},
        "training": {"epochs": epochs, "batch_size": 1000, "samples": samples, "optimiser": {"name": "adam", "lr": lr}},
    }


def two_moons_rudner(row: Row) -> Parts | None:
    """rudner2021 supplement 3: 2x100, Adam at 1e-4 to 1e-3, context uniform, here over the plotted plane; activation,
    rate, prior variance and draws as in the code of rudner2022 on Snelson's set.
    """
    epochs = 20_000
    own = _rudner(row, epochs, {"name": "uniform_box", "points": 40}) | {"MAP": {}, "HMC": {"prior.variance": 1.0}}
    return _settings(row, _moons([100, 100], "tanh", epochs, 5e-4, samples=5), own)


def two_moons_dirichlet(row: Row) -> Parts | None:
    """dirichlet2022 App. F: 2x25 ReLU, dropout 0.2, 10 members, Adam 0.005, 1000 epochs, index set the plane in steps
    of 0.05, KL not scaled; MAP, a deterministic baseline (4.1), without a prior.
    """
    grid = {"name": "grid", "low": [-2.5, -2.0], "high": [3.5, 2.5], "step": 0.05}
    of_functions, members = {"context": grid, "weight.scaling": "none"}, {"family.size": 10}
    own: dict[str, Parts] = {
        "MAP": {"divergence": None, "prior": None},
        "MC Dropout": {"family.rate": 0.2},
        "Deep Ensemble": members,
        "MAP fVI": of_functions,
        "MC Dropout fVI": of_functions | {"family.rate": 0.2},
        "Ensemble fVI": of_functions | members,
        "HMC": {"prior.variance": 1.0},
    }
    parts = _settings(row, _moons([25, 25], "relu", 1000, 0.005, samples=1), own)
    return parts and layered(parts, {"prior.concentrations": [1.0, 4.0]} if row.variant == "biased" else {})


SETS: dict[str, Callable[[Row], Parts | None]] = {
    each.__name__: each
    for each in (pequignot_1d, snelson, cinquin_1d, two_moons_rudner, two_moons_dirichlet, two_moons_cinquin)
}
_EVERY = ""
_QUICK: Parts = {"training.epochs": 2000, "training.optimiser.lr": 0.003}
SHORT: dict[str, dict[str, Parts]] = {
    "snelson": {_EVERY: _QUICK, "MFVI": _QUICK | {"training.epochs": 667}, "GP": {}},
    "two_moons_rudner": {
        _EVERY: _QUICK | {"training.epochs": 1000},
        "MFVI": _QUICK | {"training.epochs": 333},
    },
    "cinquin_1d": {
        "GFSVI": {"context.points": 100, "training.epochs": 2000},
        "FSVI": {"context.points": 100},
    },
    "two_moons_cinquin": {
        "GFSVI": {"context.points": 60, "training.epochs": 500},
        "FSVI": {"context.points": 100},
    },
}
"""Changes under protocol ``short`` by data set and method; the entry without a name is for all other methods."""


def settings(row: Row, dataset: str, short: bool = False) -> Parts | None:
    """Return the settings of a row on a data set; None for a row that its figure does not have."""
    parts, less = SETS[dataset](row), SHORT.get(dataset, {}) if short else {}
    return parts and layered(parts, less.get(row.made_by, less.get(_EVERY, {})))
