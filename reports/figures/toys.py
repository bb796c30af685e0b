"""Figures of the small sets: predictive bands over one input, and maps over the plane of the two moons."""

from __future__ import annotations

import math
import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from reports.figures import Runs
from reports.figures.looks import GREEN, GREY, RED
from reports.figures.parts import label_edges
from reports.figures.style import COLUMN, head, page, panels, panels_of, plt

QUANTITIES = {
    "probability": ("mean of p(1)", "cividis_r", (0.0, 1.0)),
    "std": ("sd of p(1)", "viridis", (0.0, 0.5)),
    "predictive_entropy": ("entropy (nats)", "viridis", (0.0, float(np.log(2)))),
}
NARROWEST_MAP = 1.1  # inches


def shades(runs: Runs) -> Canvas:
    """Mean, and one shade of green for each of three standard deviations of the function (pequignot2020 fig. 1)."""
    return _bands(runs, deviations=(3, 2, 1), paths=False)


def samples(runs: Runs) -> Canvas:
    """Mean in red, sampled functions in green over two standard deviations (cinquin2024 fig. 1)."""
    return _bands(runs, deviations=(2,), paths=True)


def moons(runs: Runs) -> Canvas:
    """Maps over the plane, a column per method: mean and deviation of the probability, predictive entropy."""
    curves = {label: found[0] for label, found in runs.curves("grid/grid").items()}
    labels, points = list(curves), _training_points(runs)
    shown = {QUANTITIES[each][0]: each for each in QUANTITIES}
    quantities = {each: QUANTITIES[each] for each in panels_of(shown).values()}
    count = math.ceil(len(labels) / max(1, int(page() / NARROWEST_MAP)))
    across = math.ceil(len(labels) / count)
    side = min((page() - 0.6) / across, 1.5)
    height = count * (0.8 * len(quantities) * side + 0.5) + 0.5
    figure = plt.figure(figsize=(max(side * across + 0.6, COLUMN), height))
    for band, part in enumerate(figure.subfigures(count, 1, squeeze=False)[:, 0]):
        axes = part.subplots(len(quantities), across, squeeze=False)
        for row, (quantity, (name, colours, limits)) in zip(axes, quantities.items()):
            for axis in row:
                axis.set_axis_off()
            for axis, label in zip(row, labels[band * across :]):
                image = _map(axis, curves[label], quantity, colours, limits)
                _moon_points(axis, points)
            bar = part.colorbar(image, ax=list(row), label=name, aspect=12, pad=0.02, ticks=limits, format="%.2g")
            bar.outline.set_visible(False)
        axes[-1, 0].set_axis_on()  # one panel says what the axes of all are
        axes[-1, 0].set(xlabel="$x_1$", ylabel="$x_2$", xticks=[], yticks=[])
        for axis, label in zip(axes[0], labels[band * across :]):
            axis.set_title(textwrap.fill(label, max(int(15 * side), 10)))
    about = "protocol {}, n = 1 (first run); points: training data, black class 0, white class 1"
    head(figure, runs.figure.title, about.format(runs.protocol), runs.missing)
    return figure


def _bands(runs: Runs, deviations: tuple[int, ...], paths: bool) -> Canvas:
    curves = {label: found[0] for label, found in runs.curves("grid/grid").items()}
    points = _training_points(runs)
    figure, axes = panels(len(curves), 3, 1.6, sharex=True, sharey=True)
    low, high = _limits(list(curves.values()), points)
    for axis, (label, curve) in zip(axes, curves.items()):
        x = np.array(curve["x"]).reshape(len(curve["x"]), -1)[:, 0]
        mean, std = np.array(curve["mean"]), np.array(curve["std"])
        for count in deviations:
            axis.fill_between(x, mean - count * std, mean + count * std, color=GREEN, alpha=0.2, linewidth=0)
        for path in curve["samples"] if paths else ():
            axis.plot(x, path, color=GREEN, linewidth=0.6)
        if points:
            axis.scatter(points[0][:, 0], points[1], 5, color=GREY, linewidths=0, zorder=2.5)
        axis.plot(x, mean, color=RED, zorder=3)
        axis.set(title=label, xlim=(x[0], x[-1]), ylim=(low, high))
    label_edges(axes, "x", "f(x)")
    spread = ", ".join(map(str, sorted(deviations)))
    drawn = f"red: mean; green: {spread} sd of the function, without noise{', and functions drawn' * paths}"
    about = f"protocol {runs.protocol}, n = 1 (first run); {drawn}{'; grey: training data' * bool(points)}"
    head(figure, runs.figure.title, about, runs.missing)
    return figure


def _training_points(runs: Runs) -> tuple[np.ndarray, np.ndarray] | None:
    """Inputs [N, D] and targets [N] of the first run, as its record keeps them; None where it does not."""
    curve = runs.first().get("train/points")
    return (np.array(curve["x"]), np.array(curve["y"])) if curve else None


def _limits(curves: list[dict], points: tuple[np.ndarray, np.ndarray] | None) -> tuple[float, float]:
    """Common vertical range: the data and nine tenths of the bands of three standard deviations."""
    edges = [np.array(c["mean"]) + sign * 3 * np.array(c["std"]) for c in curves for sign in (-1, 1)]
    low, high = np.quantile(np.concatenate(edges), [0.05, 0.95])
    if points:
        span = np.ptp(points[1])
        low, high = min(low, points[1].min() - 0.2 * span), max(high, points[1].max() + 0.2 * span)
        low, high = max(low, points[1].min() - 3 * span), min(high, points[1].max() + 3 * span)
    return float(low), float(high)


def _map(axis: Axes, curve: dict, quantity: str, colours: str, limits: tuple[float, float]):
    x = np.array(curve["x"])
    first, second = np.unique(x[:, 0]), np.unique(x[:, 1])
    values = np.array(curve[quantity]).reshape(len(first), len(second)).T
    axis.set(xlim=(first[0], first[-1]), ylim=(second[0], second[-1]))
    return axis.pcolormesh(
        first, second, values, cmap=colours, vmin=limits[0], vmax=limits[1], shading="nearest", rasterized=True
    )


def _moon_points(axis: Axes, points: tuple[np.ndarray, np.ndarray] | None) -> None:
    if points:
        for label, face in ((0, "black"), (1, "white")):
            x, y = points[0][points[1] == label].T
            axis.scatter(x, y, 4, facecolor=face, edgecolor="black", linewidths=0.3)
