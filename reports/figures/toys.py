"""Figures of the small sets: predictive bands over one input, maps over the plane of the two moons, vector fields."""

from __future__ import annotations

import math
import textwrap

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from benchmarks.metrics.distances import growth
from reports.figures import Runs
from reports.figures.looks import GREEN, GREY, RED
from reports.figures.parts import area, dot, label_edges, plane, titled
from reports.figures.style import COLUMN, PAGE, legend, page, panels, panels_of, plt

QUANTITIES = {
    "probability": ("mean of p(1)", "cividis_r", (0.0, 1.0)),
    "std": ("sd of p(1)", "viridis", (0.0, 0.5)),
    "predictive_entropy": ("entropy (nats)", "viridis", (0.0, float(np.log(2)))),
}
FIELDS = {"speed": ("speed (m/s)", "viridis"), "error": ("error² (m²/s²)", "magma")}
ARROWS = 3  # an arrow for every so many points of the grid
CUT = 2.0  # end of the colour scale, in medians over methods of their largest value
NARROWEST_MAP = 1.1  # narrowest map in inches
CLASSES = ("black", "white")
ALPHA = 0.2
FIRST = "protocol {}, n = 1 (first run)"
PRIOR = {"pequignot_1d": 2.5, "snelson": 10**0.5, "cinquin_1d": 1.0, "cinquin_1d_noisy": 1.0}
"""Standard deviation of the prior on functions, which axes show beyond the data: N(0, 10) in the command of rudner2022;
50 tanh units with weights of variance 0.25 at the plot's edge (2.4 to 2.9); about what GPs learn on the sine."""


def shades(runs: Runs) -> Canvas:
    """Draw the mean, and one shade of green for each of three standard deviations of the function (pequignot2020 fig.
    1)."""
    return _bands(runs, deviations=(3, 2, 1), paths=False)


def samples(runs: Runs) -> Canvas:
    """Draw the mean in red, sampled functions in green over two standard deviations (cinquin2024 fig. 1)."""
    return _bands(runs, deviations=(2,), paths=True)


def moons(runs: Runs) -> Canvas:
    """Draw maps over the plane, a column per method: mean and deviation of the probability, predictive entropy."""
    curves = {label: found[0] for label, found in runs.curves("grid/grid", most=1).items()}
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
        axes[-1, 0].set_axis_on()  # one panel labels the axes of all
        axes[-1, 0].set(xlabel="x₁", ylabel="x₂", xticks=[], yticks=[])
        for axis, label in zip(axes[0], labels[band * across :]):
            axis.set_title(textwrap.fill(label, max(int(15 * side), 10)))
    if points:
        faces = enumerate(CLASSES)
        legend(figure, {f"training data, class {k}": dot("black", markerfacecolor=face) for k, face in faces})
    return titled(figure, runs, FIRST.format(runs.protocol))


def _bands(runs: Runs, deviations: tuple[int, ...], paths: bool) -> Canvas:
    curves = {label: found[0] for label, found in runs.curves("grid/grid", most=1).items()}
    points = _training_points(runs)
    figure, axes = panels(len(curves), 3, 1.9, sharex=True, sharey=True)
    limits = _limits(runs.figure.dataset, list(curves.values()), points)
    for axis, (label, curve) in zip(axes, curves.items()):
        x = np.array(curve["x"]).reshape(len(curve["x"]), -1)[:, 0]
        mean, std = np.array(curve["mean"]), np.array(curve["std"])
        for count in deviations:
            axis.fill_between(x, mean - count * std, mean + count * std, color=GREEN, alpha=ALPHA, linewidth=0)
        for path in curve["samples"] if paths else ():
            axis.plot(x, path, color=GREEN, linewidth=0.6)
        axis.plot(x, mean, color=RED, zorder=3)
        axis.set(xlim=(x[0], x[-1]), ylim=limits)
        axis.set_title(label, pad=12 if points else None)
        if points:
            axis.scatter(points[0][:, 0], points[1], 5, color=GREY, linewidths=0, zorder=2.5)
            found = growth(x, std, points[0])
            grown = f"sd {found['std_at_data']:.2g} at the data, {found['std_far']:.2g} far away"
            axis.text(0.5, 1.02, grown, fontsize="x-small", ha="center", transform=axis.transAxes)
    label_edges(axes, "x", "f(x)")
    handles: dict[str, Artist] = {"mean": Line2D([], [], color=RED)}
    handles |= {"functions drawn": Line2D([], [], color=GREEN, linewidth=0.6)} if paths else {}
    for place, count in enumerate(deviations):  # bands overlap
        handles[f"{count} sd of the function"] = area(GREEN, 1 - (1 - ALPHA) ** (place + 1))
    handles |= {"training data": dot(GREY)} if points else {}
    legend(figure, handles)
    return titled(figure, runs, FIRST.format(runs.protocol))


