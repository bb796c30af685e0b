"""Table ``toys``: the runs behind the papers' one-dimensional and two-moons figures; ``toys-distances``: the same runs
in numbers, by how far they are from an exact process or from HMC on the plotted grid.
"""

from __future__ import annotations

from benchmarks.tables.spec import Cell, Column, Parts, Recipe, Reference, Row, Table, make_configs, merge

_ADAM = {"name": "adam", "lr": 0.005}
_BIASED = ("MAP fVI", "MC Dropout fVI", "Ensemble fVI")
ROWS = (
    Row("MAP", method="MAP"),
    Row("MFVI", method="MFVI"),
    Row("MC Dropout", method="MC Dropout"),
    Row("Deep Ensemble", method="Deep Ensemble"),
    Row("FuNN-MFVI", method="FuNN-MFVI"),
    Row("NN-HyVI", method="NN-HyVI"),
    Row("FuNN-HyVI", method="FuNN-HyVI"),
    Row("FSVI (rudner2021)", method="FSVI (rudner2021)"),
    Row("FSVI", method="FSVI"),
    Row("GFSVI (RBF)", method="GFSVI", variant="rbf"),
    Row("GFSVI (Matern 1/2)", method="GFSVI", variant="matern12"),
    Row("GP (RBF)", method="GP", variant="rbf"),
    Row("GP (Matern 1/2)", method="GP", variant="matern12"),
    Row("MAP fVI", method="MAP fVI"),
    Row("MC Dropout fVI", method="MC Dropout fVI"),
    Row("Ensemble fVI", method="Ensemble fVI"),
    *(Row(f"{name} (biased)", method=name, variant="biased") for name in _BIASED),
    Row("FVI (RBF)", method="FBNN", variant="rbf"),
    Row("FVI (Matern 1/2)", method="FBNN", variant="matern12"),
    Row("Laplace", method="Laplace"),
    Row("HMC", method="HMC"),
)
LATER = {"FBNN", "Laplace", "HMC"}
"""Methods that protocol ``short`` does without."""
LONGER = {"cinquin_1d": {"GFSVI": 10_000, "FBNN": 10_000}, "two_moons_cinquin": {"GFSVI": 3000, "FBNN": 3000}}
"""Epochs under protocol ``paper`` where those of ``short`` are too few."""
CHAINS = {"two_moons_rudner": 10, "two_moons_dirichlet": 20, "two_moons_cinquin": 10}
"""Chains of HMC; 100 where none are said."""
_FVI = {
    "name": "mixture",
    "parts": [{"name": "training_batch", "points": 50}, {"name": "uniform_box", "points": 50}],
}


def _settings(row: Row, common: Parts, own: dict[str, Parts]) -> Parts | None:
    """The common settings with the row's own; None for a row that the figure does not have."""
    return merge(common, own.get(row.made_by, {})) if row.added or row.made_by in own else None


def _pequignot(row: Row) -> Parts | None:
    """Section 4.1 to 4.3, App. E: 50 tanh units, noise .1, T = 50, ensembles of 10."""
    common = {
        "network": {"name": "mlp", "hidden": [50], "activation": "tanh"},
        "likelihood": {"name": "gaussian", "init_std": 0.1, "learned": False},
        "training": {
            "epochs": 2000,
            "batch_size": 50,
            "samples": 100,
            "optimiser": _ADAM,
            "schedule": {"name": "plateau", "factor": 0.7, "patience": 30, "min_lr": 1e-4},
        },
    }
    narrow = {"family": {"mean_init": 0.0, "log_var_init": [-13.815510557964274] * 2}, "prior": {"variance": 0.25}}
    plain = {"samples": 1, "schedule": {"name": "constant"}}
    own: dict[str, Parts] = {
        "MC Dropout": {"family": {"rate": 0.05}, "training": plain | {"optimiser": {"lr": 1e-3}}},
        "Deep Ensemble": {
            "family": {"size": 10},
            "training": plain | {"epochs": 3000, "optimiser": {"name": "sgd", "lr": 0.01, "momentum": 0.9}},
            "likelihood": {"name": "residual_gaussian"},
        },
        "MFVI": narrow | {"training": {"schedule": {"patience": 60}}},
        # Zero means leave a tanh network flat: every unit starts, and stays, the same.
        "FuNN-MFVI": {"prior": {"variance": 0.25}, "context": {"points": 50}},
        "NN-HyVI": {"prior": {"variance": 0.25}},
        "FuNN-HyVI": {"prior": {"variance": 0.25}, "context": {"points": 50}},
        "HMC": {"prior": {"variance": 0.25}},
    }
    return _settings(row, common, own)


