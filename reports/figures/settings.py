"""Figures by a number in the rows' labels: the length of training, the points of a divergence, the jitter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from benchmarks.records.published import table
from reports.figures import NothingToShow, Runs
from reports.figures.looks import GREY, assign, colour, line
from reports.figures.parts import legend_below, mean_and_error, titled
from reports.figures.points import named
from reports.figures.style import COLUMN, panels, panels_of, plt

Values = dict[str, dict[int, np.ndarray]]  # a metric of every run by series, then by the number in its row's label
VALIDATION = {"part=validation": ("expected_log_likelihood_standardised", "expected_log_likelihood")}
OOD = ";score=predictive_entropy"
INDUCING = {
    "accuracy": ("", "accuracy"),
    "ECE": ("", "ece_10"),
    "predictive entropy, out of distribution (nats)": ("ood=mnist", "predictive_entropy"),
    "AUROC by entropy": (f"ood=mnist{OOD}", "ood_auroc"),
}
METRICS = {"expected_log_likelihood": ("1", "expected log-likelihood"), "mse": ("6", "mean square error")}


def lengths(runs: Runs) -> Canvas:
    """Draw the validation expected log-likelihood by the length of training (cinquin2024 fig. 15 and 16)."""
    where, metrics = next(iter(VALIDATION.items()))
    found, unit = next((each for each in (_values(runs, where, metric) for metric in metrics) if each[0]), ({}, ""))
    if not found:
        raise NothingToShow("the records hold no expected log-likelihood of a validation part")
    _check_several([found], "lengths of training")
    figure, axis = plt.subplots(figsize=(COLUMN, 2.7))
    assign(found)
    _series(axis, found)
    every = [value for by_number in found.values() for values in by_number.values() for value in values]
    if np.ptp(every) > 50:
        axis.set_yscale("symlog", linthresh=1.0)
    axis.set(xlabel={"passes": "passes over the training images"}.get(unit, unit), xscale="log")
    axis.set_ylabel("validation expected\nlog-likelihood")
    legend_below(figure, axis)
    return titled(figure, runs, runs.about("bands: SE"))


def inducing_points(runs: Runs) -> Canvas:
    """Draw metrics in and out of distribution by the number of inducing points (rudner2021 fig. 8)."""
    shown = {
        name: found
        for name, (condition, metric) in panels_of(INDUCING).items()
        if (found := _values(runs, condition, metric)[0])
    }
    if not shown:
        raise NothingToShow("no row says how many points, or the records lack their metrics")
    _check_several(shown.values(), "numbers of points")
    figure, axes = panels(len(shown), 4, 1.7, sharex=True)
    for axis, (name, found) in zip(axes, shown.items()):
        assign(found)
        _series(axis, found)
        ticks = sorted({number for by_number in found.values() for number in by_number})
        axis.set(title=name.replace(", out", ",\nout"), xlabel="inducing points", xscale="log", xticks=ticks)
        axis.set_xticklabels([str(tick) for tick in ticks])
        axis.minorticks_off()
    return titled(figure, runs, runs.about("bands: SE"))


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


def _values(runs: Runs, condition: str, metric: str) -> tuple[Values, str]:
    """Return a metric by series and number from rows whose labels end in ", <number> <unit>", and the unit."""
    found: Values = {}
    units = set()
    for label, records in runs.records.items():
        named = re.search(r"^(.*), (\d+) (\w+)$", label)
        values = [value for run in records for where, value in run.conditions(metric) if where == condition]
        if named and values:
            found.setdefault(named[1], {})[int(named[2])] = np.array(values)
            units.add(named[3])
    return found, next(iter(units), "")


def _check_several(shown: Iterable[Values], what: str) -> None:
    """Raise NothingToShow if no series has two points, and so no line."""
    if not any(len(by_number) > 1 for found in shown for by_number in found.values()):
        raise NothingToShow(f"no row has records at two {what}")


def _series(axis: Axes, found: Mapping[str, Mapping[int, np.ndarray]]) -> None:
    for label, by_number in found.items():
        numbers = sorted(by_number)
        both = [mean_and_error(by_number[number][:, None]) for number in numbers]
        mean, error = (np.array([each[part][0] for each in both]) for part in (0, 1))
        axis.plot(numbers, mean, label=label, **line(label) | {"markevery": 1})
        band = axis.fill_between(numbers, mean - error, mean + error, color=colour(label), alpha=0.18, linewidth=0)
        named(label, band)
