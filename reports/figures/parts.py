"""Components of figures: values by level of a shift, means over runs, lines, published marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from reports.figures import Runs
from reports.figures.looks import colour, line, tint
from reports.figures.points import named
from reports.figures.style import head, labelled, legend
from reports.records import Recorded


@dataclass(frozen=True)
class Shift:
    """Shift of inputs by level: the prefix of its conditions, and the names of its levels on an axis."""

    words: str
    axis: str

    def level(self, condition: str) -> float | None:
        """Return the level in a condition, 0 for the unchanged test set, None for another condition."""
        found = re.fullmatch(rf"{re.escape(self.words)}=([\d.]+)", condition)
        return float(found[1]) if found else (None if condition else 0.0)


HOLLOW = "white"
EDGED: dict[str, Any] = {"markersize": 4.4, "markeredgewidth": 0.7, "markeredgecolor": "black"}
PUBLISHED = "published"  # label of published marks
ROTATION = Shift("shift=rotation;angle", "rotation (degrees)")
Line = tuple[np.ndarray, np.ndarray]  # levels [L], values [runs, L]


def by_level(records: Sequence[Recorded], metric: str, shift: Shift, scale: float = 1.0) -> Line:
    """Return a metric at the levels of a shift that every run has, in order; a named level goes first."""
    runs = []
    for record in records:
        values = sorted(record.conditions(metric), key=lambda each: bool(each[0]))
        runs.append({shift.level(condition): scale * value for condition, value in values})
    levels = sorted(level for level in set.intersection(*map(set, runs)) if level is not None)
    return np.array(levels), np.array([[run[level] for level in levels] for run in runs])


def published_by_level(runs: Runs, label: str, metric: str, shift: Shift) -> tuple[list[float], list[float]]:
    """Return levels and published values of a row, as printed; empty lists where the paper has none."""
    cells = {shift.level(c): cell.mean for (c, m), cell in runs.published.get(label, {}).items() if c and m == metric}
    found = sorted((level, mean) for level, mean in cells.items() if level is not None)
    return [level for level, _ in found], [mean for _, mean in found]


def stack(curves: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    """Stack a list of every run to [runs, points]; None becomes nan."""
    return np.array([curve[name] for curve in curves], dtype=float)


def mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard error over runs of [runs, points], without runs that are nan at a point; nan at infinite
    values."""
    values = np.where(np.isinf(values).any(0), np.nan, values)
    n = np.isfinite(values).sum(0)
    mean = np.divide(np.nansum(values, 0), n, out=np.full(len(n), np.nan), where=n > 0)
    squares = np.nansum((values - mean) ** 2, 0)
    error = np.sqrt(np.divide(squares, n * (n - 1), out=np.zeros(len(n)), where=n > 1))
    return mean, error


def metric_mean(runs: Runs, label: str, metric: str, condition: str = "") -> float:
    """Return a metric's mean over the runs of a row; nan without any."""
    values = [value for run in runs.records[label] for where, value in run.conditions(metric) if where == condition]
    return float(np.mean(values)) if values else float("nan")


def band(axis: Axes, label: str, places: np.ndarray, values: np.ndarray, name: str = "", deviations: int = 0) -> None:
    """Draw a row's mean over runs with a band of one standard error, or of some standard deviations over runs."""
    mean, error = mean_and_error(values)
    axis.plot(places, mean, label=name or label, **line(label))
    if deviations:
        error = deviations * error * np.isfinite(values).sum(0) ** 0.5
    low, high = mean - error, mean + error
    named(label, axis.fill_between(places, low, high, color=colour(label), alpha=0.18, linewidth=0))


def marks(axis: Axes, label: str, places: Sequence[float], values: Sequence[float]) -> None:
    """Draw published values of a row: its marker edged in black, on a tint of its colour, hollow where its line is
    broken; above all lines, so that the row's own markers do not cover them."""
    look = line(label)
    face = tint(label) if look["linestyle"] == "-" else HOLLOW
    drawn = axis.plot(
        places, values, marker=look["marker"], linestyle="None", color=look["color"], markerfacecolor=face,
        gid=PUBLISHED, zorder=4, **EDGED,
    )  # fmt: skip
    named(f"{label}, {PUBLISHED}", *drawn)


def _mark_entries(axes: Iterable[Axes]) -> dict[str, tuple[Line2D, ...]]:
    """Return legend entries of published values, of full and of broken lines; three shapes stand for all."""
    faces = [
        drawn.get_markerfacecolor()
        for axis in axes
        for drawn in axis.lines
        if drawn.get_gid() == PUBLISHED and len(np.atleast_1d(drawn.get_xdata()))
    ]
    hollow = {face == HOLLOW for face in faces}
    return {
        name: tuple(Line2D([], [], marker=shape, linestyle="", markerfacecolor=face, **EDGED) for shape in "os^")
        for name, face in (("published", "0.8"), ("published, broken line", HOLLOW))
        if (face == HOLLOW) in hollow
    }