def _snelson(row: Row) -> Parts | None:
    """2x100 tanh, Adam; context half uniform on [-8, 8], half training inputs; noise .286 / sd(y), learned."""
    common = {
        "network": {"name": "mlp", "hidden": [100, 100], "activation": "tanh"},
        "likelihood": {"name": "gaussian", "init_std": 0.3},
        "training": {"epochs": 2000, "batch_size": 200, "samples": 5, "optimiser": {"name": "adam", "lr": 0.003}},
    }
    context = {
        "name": "mixture",
        "parts": [{"name": "uniform_box", "points": 10}, {"name": "training_batch", "points": 10}],
    }
    own: dict[str, Parts] = {
        "MFVI": {},
        "Deep Ensemble": {"training": {"samples": 1}},
        "FSVI (rudner2021)": {"context": context, "prior": {"variance": 10.0}},
        "FSVI": {"context": context, "prior": {"variance": 10.0}},
    }
    if row.variant == "rbf":
        own["GP"] = {"training": {"dtype": "float64", "epochs": 500, "optimiser": {"lr": 0.05}}}
    return _settings(row, common, own)


def _cinquin_1d(row: Row) -> Parts | None:
    """App. C.1: 2x30 tanh, full batches, prior scales .2 (TFSVI) and .75 (MFVI), kernels by marginal likelihood."""
    common = {
        "network": {"name": "mlp", "hidden": [30, 30], "activation": "tanh"},
        "likelihood": {"name": "gaussian", "init_std": 0.2},
        "training": {"epochs": 2000, "batch_size": 1000, "samples": 10, "optimiser": {"name": "adam", "lr": 0.005}},
    }
    kernel = {"kernel": {"name": row.variant, "ard": False}}
    own: dict[str, Parts] = {
        "MFVI": {"prior": {"variance": 0.75**2}},
        "FSVI": {"prior": {"variance": 0.2**2}, "context": {"points": 100}},
        "GFSVI": {
            "prior": kernel,
            "context": {"points": 100},
            "training": {"dtype": "float64", "samples": 1, "epochs": 2000},
        },
        "GP": {"family": kernel, "training": {"dtype": "float64", "epochs": 500, "optimiser": {"lr": 0.05}}},
        "FBNN": {"prior": kernel, "context": _FVI, "training": {"samples": 100}},
        "Laplace": {"prior": {"variance": 0.75**2}},
    }
    return _settings(row, common, own)


def _moons(hidden: list[int], activation: str, epochs: int, lr: float, samples: int = 10) -> Parts:
    return {
        "network": {"name": "mlp", "hidden": hidden, "activation": activation},
        "likelihood": {"name": "categorical"},
        "training": {"epochs": epochs, "batch_size": 1000, "samples": samples, "optimiser": {"name": "adam", "lr": lr}},
    }


def _moons_rudner(row: Row) -> Parts | None:
    """rudner2021: 2x100, context uniform over the plotted plane, prior variance 10; 50 samples."""
    own: dict[str, Parts] = {
        "MAP": {},
        "MFVI": {},
        "Deep Ensemble": {},
        "FSVI (rudner2021)": {"prior": {"variance": 10.0}, "context": {"points": 40}},
        "FSVI": {"prior": {"variance": 10.0}, "context": {"points": 40}},
        "HMC": {"prior": {"variance": 1.0}},
    }
    return _settings(row, _moons([100, 100], "relu", 1000, 0.003, samples=5), own)


