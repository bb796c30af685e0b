"""Configurations of runs and notes of tables, for tests."""

from dataclasses import replace

from benchmarks import tables
from benchmarks.records.config import Config
from benchmarks.shapes import RunConfig
from benchmarks.tables import Recipe, Table
from benchmarks.tables.recipes import make_configs


def make_config(method: str, dataset: str, protocol: str, recipe: Recipe, split: int, seed: int) -> Config:
    """Return the full configuration of one run of a recipe."""
    return make_configs(method, dataset, protocol, replace(recipe, replicates=((split, seed),)))[0]


def runs(table: Table | str, label: str, dataset: str, protocol: str = "paper") -> list[RunConfig]:
    """Return the runs of a table's one row of that label, in its first column of a data set."""
    table = tables.get(table) if isinstance(table, str) else table
    (row,) = [row for row in table.rows if row.label == label]
    column = next(column for column in table.columns if column.cell.dataset == dataset)
    return table.cell_runs(row, column, protocol)


def words_of(table: Table, protocol: str) -> str:
    """Return all notes of a table on a protocol, with their longer paragraphs."""
    return " ".join(words for note in table.notes_on(protocol) for words in (note.text, *note.more))
