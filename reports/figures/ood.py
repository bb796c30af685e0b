"""Figures of calibration and out-of-distribution inputs: reliability, ROC, confidence, predictive entropy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from reports.figures import NothingToShow, Runs
from reports.figures.catalogue import NAMES
from reports.figures.looks import GREY, colour, line
from reports.figures.parts import (
    FEW,
    band,
    few,
    in_view,
    label_edges,
    mean_and_error,
    metric_mean,
    roc_in_logarithms,
    stack,
    titled,
    two_histograms,
    zoom_reliability,
)
from reports.figures.style import labelled, legend, panels, panels_of

ECE = {10: "ece_10", 15: "ece"}  # metric by number of bins
NUMBER = "  "  # separates a method from its numbers in a legend


def summary(runs: Runs) -> Canvas:
    """Draw reliability, ROC and confidence side by side (rudner2021 fig. 2)."""
    return _side_by_side(runs, {"reliability": _reliability, "ROC": _roc, "confidence": _confidence})


def reliability(runs: Runs) -> Canvas:
    """Draw accuracy against confidence on the test set (rudner2021 fig. 5)."""
    return _side_by_side(runs, {"reliability": _reliability})


def roc(runs: Runs) -> Canvas:
    """Draw true against false positive rate of the predictive entropy, OOD positive (rudner2021 fig. 6)."""
    return _side_by_side(runs, {"ROC": _roc})


def confidence(runs: Runs) -> Canvas:
    """Draw the share of OOD inputs whose class is predicted with at least so much confidence (rudner2021 fig. 7)."""
    return _side_by_side(runs, {"confidence": _confidence})


def histograms(runs: Runs) -> Canvas:
    """Draw the predictive entropy of the test set and of the OOD set, a panel per method (cinquin2024 fig. 12)."""
    shown = ood_set(runs)
    other = shown.removeprefix("ood-")
    return entropies(runs, shown, ("test set", NAMES.get(other, other)), _against(runs))


def entropies(runs: Runs, ood: str, names: tuple[str, str], about: str = "") -> Canvas:
    """Draw histograms of the predictive entropy of the test set and of an OOD set, by these names, a panel per
    method."""
    curves = runs.curves(f"{ood}/entropy_histogram")
    figure, axes = panels(len(curves), 4, 1.5, sharex=True, sharey=True)
    for axis, (label, found) in zip(axes, curves.items()):
        counts = stack(found, "id"), stack(found, "ood")
        two_histograms(axis, stack(found, "edges")[0], dict(zip(names, counts)))
        axis.set(title=label)
    label_edges(axes, "entropy (nats)", "points (%)")
    axes[0].legend(loc="upper right")
    return titled(figure, runs, f"{runs.about()}, all runs together{about}")


def ood_set(runs: Runs) -> str:
    """Return the out-of-distribution set that is drawn, the first one in the records, such as "ood-mnist"."""
    return _ood_sets(runs)[0]


def _ood_sets(runs: Runs) -> list[str]:
    """Return the OOD sets of the records. Raises NothingToShow without any."""
    names = [name.removesuffix("/roc") for name in runs.first() if name.endswith("/roc")]
    if not names:
        raise NothingToShow("the records hold no out-of-distribution set")
    return names


def _against(runs: Runs) -> str:
    """Describe the OOD sets for the head."""
    shown, *others = (NAMES.get(name, name) for name in (each.removeprefix("ood-") for each in _ood_sets(runs)))
    return f"; out of distribution: {shown}" + f" (not drawn: {', '.join(others)})" * bool(others)


def _side_by_side(runs: Runs, draw: dict[str, Callable[[Axes, Runs], str]]) -> Canvas:
    """Draw panels with one legend; each function returns its addition to the head."""
    draw = panels_of(draw) if len(draw) > 1 else draw
    figure, axes = panels(len(draw), 3, 2.4 if len(draw) > 1 else 2.9)
    said = [each(axis, runs) for axis, each in zip(axes, draw.values())]
    handles: dict[str, Artist] = {}
    numbers: dict[str, list[str]] = {}
    for axis in axes:  # a row without one curve may have another
        for told, handle in labelled(axis).items():
            label, _, number = told.partition(NUMBER)
            handles.setdefault(label, handle)
            numbers.setdefault(label, []).extend(filter(None, [number]))
    named = {label: NUMBER.join(filter(None, (label, ", ".join(found)))) for label, found in numbers.items()}
    legend(figure, {named[label]: handle for label, handle in handles.items()})
    if list(draw.values()) != [_reliability]:
        said.append(_against(runs))
    return titled(figure, runs, f"{runs.about('bands: SE')}{''.join(said)}")


def _reliability(axis: Axes, runs: Runs) -> str:
    curves = runs.curves("test/reliability")
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=":")
    shown, counts, thin_bins = [], [], []
    for label, found in curves.items():
        (x, _), (y, error) = (mean_and_error(stack(found, name)) for name in ("confidence", "accuracy"))
        count = stack(found, "count")
        thin = few(count) & np.isfinite(x)
        off = metric_mean(runs, label, ECE.get(len(x), ""))
        name = label + f"{NUMBER}ECE {off:.3f}" * bool(np.isfinite(off))
        axis.plot(x, y, label=name, **line(label))
        axis.fill_between(x, y - error, y + error, color=colour(label), alpha=0.18, linewidth=0)
        axis.plot(x[thin], y[thin], "o", color=colour(label), markersize=4, markerfacecolor="white", zorder=4)
        thin_bins.append((x[thin], y[thin]))
        shown.append(x)
        counts.append(count.sum(0))
    axis.set(xlabel="confidence", ylabel="accuracy")
    zoom_reliability([axis], np.array(shown), np.array(counts))
    if any(in_view(axis, x, y) for x, y in thin_bins):
        axis.plot([], [], "o", color="black", markersize=4, markerfacecolor="white", label=f"fewer than {FEW} in a bin")
    return f"; ECE of {len(counts[0])} bins"


def _roc(axis: Axes, runs: Runs) -> str:
    condition = f"ood={ood_set(runs).removeprefix('ood-')};score=predictive_entropy"
    curves = runs.curves(f"{ood_set(runs)}/roc")
    fpr = stack(next(iter(curves.values())), "fpr")[0]
    axis.plot(fpr, fpr, color=GREY, linewidth=0.7, linestyle=":")
    for label, found in curves.items():
        name = f"{label}{NUMBER}AUROC {metric_mean(runs, label, 'ood_auroc', condition):.3f}"
        band(axis, label, stack(found, "fpr")[0], stack(found, "predictive_entropy"), name)
    axis.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1.01))
    roc_in_logarithms([axis], fpr, [stack(found, "predictive_entropy") for found in curves.values()])
    return ""


def _confidence(axis: Axes, runs: Runs) -> str:
    for label, found in runs.curves(f"{ood_set(runs)}/confidence").items():
        band(axis, label, stack(found, "threshold")[0], stack(found, "share"))
    axis.set(xlabel="confidence at least", ylabel="share of OOD inputs", xlim=(0, 1), ylim=(0, 1.01))
    return ""