def _moons_dirichlet(row: Row) -> Parts | None:
    """App. F: 2x25 ReLU, dropout .2, 10 members, Adam .005, 1000 epochs, index set the plane in steps of .05, KL not
    scaled.
    """
    grid = {"name": "grid", "low": [-2.5, -2.0], "high": [3.5, 2.5], "step": 0.05}
    size, whole = {"size": 10}, {"scaling": "none"}
    own: dict[str, Parts] = {
        "MAP": {},
        "MC Dropout": {"family": {"rate": 0.2}},
        "Deep Ensemble": {"family": size},
        "MAP fVI": {"context": grid, "weight": whole},
        "MC Dropout fVI": {"context": grid, "family": {"rate": 0.2}, "weight": whole},
        "Ensemble fVI": {"context": grid, "family": size, "weight": whole},
        "HMC": {"prior": {"variance": 1.0}},
    }
    parts = _settings(row, _moons([25, 25], "relu", 1000, 0.005, samples=1), own)
    return parts and merge(parts, {"prior": {"concentrations": [1.0, 4.0]}}) if row.variant == "biased" else parts


def _moons_cinquin(row: Row) -> Parts | None:
    """App. C.1: 2x100 tanh, prior scales .8 (MFVI) and 1 (TFSVI), GP priors by Milios et al.'s labels."""
    kernel = {"kernel": {"name": row.variant, "ard": False}}
    own: dict[str, Parts] = {
        "MFVI": {"prior": {"variance": 0.64}},
        "FSVI": {"prior": {"variance": 1.0}, "context": {"points": 100}},
        "GFSVI": {"prior": kernel, "context": {"points": 60}, "training": {"dtype": "float64", "epochs": 500}},
        "FBNN": {"prior": kernel, "context": _FVI, "training": {"samples": 100}},
        "Laplace": {"prior": {"variance": 1.0}},
        "HMC": {"prior": {"variance": 1.0}},
    }
    return _settings(row, _moons([100, 100], "tanh", 1000, 0.003, samples=5), own)


SETS = {
    "pequignot_1d": _pequignot,
    "snelson": _snelson,
    "cinquin_1d": _cinquin_1d,
    "two_moons_rudner": _moons_rudner,
    "two_moons_dirichlet": _moons_dirichlet,
    "two_moons_cinquin": _moons_cinquin,
}


