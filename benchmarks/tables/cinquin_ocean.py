"""cinquin2024, table 3: surface currents of the Gulf of Mexico, from 20 velocities of drifting buoys.

The runs also hold what figure 3 shows: the mean velocity on a grid, and its squared errors.
"""

from __future__ import annotations

from benchmarks.tables.spec import Cell, Column, Parts, Recipe, Row, Table, merge

PAPER, NAME, DATA = "cinquin2024", "cinquin2024-3", "gulf_drifters"
METHODS = {"GFSVI": "GFSVI", "TFSVI": "FSVI", "VIP": "VIP", "GP": "GP"}
ROWS = tuple(Row(label, label, method) for label, method in METHODS.items())
NOISES = {"noise from .01": 0.01, "noise from .005": 0.005, "noise from .001": 0.001}
STARTS = tuple(
    Row(f"{label}, {name}", label, METHODS[label], name) for label in ("GFSVI", "TFSVI", "GP") for name in NOISES
)
STEPS = {f"{steps:,} steps": steps for steps in (100, 200, 300, 400, 800)}
LENGTHS = tuple(Row(f"VIP, {name}", "VIP", "VIP", name) for name in STEPS)
GRID = {"name": "grid", "low": [-2.86, -1.595], "high": [3.44, 2.185], "step": 0.42}
"""16 x 10 points, degrees from the mean of the training inputs, about the middle of the grid of test points."""
_KERNEL = {"name": "helmholtz", "field": "helmholtz"}


def _parts(method: str, noise: float) -> Parts:
    """App. C.2: both potentials 2 x 50 tanh, 160 fixed context points, TFSVI's prior of standard deviation .5; the
    learned noise starts at ``noise`` m/s.
    """
    common = {
        "network": {"name": "vector_field", "hidden": [50, 50], "activation": "tanh"},
        "likelihood": {"name": "gaussian", "init_std": noise},
        "training": {
            "epochs": 2000,
            "batch_size": 20,
            "samples": 10,
            "dtype": "float64",
            "optimiser": {"name": "adam", "lr": 0.005},
        },
    }
    own: dict[str, Parts] = {
        "GFSVI": {
            "context": GRID,
            "divergence": {"outputs": "joint"},
            "prior": {"kernel": _KERNEL},
            "training": {"samples": 1},
        },
        "FSVI": {"context": GRID, "divergence": {"outputs": "joint"}, "prior": {"variance": 0.25}},
        "VIP": {},
        "GP": {"family": {"kernel": _KERNEL}, "training": {"epochs": 1000, "optimiser": {"lr": 0.02}}},
    }
    return merge(common, own.get(method, {}))


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Five random seeds on the one data set."""
    parts = _parts(row.made_by, NOISES.get(row.variant, 0.1))
    if row.variant in STEPS:
        parts = merge(parts, {"training": {"epochs": STEPS[row.variant]}})
    if protocol == "smoke":
        fewer = {"GFSVI": {"prior": {"fit_steps": 5}}}
        parts = merge(parts, {"training": {"epochs": 5}} | fewer.get(row.made_by, {}))
    seeds = tuple((0, seed) for seed in range(2 if protocol == "smoke" else 5))
    return Recipe(parts, seeds, samples=100, sets=("test", "grid"))


_NOTES = (
    "Both metrics are of one component of the velocity, in m/s, which is how a process of this kernel comes near the "
    "published numbers; the log-likelihood is the expected one, with the noise that was learned.",
    "The network is grad Phi + rot Psi of two perceptrons of 2 x 50 tanh units. The 160 fixed context points, whose "
    "place the paper does not say, are a regular grid over the test region. The divergences are of both components "
    "at all points jointly, as the kernel's components depend on each other.",
    "Settings that the paper does not give: 2,000 steps of Adam at .005, on all 20 points; kernel by marginal "
    "likelihood before training (GFSVI), or 1,000 steps at .02 (GP); noise starts at .1 m/s.",
    "VIP: 20 prior functions of the network, alpha .5; the paper states neither.",
    "TFSVI is the last-layer estimator of rudner2022 itself; the paper's TFSVI is its authors' own implementation.",
    "Where the numbers differ. The expected log-likelihood divides squared errors and variances by the learned noise, "
    "and after so few steps that depends on where it starts (table cinquin2024-3-noise). From .001 m/s, as in the code "
    "whose setup the paper follows, the exact process has the published number. GFSVI has -2.2 from .01 (one seed) "
    "and -24 from .005 (three; published -6.6), and its MSE goes from .013 to .019 (.021): so the published one most "
    "likely started between. TFSVI has -2.2 and -12.8 (-22.7), but its MSE stays at .020 where .034 is published: the "
    "start explains its log-likelihood at most. VIP, which learns its prior too, fits the 20 points ever more closely: "
    "it passes the published likelihood between 200 and 300 of the 2,000 steps (-6.8 and -27; -11.6), the published "
    "MSE between 100 and 200 (.019 and .028; .026; table cinquin2024-3-steps), so the published one was most likely "
    "trained for about as long.",
)
_COLUMNS = tuple(
    Column(Cell(DATA, "", metric), label, Cell(DATA, "", metric))
    for metric, label in (("expected_log_likelihood", "expected LL"), ("mse", "MSE"))
)


def _table(name: str, title: str, rows: tuple[Row, ...], notes: tuple[str, ...]) -> Table:
    return Table(
        name,
        title,
        rows,
        _COLUMNS,
        recipe,
        protocols=("paper", "smoke"),
        paper=PAPER,
        number="3",
        notes={"paper": notes},
        deviations=True,
        reductions={"smoke": "5 steps, 2 seeds"},
    )


TABLES = (
    _table(NAME, "Ocean currents in the Gulf of Mexico", ROWS, _NOTES),
    _table(
        f"{NAME}-noise",
        "Ocean currents with a smaller noise at the start of training",
        STARTS,
        ("As table cinquin2024-3, where the learned noise starts at .1 m/s; the paper does not give the start.",),
    ),
    _table(
        f"{NAME}-steps",
        "Ocean currents after fewer steps of training",
        LENGTHS,
        ("As table cinquin2024-3, where training takes 2,000 steps; the paper does not give their number.",),
    ),
)
