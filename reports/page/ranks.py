"""Average ranks of a table's rows over data sets, and critical differences between them (Demsar 2006)."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.records.store import COSTS
from reports.labels import RANK, direction, name
from reports.page.book import Sheet

FEWEST = 3  # fewest rows, and data sets, for a Friedman test
LEVEL = 0.05
WIDTH, PLOT = 640, 260  # usual width of a diagram in pixels; least width between its labels
LETTER, LINE = 6.2, 16  # width of a letter, with room to spare, and height of a line


@dataclass(frozen=True)
class Ranking:
    """Rows by their average rank for one metric; datasets are the blocks, columns the number of columns.

    p: Friedman's test that all rows are equal; difference: the critical one at LEVEL. Both are None with too few rows
    or data sets; diagram is then empty, else SVG.
    """

    metric: str
    ranks: tuple[tuple[str, float], ...]
    datasets: tuple[str, ...]
    columns: int
    left_out: tuple[str, ...] = ()
    p: float | None = None
    difference: float | None = None
    diagram: str = ""


def rankings(sheet: Sheet) -> list[Ranking]:
    """Return one ranking for every metric of a sheet with a better side, at least two rows and at least two columns:
    ranks in a single one only sort it."""
    metrics = dict.fromkeys(column.cell.metric for column in sheet.table.columns)
    ranked = [m for m in metrics if direction(m) and m not in COSTS and not m.startswith(RANK)]
    return [ranking for metric in ranked if (ranking := _ranking(sheet, metric)) is not None]


def _ranking(sheet: Sheet, metric: str) -> Ranking | None:
    columns: dict[str, list[int]] = {}
    for j, column in enumerate(sheet.table.columns):
        if column.cell.metric == metric:
            columns.setdefault(column.cell.dataset, []).append(j)
    means = np.array([[cell.mean for cell in row] for row in sheet.result.cells])
    full = np.isfinite(means) & np.array([[cell.complete for cell in row] for row in sheet.result.cells])
    whole = {dataset: full[:, js].all(1) for dataset, js in columns.items()}
    rows, datasets = _complete(np.array(list(whole.values())), list(columns))
    count = sum(len(columns[dataset]) for dataset in datasets)
    if len(rows) < 2 or count < 2:
        return None
    sign = direction(metric)
    blocks = np.array([_ranks(-sign * means[np.ix_(rows, columns[dataset])]).mean(1) for dataset in datasets])
    labels = [row.label for row in sheet.table.rows]
    apart = bool((blocks != blocks[:, :1]).any())  # where all rows are equal everywhere, nothing can be tested
    tested = apart and len(rows) >= FEWEST and len(datasets) >= FEWEST
    average = _ranks(blocks.T).mean(1) if tested else blocks.mean(0)
    ranks = tuple((labels[rows[i]], float(average[i])) for i in np.argsort(average, kind="stable"))
    test: dict[str, Any] = _tested(blocks, ranks) if tested else {}
    others = [label for i, label in enumerate(labels) if i not in rows and np.isfinite(means[i]).any()]
    return Ranking(name(metric), ranks, tuple(datasets), count, tuple(others), **test)


def _complete(whole: np.ndarray, datasets: list[str]) -> tuple[list[int], list[str]]:
    """Return the rows, and the data sets that all of them have, of the largest full rectangle [data sets, rows]."""
    best: tuple[list[int], list[str]] = [], []
    for fewest in range(1, len(datasets) + 1):
        rows = [i for i in range(whole.shape[1]) if whole[:, i].sum() >= fewest]
        shared = [dataset for dataset, complete in zip(datasets, whole) if rows and complete[rows].all()]
        if len(rows) > 1 and len(rows) * len(shared) > len(best[0]) * len(best[1]):
            best = rows, shared
    return best


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks of rows in every column, the smallest 1; equal values share theirs."""
    from scipy.stats import rankdata

    return rankdata(values, axis=0)


