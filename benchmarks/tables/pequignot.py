"""pequignot2020, experiment 2: table 5 (accuracy and log posterior predictive on UCI), and its small sets as table
``uci``.
"""

from __future__ import annotations

from dataclasses import replace

import datasets
from benchmarks.tables.spec import Cell, Column, Parts, Recipe, Row, Table, merge

SMALL = ("boston", "concrete", "energy", "wine", "yacht")
LARGE = ("kin8nm", "naval", "power", "protein")
PAPER = "pequignot2020"
PREDICTIVE = "log_posterior_predictive"
BATCHES = "batches of 50"
SCRIPT = "patience 20"

ENSEMBLE = Row(
    "Ensemble", "Ensemble", "Deep Ensemble", metrics=((PREDICTIVE, "gaussian_log_predictive_without_noise"),)
)
ROWS = (
    Row("MC Dropout", "MC Dropout", "MC Dropout", metrics=((PREDICTIVE, "gaussian_log_predictive"),)),
    ENSEMBLE,
    Row("MFVI", "MFVI", "MFVI"),
    Row("FuNN-MFVI", "FuNN-MFVI", "FuNN-MFVI"),
    Row("NN-HyVI", "NN-HyVI", "NN-HyVI"),
    Row("FuNN-HyVI", "FuNN-HyVI", "FuNN-HyVI"),
    Row("FBNN", "FBNN", "FBNN"),
)

# Initial standard deviation 0.001 of mean-field weights, as a log-variance (PROTOCOLS of the authors' scripts of 2020).
_NARROW = [-13.815510557964274, -13.815510557964274]


