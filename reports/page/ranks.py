"""Average ranks of a table's rows over data sets, and critical differences between them (Demsar 2006)."""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.records.store import COSTS
from reports.labels import RANK, direction, name
from reports.page.book import Sheet

FEWEST = 3  # fewest rows, and data sets, for a Friedman test
LEVEL = 0.05
INK = "#010203"  # replaced by the colour of the text around a diagram


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
    """Return one ranking for every metric of a sheet with a better side and at least two rows."""
    metrics = dict.fromkeys(column.cell.metric for column in sheet.table.columns)
    asked = [m for m in metrics if direction(m) and m not in COSTS and not m.startswith(RANK)]
    return [found for metric in asked if (found := _ranking(sheet, metric)) is not None]


def _ranking(sheet: Sheet, metric: str) -> Ranking | None:
    columns: dict[str, list[int]] = {}
    for j, column in enumerate(sheet.table.columns):
        if column.cell.metric == metric:
            columns.setdefault(column.cell.dataset, []).append(j)
    means = np.array([[cell.mean for cell in row] for row in sheet.result.cells])
    whole = {dataset: np.isfinite(means[:, js]).all(1) for dataset, js in columns.items()}
    rows, datasets = _complete(np.array(list(whole.values())), list(columns))
    if len(rows) < 2:
        return None
    sign = direction(metric)
    blocks = np.array([_ranks(-sign * means[np.ix_(rows, columns[dataset])]).mean(1) for dataset in datasets])
    labels = [row.label for row in sheet.table.rows]
    apart = bool((blocks != blocks[:, :1]).any())  # where all rows are equal everywhere, nothing can be tested
    tested = apart and len(rows) >= FEWEST and len(datasets) >= FEWEST
    average = _ranks(blocks.T).mean(1) if tested else blocks.mean(0)
    order = np.argsort(average, kind="stable")
    found: dict[str, Any] = _tested(blocks, [labels[i] for i in rows]) if tested else {}
    others = [label for i, label in enumerate(labels) if i not in rows and np.isfinite(means[i]).any()]
    return Ranking(
        name(metric),
        tuple((labels[rows[i]], float(average[i])) for i in order),
        tuple(datasets),
        sum(len(columns[dataset]) for dataset in datasets),
        tuple(others),
        **found,
    )


def _complete(whole: np.ndarray, datasets: list[str]) -> tuple[list[int], list[str]]:
    """Return the rows, and the data sets that all of them have, of the largest full rectangle [data sets, rows]."""
    best: tuple[list[int], list[str]] = [], []
    for fewest in range(1, len(datasets) + 1):
        rows = [i for i in range(whole.shape[1]) if whole[:, i].sum() >= fewest]
        shared = [dataset for dataset, has in zip(datasets, whole) if rows and has[rows].all()]
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


def _tested(blocks: np.ndarray, labels: list[str]) -> dict[str, Any]:
    from scipy.stats import friedmanchisquare

    p = float(friedmanchisquare(*blocks.T).pvalue)
    return {"p": p, "difference": critical_difference(len(labels), len(blocks)), "diagram": _diagram(blocks, labels)}


def _diagram(blocks: np.ndarray, labels: list[str]) -> str:
    """Return the diagram as SVG in the colour of the text around it."""
    import pandas
    import scikit_posthocs
    from matplotlib import rc_context

    from reports.figures.style import plt

    told: list[str] = []
    for label in labels:  # matplotlib reads text between two $ as a formula, pandas equal labels as one
        told.append(label.replace("$", r"\$") + f" #{told.count(label) + 1}" * (label in told))
    ranks = pandas.Series(_ranks(blocks.T).mean(1), index=told)
    pairs = scikit_posthocs.posthoc_nemenyi_friedman(pandas.DataFrame(blocks, columns=told))
    with rc_context({"svg.fonttype": "none", "text.color": INK, "axes.edgecolor": INK, "xtick.color": INK}):
        figure, axis = plt.subplots(figsize=(7.4, 0.9 + 0.17 * len(told)))
        scikit_posthocs.critical_difference_diagram(
            ranks, pairs, ax=axis, alpha=LEVEL,
            color_palette=dict.fromkeys(told, INK), crossbar_props={"color": INK, "linewidth": 2.5},
            elbow_props={"linewidth": 0.8}, marker_props={"color": INK, "s": 12},
            label_fmt_left="{label} ({rank:.1f})", label_fmt_right="({rank:.1f}) {label}",
        )  # fmt: skip
        start, width = float(ranks.min()), critical_difference(len(told), len(blocks))
        above = axis.get_xaxis_transform()  # the library draws its own bar over the numbers of the axis
        axis.plot([start, start + width], [1.55, 1.55], "|-", color=INK, transform=above, clip_on=False, linewidth=1)
        axis.text(start, 1.62, f"critical difference {width:.2f}", transform=above, va="bottom")
        axis.set_xlim(min(axis.get_xlim()), max(*axis.get_xlim(), start + width))
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None}, transparent=True, bbox_inches="tight")
        plt.close(figure)
    svg = written.getvalue()
    svg = re.sub(r"font-family: [^;\"]*;|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)  # the page's font
    return svg[svg.index("<svg") :].replace(INK, "currentColor").replace("<svg ", '<svg role="img" ', 1)
