"""Figures of calibration and out-of-distribution inputs: reliability, ROC, confidence, predictive entropy."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from reports.figures import NothingToShow, Runs
from reports.figures.catalogue import NAMES
from reports.figures.parts import band, label_edges, legend_below, mean_and_error, metric_mean, stack
from reports.figures.style import COLUMN, GREY, PAGE, colour, head, line, panels, plt


def summary(runs: Runs) -> Canvas:
    """Reliability, ROC and confidence side by side (rudner2021 fig. 2)."""
    figure, axes = plt.subplots(1, 3, figsize=(PAGE, 2.9))
    for axis, draw in zip(axes, (_reliability, _roc, _confidence)):
        draw(axis, runs)
    legend_below(figure, axes[0])
    head(figure, runs.figure.title, f"{runs.subtitle}; bands: SE", runs.missing)
    return figure


def reliability(runs: Runs) -> Canvas:
    """Accuracy against confidence on the test set (rudner2021 fig. 5)."""
    return _alone(runs, _reliability)


def roc(runs: Runs) -> Canvas:
    """True against false positive rate of the predictive entropy, OOD positive (rudner2021 fig. 6)."""
    return _alone(runs, _roc)


def confidence(runs: Runs) -> Canvas:
    """Share of OOD inputs whose class is predicted with at least so much confidence (rudner2021 fig. 7)."""
    return _alone(runs, _confidence)


def histograms(runs: Runs) -> Canvas:
    """Predictive entropy of the test set and of the OOD set, a panel per method (cinquin2024 fig. 12)."""
    shown = ood_set(runs)
    curves, other = runs.curves(f"{shown}/entropy_histogram"), shown.removeprefix("ood-")
    figure, axes = panels(len(curves), 4, 1.5, sharex=True, sharey=True)
    for axis, (label, found) in zip(axes, curves.items()):
        edges = stack(found, "edges")[0]
        for part, shade, name in (("id", "#0072B2", "test set"), ("ood", "#D55E00", NAMES.get(other, other))):
            share = 100 * stack(found, part).sum(0) / stack(found, part).sum()
            axis.stairs(share, edges, color=shade, fill=True, alpha=0.35)
            axis.stairs(share, edges, color=shade, linewidth=0.9, label=name)
        axis.set(title=label, xlim=(edges[0], edges[-1]))
    label_edges(axes, "entropy (nats)", "points (%)")
    axes[0].legend(loc="upper right")
    head(figure, runs.figure.title, f"{runs.subtitle}, all runs together", runs.missing)
    return figure


def ood_set(runs: Runs) -> str:
    """The first out-of-distribution set of the records, "ood-mnist" say. Raises NothingToShow without any."""
    names = [name for name in runs.first() if name.endswith("/roc")]
    if not names:
        raise NothingToShow("the records hold no out-of-distribution set")
    return names[0].removesuffix("/roc")


def _alone(runs: Runs, draw: Callable[[Axes, Runs], None]) -> Canvas:
    figure, axis = plt.subplots(figsize=(COLUMN, 3.4))
    draw(axis, runs)
    legend_below(figure, axis, 2)
    head(figure, runs.figure.title, f"{runs.subtitle}; bands: SE", runs.missing)
    return figure


def _reliability(axis: Axes, runs: Runs) -> None:
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=":")
    for label, found in runs.curves("test/reliability").items():
        (x, _), (y, error) = (mean_and_error(stack(found, name)) for name in ("confidence", "accuracy"))
        axis.plot(x, y, label=f"{label}  ECE {metric_mean(runs, label, 'ece_10'):.3f}", **line(label))
        axis.fill_between(x, y - error, y + error, color=colour(label), alpha=0.18, linewidth=0)
    axis.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1), ylim=(0, 1.01))


def _roc(axis: Axes, runs: Runs) -> None:
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle=":")
    condition = f"ood={ood_set(runs).removeprefix('ood-')};score=predictive_entropy"
    for label, found in runs.curves(f"{ood_set(runs)}/roc").items():
        name = f"{label}  AUROC {metric_mean(runs, label, 'ood_auroc', condition):.3f}"
        band(axis, label, stack(found, "fpr")[0], stack(found, "predictive_entropy"), name)
    axis.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1.01))


def _confidence(axis: Axes, runs: Runs) -> None:
    for label, found in runs.curves(f"{ood_set(runs)}/confidence").items():
        band(axis, label, stack(found, "threshold")[0], stack(found, "share"))
    axis.set(xlabel="confidence at least", ylabel="share of OOD inputs", xlim=(0, 1), ylim=(0, 1.01))