def parts_of(row: Row, dataset: str, protocol: str) -> Parts | None:
    """The paper's own setting of each figure where it says one; None for a row that the figure does not have."""
    parts = SETS[dataset](row)
    if parts is None or (protocol == "short" and (row.made_by in LATER or (dataset, row.made_by) == ("snelson", "GP"))):
        return None
    if row.made_by == "HMC":
        chains = {"size": 2 if protocol == "smoke" else CHAINS.get(dataset, 100)}
        parts = {name: parts[name] for name in ("network", "likelihood", "prior")} | {"family": chains}
        quick = {"samples": 5, "thinning": 1, "warmup": 2, "leapfrogs": 2, "map_steps": 5}
        longer = {"samples": 2000 // chains["size"], "thinning": 5}
        return parts | {"training": {"name": "hmc", **(quick if protocol == "smoke" else longer)}}
    if protocol == "paper":
        parts = merge(
            parts, {"training": {"epochs": LONGER.get(dataset, {}).get(row.made_by, parts["training"]["epochs"])}}
        )
    if protocol == "smoke":
        parts = merge(parts, {"training": {"epochs": 3}})
    return parts


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """One run of each under protocol ``short``, five seeds under ``paper``, beside the data set's reference."""
    parts = parts_of(row, dataset, protocol)
    if parts is None:
        return None
    samples, sets = 50 if protocol == "smoke" else 200, ("test", "grid")
    seeds = tuple((0, seed) for seed in range(5 if protocol == "paper" else 1))
    reference = None if protocol == "short" else _reference(row, dataset, protocol)
    return Recipe(parts, seeds, samples=samples, sets=sets, reference=reference)


def _reference(row: Row, dataset: str, protocol: str) -> Reference:
    """The exact process with the row's kernel, or HMC; the first run of it."""
    label = REFERENCES[dataset]
    variant = row.variant if row.variant in ("rbf", "matern12") else "rbf"
    own = next(r for r in ROWS if r.method == label and r.variant in ("", variant))
    parts = parts_of(own, dataset, protocol)
    assert parts is not None
    return Reference("grid", against={label: make_configs(label, dataset, protocol, Recipe(parts, ((0, 0),)))})


REFERENCES = dict.fromkeys(SETS, "HMC") | {"snelson": "GP", "cinquin_1d": "GP"}
_BOTH = (
    "Snelson's test points are those of the removed gap.",
    "The biased Dirichlet prior is (1, 4); dirichlet2022 does not print the values of its figure 3.",
)
NOTES = {
    "short": (
        f"One run of each; the figures are what these runs are for. {_BOTH[0]}",
        _BOTH[1],
        "Prior variance of FSVI on the moons of rudner2021 and on Snelson's set: 10 (its supplement has 1e6).",
    ),
    "paper": (
        *_BOTH,
        "Networks, prior scales, noise and numbers of points are the papers' where they say them. Not said, and ours: "
        "all epochs and learning rates of cinquin2024 (10,000 epochs for GFSVI and FVI on the sine and 3,000 on its "
        "moons; with 2,000 and 500 GFSVI is not finished), 100 and 60 points of its divergence in place of 500, 50 of "
        "the data and 50 of the box for FVI; Laplace's matrix is the diagonal; prior variance 10 on the moons of "
        "rudner2021 and on Snelson's set, where its supplement has 1e6, with 40 points of the context on the moons and "
        "20 on Snelson's set, where the code of rudner2022 has 10. On Snelson's set there are 2,000 epochs at .003, "
        "where the code of rudner2022 has 200,000 at 5e-4.",
        "Reference, on the plotted grid and without noise: the exact process on the sine (with the row's kernel, else "
        "RBF) and on Snelson's set. Elsewhere HMC, with the network and the fixed noise of the others and Gaussian "
        "weights of variance .25 (pequignot2020) or 1; on the moons with few chains, whose R-hat is in its records. "
        "The row HMC says how far five such references are from the first: .03 on pequignot2020's curve, where the "
        "R-hat of their predictions is above 1.05 (the warnings below). rudner2021's priors are on functions and "
        "dirichlet2022's on probabilities, so HMC's is another posterior.",
        "Core-hours by timed steps on an AMD Zen 5 core, at most: five seeds of every method but FVI and HMC 2, of FVI "
        "3; a run of HMC, as measured, .015 on pequignot2020's curve, .01 on the moons of dirichlet2022, .09 on those "
        "of rudner2021, .2 on those of cinquin2024 (R-hat of predictions 1.004 to 1.007, some 1,800 effective draws).",
    ),
}
REDUCTIONS = {
    "short": "one seed; 60 to 100 context points for GFSVI where cinquin2024 has 500; 2,000 epochs at learning "
    "rate .003 on Snelson's set where "
    "the code of rudner2022 has 200,000 at 5e-4",
    "smoke": "3 epochs",
}
TABLE = Table(
    "toys",
    "Runs behind the figures: curves and two moons",
    ROWS,
    tuple(
        Column(Cell(name, "", metric), f"{name} {label}")
        for name in SETS
        for metric, label in (
            (("nll", "NLL"),) if "moons" in name else (("rmse", "RMSE"), ("log_posterior_predictive", "LPP"))
        )
    ),
    recipe,
    notes=NOTES,
    reductions=REDUCTIONS,
)
DISTANCES = Table(
    "toys-distances",
    "How far the curves and maps are from an exact process or from HMC",
    ROWS,
    tuple(
        Column(Cell(name, f"reference={label};inputs=grid", metric), f"{name} {what} to {label}")
        for name, label in REFERENCES.items()
        for metric, what in (("mean_distance", "mean"), ("std_distance", "sd"))
    ),
    recipe,
    protocols=("paper", "smoke"),
    notes={"paper": NOTES["paper"]},
    reductions={"smoke": REDUCTIONS["smoke"]},
)
TABLES = (TABLE, DISTANCES)
