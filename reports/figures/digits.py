"""Figures of a classification table: reliability, ROC, entropies, retention, accuracy and NLL against the angle."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.legend import Legend

from reports.figures import NothingToShow, Runs
from reports.figures.looks import GREY, colour, in_function_space
from reports.figures.ood import entropies
from reports.figures.parts import (
    FEW,
    ROTATION,
    band,
    by_level,
    dot,
    few,
    in_view,
    label_edges,
    mean_and_error,
    metric_mean,
    roc_in_logarithms,
    stack,
    titled,
    zoom_reliability,
)
from reports.figures.style import PAGE, fitted, labelled, legend, panels, plt, width_of

OOD = "ood-photos"


def reliability(runs: Runs) -> Canvas:
    """Draw accuracy against confidence in 15 bins, a panel per method: mean over runs, areas by the share of points."""
    curves = runs.curves("test/reliability")
    figure, axes = panels(len(curves), 4, 1.75, sharex=True, sharey=True)
    thin_bins, every = [], []
    for axis, (label, found) in zip(axes, curves.items()):
        confidence, accuracy, count = (stack(found, name) for name in ("confidence", "accuracy", "count"))
        x, _ = mean_and_error(confidence)
        y, error = mean_and_error(accuracy)
        share = count.sum(0) / count.sum()
        axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=":")
        axis.errorbar(x, y, error, color=colour(label), linewidth=0.7, elinewidth=0.7)
        thin = few(count) & np.isfinite(x)
        thin_bins.append((x[thin], y[thin]))
        axis.scatter(x[~thin], y[~thin], 4 + 100 * share[~thin], color=colour(label), alpha=0.75, linewidths=0)
        axis.scatter(x[thin], y[thin], 12, facecolor="white", edgecolor=colour(label), linewidths=0.8, zorder=3)
        axis.set(title=label, aspect="equal")
        text = f"ECE {metric_mean(runs, label, 'ece'):.3f}"
        axis.text(0.97, 0.05, text, ha="right", fontsize="small", transform=axis.transAxes)
        every.append((x, count.sum(0)))
    zoom_reliability(axes, np.array([x for x, _ in every]), np.array([count for _, count in every]))
    label_edges(axes, "confidence", "accuracy")
    sparse = any(in_view(axis, x, y) for axis, (x, y) in zip(axes, thin_bins))
    handles = {"area: share of the points": dot(GREY, markersize=7)}
    handles |= {f"fewer than {FEW} points": dot(GREY, markerfacecolor="white")} if sparse else {}
    legend(figure, handles)
    return titled(figure, runs, runs.about("error bars: SE") + "; ECE of 15 bins")


def roc(runs: Runs) -> Canvas:
    """Draw true against false positive rate of the predictive entropy, OOD positive."""
    curves = runs.curves(f"{OOD}/roc")
    lines = {label: (stack(f, "fpr")[0], stack(f, "predictive_entropy")) for label, f in curves.items()}
    score = f"ood={OOD.removeprefix('ood-')};score=predictive_entropy"
    names = {label: f"{label}  {metric_mean(runs, label, 'ood_auroc', score):.3f}" for label in lines}
    figure, axes = plt.subplots(1, 2, figsize=(PAGE, 3.9), sharex=True, sharey=True)
    _two_sides(axes, lines, names, "false positive rate", "true positive rate", "AUROC")
    fpr = next(iter(lines.values()))[0]
    for axis in axes:
        axis.plot(fpr, fpr, color=GREY, linewidth=0.7, linestyle=":")
        axis.set(xlim=(0, 1), ylim=(0, 1.01), aspect="equal")
    roc_in_logarithms(axes, fpr, [values for _, values in lines.values()])
    return titled(figure, runs, runs.about("bands: SE"))


def retention(runs: Runs) -> Canvas:
    """Draw accuracy on the retained points, most certain first by predictive entropy."""
    curves = runs.curves("test/retention")
    lines = {label: (100 * stack(f, "fraction")[0], 100 * stack(f, "accuracy")) for label, f in curves.items()}
    names = {label: f"{label}  {100 * metric_mean(runs, label, 'selective_accuracy_area'):.2f}" for label in lines}
    figure, axes = plt.subplots(1, 2, figsize=(PAGE, 3.6), sharex=True, sharey=True)
    _two_sides(axes, lines, names, "retained points (%)", "accuracy (%)", "area under the curve (%)")
    axes[0].set_xlim(0, 100)
    return titled(figure, runs, runs.about("bands: SE"))


def entropy(runs: Runs) -> Canvas:
    """Draw histograms of the predictive entropy of test points and OOD points, a panel per method."""
    return entropies(runs, OOD, ("digits", "photographs"))


def rotation(runs: Runs) -> Canvas:
    """Draw accuracy and NLL of the predictive against the angle."""
    if not any(len(by_level(records, "nll", ROTATION)[0]) for records in runs.records.values()):
        raise NothingToShow("the records hold nothing by rotation")
    figure, axes = plt.subplots(2, 2, figsize=(PAGE, 5.4), sharex=True, sharey="row")
    for row, (metric, scale, name) in zip(axes, (("accuracy", 100, "accuracy (%)"), ("nll", 1, "NLL (nats)"))):
        lines = {label: by_level(records, metric, ROTATION, scale) for label, records in runs.records.items()}
        _two_sides(row, lines, None, "" if metric == "accuracy" else "rotation (degrees)", name)
    every = [value for _, values in lines.values() for value in values.mean(0)]
    if max(every) > 8 * np.median(every):
        axes[1, 0].set_yscale("log")
    axes[0, 0].set_xticks(range(0, 181, 45))
    for axis in axes[1]:
        axis.set_title("")
        _legend_under(axis, 0.22, "")
    return titled(figure, runs, runs.about("bands: SE"))


def _legend_under(axis: Axes, drop: float, title: str) -> None:
    """Draw a legend under one of two panels, at so many of its heights below; the title explains its numbers."""
    handles, place = labelled(axis), (0.5, -drop)

    def make(columns: int, names: Sequence[str]) -> Legend:
        every = list(handles.values())
        return axis.legend(every, names, loc="upper center", bbox_to_anchor=place, ncols=columns, title=title)

    fitted(make, list(handles), width_of(axis.figure) / 2 - 0.2)


def _two_sides(
    axes: Sequence[Axes],
    lines: dict[str, tuple[np.ndarray, np.ndarray]],
    names: dict[str, str] | None,
    x: str,
    y: str,
    numbers: str = "",
) -> None:
    """Draw means with bands of one SE: weight-space methods left, function-space methods right, MAP in both.

    numbers: meaning of the numbers in the names.
    """
    sides: list[Callable[[str], bool]] = [lambda label: not in_function_space(label), in_function_space]
    for axis, side, title in zip(axes, sides, ("weight space", "function space")):
        for label, (places, values) in lines.items():
            if not side(label) and label != "MAP":
                continue
            band(axis, label, places, values, (names or {}).get(label, label))
        axis.set(title=title, xlabel=x)
        if names and labelled(axis):
            _legend_under(axis, 0.16, numbers)
    axes[0].set_ylabel(y)
