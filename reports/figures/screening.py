"""Figures of screening: ROC with the NHS's point, and AUROC or accuracy while uncertain cases are referred."""

from __future__ import annotations

from itertools import product

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from benchmarks.metrics.screening import NHS
from reports.figures import Runs
from reports.figures.catalogue import NAMES
from reports.figures.looks import GREY
from reports.figures.parts import band, stack, titled
from reports.figures.style import labelled, legend, panels, panels_of

TARGET = "NHS: sensitivity {:.0%}, specificity {:.0%}".format(*NHS).replace("%", " %")


def screening(runs: Runs) -> Canvas:
    """Draw ROC and referral curves of AUROC, in domain and shifted: single networks above, ensembles below (rudner2022
    fig. 4)."""
    return _panels(runs, "auroc", "AUROC on kept cases")


def accuracy(runs: Runs) -> Canvas:
    """Draw ROC and referral curves of accuracy on the remaining cases."""
    return _panels(runs, "accuracy", "accuracy on kept cases")


def _panels(runs: Runs, measure: str, name: str) -> Canvas:
    sets = _sets(runs)
    grouped: dict[str, list[str]] = {"single networks": [], "ensembles": []}
    for label in runs.records:
        grouped["ensembles" if "Ensemble" in label else "single networks"].append(label)
    groups = {group: labels for group, labels in grouped.items() if labels}
    titles = {"screening_roc": "ROC", "referral": "referral"}
    columns = panels_of({f"{titles[kind]}, {sets[chosen]}": (kind, chosen) for kind in titles for chosen in sets})
    figure, axes = panels(len(groups) * len(columns), len(columns), 2.0)
    above: dict[str, Axes] = {}
    for axis, (labels, title) in zip(axes, product(groups.values(), columns)):
        kind, chosen = columns[title]
        if title in above:
            axis.sharey(above[title])
        above.setdefault(title, axis)
        (_roc if kind == "screening_roc" else _referral)(axis, runs, labels, chosen, measure)
        x, y = ("false positive rate", "sensitivity") if kind == "screening_roc" else ("share referred", name)
        axis.set(title=title, xlabel=x, ylabel=y)
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


def _roc(axis: Axes, runs: Runs, labels: list[str], chosen: str, measure: str) -> None:
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=":")
    curves = runs.curves(f"{chosen}/screening_roc")
    for label in labels:
        if label in curves:
            band(axis, label, stack(curves[label], "fpr")[0], stack(curves[label], "sensitivity"))
    sensitivity, specificity = NHS
    axis.plot(1 - specificity, sensitivity, "o", color="black", markersize=5, zorder=9, label=TARGET)
    axis.set(xlim=(0, 1), ylim=(0, 1.01))


def _referral(axis: Axes, runs: Runs, labels: list[str], chosen: str, measure: str) -> None:
    curves = runs.curves(f"{chosen}/referral")
    for label in labels:
        if label in curves:
            # With few cases left AUROC has steps of single cases, and is undefined with all referred: the last tenth is
            # noise.
            x, y = stack(curves[label], "referred")[0], stack(curves[label], measure)
            band(axis, label, x[x <= 0.9], y[:, x <= 0.9])
    axis.set(xlim=(0, 0.9))
