"""Table ``toys``: the runs behind the papers' one-dimensional and two-moons figures; ``toys-distances``: the same runs
in numbers, by how far they are from an exact process or from HMC on the plotted grid.
"""

from __future__ import annotations

from benchmarks.tables.spec import Cell, Column, Parts, Recipe, Reference, Row, Table, make_configs, merge
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
"""Methods that protocol ``short`` does without."""
CHAINS = {"two_moons_rudner": 10, "two_moons_dirichlet": 20, "two_moons_cinquin": 10}
"""Chains of HMC; 100 where none are said."""

def parts_of(row: Row, dataset: str, protocol: str) -> Parts | None:
    """Settings of a row on a data set; None for a row that its figure does not have."""
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
