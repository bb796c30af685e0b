"""Figures of screening: ROC with the NHS's point, and AUROC or accuracy while uncertain cases are referred."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from benchmarks.metrics.screening import NHS
from reports.figures import Runs
from reports.figures.catalogue import NAMES
from reports.figures.looks import GREY
from reports.figures.parts import band, stack, titled
from reports.figures.style import labelled, legend, panels, panels_of

MEASURES = {"auroc": "AUROC", "accuracy": "accuracy"}
TARGET = "NHS: sensitivity {:.0%}, specificity {:.0%}".format(*NHS).replace("%", " %")


def referral(runs: Runs, measure: str) -> Canvas:
    """Draw ROC and referral curves of AUROC or accuracy, in domain and shifted: single networks above, ensembles below
    (rudner2022 fig. 4)."""
    sets = _sets(runs)
    grouped: dict[str, list[str]] = {"single networks": [], "ensembles": []}
    for label in runs.records:
        grouped["ensembles" if "Ensemble" in label else "single networks"].append(label)
    groups = {group: labels for group, labels in grouped.items() if labels}
    titles = {"screening_roc": "ROC", "referral": "referral"}
    columns = panels_of({f"{titles[kind]}, {sets[chosen]}": (kind, chosen) for kind in titles for chosen in sets})
    figure, axes = panels(len(groups) * len(columns), len(columns), 2.0)
    above: dict[str, Axes] = {}
    read = cache(runs.curves)
    for axis, (labels, title) in zip(axes, product(groups.values(), columns)):
        kind, chosen = columns[title]
        if title in above:
            axis.sharey(above[title])
        above.setdefault(title, axis)
        curves = {label: found for label, found in read(f"{chosen}/{kind}").items() if label in labels}
        axis.set(title=title)
        if kind == "screening_roc":
            _roc(axis, curves)
        else:
            _referral(axis, curves, measure)
            axis.set(ylabel=f"{MEASURES[measure]} on kept cases")
    handles = {label: handle for axis in axes for label, handle in labelled(axis).items()}
    if TARGET in handles:  # the longest label, of no row
        handles[TARGET] = handles.pop(TARGET)
    legend(figure, handles)
    for group, axis in zip(groups, axes[:: len(columns)]):
        axis.set_ylabel(f"{group}\n{axis.get_ylabel()}")
    return titled(figure, runs, runs.about("bands: SE"))


def _sets(runs: Runs) -> dict[str, str]:
    """Return the test set and the first other set with curves, with their titles."""
    shifted = [name.removesuffix("/referral") for name in runs.first() if name.startswith("shift-")]
    found = [name for name in shifted if "/" not in name][:1]
    own = NAMES.get(runs.figure.dataset, runs.figure.dataset)
    return {"test": own} | {name: NAMES.get(name.removeprefix("shift-"), name) for name in found}


def _roc(axis: Axes, curves: Mapping[str, Any]) -> None:
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=":")
    for label, found in curves.items():
        band(axis, label, stack(found, "fpr")[0], stack(found, "sensitivity"))
    sensitivity, specificity = NHS
    axis.plot(1 - specificity, sensitivity, "*", color="black", markersize=8, zorder=9, label=TARGET)
    axis.set(xlabel="false positive rate", ylabel="sensitivity", xlim=(0, 1), ylim=(0, 1.01))


def _referral(axis: Axes, curves: Mapping[str, Any], measure: str) -> None:
    for label, found in curves.items():
        # With few cases left AUROC has steps of single cases, and is undefined with all referred: the last tenth is
        # noise.
        x, y = stack(found, "referred")[0], stack(found, measure)
        band(axis, label, x[x <= 0.9], y[:, x <= 0.9])
    axis.set(xlabel="share referred", xlim=(0, 0.9))
