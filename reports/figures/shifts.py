"""Figures of shifted images: metrics against the angle, the severity of corruptions, or the size of an attack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from scipy.special import betaincinv

from reports.figures import NothingToShow, Runs
from reports.figures.looks import GREY, RED, line
from reports.figures.parts import (
    PUBLISHED,
    ROTATION,
    Shift,
    area,
    band,
    by_level,
    label_edges,
    legend_below,
    marks,
    mean_and_error,
    published_by_level,
    titled,
)
from reports.figures.points import named
from reports.figures.style import PAGE, legend, panels, panels_of, plt

LIKELIHOOD = "smoothed_log_likelihood"
METRICS = {
    "accuracy": ("accuracy (%)", 100.0),
    LIKELIHOOD: ("log-likelihood (nats)", 1.0),
    "ece": ("ECE", 1.0),
    "brier": ("Brier score", 1.0),
    "predictive_entropy": ("predictive entropy (nats)", 1.0),
}
ATTACK = Shift("shift=fgsm;epsilon", "ε of FGSM (standardised pixels)")
INDEX_SETS = {"": "training images", " +90°": "and turned by 90°", " +90°, +180°": "and turned by 90°, 180°"}
ENSEMBLES, EXAMPLES, BLUE = ("Ensemble", "Ensemble fVI"), (0, 1, 2), "#0072B2"
PERCENTILES = (1, 3, 25)
MANY = 6  # with more rows panels are higher and lines thinner


def gains(runs: Runs) -> Canvas:
    """Draw log-likelihood with fVI minus without, under corruption and attack (dirichlet2022 fig. 7)."""
    pairs = [label for label in runs.records if f"{label} fVI" in runs.records]
    if not pairs:
        raise NothingToShow("no method has records both with and without fVI")
    shifts = panels_of({"corruption": _corruption(runs), "attack": ATTACK})
    figure, axes = panels(len(shifts), 2, 2.4)
    for axis, shift in zip(axes, shifts.values()):
        for label in pairs:
            both = (label, f"{label} fVI")
            lines = [by_level(runs.records[each], LIKELIHOOD, shift) for each in both]
            if not np.array_equal(lines[0][0], lines[1][0]):
                raise NothingToShow(f"the records of {' and '.join(both)} hold different levels")
            (plain, error), (prior, prior_error) = (mean_and_error(values) for _, values in lines)
            gain, combined_error = prior - plain, np.hypot(error, prior_error)
            bars = combined_error if all(len(values) > 1 for _, values in lines) else None
            drawn = axis.errorbar(lines[0][0], gain, bars, label=label, elinewidth=0.7, **line(label))
            named(label, *drawn.get_children())
            known = [dict(zip(*published_by_level(runs, each, LIKELIHOOD, shift))) for each in both]
            shared = sorted(known[0].keys() & known[1].keys())
            marks(axis, label, shared, [known[1][level] - known[0][level] for level in shared])
        axis.axhline(0, color=GREY, linewidth=0.7, linestyle=":")
        axis.set(xlabel=shift.axis, ylabel="gain in log-likelihood (nats)")
    legend_below(figure, axes[0])
    return titled(figure, runs, runs.about("error bars: SE"))


def index_sets(runs: Runs) -> Canvas:
    """Draw log-likelihood by angle with bands of two standard deviations, a panel for each index set (dirichlet2022
    fig. 4)."""
    figure, axes = panels(len(INDEX_SETS), 3, 2.5, sharex=True, sharey=True)
    for axis, (added, title) in zip(axes, INDEX_SETS.items()):
        for label, records in runs.records.items():
            own = label.partition(" +")[0]
            if label == own + (added if "fVI" in own else ""):
                band(axis, own, *by_level(records, LIKELIHOOD, ROTATION), deviations=2)
                marks(axis, own, *published_by_level(runs, label, LIKELIHOOD, ROTATION))
        axis.axhline(-np.log(10), color=GREY, linewidth=0.8, label="uniform prior")
        axis.set(title=title, xticks=range(0, 181, 60))
    label_edges(axes, ROTATION.axis, "log-likelihood (nats)")
    legend_below(figure, axes[0])
    return titled(figure, runs, runs.about("bands: 2 standard deviations over runs"))


def examples(runs: Runs) -> Canvas:
    """Draw the probability of the true class of single digits as they turn, in an ensemble's first run (dirichlet2022
    fig. 1).

    Percentiles of the Dirichlet with mean m and precision z fitted to the members, whose marginals are Beta(z m, z (1 -
    m)), and of the uniform prior, whose marginals are Beta(1, K - 1).
    """
    labels = [label for label in ENSEMBLES if label in runs.records]
    if not labels:
        raise NothingToShow(f"no records of {' or '.join(ENSEMBLES)}")
    size = (PAGE, 1.7 * len(labels) + 0.6)
    figure, axes = plt.subplots(len(labels), len(EXAMPLES), figsize=size, sharex=True, sharey=True, squeeze=False)
    for row, label in zip(axes, labels):
        angles, curves = _turned(runs.first(label))
        for axis, which in zip(row, EXAMPLES):
            truth, prior = curves[0]["label"][which], np.ones(len(angles))
            mean = np.array([curve["probability"][which][truth] for curve in curves])
            precision = np.array([curve["precision"][which] for curve in curves])
            _percentiles(axis, angles, prior, (len(curves[0]["probability"][which]) - 1) * prior, RED)
            _percentiles(axis, angles, precision * mean, precision * (1 - mean), BLUE)
            axis.plot(angles, mean, color=BLUE)
            axis.set(ylim=(0, 1), xticks=range(0, 181, 60), title=f"{label}: a {truth}")
        row[0].set_ylabel("p(true class)")
    for axis in axes[-1]:
        axis.set_xlabel(ROTATION.axis)
    shown = ", ".join(f"{low} to {100 - low}" for low in PERCENTILES)
    handles = {
        "mean of the members": Line2D([], [], color=BLUE),
        f"percentiles {shown} of the Dirichlet fitted to them": area(BLUE, 0.35),
        "the same of the uniform prior": area(RED, 0.35),
    }
    legend(figure, handles)
    return titled(figure, runs, f"protocol {runs.protocol}, n = 1 (first run)")


def _turned(curves: Mapping[str, Any]) -> tuple[np.ndarray, list[dict]]:
    """Return angles, and the examples at each, of one run. Raises NothingToShow for a record without them."""
    found = {
        int(name.removeprefix("rotation-").removesuffix("/examples")): curve
        for name, curve in curves.items()
        if name.endswith("/examples") and "precision" in curve
    }
    if not found:
        raise NothingToShow("the records hold no examples of several members")
    return np.array(sorted(found)), [found[angle] for angle in sorted(found)]


def _percentiles(axis: Axes, places: np.ndarray, a: np.ndarray, b: np.ndarray, shade: str) -> None:
    for percentile in PERCENTILES:
        low, high = (betaincinv(a, b, q / 100) for q in (percentile, 100 - percentile))
        axis.fill_between(places, low, high, color=shade, alpha=0.13, linewidth=0)


def by_shift(runs: Runs, by: str, *metrics: str) -> Canvas:
    """Draw a panel for each of METRICS against the angle of a rotation, the severity of corruptions, or the size of an
    attack: means over runs with bands of one SE, published values as marks."""
    shift = {"rotation": ROTATION, "corruption": _corruption(runs), "attack": ATTACK}[by]
    shown = {metric: METRICS[metric] for metric in panels_of({METRICS[name][0]: name for name in metrics}).values()}
    first = next(iter(runs.records.values()))
    if not any(len(by_level(first, metric, shift)[0]) > 1 for metric in shown):
        raise NothingToShow(f"the records hold nothing by {shift.axis.split()[0]}")
    many = len(runs.records) > MANY
    figure, axes = panels(len(shown), 3, 3.2 if many else 2.5)
    for axis, (metric, (name, scale)) in zip(axes, shown.items()):
        for label, records in runs.records.items():
            band(axis, label, *by_level(records, metric, shift, scale))
            marks(axis, label, *published_by_level(runs, label, metric, shift))
        for drawn in axis.lines:
            if many and drawn.get_gid() != PUBLISHED:
                drawn.set_linewidth(0.8)
        axis.set(xlabel=shift.axis, title=name)
        if shift is ROTATION:
            axis.set_xticks(range(0, 181, 60))
    legend_below(figure, axes[0])
    return titled(figure, runs, runs.about("bands: SE"))


def _corruption(runs: Runs) -> Shift:
    return Shift(f"shift={runs.figure.dataset}_c;severity", "severity")