def _training_points(runs: Runs) -> tuple[np.ndarray, np.ndarray] | None:
    """Return inputs [N, D] and targets [N] of the first run from its record; None where they are not stored."""
    curve = runs.first().get("train/points")
    return (np.array(curve["x"]), np.array(curve["y"])) if curve else None


def _limits(dataset: str, curves: list[dict], points: tuple[np.ndarray, np.ndarray] | None) -> tuple[float, float]:
    """Return the common vertical range: data, or means without data, extended by a prior standard deviation.

    For other data sets the median over rows of the largest standard deviation replaces the prior's.
    """
    shown = points[1] if points else np.concatenate([curve["mean"] for curve in curves])
    prior = PRIOR.get(dataset) or float(np.median([np.max(curve["std"]) for curve in curves]))
    return float(shown.min() - prior), float(shown.max() + prior)


def _map(axis: Axes, curve: dict, quantity: str, colours: str, limits: tuple[float, float]):
    x = np.array(curve["x"])
    first, second = np.unique(x[:, 0]), np.unique(x[:, 1])
    values = np.array(curve[quantity]).reshape(len(first), len(second)).T
    axis.set(xlim=(first[0], first[-1]), ylim=(second[0], second[-1]))
    return plane(axis, first, second, values, colours, limits)


def _moon_points(axis: Axes, points: tuple[np.ndarray, np.ndarray] | None) -> None:
    if points:
        for label, face in enumerate(CLASSES):
            x, y = points[0][points[1] == label].T
            edge = CLASSES[1 - label]  # seen on dark and light
            axis.scatter(x, y, 6, facecolor=face, edgecolor=edge, linewidths=0.3)


def currents(runs: Runs) -> Canvas:
    """Draw norm and direction of the mean velocity, and squared errors, a column per method (cinquin2024 fig. 3)."""
    fields = {label: found[0] for label, found in runs.curves("grid/grid", most=1).items()}
    errors = {label: found[0] for label, found in runs.curves("test/squared_errors", most=1).items()}
    measured = next(iter(fields))
    points = runs.first(measured).get("train/points")
    count = len(fields)
    figure, axes = plt.subplots(
        len(FIELDS), count, figsize=(PAGE * max(count, 2) / 3, 3.2), squeeze=False, sharex=True, sharey=True
    )
    maps = {label: _field(fields[label], errors[label]) for label in fields}
    for row, (quantity, (name, colours)) in zip(axes, FIELDS.items()):
        largest = [found[quantity].max() for _, found in maps.values()]
        top = min(max(largest), CUT * float(np.median(largest)))  # one failed method does not darken the others
        for axis, (label, (place, found)) in zip(row, maps.items()):
            shown = plane(axis, *place, found[quantity], colours, (0, top))
            if quantity == "speed":
                some = slice(None, None, ARROWS)
                axis.quiver(place[0][some], place[1][some], *found["field"][:, some, some], color="white", width=0.004)
                axis.set_title(label)
            if points:
                axis.scatter(*_shares(points["x"], fields[measured]).T, 4, color=RED, linewidths=0)
        beyond = "max" if max(largest) > top else "neither"
        figure.colorbar(shown, ax=list(row), label=name, pad=0.01, extend=beyond).outline.set_visible(False)
    label_edges(list(axes.flat), "west to east", "south to north")
    handles = {"direction of the mean": dot(GREY, r"$\rightarrow$", markersize=9)}
    handles |= {"where it was measured": dot(RED)} if points else {}
    legend(figure, handles)
    return titled(figure, runs, FIRST.format(runs.protocol))


def _field(field: dict, errors: dict) -> tuple[tuple[np.ndarray, np.ndarray], dict[str, np.ndarray]]:
    """Return relative coordinates of the grid, since methods have inputs in different units, and on it [rows, columns]
    the speed and the squared error, and the field [2, rows, columns]."""
    x, mean = _shares(field["x"], field), np.array(field["mean"])
    place = np.unique(x[:, 0]), np.unique(x[:, 1])
    order = np.lexsort((x[:, 0], x[:, 1]))  # the first coordinate changes fastest
    shape = len(place[1]), len(place[0])
    quantities = {"speed": np.linalg.norm(mean, axis=1), "error": np.array(errors["value"])}
    maps = {name: values[order].reshape(shape) for name, values in quantities.items()}
    return place, maps | {"field": mean[order].T.reshape(2, *shape)}


def _shares(x: list, field: dict) -> np.ndarray:
    """Return points [N, 2] scaled to 0 to 1 over a field's grid."""
    grid = np.array(field["x"])
    low, high = grid.min(0), grid.max(0)
    return (np.array(x) - low) / (high - low)
