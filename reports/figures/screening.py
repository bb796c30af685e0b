"""Figures of screening: ROC with the NHS's point, and AUROC or accuracy while uncertain cases are referred."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from benchmarks.metrics.screening import NHS
from reports.figures import Runs
from reports.figures.catalogue import NAMES
from reports.figures.parts import band, stack
from reports.figures.style import GREY, PAGE, head, panels_of, plt


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
    titles = {"screening_roc": "ROC", "referral": "referral"}
    columns = panels_of({f"{titles[kind]}, {sets[chosen]}": (kind, chosen) for kind in titles for chosen in sets})
    figure, grid = plt.subplots(
        len(rows), len(columns), figsize=(PAGE, 2.0 * len(rows) + 0.7), squeeze=False, sharex="col", sharey="col"
    )
    for labels, axes in zip(rows, grid):
        for axis, (title, (kind, chosen)) in zip(axes, columns.items()):
            (_roc if kind == "screening_roc" else _referral)(axis, runs, labels, chosen, measure)
            if axis in grid[0]:
                axis.set_title(title)
    kinds = [kind for kind, _ in columns.values()]
    for kind, x, y in (
        ("screening_roc", "false positive rate", "sensitivity"),
        ("referral", "share referred", name),
    ):
        places = [place for place, found in enumerate(kinds) if found == kind]
        for place in places[:1]:
            for axis in grid[:, place]:
                axis.set_ylabel(y)
        for place in places:
            grid[-1, place].set_xlabel(x)
    handles = {label: handle for axis in grid.flat for handle, label in zip(*axis.get_legend_handles_labels())}
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4)
    head(figure, runs.figure.title, f"{runs.about('bands: SE')}; dot: the NHS's target", runs.missing)
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
    for label in labels:
        if label in curves:
            band(axis, label, stack(curves[label], "fpr")[0], stack(curves[label], "sensitivity"))
    sensitivity, specificity = NHS
    axis.plot(1 - specificity, sensitivity, "o", color="black", markersize=5, zorder=9, label="NHS: 85 %, 80 %")
    axis.set(xlim=(0, 1), ylim=(0, 1.01))


def _referral(axis: Axes, runs: Runs, labels: list[str], chosen: str, measure: str) -> None:
    curves = runs.curves(f"{chosen}/referral")
    for label in labels:
        if label in curves:
            # With few cases kept AUROC has steps of a case, and none where all are referred: the last tenth is noise.
            x, y = stack(curves[label], "referred")[0], stack(curves[label], measure)
            band(axis, label, x[x <= 0.9], y[:, x <= 0.9])
    axis.set(xlim=(0, 0.9))
