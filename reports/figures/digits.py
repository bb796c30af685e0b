"""Figures of a classification table: reliability, ROC, entropies, retention, accuracy and NLL against the angle."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from reports.figures import Runs
from reports.figures.style import GREY, PAGE, colour, head, in_function_space, line, panels, plt

OOD = "ood-photos"
ANGLE = re.compile(r"shift=rotation;angle=(\d+)$")


def reliability(runs: Runs) -> Canvas:
    """Accuracy against confidence in 15 bins, a panel per method: mean over runs, area by the share of the points."""
    curves = runs.curves("test/reliability")
    figure, axes = panels(len(curves), 4, 1.75, sharex=True, sharey=True)
    for axis, (label, found) in zip(axes, curves.items()):
        confidence, accuracy, count = (_stack(found, name) for name in ("confidence", "accuracy", "count"))
        x, _ = _mean_and_error(confidence)
        y, error = _mean_and_error(accuracy)
        share = count.sum(0) / count.sum()
        axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=":")
        axis.errorbar(x, y, error, color=colour(label), linewidth=0.7, elinewidth=0.7)
        axis.scatter(x, y, 4 + 100 * share, color=colour(label), alpha=0.75, linewidths=0, clip_on=False)
        axis.set(title=label, xlim=(0, 1.03), ylim=(0, 1.03), aspect="equal", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        axis.text(0.97, 0.05, f"ECE {_metric(runs, label, 'ece'):.3f}", ha="right", fontsize=7)
    _label_edges(axes, "confidence", "accuracy")
    head(figure, runs.figure.title, runs.subtitle + "; error bars: SE; area: share of points", runs.missing)
    return figure


def roc(runs: Runs) -> Canvas:
    """True against false positive rate of the predictive entropy, OOD positive."""
    curves = runs.curves(f"{OOD}/roc")
    lines = {label: (_stack(f, "fpr")[0], _stack(f, "predictive_entropy")) for label, f in curves.items()}
    score = f"ood={OOD.removeprefix('ood-')};score=predictive_entropy"
    names = {label: f"{label}  {_metric(runs, label, 'ood_auroc', score):.3f}" for label in lines}
    figure, axes = plt.subplots(1, 2, figsize=(PAGE, 3.9), sharex=True, sharey=True)
    _two_sides(axes, lines, names, "false positive rate", "true positive rate")
    for axis in axes:
        axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=":")
        axis.set(xlim=(0, 1), ylim=(0, 1.01), aspect="equal")
    head(figure, runs.figure.title, runs.subtitle + "; bands: SE; numbers: AUROC", runs.missing)
    return figure


def retention(runs: Runs) -> Canvas:
    """Accuracy on the retained points, most certain first by predictive entropy."""
    curves = runs.curves("test/retention")
    lines = {label: (100 * _stack(f, "fraction")[0], 100 * _stack(f, "accuracy")) for label, f in curves.items()}
    names = {label: f"{label}  {100 * _metric(runs, label, 'selective_accuracy_area'):.2f}" for label in lines}
    figure, axes = plt.subplots(1, 2, figsize=(PAGE, 3.6), sharex=True, sharey=True)
    _two_sides(axes, lines, names, "retained points (%)", "accuracy (%)")
    axes[0].set_xlim(0, 100)
    head(figure, runs.figure.title, runs.subtitle + "; bands: SE; numbers: area under the curve (%)", runs.missing)
    return figure


def entropy(runs: Runs) -> Canvas:
    """Histograms of the predictive entropy of test points and OOD points, a panel per method."""
    curves = runs.curves(f"{OOD}/entropy_histogram")
    figure, axes = panels(len(curves), 4, 1.5, sharex=True, sharey=True)
    for axis, (label, found) in zip(axes, curves.items()):
        edges = _stack(found, "edges")[0]
        for part, shade, name in (("id", "#0072B2", "digits"), ("ood", "#D55E00", "photographs")):
            counts = _stack(found, part).sum(0)
            axis.stairs(100 * counts / counts.sum(), edges, color=shade, fill=True, alpha=0.35)
            axis.stairs(100 * counts / counts.sum(), edges, color=shade, linewidth=0.9, label=name)
        axis.set(title=label, xlim=(edges[0], edges[-1]))
    _label_edges(axes, "entropy (nats)", "points (%)")
    axes[0].legend(loc="upper right")
    head(figure, runs.figure.title, runs.subtitle + ", all runs together", runs.missing)
    return figure


def rotation(runs: Runs) -> Canvas:
    """Accuracy and NLL of the predictive against the angle."""
    figure, axes = plt.subplots(2, 2, figsize=(PAGE, 5.4), sharex=True, sharey="row")
    for row, (metric, scale, name) in zip(axes, (("accuracy", 100, "accuracy (%)"), ("nll", 1, "NLL (nats)"))):
        lines = {label: _by_angle(records, metric, scale) for label, records in runs.records.items()}
        _two_sides(row, lines, None, "" if metric == "accuracy" else "rotation (degrees)", name)
    every = [value for _, values in lines.values() for value in values.mean(0)]
    if max(every) > 8 * np.median(every):
        axes[1, 0].set_yscale("log")
    axes[0, 0].set_xticks(range(0, 181, 45))
    for axis in axes[1]:
        axis.set_title("")
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)
    head(figure, runs.figure.title, runs.subtitle + "; bands: SE", runs.missing)
    return figure


def _two_sides(
    axes: Iterable[Axes], lines: dict[str, tuple[np.ndarray, np.ndarray]], names: dict[str, str] | None, x: str, y: str
) -> None:
    """Means over runs with bands of one SE: weight-space methods left, function-space methods right, MAP in both."""
    sides: list[Callable[[str], bool]] = [lambda label: not in_function_space(label), in_function_space]
    for axis, side, title in zip(axes, sides, ("weight space", "function space")):
        for label, (places, values) in lines.items():
            if not side(label) and label != "MAP":
                continue
            mean, error = _mean_and_error(values)
            axis.plot(places, mean, label=(names or {}).get(label, label), **line(label))
            axis.fill_between(places, mean - error, mean + error, color=colour(label), alpha=0.18, linewidth=0)
        axis.set(title=title, xlabel=x)
        if names:
            axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    axes[0].set_ylabel(y)


def _by_angle(records: list[dict[str, Any]], metric: str, scale: float) -> tuple[np.ndarray, np.ndarray]:
    values: dict[int, list[float]] = {}
    for record in records:
        for row in record["metrics"]:
            match = ANGLE.match(row["condition"])
            if row["metric"] == metric and (match or row["condition"] == ""):
                values.setdefault(int(match[1]) if match else 0, []).append(scale * row["value"])
    angles = sorted(angle for angle, found in values.items() if len(found) == len(records))
    return np.array(angles), np.array([values[angle] for angle in angles]).T


def _stack(curves: list[dict[str, Any]], name: str) -> np.ndarray:
    """One list of every run as [runs, points]; None becomes nan."""
    return np.array([curve[name] for curve in curves], dtype=float)


def _mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over runs of [runs, points], without the runs that are nan at a point."""
    n = np.isfinite(values).sum(0)
    mean = np.divide(np.nansum(values, 0), n, out=np.full(len(n), np.nan), where=n > 0)
    squares = np.nansum((values - mean) ** 2, 0)
    error = np.sqrt(np.divide(squares, n * (n - 1), out=np.zeros(len(n)), where=n > 1))
    return mean, error


def _metric(runs: Runs, label: str, metric: str, condition: str = "") -> float:
    values = [
        row["value"]
        for record in runs.records[label]
        for row in record["metrics"]
        if (row["metric"], row["condition"]) == (metric, condition)
    ]
    return float(np.mean(values)) if values else float("nan")


def _label_edges(axes: list[Axes], x: str, y: str) -> None:
    for axis in axes:
        if axis.get_subplotspec().is_first_col():
            axis.set_ylabel(y)
        if axis.xaxis.get_tick_params()["labelbottom"]:
            axis.set_xlabel(x)
