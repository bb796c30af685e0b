"""Figures on settings that a paper leaves open."""

from __future__ import annotations

import re
from itertools import cycle

import numpy as np
from matplotlib.figure import Figure as Canvas

from benchmarks.records.published import table
from reports.figures import NothingToShow, Runs
from reports.figures.looks import GREY
from reports.figures.parts import legend_below, titled
from reports.figures.style import COLUMN, plt

METRICS = {"expected_log_likelihood": ("1", "expected log-likelihood"), "mse": ("6", "mean square error")}


def points_and_jitter(runs: Runs) -> Canvas:
    """Draw two metrics by the number of points of the divergence, a line for each jitter, with the published number."""
    found: dict[str, dict[int, dict[str, np.ndarray]]] = {}
    dataset = runs.figure.dataset
    for label, records in runs.records.items():
        named = re.search(r"(\d+) points, (\S+)$", label)
        if named is None:
            continue
        values = {
            metric: np.array([run.value(dataset, "", f"{metric}_standardised") for run in records], dtype=float)
            for metric in METRICS
        }
        found.setdefault(named[2], {})[int(named[1])] = values
    if not found:
        raise NothingToShow("no row says points and jitter")
    ticks = sorted({n for by_points in found.values() for n in by_points})
    figure, axes = plt.subplots(1, len(METRICS), figsize=(2 * COLUMN, 2.3), sharex=True)
    for axis, (metric, (number, name)) in zip(axes, METRICS.items()):
        for marker, (jitter, by_points) in zip(cycle("os^Dv"), found.items()):
            points = sorted(by_points)
            mean = [by_points[n][metric].mean() for n in points]
            error = [np.std(v, ddof=1) / len(v) ** 0.5 if len(v := by_points[n][metric]) > 1 else 0 for n in points]
            axis.errorbar(points, mean, error, marker=marker, markersize=3, capsize=2, label=f"jitter {jitter}")
        printed = table("cinquin2024", number).get((dataset, "", "TFSVI", metric))
        if printed is not None:
            axis.axhline(printed.mean, color=GREY, linestyle="--", label="published, 500 points")
            if printed.stderr:
                axis.axhspan(
                    printed.mean - printed.stderr, printed.mean + printed.stderr, color=GREY, alpha=0.2, linewidth=0
                )
        axis.set(xlabel="points of the divergence", ylabel=name, xscale="log", xticks=ticks)
        axis.set_xticklabels([str(n) for n in ticks])
        axis.minorticks_off()
    legend_below(figure, axes[0])
    return titled(figure, runs, runs.about("error bars: SE"))
