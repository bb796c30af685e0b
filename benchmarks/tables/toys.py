"""Table ``toys``: the runs behind the papers' one-dimensional and two-moons figures; ``toys-distances``: their
distances from an exact process or HMC on the plotted grid; ``toys-uncertainty``: the growth of their uncertainty away
from the data.
"""

from __future__ import annotations

from benchmarks.tables.recipes import Parts, Recipe, ReferenceRequest, layered, make_configs, seeds
from benchmarks.tables.spec import Cell, Column, Row, Table
from benchmarks.tables.toy_settings import SETS, VAGUE, settings


def _plain(*names: str) -> tuple[Row, ...]:
    return tuple(Row(name, method=name) for name in names)


def _by_kernel(label: str, method: str) -> tuple[Row, ...]:
    return tuple(Row(f"{label} ({name})", method=method, variant=kernel) for name, kernel in KERNELS.items())


KERNELS = {"RBF": "rbf", "Matern 1/2": "matern12"}
_BIASED = ("MAP fVI", "MC Dropout fVI", "Ensemble fVI")
ROWS = (
    *_plain("MAP", "MFVI", "MC Dropout", "Deep Ensemble", "FuNN-MFVI", "NN-HyVI", "FuNN-HyVI", "FSVI (rudner2021)"),
    Row(f"FSVI (rudner2021), {VAGUE}", method="FSVI (rudner2021)", variant=VAGUE),
    *_plain("FSVI"),
    *_by_kernel("GFSVI", "GFSVI"),
    *_by_kernel("GP", "GP"),
    *_plain(*_BIASED),
    *(Row(f"{name} (biased)", method=name, variant="biased") for name in _BIASED),
    *_by_kernel("FVI", "FBNN"),
    *_plain("Laplace", "HMC"),
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
        quick = {"samples": 5, "thinning": 1, "warmup": 2, "leapfrogs": 2, "map_steps": 5, "step": 1e-4}
        longer = {"samples": 2000 // chains["size"], "thinning": 5}
        return parts | {"training": {"name": "hmc", **(quick if protocol == "smoke" else longer)}}
    if protocol == "smoke":
        parts = layered(parts, {"training": {"epochs": 3}})
    return parts


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return one run under protocol ``short``, five seeds under ``paper``, compared with the set's reference."""
    parts = parts_of(row, dataset, protocol)
    if parts is None:
        return None
    samples, sets = 50 if protocol == "smoke" else 200, ("test", "grid")
    reference = None if protocol == "short" else _reference(row, dataset, protocol)
    return Recipe(parts, seeds(5 if protocol == "paper" else 1), samples=samples, sets=sets, reference=reference)


def _reference(row: Row, dataset: str, protocol: str) -> ReferenceRequest:
    """Return the exact process with the row's kernel, or HMC's first run."""
    label = REFERENCES[dataset]
    variant = row.variant if row.variant in KERNELS.values() else "rbf"
    own = next(r for r in ROWS if r.method == label and r.variant in ("", variant))
    parts = parts_of(own, dataset, protocol)
    assert parts is not None
    return ReferenceRequest("grid", against={label: make_configs(label, dataset, protocol, Recipe(parts, ((0, 0),)))})


REFERENCES = dict.fromkeys(SETS, "HMC") | {"snelson": "GP", "cinquin_1d": "GP"}
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
    reductions=REDUCTIONS,
)
DISTANCES = TABLE.beside(
    "distances",
    "How far the curves and maps are from an exact process or from HMC",
    columns=tuple(
        Column(Cell(name, f"reference={label};inputs=grid", metric), f"{name} {what} to {label}")
        for name, label in REFERENCES.items()
        for metric, what in (("mean_distance", "mean"), ("std_distance", "sd"))
    ),
    protocols=("paper", "smoke"),
    reductions={"smoke": REDUCTIONS["smoke"]},
)
GROWTH = TABLE.beside(
    "uncertainty",
    "How far uncertainty grows away from the data",
    columns=tuple(
        Column(Cell(name, "inputs=grid", metric), f"{name} {what}")
        for name in SETS
        for metric, what in (("std_at_data", "sd at the data"), ("std_far", "sd far away"), ("std_far_ratio", "ratio"))
    )
    + (Column(Cell("two_moons_dirichlet", "inputs=grid", "entropy_far"), "two_moons_dirichlet entropy far away"),),
)
TABLES = (TABLE, DISTANCES, GROWTH)
