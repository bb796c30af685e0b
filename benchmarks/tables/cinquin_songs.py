"""Table 4 of cinquin2024 with other songs, and with another tree, both as in the authors' later code."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import cinquin
from benchmarks.tables.cinquin_candidates import SMALL
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.spec import Cell, Column, Row, Table
from datasets import song

SETS = ("test", *song.SETS)


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the trainings of table 1, evaluated on both sets of songs."""
    found = cinquin.recipe(row, dataset, protocol) if dataset in SMALL else None
    return found and replace(found, sets=SETS)


def _table(suffix: str, title: str, condition: str, metric: str) -> Table:
    return Table(
        f"{cinquin.PAPER}-4-{suffix}",
        f"Telling songs from test points: {title}",
        cinquin.ROWS,
        tuple(Column(Cell(d, condition, metric), d, Cell(d, "", "ood_accuracy")) for d in SMALL),
        recipe,
        protocols=("paper", "smoke"),
        paper=cinquin.PAPER,
        deviations=True,
        number="4",
        reductions={"smoke": cinquin.REDUCTIONS["smoke"]},
    )


TABLES = (
    _table("songs", "songs with the year as their first feature", "ood=song-year", "ood_accuracy"),
    _table("tree", "threshold by log-loss", "ood=song", "ood_accuracy_log_loss"),
    _table("songs-tree", "songs with the year, threshold by log-loss", "ood=song-year", "ood_accuracy_log_loss"),
)
