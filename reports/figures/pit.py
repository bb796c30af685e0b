"""Figure of a regression table: probability integral transforms of the targets (Dawid 1984)."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from reports.figures import Runs
from reports.figures.looks import GREY, colour
from reports.figures.parts import label_edges, mean_and_error, metric_mean, stack, titled
from reports.figures.style import legend, panels

CURVE = "test/pit"


def histograms(runs: Runs) -> Canvas:
    """Draw the density of the PIT values, a panel per method. It is 1 everywhere for calibrated predictions; a hump in
    the middle shows too wide predictions, humps at both ends too narrow ones."""
    curves = runs.curves(CURVE)
    figure, axes = panels(len(curves), 4, 1.6, sharex=True, sharey=True)
    for axis, (label, found) in zip(axes, curves.items()):
        edges, count = stack(found, "edges")[0], stack(found, "count")
        density, error = mean_and_error(count / count.sum(1, keepdims=True) / np.diff(edges))
        axis.bar(edges[:-1], density, np.diff(edges), align="edge", color=colour(label), alpha=0.75, linewidth=0)
        axis.errorbar((edges[:-1] + edges[1:]) / 2, density, error, fmt="none", ecolor=GREY, elinewidth=0.6)
        axis.axhline(1, color=GREY, linewidth=0.7, linestyle=":")
        axis.set(title=label, xlim=(0, 1), xticks=[0, 0.5, 1])
        told = f"KS {metric_mean(runs, label, 'pit_ks'):.3f}"
        axis.text(0.97, 0.95, told, ha="right", va="top", fontsize="small", transform=axis.transAxes)
    axes[0].set_ylim(bottom=0)
    label_edges(axes, "F(y)", "density")
    legend(figure, {"calibrated": Line2D([], [], color=GREY, linewidth=0.7, linestyle=":")})
    return titled(figure, runs, runs.about("error bars: SE") + "; KS: distance, mean over runs")
