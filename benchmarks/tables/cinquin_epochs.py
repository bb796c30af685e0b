"""Tables on what makes GFSVI distinguish songs from test points of Boston and wine: length of training, measurement
points."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import cinquin
from benchmarks.tables.cinquin_candidates import candidate, settings
from benchmarks.tables.recipes import Parts, Recipe, merge
from benchmarks.tables.spec import Cell, Column, Row

EPOCHS = 2000
_LONG: Parts = {"training": {"epochs": EPOCHS, "early_stopping": None}}
_LAST = f"{EPOCHS:,} epochs"
_STOPS = {"lowest validation loss": {}, _LAST: _LONG}
_CHOSEN = "chosen candidate, "
_VARIANTS = [f"{points}, {stop}" for points in ("box", "box and batch") for stop in _STOPS]
ROWS = tuple(
    Row(f"GFSVI, {variant}", "GFSVI", "GFSVI", variant) for variant in (*_VARIANTS, f"{_CHOSEN}box and batch, {_LAST}")
)


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the first candidate of table 1, or the chosen one, with the measurement points of FVI or as long as the
    row says."""
    chosen = row.variant.startswith(_CHOSEN)
    found = cinquin.recipe(row, dataset, protocol) if chosen else candidate("GFSVI", "rbf", dataset, protocol)
    first = cinquin.with_songs(found, dataset)
    if first is None:
        return None
    points, stop = row.variant.removeprefix(_CHOSEN).split(", ", 1)
    parts = merge(first.parts, _STOPS[stop] if protocol == "paper" else {})
    if points == "box and batch":
        parts["context"] = settings("FBNN", protocol)["context"]
    return replace(first, parts=parts)


TABLES = (
    cinquin.beside(
        "4",
        "epochs",
        "GFSVI: telling songs from test points by the number of epochs and the measurement points",
        ROWS,
        tuple(
            Column(Cell(name, condition, metric), f"{label} ({name})", Cell(name, "", published) if published else None)
            for name in ("boston", "wine")
            for condition, metric, label, published in (
                ("ood=song", "ood_accuracy", "OOD accuracy", "ood_accuracy"),
                ("ood=song", "ood_auroc", "OOD AUROC", ""),
                ("", cinquin.METRIC, "expected LL", ""),
                ("", "mse_standardised", "MSE", ""),
            )
        ),
        recipe,
    ),
)
