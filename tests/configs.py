"""Configurations of single runs, for tests."""

from dataclasses import replace

from benchmarks.records.config import Config
from benchmarks.tables import Recipe, Table
from benchmarks.tables.recipes import make_configs


def make_config(method: str, dataset: str, protocol: str, recipe: Recipe, split: int, seed: int) -> Config:
    """The full configuration of one run of a recipe."""
    return make_configs(method, dataset, protocol, replace(recipe, replicates=((split, seed),)))[0]


def words_of(table: Table, protocol: str) -> str:
    """Return all notes of a table on a protocol, with their longer paragraphs."""
    return " ".join(words for note in table.notes_on(protocol) for words in (note.text, *note.more))