def legend_below(figure: Canvas, axis: Axes) -> None:
    """Draw one legend for all panels, under them: the lines of a panel, then published marks."""
    legend(figure, labelled(axis) | _mark_entries(figure.axes))


def titled(figure: Canvas, runs: Runs, about: str) -> Canvas:
    """Return a figure with its title, a line about its runs, and the rows without records; the last step of drawing."""
    head(figure, runs.figure.title, about, runs.missing)
    return figure


def plane(
    axis: Axes, x: np.ndarray, y: np.ndarray, values: np.ndarray, colours: str, limits: tuple[float, float]
) -> AxesImage:
    """Draw values [len(y), len(x)] at the points of a regular grid as colours, a rectangle for each point."""
    (left, right), (low, high) = ((1.5 * each[0] - 0.5 * each[1], 1.5 * each[-1] - 0.5 * each[-2]) for each in (x, y))
    return axis.imshow(
        values[::-1], colours, vmin=limits[0], vmax=limits[1], extent=(left, right, low, high), aspect="auto",
        interpolation="none",
    )  # fmt: skip


def area(shade: str, alpha: float = 0.2) -> Patch:
    """Return the legend handle of a band."""
    return Patch(color=shade, alpha=alpha, linewidth=0)


def dot(shade: str, marker: str = "o", **look: Any) -> Line2D:
    """Return the legend handle of points."""
    return Line2D([], [], color=shade, marker=marker, linestyle="", **{"markersize": 3.4, **look})


def label_edges(axes: Sequence[Axes], x: str, y: str) -> None:
    """Label the axes at the left and lower edge of a grid of panels only."""
    for axis in axes:
        place = axis.get_subplotspec()
        if place is not None and place.is_first_col():
            axis.set_ylabel(y)
        if axis.xaxis.get_tick_params()["labelbottom"]:
            axis.set_xlabel(x)


def zoom_reliability(axes: Sequence[Axes], confidence: np.ndarray, count: np.ndarray) -> None:
    """Zoom a reliability diagram to the bins with points: all but those that hold the least hundredth.

    confidence, count: [rows, bins] of everything shown.
    """
    held = np.nansum(count, 0)
    there = np.isfinite(confidence)
    mean = np.where(there, confidence, 0.0).sum(0) / np.maximum(there.sum(0), 1)
    first = int(np.argmax(np.cumsum(held) > 0.01 * held.sum()))
    low = 0.0 if first == 0 else max(0.0, float(np.floor(10 * mean[first] - 1) / 10))
    for axis in axes:
        axis.set(xlim=(low, 1 + 0.02 * (1 - low)), ylim=(low, 1 + 0.02 * (1 - low)))


def in_view(axis: Axes, x: np.ndarray, y: np.ndarray) -> bool:
    """Whether any point is in the visible part of an axis."""
    left, right, low, high = axis.axis()
    return bool(np.any((left <= x) & (x <= right) & (low <= y) & (y <= high)))


def two_histograms(axis: Axes, edges: np.ndarray, counts: Mapping[str, np.ndarray]) -> None:
    """Draw shares of the points of two sets, counts [runs, bins] by name; the second one hatched, for readers without
    colours."""
    looks: list[tuple[str, str, dict[str, Any]]] = [
        ("#0072B2", "-", {"alpha": 0.35, "fill": True}),
        ("#D55E00", "--", {"hatch": "/////", "linewidth": 0}),
    ]
    for (shade, outline, inside), (name, count) in zip(looks, counts.items()):
        share = 100 * count.sum(0) / count.sum()
        axis.stairs(share, edges, color=shade, **inside)
        axis.stairs(share, edges, color=shade, linewidth=0.9, linestyle=outline, label=name)
    axis.set_xlim(edges[0], edges[-1])


def few(count: np.ndarray) -> np.ndarray:
    """Return which bins hold fewer than FEW points, of counts [runs, bins], on average over runs."""
    return count.mean(0) < FEW


def roc_in_logarithms(axes: Sequence[Axes], fpr: np.ndarray, curves: Sequence[np.ndarray]) -> None:
    """Scale false positive rates logarithmically, and true ones from below the lowest curve, where most curves are near
    the corner."""
    means = [mean_and_error(values)[0] for values in curves]
    area = np.median([np.sum((mean[1:] + mean[:-1]) / 2 * np.diff(fpr)) for mean in means])
    if area < CORNER:
        return
    floor = float(fpr[fpr > 0].min())
    low = min(float(mean[fpr >= floor].min()) for mean in means)
    for axis in axes:
        axis.set_aspect("auto")
        axis.set(
            xscale="log",
            xlabel="false positive rate (logarithmic)",
            xlim=(floor, 1),
            ylim=(max(0.0, np.floor(10 * low - 0.5) / 10), 1.01),
        )


FEW = 10
"""Mean points in a bin below which its accuracy says little."""
CORNER = 0.95
"""Median area under ROC curves above which they are drawn on a logarithmic scale."""
