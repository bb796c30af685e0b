"""Table ``toys``: the runs behind the papers' one-dimensional and two-moons figures; ``toys-distances``: their
distances from an exact process or HMC on the plotted grid; ``toys-uncertainty``: the growth of their uncertainty away
from the data.
"""

from __future__ import annotations

from benchmarks.tables.spec import Cell, Column, Parts, Recipe, ReferenceRequest, Row, Table, make_configs, merge
from benchmarks.tables.toy_settings import SETS, VAGUE, settings

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
    Row(f"FSVI (rudner2021), {VAGUE}", method="FSVI (rudner2021)", variant=VAGUE),
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
"""Methods that protocol ``short`` omits."""
CHAINS = {"two_moons_rudner": 10, "two_moons_dirichlet": 20, "two_moons_cinquin": 10}
"""Number of chains of HMC by data set; 100 where absent."""


def parts_of(row: Row, dataset: str, protocol: str) -> Parts | None:
    """Return settings of a row on a data set; None for a row that its figure does not have."""
    parts = settings(row, dataset, short=protocol != "paper")
    if parts is None or (protocol == "short" and (row.made_by in LATER or (dataset, row.made_by) == ("snelson", "GP"))):
        return None
    if row.made_by == "HMC":
        chains = {"size": 2 if protocol == "smoke" else CHAINS.get(dataset, 100)}
        parts = {name: parts[name] for name in ("network", "likelihood", "prior")} | {"family": chains}
        quick = {"samples": 5, "thinning": 1, "warmup": 2, "leapfrogs": 2, "map_steps": 5}
        longer = {"samples": 2000 // chains["size"], "thinning": 5}
        return parts | {"training": {"name": "hmc", **(quick if protocol == "smoke" else longer)}}
    if protocol == "smoke":
        parts = merge(parts, {"training": {"epochs": 3}})
    return parts


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return one run under protocol ``short``, five seeds under ``paper``, compared with the set's reference."""
    parts = parts_of(row, dataset, protocol)
    if parts is None:
        return None
    samples, sets = 50 if protocol == "smoke" else 200, ("test", "grid")
    seeds = tuple((0, seed) for seed in range(5 if protocol == "paper" else 1))
    reference = None if protocol == "short" else _reference(row, dataset, protocol)
    return Recipe(parts, seeds, samples=samples, sets=sets, reference=reference)


def _reference(row: Row, dataset: str, protocol: str) -> ReferenceRequest:
    """Return the exact process with the row's kernel, or HMC's first run."""
    label = REFERENCES[dataset]
    variant = row.variant if row.variant in ("rbf", "matern12") else "rbf"
    own = next(r for r in ROWS if r.method == label and r.variant in ("", variant))
    parts = parts_of(own, dataset, protocol)
    assert parts is not None
    return ReferenceRequest("grid", against={label: make_configs(label, dataset, protocol, Recipe(parts, ((0, 0),)))})


REFERENCES = dict.fromkeys(SETS, "HMC") | {"snelson": "GP", "cinquin_1d": "GP"}
_BOTH = (
    "**Test points** of Snelson's set are those of the removed gap.",
    "**FSVI (rudner2021)** is figure 1 of both papers as the code of rudner2022 makes it on Snelson's set: N(0, 10) on "
    "function values, all layers, a diagonal KL. rudner2021's supplement prints a prior variance of 1e6, which has a "
    "row of its own. FSVI is eq. 14 of rudner2022 (last layer, full covariance), which that command does not use; its "
    "prior variance of 1 is ours and gives functions a standard deviation of 3 to 4, as N(0, 10) does.",
    "**Noise** on Snelson's set is fixed at 1, the default of that command, which sets none; 0.286 of the data's "
    "description goes into its plot alone.",
    "**MFVI** of rudner2021 is stopped after a third of the epochs: its supplement says early stopping without a rule. "
    "Weight decay 0.1 of its ensemble is taken as the precision of the prior on weights, as in table rudner2021-1.",
    "**Two moons of rudner2021**: their script does not run, so activation (tanh), rate, draws and prior variance are "
    "those of Snelson's set; 20,000 epochs and 40 uniform points are ours. ReLU units or a prior variance of 1e6 give "
    "another map (docs/methods.md).",
    "**pequignot2020** follows the authors' script of the figure, with which MFVI starts from N(0, 1) means and "
    "FuNN-MFVI from zero means, where tanh units stay alike. Bands there include the noise, here they do not.",
    "**cinquin2024** is without code; initial standard deviations of FVI, standardised moons and their box come from "
    "the code of the authors' next paper. All epochs, learning rates and the initial noise (0.2, learned) are ours.",
    "**Biased Dirichlet prior**: (1, 4); dirichlet2022 does not print the values of its figure 3.",
)
NOTES = {
    "short": ("**One run of each**; the figures are what these runs are for.", *_BOTH),
    "paper": (
        *_BOTH,
        "**Reference**, on the plotted grid and without noise: the exact process on the sine (with the row's kernel, "
        "else RBF) and on Snelson's set, with learned noise. Elsewhere HMC, with the network and the fixed noise of "
        "the others and Gaussian weights of variance 0.5 (pequignot2020) or 1; on the moons with few chains, whose "
        "R-hat is in its records. The row HMC says how far five such references are from the first. rudner2021's "
        "priors are on functions and dirichlet2022's on probabilities, so HMC's is another posterior.",
        "**Cost** by timed steps on one core of a shared machine: five seeds of a row of FSVI on Snelson's set 0.9 "
        "core-hours, of GFSVI 0.9 on the sine and 1.3 on its moons, of FVI 0.9 on the sine.",
    ),
}
REDUCTIONS = {
    "short": "one seed; on Snelson's set and the moons of rudner2021 2,000 and 1,000 epochs at learning rate 0.003, "
    "above the range of the paper (1e-4 to 1e-3), in place of 200,000 and 20,000 at 5e-4; 60 or 100 context points for "
    "GFSVI and TFSVI where cinquin2024 has 500, with 2,000 and 500 epochs of GFSVI in place of 10,000 and 3,000",
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
GROWTH = Table(
    "toys-uncertainty",
    "How far uncertainty grows away from the data",
    ROWS,
    tuple(
        Column(Cell(name, "inputs=grid", metric), f"{name} {what}")
        for name in SETS
        for metric, what in (("std_at_data", "sd at the data"), ("std_far", "sd far away"), ("std_far_ratio", "ratio"))
    ),
    recipe,
    notes=dict.fromkeys(
        ("paper", "short"),
        (
            "Standard deviations of the function without noise, of a classifier those of the probability of a class. "
            "Far away: the fifth of the plotted grid that is farthest from every training input; on Snelson's set "
            "|x| > 8 or so.",
            "The runs of table toys, whose notes say what their settings are.",
        ),
    ),
    reductions=REDUCTIONS,
)
TABLES = (TABLE, DISTANCES, GROWTH)
