"""Tables on what makes GFSVI distinguish songs from Boston's test points: length of training, measurement points."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import cinquin
from benchmarks.tables.cinquin_candidates import candidate, settings
from benchmarks.tables.spec import Cell, Column, Parts, Recipe, Row, Table, merge

EPOCHS = 2000
_LONG: Parts = {"training": {"epochs": EPOCHS, "early_stopping": None}}
_STOPS = {"lowest validation loss": {}, f"{EPOCHS:,} epochs": _LONG}
ROWS = tuple(
    Row(f"GFSVI, {points}, {stop}", "GFSVI", "GFSVI", f"{points}, {stop}")
    for points in ("box", "box and batch")
    for stop in _STOPS
)


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the first candidate of table 1, with the measurement points of FVI or as long as the row says."""
    first = cinquin.with_songs(candidate("GFSVI", "rbf", dataset, protocol), dataset)
    if first is None:
        return None
    points, stop = row.variant.split(", ", 1)
    parts = merge(first.parts, _STOPS[stop] if protocol == "paper" else {})
    if points == "box and batch":
        parts["context"] = settings("FBNN", protocol)["context"]
    return replace(first, parts=parts)


TABLES = (
    Table(
        f"{cinquin.PAPER}-4-epochs",
        "GFSVI on Boston: telling songs from test points by the number of epochs and the measurement points",
        ROWS,
        (
            Column(Cell("boston", "ood=song", "ood_accuracy"), "OOD accuracy", Cell("boston", "", "ood_accuracy")),
            Column(Cell("boston", "ood=song", "ood_auroc"), "OOD AUROC"),
            Column(Cell("boston", "", cinquin.METRIC), "expected LL"),
            Column(Cell("boston", "", "mse_standardised"), "MSE"),
        ),
        recipe,
        protocols=("paper", "smoke"),
        paper=cinquin.PAPER,
        deviations=True,
        number="4",
        notes={
            "paper": (
                "One RBF kernel, tanh; nothing is chosen by these numbers. Box: 500 measurement points uniform on the "
                "box of the training inputs. The paper says uniform, without a box; the code of its authors' next "
                "paper has half the box's width more on each side. Box and batch: 50 such and those of the mini-batch "
                "(all of the training part, 363 or 364; at most 450), as the paper has them for FVI here and for GFSVI "
                "in table 7.",
                "Lowest validation loss: early stopping as in table 1, which takes the parameters of epochs 50 to 630 "
                f"here. {EPOCHS:,} epochs: the parameters at their end.",
                "Published on Boston: OOD accuracy .893, expected log-likelihood -.733 +- .144, MSE .123 +- .021. At "
                "the lowest validation loss the variance hardly tells songs from test points (AUROC from .51 to .87 "
                f"over folds on the box, .50 on average with the batch); on the box alone {EPOCHS:,} epochs change "
                "that while the noise goes to .04 to .08 and the likelihood is lost. With points of the batch no "
                "t-test tells any of the three numbers from the paper's. Whether its authors trained so is not known.",
            )
        },
        reductions={"smoke": "5 steps, 2 folds"},
    ),
)