def settings(row: Row, dataset: str, protocol: str) -> Parts:
    """Return the settings of section 4.3 and appendix E; where paper and code differ, the code that made the numbers
    (see the table's notes).
    """
    large = dataset in LARGE
    n_train = datasets.describe(dataset, PAPER).n_train
    n_total = n_train + datasets.describe(dataset, PAPER).n_test
    patience = 30
    hypernetwork = {"family": {"latent": 5}, "prior": {"variance": 0.25}}
    variational = {
        "epochs": 2000,
        "batch_size": 500 if large else 50,
        "samples": 100,
        "optimiser": {"name": "adam", "lr": 0.005},
        "schedule": {"name": "plateau", "factor": 0.7, "patience": patience, "min_lr": 1e-4},
    }
    common = {
        "network": {"name": "mlp", "hidden": [100 if large else 50], "activation": "relu"},
        "likelihood": {"name": "gaussian", "init_std": 1.0},
        "training": variational,
    }
    own: dict[str, Parts] = {
        "MC Dropout": {
            "family": {"rate": 0.05},
            "likelihood": {"scale": "exp"},
            "training": {
                "batch_size": n_train,
                "samples": 1,
                "schedule": {"name": "constant"},
                # The authors' loss is a sum over points, ours a mean.
                "optimiser": {"lr": 1e-3, "weight_decay": 0.1 / n_total**0.5 / n_train},
            },
        },
        "Deep Ensemble": {
            "likelihood": {"name": "residual_gaussian", "error": "mean_square"},
            "training": {
                "epochs": 500 if large else 3000,
                "samples": 1,
                "schedule": {"name": "constant"},
                "optimiser": {"name": "sgd", "lr": 0.01, "momentum": 0.9},
            },
        },
        "MFVI": {
            "family": {"mean_init": 0.0, "log_var_init": _NARROW},
            "prior": {"variance": 0.25},
            "training": {"schedule": {"patience": 2 * patience}},
        },
        "FuNN-MFVI": {"family": {"mean_init": 0.0, "log_var_init": _NARROW}, "prior": {"variance": 0.25}},
        "NN-HyVI": hypernetwork,
        "FuNN-HyVI": hypernetwork,
        "FBNN": {
            "likelihood": {"init_std": 0.5, "min_std": 0.05},
            "prior": {"kernel": {"name": "rbf", "ard": True}, "fit_steps": 5000, "fit_batch": n_train, "fit_lr": 0.003},
            "training": {"batch_size": 20, "optimiser": {"lr": 1e-3}, "schedule": {"name": "constant"}},
        },
    }
    parts = merge(common, merge(own.get(row.made_by, {}), _readings(n_total).get(row.variant, {})))
    if protocol == "short":
        parts = merge(parts, {"training": {"epochs": parts["training"]["epochs"] // 10}})
    if protocol == "smoke":
        parts = merge(parts, {"training": {"epochs": 2, "samples": min(10, parts["training"]["samples"])}})
        if row.made_by in ("FuNN-MFVI", "NN-HyVI", "FuNN-HyVI"):
            parts = merge(parts, {"divergence": {"samples": 50}})
        if row.made_by == "FBNN":
            parts = merge(parts, {"prior": {"fit_steps": 5}})
    return parts


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the settings on random splits; None for FBNN on large sets, whose prior has a kernel that is not
    implemented, for the reading of MC Dropout with batches of 50 on them, and for MFVI's patience reading except on two
    large sets."""
    if dataset in LARGE and (row.made_by == "FBNN" or row.variant == BATCHES):
        return None
    if row.variant == SCRIPT and dataset not in ("kin8nm", "power"):
        return None
    splits = {"paper": 5 if dataset in LARGE else 10, "short": 3, "smoke": 2}[protocol]
    samples = {"paper": 1000, "short": 1000, "smoke": 100}[protocol]
    replicates = tuple((i, i) for i in range(splits))
    return Recipe(settings(row, dataset, protocol), replicates, PAPER, samples=samples)


def _readings(n_total: int) -> dict[str, Parts]:
    """Return other readings of paper and code, by the variant of their rows (table ``pequignot2020-5-readings``)."""
    return {
        BATCHES: {
            "likelihood": {"scale": "softplus"},
            "training": {"batch_size": 50, "optimiser": {"weight_decay": 0.1 / n_total**0.5}},
        },
        "root mean square": {"likelihood": {"error": "root_mean_square"}},
        SCRIPT: {"training": {"schedule": {"patience": 20}}},
    }


READINGS = (
    replace(ROWS[0], label="MC Dropout, as in table 5"),
    Row("MC Dropout, mixture", "MC Dropout", "MC Dropout"),
    Row("MC Dropout, batches of 50", "MC Dropout", "MC Dropout", BATCHES),
    replace(ROWS[1], label="Ensemble, as in table 5"),
    Row("Ensemble, residual noise", "Ensemble", "Deep Ensemble"),
    replace(ROWS[1], label="Ensemble, RMSE", variant="root mean square"),
    replace(ROWS[2], label="MFVI, as in table 5"),
    replace(ROWS[2], label="MFVI, patience 20", variant=SCRIPT),
)


def _columns(sets: tuple[str, ...]) -> tuple[Column, ...]:
    return tuple(
        Column(Cell(d, "", metric), d, Cell(d, "experiment=2", metric), digits=4 if d in LARGE else 3)
        for metric in ("rmse", "log_posterior_predictive")
        for d in sets
    )


NOTES = (
    "Prior variance 0.25: the paper prints covariance 0.5 I, the authors' scripts multiply a standard normal by 0.5.",
    "Mean-field initial means are 0 and standard deviations 0.001, as in the authors' scripts until 21 October 2020; "
    "from 22 October, five days before the paper, their MFVI starts at means N(0, 1), FuNN-MFVI still at 0. Their MFVI "
    "took sigma for a variance in log q while sampling with it as a standard deviation, which halves the gain of a "
    "larger log sigma; here the KL is exact, so the published MFVI row is of another objective, with narrower weights.",
    "Ensemble members are trained on the mean square error, as in the authors' code; App. E has its root, which table "
    "pequignot2020-5-readings shows to fit less. The log posterior predictive is that of a Gaussian with the five "
    "members' mean and variance (divided by 4) and without noise, as in that code. On boston and yacht (-8.0 and -8.5 "
    "published) the authors' own summary of February 2021 has -4.2 ± 0.3 and -0.8 ± 0.4, as here; what their first "
    "run had is not known. Root mean square, 200 to 3,000 epochs and the variance divided by 5 gave -4.0 to -0.4 on "
    "yacht, five other networks for each split of boston -5.1: tried by a script apart, without records but for the "
    "root mean square. Where the five happen to agree it is very low, so its mean over splits has a heavier tail than "
    "its error says.",
    "MC Dropout: 2,000 steps on the whole training set, standard deviation of the noise exp(s) from 1, weight decay "
    "0.1 / sqrt(N) of the summed loss; its log posterior predictive is that of a Gaussian with the passes' mean and "
    "variance plus noise: as in the authors' code. Table pequignot2020-5-readings compares readings.",
    "The splits are drawn as the authors drew theirs (seeds 117 and on), so our errors and theirs are not "
    "independent, and fewer differences are told than could be.",
    "FBNN: the published numbers are quoted from Sun et al. (2019), on ten splits of theirs. Here: their settings "
    "for small sets on the splits of the other rows (batches of 20 and 5 uniform points, 100 draws, RBF prior fitted "
    "by 5,000 steps, KL divided by the batch size), but with uniform points in the box of the training inputs, where "
    "their scripts take one range for all features, of test inputs too. The prior of their large sets, a network of "
    "kernels, is not here.",
    "Large sets: patience 30 (MFVI 60) and a latent dimension of 5, as on the small sets and as the paper says. The "
    "authors' script of October 2020 for large sets has a patience of 10 (20), which table pequignot2020-5-readings "
    "shows for MFVI; a rerun of February 2021 has 20 (40) and a latent dimension of 10.",
    "RMSE and log posterior predictive (1,000 function samples) in the original units of the target.",
    "Where only the first splits have been run there is no verdict, since they may be easier than all ten: on concrete "
    "the Ensemble's RMSE is 3.34 on splits 0 to 2 and 3.99 on all.",
)
_HOURS = (
    "Core-hours on an AMD Zen 5 core of what lacks. Further splits of the small sets, by records: concrete 2.5 and "
    "wine 5.1 for FuNN-MFVI, NN-HyVI and FuNN-HyVI together, FuNN-HyVI on boston 0.9. The five splits of large sets, "
    "by timed steps of 2,000 epochs, at most, since training may end early: kin8nm: FuNN-MFVI 2.6, NN-HyVI 1.5, "
    "FuNN-HyVI 2.3, MFVI 0.2; power: 1, 1.1, 2.3, MFVI 0.2; naval: 35, 9, 31, MFVI 7; protein: 14, 3.4, FuNN-HyVI not "
    "estimated, MFVI 0.9, MC Dropout and the Ensemble 0.4. FBNN's prior takes over a minute a split, and its training "
    "was not timed."
)
REDUCTIONS = {
    "short": "a tenth of the paper's epochs, 3 splits",
    "smoke": "2 epochs, 2 splits, 10 likelihood samples, 50 divergence samples: a test of the way, not of the methods",
}

TABLES = (
    Table(
        "uci",
        "UCI regression, small sets (pequignot2020 table 5)",
        ROWS,
        _columns(SMALL),
        recipe,
        paper=PAPER,
        notes={"paper": (*NOTES, _HOURS), "short": NOTES, "smoke": NOTES},
        reductions=REDUCTIONS,
    ),
    Table(
        "pequignot2020-5",
        "RMSE and log posterior predictive, experiment 2",
        ROWS,
        _columns(SMALL + LARGE),
        recipe,
        paper=PAPER,
        number="5",
        notes={"paper": (*NOTES, _HOURS), "short": NOTES, "smoke": NOTES},
        reductions=REDUCTIONS,
    ),
    Table(
        "pequignot2020-5-readings",
        "MC Dropout, Ensemble and MFVI of experiment 2 under several readings of paper and code",
        READINGS,
        _columns((*SMALL, "kin8nm", "naval", "power")),
        recipe,
        paper=PAPER,
        number="5",
        notes=dict.fromkeys(
            ("paper", "short", "smoke"),
            (
                "MC Dropout, as in table 5: the whole training set in each of 2,000 steps, standard deviation of the "
                "noise exp(s), log predictive density of a Gaussian with the passes' mean and variance. Mixture: the "
                "same runs, log of the mean density over passes. Batches of 50: those, 2,000 epochs, noise log(1 + "
                "exp(s)), mixture; weight decay not divided by the number of points.",
                "Ensemble, as in table 5: trained on the mean square error, Gaussian of the members' mean and "
                "variance without noise. Residual noise: the same runs, mixture of the members, each with the "
                "training residual as noise. RMSE: trained on the root mean square error, as App. E says. The RMSE "
                "on the test set agrees with both; the log posterior predictive agrees with the mean square error "
                "on more sets, and with none of these on all.",
                "MFVI, as in table 5: patience 60, twice that of the other rows, as the paper says. Patience 20: on "
                "kin8nm and power alone, as in the authors' script of October 2020 for large sets.",
            ),
        ),
        reductions=REDUCTIONS,
    ),
)
