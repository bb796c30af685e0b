"""Figures of functional uncertainty: distributions over inputs, and eigenvalues of the covariance."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from reports.figures import NothingToShow, Runs
from reports.figures.looks import GREY
from reports.figures.parts import area, dot, stack, titled
from reports.figures.style import PAGE, labelled, legend, panels_of, plt

PARTS = {
    "train": ("training inputs", "#0072B2", "o"),
    "test": ("test inputs", "#E69F00", "s"),
    "ood-uniform": ("uniform inputs", "#D55E00", "^"),
}
SHADES = {"tanh": "#0072B2", "relu": "#D55E00", "softplus": "#009E73"}
SMALLEST = 1e-12  # relative to the largest eigenvalue; smaller ones are rounding


def distributions(runs: Runs) -> Canvas:
    """Draw epistemic uncertainty over inputs as boxes, three for every row (pequignot2020 fig. 2 to 5)."""
    parts = panels_of({name: part for part, (name, _, _) in PARTS.items()})
    found = {part: runs.curves(f"{part}/epistemic_entropy") for part in parts.values()}
    labels = [label for label in runs.records if any(label in curves for curves in found.values())]
    figure, axis = plt.subplots(figsize=(min(PAGE, 1.2 + 0.95 * len(labels)), 2.6))
    width = 0.8 / len(parts)
    for place, (part, curves) in enumerate(found.items()):
        name, shade, marker = PARTS[part]
        for at, label in enumerate(labels):
            if label not in curves:
                continue
            x = at + (place - (len(parts) - 1) / 2) * width
            low, first, middle, third, high = stack(curves[label], "value").mean(0)
            axis.plot([x, x], [low, high], color=shade, linewidth=0.8)
            axis.add_patch(
                Rectangle((x - width / 3, first), 2 * width / 3, third - first, color=shade, alpha=0.35, linewidth=0)
            )
            axis.plot(x, middle, marker, color=shade, markersize=3.5, label=name if at == 0 else None)
    axis.set(xticks=range(len(labels)), ylabel="epistemic uncertainty (nats)")
    axis.set_xticklabels(labels, rotation=20 if len(labels) > 4 else 0)
    handles: dict[str, Artist] = {PARTS[part][0]: dot(PARTS[part][1], PARTS[part][2]) for part in found}
    handles |= {"median": dot(GREY), "quartiles": area(GREY, 0.35)}
    handles["5 to 95 %"] = Line2D([], [], color=GREY, linewidth=0.8)
    legend(figure, handles)
    return titled(figure, runs, f"{runs.about()}; quantiles over inputs, means over runs")


def eigenvalues(runs: Runs) -> Canvas:
    """Draw eigenvalues of the functions' covariance by activation, RBF solid and Matern 1/2 dotted (cinquin2024 fig.
    19)."""
    curves = runs.curves("spectrum/eigenvalues")
    figure, axis = plt.subplots(figsize=(PAGE / 1.6, 3.0))
    marks = dict(zip(SHADES, "s^D"))
    for label, found in curves.items():
        activation = next((name for name in SHADES if name in label), None)
        if activation is None:
            raise NothingToShow(f"row {label} names none of the activations {', '.join(SHADES)}")
        values = stack(found, "value")
        mean = (values / values[:, :1]).mean(0)
        shown = mean > SMALLEST
        number = np.arange(1, len(mean) + 1)[shown]
        axis.plot(
            number, mean[shown], color=SHADES[activation], linestyle=":" if "Matern" in label else "-",
            marker=marks[activation], markersize=3, markevery=0.15, label=label.removeprefix("GFSVI, "),
        )  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel="number of the eigenvalue", ylabel="share of the largest")
    legend(figure, labelled(axis))
    return titled(figure, runs, f"{runs.about()}, means")
