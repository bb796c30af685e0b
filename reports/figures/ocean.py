"""Figures of vector fields: speed of the mean field on a grid, and its squared errors."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure as Canvas

from reports.figures import Runs
from reports.figures.looks import GREY, RED
from reports.figures.parts import dot, label_edges, plane, titled
from reports.figures.style import PAGE, legend, plt

QUANTITIES = {"speed": ("speed (m/s)", "viridis"), "error": ("error² (m²/s²)", "magma")}
ARROWS = 3  # an arrow for every so many points of the grid
CUT = 2.0  # end of the colour scale, in medians over methods of their largest value


def currents(runs: Runs) -> Canvas:
    """Draw norm and direction of the mean velocity, and squared errors, a column per method (cinquin2024 fig. 3)."""
    fields = {label: found[0] for label, found in runs.curves("grid/grid", most=1).items()}
    errors = {label: found[0] for label, found in runs.curves("test/squared_errors", most=1).items()}
    measured = next(iter(fields))
    points = runs.first(measured).get("train/points")
    count = len(fields)
    figure, axes = plt.subplots(
        len(QUANTITIES), count, figsize=(PAGE * max(count, 2) / 3, 3.2), squeeze=False, sharex=True, sharey=True
    )
    maps = {label: _maps(fields[label], errors[label]) for label in fields}
    for row, (quantity, (name, colours)) in zip(axes, QUANTITIES.items()):
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
    return titled(figure, runs, f"protocol {runs.protocol}, n = 1 (first run)")


def _maps(field: dict, errors: dict) -> tuple[tuple[np.ndarray, np.ndarray], dict[str, np.ndarray]]:
    """Return relative coordinates of the grid, since methods have inputs in different units, and on it [rows, columns]
    the speed and the squared error, and the field [2, rows, columns]."""
    x, mean = _shares(field["x"], field), np.array(field["mean"])
    place = np.unique(x[:, 0]), np.unique(x[:, 1])
    order = np.lexsort((x[:, 0], x[:, 1]))  # the first coordinate changes fastest
    shape = len(place[1]), len(place[0])
    found = {"speed": np.linalg.norm(mean, axis=1), "error": np.array(errors["value"])}
    made = {name: values[order].reshape(shape) for name, values in found.items()}
    return place, made | {"field": mean[order].T.reshape(2, *shape)}


def _shares(x: list, field: dict) -> np.ndarray:
    """Return points [N, 2] scaled to 0 to 1 over a field's grid."""
    grid = np.array(field["x"])
    low, high = grid.min(0), grid.max(0)
    return (np.array(x) - low) / (high - low)
