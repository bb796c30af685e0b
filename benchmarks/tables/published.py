"""A table for every published table that nothing reproduces yet: all its cells, all of them missing."""

from __future__ import annotations

from benchmarks.records import published
from benchmarks.tables.spec import Cell, Column, Row, Table

SCALES = {
    ("rudner2021", "accuracy"): 100, ("rudner2021", "ood_auroc"): 100, ("rudner2022", "accuracy"): 100,
    ("rudner2022", "ood_auroc"): 100, ("dirichlet2022", "accuracy"): 100,
}  # fmt: skip
METRICS = {"mse": "mse_standardised", "expected_log_likelihood": "expected_log_likelihood_standardised"}


def columns(paper: str, number: str) -> tuple[Column, ...]:
    """Return one column for each (data set, condition, metric) of a published table, in its order."""
    cells = dict.fromkeys(Cell(p.dataset, p.condition, p.metric) for p in published.load(paper) if p.table == number)
    made = []
    for cell in cells:
        metric = METRICS.get(cell.metric, cell.metric) if paper == "cinquin2024" else cell.metric
        label = " ".join(filter(None, (cell.dataset, cell.condition, cell.metric)))
        made.append(
            Column(Cell(cell.dataset, cell.condition, metric), label, cell, SCALES.get((paper, cell.metric), 1.0))
        )
    return tuple(made)


def rows(paper: str, number: str) -> tuple[Row, ...]:
    """Return one row for each method of a published table, in its order."""
    return tuple(
        Row(name, name) for name in dict.fromkeys(p.method for p in published.load(paper) if p.table == number)
    )


def undeclared(declared: set[str]) -> list[Table]:
    """Tables of all published numbers but those declared, named ``<paper>-<number>``."""
    found = []
    for paper in published.papers():
        for number in dict.fromkeys(p.table for p in published.load(paper)):
            name = f"{paper}-{number}"
            if name not in declared:
                found.append(
                    Table(
                        name,
                        f"table {number} of {paper}",
                        rows(paper, number),
                        columns(paper, number),
                        lambda row, dataset, protocol: None,
                        protocols=("paper",),
                        paper=paper,
                        number=number,
                    )
                )
    return found