def critical_difference(rows: int, blocks: int) -> float:
    """Nemenyi's critical difference: average ranks that differ by more are different at LEVEL (Demsar 2006, sec.
    3.2.2)."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(1 - LEVEL, rows, 1e6)) / math.sqrt(2) * math.sqrt(rows * (rows + 1) / 6 / blocks)


def _tested(blocks: np.ndarray, ranks: Sequence[tuple[str, float]]) -> dict[str, Any]:
    from scipy.stats import friedmanchisquare

    p, difference = float(friedmanchisquare(*blocks.T).pvalue), critical_difference(len(ranks), len(blocks))
    return {"p": p, "difference": difference, "diagram": _diagram(ranks, difference)}


def not_apart(ranks: Sequence[float], difference: float) -> list[tuple[float, float]]:
    """Return first and last rank of the largest groups of rows that differ by no more; ranks ascend."""
    groups: list[tuple[float, float]] = []
    for first in ranks:
        last = max(rank for rank in ranks if rank - first <= difference)
        if last > (max(first, groups[-1][1]) if groups else first):
            groups.append((first, last))
    return groups


def _diagram(ranks: Sequence[tuple[str, float]], difference: float) -> str:
    """Return the diagram as SVG in the colour of the text around it: an axis of ranks, a line from each rank to its
    label, and a bar for every group that is not told apart. Ranks ascend."""
    half = (len(ranks) + 1) // 2
    sides = (
        [(f"{label} ({rank:.1f})", rank) for label, rank in ranks[:half]],
        [(f"({rank:.1f}) {label}", rank) for label, rank in reversed(ranks[half:])],
    )
    left, right = (LETTER * max(len(words) for words, _ in side) + 8 for side in sides)
    width = max(WIDTH, left + right + PLOT)
    best = ranks[0][1]
    end = max(ranks[-1][1], best + difference)

    def x(rank: float) -> str:
        return f"{left + (width - left - right) * (rank - best) / (end - best):.1f}"

    def text(at: str, y: float, words: str, anchor: str) -> str:
        return f'<text x="{at}" y="{y}" text-anchor="{anchor}">{html.escape(words)}</text>'

    step = next(step for step in (0.5, 1, 2, 5, 10, 20, 50, 100) if (end - best) / step <= 10)
    ticks = [step * k for k in range(math.ceil(best / step), math.floor(end / step) + 1)]
    bars, axis = not_apart([rank for _, rank in ranks], difference), 3.5 * LINE
    lines = [f"M{x(best)} {LINE}v8m0-4H{x(best + difference)}m0-4v8", f"M{x(best)} {axis}H{x(end)}"]
    lines += [f"M{x(tick)} {axis}v-4" for tick in ticks]
    words = [text(x(best), 0.75 * LINE, f"critical difference {difference:.2f}", "start")]
    words += [text(x(tick), axis - 7, f"{tick:g}", "middle") for tick in ticks]
    thick = [f"M{x(first)} {axis + LINE * (k + 1) / 2}H{x(last)}" for k, (first, last) in enumerate(bars)]
    for side, at, beside, anchor in zip(sides, (best, end), (-4, 4), ("end", "start")):
        for k, (name_and_rank, rank) in enumerate(side):
            y = axis + LINE * (len(bars) / 2 + k + 1)
            lines.append(f"M{x(at)} {y}H{x(rank)}V{axis}")
            words.append(text(f"{float(x(at)) + beside:.1f}", y + 4, name_and_rank, anchor))
    joined = [
        f"{next(label for label, rank in ranks if rank == first)} to "
        f"{next(label for label, rank in reversed(ranks) if rank == last)}"
        for first, last in bars
    ]
    about = html.escape(f"Critical difference {difference:.2f}; not told apart: {'; '.join(joined) or 'none'}")
    dots = (f'<circle cx="{x(rank)}" cy="{axis}" r="2.5"/>' for _, rank in ranks)
    height = axis + LINE * (len(bars) / 2 + half + 1)
    return (
        f'<svg role="img" aria-label="{about}" viewBox="0 0 {width:.1f} {height}" xmlns="http://www.w3.org/2000/svg"'
        f' font-size="11" fill="currentColor"><g fill="none" stroke="currentColor"><path d="{"".join(lines)}"/>'
        f'<path d="{"".join(thick)}" stroke-width="3"/></g>{"".join((*dots, *words))}</svg>'
    )
