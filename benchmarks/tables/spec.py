"""What a table is: rows (methods), columns (cells of data set, condition, metric), and the runs that fill it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import datasets
from benchmarks.config import SCHEMA, run_key
from fvi_core import methods
from fvi_core.registry import nearest

Parts = dict[str, Any]


class UnknownProtocol(ValueError):
    """A protocol that a table does not have."""


@dataclass(frozen=True)
class Cell:
    """The coordinates of a number: data set, condition and metric, named as in records."""

    dataset: str
    condition: str
    metric: str


@dataclass(frozen=True)
class Row:
    """One method of a table: its label, its name in the published table, and the catalogue row that reproduces it.

    ``published`` None: not in the paper. ``method`` None: no method yet, shown as missing. ``variant`` tells rows of one method
    apart (a context, say) and is handed to the recipe. ``condition`` is that of the row's published cells, where the paper
    has several rows of one method ("context=kmnist").
    """

    label: str
    published: str | None = None
    method: str | None = None
    variant: str = ""
    condition: str = ""


@dataclass(frozen=True)
class Column:
    """One column: the records' cell, the published cell, and ``value * scale`` as the paper prints it."""

    cell: Cell
    label: str
    published: Cell | None = None
    scale: float = 1.0
    digits: int = 3

    def published_key(self, row: Row) -> tuple[str, str, str, str] | None:
        """Where this column's number for a row stands among the published; None where the paper has no such row."""
        if row.published is None:
            return None
        cell = self.published or self.cell
        return cell.dataset, ";".join(filter(None, (row.condition, cell.condition))), row.published, cell.metric


@dataclass(frozen=True)
class Recipe:
    """How one method is run on one data set under one protocol.

    ``parts`` are merged into the method's: a dict with another "name" replaces, anything else updates. ``replicates`` are
    (split, seed) pairs; ``scheme`` says how the data set is split; ``sets`` are the evaluation sets.
    """

    parts: Parts
    replicates: tuple[tuple[int, int], ...]
    scheme: str = ""
    samples: int = 100
    sets: tuple[str, ...] = ("test",)


@dataclass(frozen=True)
class Table:
    """A table: ``recipe(row, dataset, protocol)`` says how each of its cells is made (None: not under this protocol)."""

    name: str
    title: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    recipe: Callable[[Row, str, str], Recipe | None]
    protocols: tuple[str, ...] = ("paper", "short", "smoke")
    default_protocol: str = "paper"
    paper: str | None = None
    number: str | None = None
    aliases: tuple[str, ...] = ()
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reductions: dict[str, str] = field(default_factory=dict)

    def runs(self, protocol: str | None = None, seeds: tuple[int, ...] | None = None) -> list[dict[str, Any]]:
        """Configurations of all runs that the table needs, each once. ``seeds`` keeps these replicates (by position)."""
        found: dict[str, dict[str, Any]] = {}
        for row in self.rows:
            for dataset in dict.fromkeys(column.cell.dataset for column in self.columns):
                for config in self._configs(row, dataset, self.check_protocol(protocol), seeds):
                    found.setdefault(run_key(config), config)
        return list(found.values())

    def cell_runs(self, row: Row, column: Column, protocol: str | None = None, seeds: tuple[int, ...] | None = None) -> list[dict[str, Any]]:
        """Configurations of the runs that one cell averages over; empty where no method makes it."""
        return self._configs(row, column.cell.dataset, self.check_protocol(protocol), seeds)

    def replicates(self, protocol: str | None = None) -> int:
        """How many replicates its cells have; the largest number, where they differ."""
        asked = self.check_protocol(protocol)
        names = dict.fromkeys(column.cell.dataset for column in self.columns)
        recipes = [self.recipe(row, name, asked) for row in self.rows if row.method for name in names]
        return max((len(recipe.replicates) for recipe in recipes if recipe), default=0)

    def check_protocol(self, protocol: str | None) -> str:
        """The protocol, or the table's default for None. Raises :class:`UnknownProtocol`."""
        if protocol is None:
            return self.default_protocol
        if protocol not in self.protocols:
            raise UnknownProtocol(f"table {self.name} has no protocol {protocol!r}; {nearest(protocol, self.protocols)}")
        return protocol

    def _configs(self, row: Row, dataset: str, protocol: str, seeds: tuple[int, ...] | None) -> list[dict[str, Any]]:
        recipe = self.recipe(row, dataset, protocol) if row.method else None
        if recipe is None:
            return []
        replicates = [r for i, r in enumerate(recipe.replicates) if seeds is None or i in seeds]
        return [make_config(row.method, dataset, protocol, recipe, split, seed) for split, seed in replicates]


def make_config(method: str, dataset: str, protocol: str, recipe: Recipe, split: int, seed: int) -> dict[str, Any]:
    """The full configuration of one run."""
    row = methods.get(method)
    return {
        "schema": SCHEMA,
        "method": row.name,
        "dataset": {"name": dataset, "version": datasets.describe(dataset, recipe.scheme or None).version,
                    "scheme": recipe.scheme or datasets.describe(dataset).scheme, "split": split},
        "protocol": protocol,
        "seed": seed,
        "parts": merge(row.parts(), recipe.parts),
        "evaluation": {"samples": recipe.samples, "sets": list(recipe.sets)},
    }


def merge(base: Parts, changes: Parts) -> Parts:
    """``base`` with ``changes`` applied key by key; a dict that names another part replaces the one it meets."""
    merged = copy.deepcopy(base)
    for key, value in changes.items():
        old = merged.get(key)
        same = isinstance(old, dict) and isinstance(value, dict) and value.get("name", old.get("name")) == old.get("name")
        merged[key] = merge(old, value) if same else copy.deepcopy(value)
    return merged
