"""Mean ranks over data sets by the rule of cinquin2024 (App. C.3), ours beside the published ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from reports.aggregate import CellResult, TableResult
from reports.labels import direction

RULE = (
    "rank 1 for the best row and for every one whose error bar overlaps with its, then rank 2 for the best of the "
    "others in the same way, and so on"
)
Bar = tuple[float, float]


def ranks(bars: Mapping[str, Bar], sign: int) -> dict[str, int]:
    """Return the rank of each label by its mean and standard error; ``sign``: 1 where larger is better, else -1."""
    left, rank_of, rank = dict(bars), {}, 0
    while left:
        rank += 1
        best = max(left, key=lambda label: sign * left[label][0])  # ties with itself, even without an error
        mean, error = left[best]
        # Tolerance for bars that touch: published ones are decimal fractions.
        tied = [label for label, bar in left.items() if label == best or abs(bar[0] - mean) <= error + bar[1] + 1e-9]
        for label in tied:
            rank_of[label] = rank
            del left[label]
    return rank_of


def sentence(result: TableResult) -> str:
    """Return the mean ranks of the rows that the paper ranks, over the data sets where all of them have at least two
    runs.

    Beside each is the rank by the published numbers of the same data sets. Empty where there is no such set.
    """
    rows = [row for row in result.cells if row and row[0].row.label in result.table.ranked]
    columns = [j for j in range(len(result.table.columns)) if all(bar_of_runs(row[j]) for row in rows)]
    if not rows or not columns:
        return ""
    own, published = (_mean_ranks(bar_of, rows, columns) for bar_of in (bar_of_runs, bar_of_published))
    listed = ", ".join(
        f"{label} {rank:.2g} ({published[label]:.2g})" if published else f"{label} {rank:.2g}"
        for label, rank in own.items()
    )
    sets = "one data set" if len(columns) == 1 else f"the {len(columns)} data sets"
    beside = " (in brackets: of the published numbers of the same sets)" if published else ""
    return f"Mean ranks over {sets} where all of these rows have runs{beside}: {listed}; {RULE} (App. C.3)."


def _mean_ranks(
    bar_of: Callable[[CellResult], Bar | None], rows: Sequence[Sequence[CellResult]], columns: Sequence[int]
) -> dict[str, float]:
    by_label: dict[str, list[int]] = {row[0].row.label: [] for row in rows}
    for j in columns:
        of_column = {row[0].row.label: bar for row in rows if (bar := bar_of(row[j])) is not None}
        if len(of_column) < len(rows):
            return {}
        for label, rank in ranks(of_column, direction(rows[0][j].column.cell.metric)).items():
            by_label[label].append(rank)
    return {label: math.fsum(each) / len(each) for label, each in by_label.items()}


def bar_of_runs(cell: CellResult) -> Bar | None:
    """Return mean and standard error over our runs; None for fewer than two, and where splits are missing."""
    return (cell.mean, cell.stderr) if cell.n > 1 and cell.complete else None


def bar_of_published(cell: CellResult) -> Bar | None:
    """Return the printed mean and its error; None where nothing is printed."""
    return (cell.published.mean, cell.published.stderr or 0.0) if cell.published else None
