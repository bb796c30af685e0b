"""Figures of any table, also a user's: its numbers as points with errors, and the curves of its records."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas

from benchmarks.errors import unknown
from benchmarks.suite import Suite
from reports import labels
from reports.captions import column_names
from reports.figures import FIGURES, Figure, NothingToShow, Runs, counted, recorded_runs
from reports.figures.catalogue import NAMES
from reports.figures.looks import line
from reports.figures.parts import PUBLISHED, dot, titled
from reports.figures.points import named
from reports.figures.style import legend, panels, panels_of
from reports.records import Records

POINTS = "points"
BELOW = 0.25  # how far under a row's number the published one stands, in rows
# Curve of a record -> figure: end of the curve's name, figure's name, title, function that draws it.
CURVES = (
    ("test/reliability", "reliability", "Reliability", "ood:side_by_side reliability"),
    ("/confidence", "roc", "ROC by predictive entropy", "ood:side_by_side ROC"),
    ("/confidence", "confidence", "Confidence out of distribution", "ood:side_by_side confidence"),
    ("/entropy_histogram", "entropy", "Predictive entropy", "ood:histograms"),
    ("grid/grid", "curves", "Functions", "toys:samples"),
    ("grid/grid", "maps", "Maps", "toys:moons"),
)


def select(names: Sequence[str], suite: Suite, records: Records, protocol: str | None = None) -> list[Figure]:
    """Return the figures of these names (default: the whole catalogue), each once. A table's name selects all its
    figures, and ``<table>-<what>`` one that can be drawn of any table. A figure of the catalogue goes before one of any
    table with the same name, whose files would replace its own.

    Raises UnknownName with the nearest names.
    """
    known = suite.table_names()
    found = [] if names else list(FIGURES.values())
    for name in names:
        tables = [table for table in known if name == table or name.startswith(f"{table}-")]
        if name in FIGURES:
            found.append(FIGURES[name])
            continue
        if not tables:
            own_ones = "those of your own tables come from the files in FVI_PLUGINS"
            raise unknown("figure", name, (*FIGURES, *known), own_ones)
        table = max(tables, key=len)
        own = {figure.name: figure for figure in of_table(suite.extended(table), records, protocol)}
        if name == table:
            found += [*(figure for figure in FIGURES.values() if figure.table == table), *own.values()]
        elif name in own:
            found.append(own[name])
        else:
            raise unknown("figure", name, (*FIGURES, *own))
    return list({figure.name: FIGURES.get(figure.name, figure) for figure in found}.values())


def of_table(table: Any, records: Records, protocol: str | None) -> list[Figure]:
    """Return the figures that can be drawn of any table: ``<table>-points``, and for each data set those of the curves
    in its first record, such as ``<table>-reliability``; with several data sets their names are suffixes."""
    found = [Figure(f"{table.name}-{POINTS}", table.title, table.name, "", "own:points", table.paper or "")]
    for dataset in table.datasets:
        probe = Figure("", "", table.name, dataset, "")
        runs = recorded_runs(probe, table, protocol, records)
        curves = runs.first() if runs.records else {}
        suffix = f"-{dataset}" if len(table.datasets) > 1 else ""
        for end, name, title, draw in CURVES:
            grid = curves.get("grid/grid", {})
            if name in ("curves", "maps") and ("probability" in grid) != (name == "maps"):
                continue
            if name == "curves" and np.ndim(grid.get("mean", [])) != 1:
                continue
            if any(each.endswith(end) for each in curves):
                title = f"{title}, {NAMES.get(dataset, dataset)}"
                found.append(Figure(f"{table.name}-{name}{suffix}", title, table.name, dataset, draw))
    return found


def points(runs: Runs) -> Canvas:
    """Draw every column of a table as a panel: the mean of each row with one standard error, and below it the published
    number with its own, hollow."""
    assert runs.cells is not None
    result = runs.cells()
    columns = result.table.columns
    shown = panels_of({column.label: None for column in columns})  # of several metrics under one label all
    chosen = [j for j, column in enumerate(columns) if column.label in shown]
    there = [row for row in result.cells if any(row[j].n for j in chosen)]
    places = [j for j in chosen if any(row[j].n for row in there)]
    if not places:
        raise NothingToShow("no cell of the columns has a value")
    figure, axes = panels(len(places), 3, max(1.2, 0.55 + 0.2 * len(there)), sharey=True)
    published = False
    for axis, place, title in zip(axes, places, column_names(result, places)):
        for at, row in enumerate(there):
            cell, look = row[place], line(row[place].row.label)
            if np.isfinite(cell.mean):
                error = None if np.isnan(cell.stderr) else cell.stderr
                drawn = axis.errorbar(
                    cell.mean, at, xerr=error, marker=look["marker"], color=look["color"], markersize=4, capsize=2
                )
                named(cell.row.label, *drawn.get_children())
            if cell.published is not None:
                published = True
                printed = cell.published
                ring = axis.errorbar(
                    printed.mean, at + BELOW, xerr=printed.stderr, fmt="o", color="black", markersize=4, elinewidth=0.7,
                    markerfacecolor="none",
                )  # fmt: skip
                named(f"{cell.row.label}, {PUBLISHED}", *ring.get_children())
        column = columns[place]
        metric = column.cell.metric
        side = {1: "\n(higher is better)", -1: "\n(lower is better)"}.get(labels.side(column), "")
        unit = " (%)" if column.scale == 100 else ""
        axis.set(title=title, xlabel=f"{fill(labels.name(metric) + unit, 30)}{side}", yticks=range(len(there)))
        axis.set_yticklabels([row[place].row.label for row in there])
        axis.set_ylim(len(there) - 0.5, -0.5)
        axis.grid(axis="y", linewidth=0.3, color="0.85")
        axis.locator_params(axis="x", nbins=4)  # more labels of six characters would run together
    counts = {row[place].n for row in there for place in places if row[place].n}
    bars = "bars: SE" + ", of one run none" * (1 in counts)
    if empty := [title for j, title in zip(chosen, column_names(result, chosen)) if j not in places]:
        bars += f"; no values: {', '.join(empty)}"
    if published:
        legend(figure, {"published": dot("black", markerfacecolor="none", markersize=4)})
    return titled(figure, runs, counted(runs.protocol, counts, bars))
