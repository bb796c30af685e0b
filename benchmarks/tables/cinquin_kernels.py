"""Which kernel the processes of cinquin2024's tables 1, 6 and 4 have: every candidate's numbers on test folds."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables.cinquin import NAME, varied
from benchmarks.tables.cinquin_candidates import CANDIDATES, LARGE, SMALL, candidate
from benchmarks.tables.spec import Cell, Column, Recipe, Row, Table

PROCESSES = ("GP", "Sparse GP")
ROWS = tuple(Row(f"{name}, {label}", name, name, label) for name in PROCESSES for label in CANDIDATES["paper"][name])


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """The trainings of the selection, which look at their test folds too; here nothing is chosen."""
    return candidate(row.made_by, row.variant, dataset, protocol)


def evidence_recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """The same trainings, asked for the log marginal likelihood of their validation subsets alone."""
    found = recipe(row, dataset, protocol)
    return found and replace(found, sets=("validation",), evidence="validation")


_NOTES = (
    "All candidates of table 1, each beside the published number of its method: those that were not chosen too. The "
    "choice is by validation subsets (table cinquin2024-1-selection) and does not look at these numbers.",
    "The published numbers of both processes on energy and yacht, and of the sparse one on concrete and power, are "
    "those of a linear kernel, some to the printed digits. The paper chooses kernels on validation data, where here "
    "the linear one comes last on these sets by predictive density (by their marginal likelihood alone it comes first "
    "on some: table cinquin2024-1-evidence). Those of the exact process on concrete are nearest to Matern 1/2.",
    "Songs (table 4): on yacht the linear kernel gives the exact process .83, every other one .96 to 1.00, and .787 is "
    "published; for the sparse one on concrete .795, but Matern 1/2 and a length-scale for each input fit the "
    "published .776 as well; on energy the exact process has .99 to 1.00 with every kernel. On boston and on concrete "
    "its published .952 and .933 are those of other kernels (linear: .78 and .79).",
)

TABLES = varied(
    "kernels",
    "GP and sparse GP by kernel",
    ROWS,
    SMALL + LARGE,
    recipe,
    _NOTES,
)
_EVIDENCE_NOTES = (
    'App. C.3 chooses the kernels of both processes by the "mean log-marginal likelihood of the validation data". '
    "Taken by the word it is this: the density of the validation targets under the fitted prior, not conditioned on "
    "the training data. Table 1 here takes the predictive density given the training data, by which processes predict.",
    "Among the kernels with one length-scale that the paper names this prefers, for the exact process, the linear one "
    "on energy and yacht and Matern 1/2 on concrete: those whose numbers are the published ones (table "
    "cinquin2024-1-kernels; with Matern 1/2 concrete has -1.84, .119 and .935, published -2.10, .116 and .933), where "
    "the predictive density prefers others. On boston six are within .07. So this is most likely how the paper chose. "
    "Of the sparse process it tells less: linear is ahead on yacht, but Matern 3/2 on energy, by .05, and on "
    "concrete, by .16, where the published numbers are the linear kernel's. RBF with a length-scale for each input, "
    "which the paper does not mention, is ahead of all on energy and yacht.",
    "Wine was not asked: the fits of the exact process fail there (table 1).",
)
TABLES += (
    Table(
        f"{NAME}-evidence",
        "GP and sparse GP by kernel: log marginal likelihood of the validation subsets alone",
        tuple(replace(row, published=None) for row in ROWS),
        tuple(Column(Cell(d, "part=validation", "log_marginal_likelihood"), d) for d in SMALL),
        evidence_recipe,
        protocols=("paper", "smoke"),
        notes={"paper": _EVIDENCE_NOTES},
        reductions={"smoke": "5 steps, 2 folds"},
    ),
)
