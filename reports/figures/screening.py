"""Figures of screening: ROC with the NHS's point, and AUROC or accuracy while uncertain cases are referred."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from benchmarks.metrics.screening import NHS
from reports.figures import Runs
from reports.figures.catalogue import NAMES
from reports.figures.parts import label_edges, mean_and_error, stack
from reports.figures.style import GREY, PAGE, head, line, plt

MARKERS = "xs^Dv*P"  # methods are told apart without colours, and an ensemble has its members' marker
EVERY = 20  # points of a curve from one marker to the next


def screening(runs: Runs) -> Canvas:
    """ROC and referral curves of AUROC, in domain and shifted: single networks above, ensembles below (rudner2022
    fig. 4)."""
    return _panels(runs, "auroc", "AUROC on kept cases")


def accuracy(runs: Runs) -> Canvas:
    """The same with accuracy on the kept cases."""
    return _panels(runs, "accuracy", "accuracy on kept cases")


def _panels(runs: Runs, measure: str, name: str) -> Canvas:
    sets = _sets(runs)
    grouped = [[label for label in runs.records if ("Ensemble" in label) == ensemble] for ensemble in (False, True)]
    rows = [labels for labels in grouped if labels]
    columns = [(kind, chosen) for kind in ("screening_roc", "referral") for chosen in sets]
    figure, grid = plt.subplots(
        len(rows), len(columns), figsize=(PAGE, 2.0 * len(rows) + 0.7), squeeze=False, sharex="col", sharey="col"
    )
    for labels, axes in zip(rows, grid):
        for axis, (kind, chosen) in zip(axes, columns):
            (_roc if kind == "screening_roc" else _referral)(axis, runs, labels, chosen, measure)
            if axis in grid[0]:
                axis.set_title(("ROC, " if kind == "screening_roc" else "referral, ") + sets[chosen])
    label_edges(list(grid[:, 0]), "false positive rate", "sensitivity")
    for axis in grid[:, len(sets)]:
        axis.set_ylabel(name)
    for axis, (kind, _) in zip(grid[-1], columns):
        axis.set_xlabel("false positive rate" if kind == "screening_roc" else "share referred")
    handles = {label: handle for axes in grid[:, 0] for handle, label in zip(*axes.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    head(figure, runs.figure.title, f"{runs.subtitle}; bands: SE; dot: the NHS's target", runs.missing)
    return figure


def _sets(runs: Runs) -> dict[str, str]:
    """The test set, and the first one of another source that has curves, with what they are called."""
    shifted = [name.removesuffix("/referral") for name in runs.first() if name.startswith("shift-")]
    found = [name for name in shifted if "/" not in name][:1]
    own = NAMES.get(runs.figure.dataset, runs.figure.dataset)
    return {"test": own} | {name: NAMES.get(name.removeprefix("shift-"), name) for name in found}


def _roc(axis: Axes, runs: Runs, labels: list[str], chosen: str, measure: str) -> None:
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=":")
    curves = runs.curves(f"{chosen}/screening_roc")
    for label, at in _places(runs, labels).items():
        if label in curves:
            _line(axis, label, at, stack(curves[label], "fpr")[0], stack(curves[label], "sensitivity"), EVERY // 2)
    sensitivity, specificity = NHS
    axis.plot(1 - specificity, sensitivity, "o", color="black", markersize=5, zorder=9, label="NHS: 85 %, 80 %")
    axis.set(xlim=(0, 1), ylim=(0, 1.01))


def _referral(axis: Axes, runs: Runs, labels: list[str], chosen: str, measure: str) -> None:
    curves = runs.curves(f"{chosen}/referral")
    for label, at in _places(runs, labels).items():
        if label in curves:
            # With few cases kept AUROC has steps of a case, and none where all are referred: the last tenth is noise.
            x, y = stack(curves[label], "referred")[0], stack(curves[label], measure)
            _line(axis, label, at, x[x <= 0.9], y[:, x <= 0.9], EVERY)
    axis.set(xlim=(0, 0.9))


def _places(runs: Runs, labels: list[str]) -> dict[str, int]:
    """The number of each row's method among all methods of the figure."""
    methods = list(dict.fromkeys(label.removesuffix(" Ensemble") for label in runs.records))
    return {label: methods.index(label.removesuffix(" Ensemble")) for label in labels}


def _line(axis: Axes, label: str, at: int, x: np.ndarray, y: np.ndarray, every: int) -> None:
    mean, error = mean_and_error(y)
    look: dict[str, Any] = {**line(label.removesuffix(" Ensemble"))}
    look |= {"marker": MARKERS[at % len(MARKERS)], "markersize": 3.2, "markevery": (2 * at, every)}
    axis.plot(x, mean, label=label, linewidth=0.9, **look)
    axis.fill_between(x, mean - error, mean + error, color=look["color"], alpha=0.18, linewidth=0)
