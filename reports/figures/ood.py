"""Figures of calibration and uncertainty: reliability, PIT, ROC, confidence, entropies in and out of distribution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from reports.figures import NothingToShow, Runs, counted
from reports.figures.catalogue import NAMES
from reports.figures.looks import GREY, colour, line
from reports.figures.parts import (
    FEW,
    area,
    band,
    dot,
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
from reports.figures.points import named
from reports.figures.style import PAGE, labelled, legend, panels, panels_of, plt

ECE = {10: "ece_10", 15: "ece"}  # metric by number of bins
NUMBER = "  "  # separates a method from its numbers in a legend
PARTS = {
    "train": ("training inputs", "#0072B2", "o"),
    "test": ("test inputs", "#E69F00", "s"),
    "ood-uniform": ("uniform inputs", "#D55E00", "^"),
}


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


def pit(runs: Runs) -> Canvas:
    """Draw the density of the PIT values, a panel per method. It is 1 everywhere for calibrated predictions; a hump in
    the middle shows too wide predictions, humps at both ends too narrow ones."""
    curves = runs.curves("test/pit")
    figure, axes = panels(len(curves), 4, 1.6, sharex=True, sharey=True)
    for axis, (label, found) in zip(axes, curves.items()):
        edges, count = stack(found, "edges")[0], stack(found, "count")
        density, error = mean_and_error(count / count.sum(1, keepdims=True) / np.diff(edges))
        axis.bar(edges[:-1], density, np.diff(edges), align="edge", color=colour(label), alpha=0.75, linewidth=0)
        axis.errorbar((edges[:-1] + edges[1:]) / 2, density, error, fmt="none", ecolor=GREY, elinewidth=0.6)
        axis.axhline(1, color=GREY, linewidth=0.7, linestyle=":")
        axis.set(title=f"{label}\nKS {metric_mean(runs, label, 'pit_ks'):.3f}", xlim=(0, 1), xticks=[0, 0.5, 1])
    axes[0].set_ylim(bottom=0)
    label_edges(axes, "F(y)", "density")
    legend(figure, {"calibrated": Line2D([], [], color=GREY, linewidth=0.7, linestyle=":")})
    without = [label for label in runs.records if label not in curves]
    lacking = f"; no PIT values: {', '.join(without)}" if without else ""
    about = counted(runs.protocol, [len(found) for found in curves.values()], "error bars: SE")
    return titled(figure, runs, f"{about}; KS: distance, mean over runs{lacking}")


def distributions(runs: Runs) -> Canvas:
    """Draw epistemic uncertainty over inputs as boxes, three for every row (pequignot2020 fig. 2 to 5)."""
    parts = panels_of({name: part for part, (name, _, _) in PARTS.items()})
    found = {part: runs.curves(f"{part}/epistemic_entropy") for part in parts.values()}
    labels = [label for label in runs.records if any(label in curves for curves in found.values())]
    figure, axis = plt.subplots(figsize=(min(PAGE, 1.2 + 0.95 * len(labels)), 2.6))
    width = 0.8 / len(parts)
    for place, (part, curves) in enumerate(found.items()):
        name, shade, marker = PARTS[part]
        for at, label in enumerate(labels):
            if label not in curves:
                continue
            x = at + (place - (len(parts) - 1) / 2) * width
            low, first, middle, third, high = stack(curves[label], "value").mean(0)
            axis.plot([x, x], [low, high], color=shade, linewidth=0.8)
            axis.add_patch(
                Rectangle((x - width / 3, first), 2 * width / 3, third - first, color=shade, alpha=0.35, linewidth=0)
            )
            axis.plot(x, middle, marker, color=shade, markersize=3.5, label=name if at == 0 else None)
    axis.set(xticks=range(len(labels)), ylabel="epistemic uncertainty (nats)")
    axis.set_xticklabels(labels, rotation=20 if len(labels) > 4 else 0)
    handles: dict[str, Artist] = {PARTS[part][0]: dot(PARTS[part][1], PARTS[part][2]) for part in found}
    handles |= {"median": dot(GREY), "quartiles": area(GREY, 0.35)}
    handles["5 to 95 %"] = Line2D([], [], color=GREY, linewidth=0.8)
    legend(figure, handles)
    return titled(figure, runs, f"{runs.about()}; quantiles over inputs, means over runs")


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


def side_by_side(runs: Runs, *names: str) -> Canvas:
    """Draw these panels of PANELS with one legend; each of their functions returns its addition to the head."""
    draw = {name: PANELS[name] for name in names}
    draw = panels_of(draw) if len(draw) > 1 else draw
    figure, axes = panels(len(draw), 3, 2.4 if len(draw) > 1 else 2.9)
    about = [each(axis, runs) for axis, each in zip(axes, draw.values())]
    handles: dict[str, Artist] = {}
    numbers: dict[str, list[str]] = {}
    for axis in axes:  # a row without one curve may have another
        for name, handle in labelled(axis).items():
            label, _, number = name.partition(NUMBER)
            handles.setdefault(label, handle)
            numbers.setdefault(label, []).extend(filter(None, [number]))
    named = {label: NUMBER.join(filter(None, (label, ", ".join(found)))) for label, found in numbers.items()}
    legend(figure, {named[label]: handle for label, handle in handles.items()})
    if list(draw.values()) != [_reliability]:
        about.append(_against(runs))
    return titled(figure, runs, f"{runs.about('bands: SE')}{''.join(about)}")


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
        area_of_error = axis.fill_between(x, y - error, y + error, color=colour(label), alpha=0.18, linewidth=0)
        hollow = axis.plot(x[thin], y[thin], "o", color=colour(label), markersize=4, markerfacecolor="white", zorder=4)
        named(label, area_of_error, *hollow)
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


PANELS: dict[str, Callable[[Axes, Runs], str]] = {"reliability": _reliability, "ROC": _roc, "confidence": _confidence}
"""Accuracy against confidence on the test set; true against false positive rate of the predictive entropy, OOD
positive; the share of OOD inputs whose class is predicted with at least so much confidence."""
