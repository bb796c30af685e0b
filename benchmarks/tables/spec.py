"""Tables: rows (methods), columns (cells of data set, condition, metric), and the runs that fill them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import datasets
from benchmarks.errors import unknown
from benchmarks.records.config import run_key
from benchmarks.records.rows import score_of
from benchmarks.shapes import RunConfig
from benchmarks.tables.notes import Note
from benchmarks.tables.notes import of as notes_of
from benchmarks.tables.recipes import Parts, Recipe, make_configs, with_quick_fits
from datasets import image_sets, registry, user_arrays
from fvi_core import methods, plugins
from fvi_core.registry import UnknownPart
from fvi_core.spelling import UnfitValue

OWN = "own"  # full settings of tables without a paper; older ones, as digits, call theirs paper
UNREDUCED = ("paper", OWN)
plugins.track(registry.ENTRIES)  # this room loads plug-ins, which data sets do not know


class NoRecipe(ValueError):
    """Error: a table's recipe cannot make a row of a method."""


class InvalidRecipe(ValueError):
    """Error: a table's recipe names an unknown part or hyper-parameter, or one beyond its limits."""


@dataclass(frozen=True)
class Cell:
    """Coordinates of a number: data set, condition and metric, named as in records."""

    dataset: str
    condition: str
    metric: str


@dataclass(frozen=True)
class Row:
    """One method of a table: its label, its name in the published table, and the catalogue row that reproduces it.

    ``published`` None: not in the paper. ``method`` None: no method yet, shown as missing. ``variant`` distinguishes
    rows of one method (such as a context) and is passed to the recipe. ``condition``: of the row's published cells,
    where the paper has several rows of one method ("context=kmnist"). ``added``: by a user, not by the table.
    ``metrics``: replacements of a column's metric in this row, where a paper computes it differently for one method.
    """

    label: str
    published: str | None = None
    method: str | None = None
    variant: str = ""
    condition: str = ""
    added: bool = False
    metrics: tuple[tuple[str, str], ...] = ()

    @property
    def made_by(self) -> str:
        """Return the method for recipes, which are only called for rows with a method; empty without one."""
        return self.method or ""

    def varied(self, *variants: str) -> tuple[Row, ...]:
        """Return a row for every variant, which follows the label; an empty one is the row as it is."""
        return tuple(
            replace(self, label=", ".join(filter(None, (self.label, name))), variant=name) for name in variants
        )


@dataclass(frozen=True)
class Column:
    """One column: the records' cell, the published cell, and ``value * scale`` as the paper prints it.

    ``compared``: whether rows are tested against one another; not for different quantities, nor for times that rank
    nothing.
    """

    cell: Cell
    label: str
    published: Cell | None = None
    scale: float = 1.0
    digits: int = 3
    compared: bool = True

    def cell_of(self, row: Row) -> Cell:
        """Return the records' cell of a row."""
        metric = dict(row.metrics).get(self.cell.metric)
        return replace(self.cell, metric=metric) if metric else self.cell

    def published_key(self, row: Row) -> tuple[str, str, str, str] | None:
        """Return the key of this column's published number for a row; None where the paper has no such row."""
        if row.published is None:
            return None
        cell = self.published or self.cell
        return cell.dataset, ";".join(filter(None, (row.condition, cell.condition))), row.published, cell.metric


def column(
    dataset: str,
    metric: str,
    label: str,
    condition: str = "",
    scale: float = 1.0,
    digits: int = 3,
    compared: bool = True,
    published: str = "",
) -> Column:
    """Return the column of a metric; ``published``: the metric's name in the published table, if it differs."""
    cell = Cell(dataset, condition, metric)
    return Column(cell, label, replace(cell, metric=published) if published else None, scale, digits, compared)


Make = Callable[[Row, str, str], Recipe | None]
"""Function that returns the recipe of a row on a data set under a protocol; None where the protocol has none."""


def changed(make: Make, changes: Mapping[str, Parts]) -> Make:
    """Return the recipes of a function with the parts that each row's variant changes."""

    def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
        own, base = changes[row.variant], make(row, dataset, protocol)
        return base and base.with_parts(own)

    return recipe


@dataclass(frozen=True)
class Table:
    """Table; ``recipe`` returns the recipe of each cell. The first of ``protocols`` is the default.

    ``deviations``: of the published errors it is not clear whether they are standard errors or deviations of single
    runs. ``ranked``: labels of the rows whose mean ranks over data sets the paper prints. ``recorded``: names that
    protocols have in the configurations of runs, where records were made under another name. ``gpu``: the protocols
    that are made for a GPU. ``notes``: by protocol, in place of those of the Markdown files. ``external``: runs of rows
    that no recipe makes, by row, data set and protocol.
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    recipe: Make
    protocols: tuple[str, ...] = ("paper", "short", "smoke")
    paper: str | None = None
    number: str | None = None
    aliases: tuple[str, ...] = ()
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reductions: dict[str, str] = field(default_factory=dict)
    deviations: bool = False
    ranked: tuple[str, ...] = ()
    recorded: Mapping[str, str] = field(default_factory=dict)
    gpu: tuple[str, ...] = ()
    external: Mapping[tuple[Row, str, str], list[RunConfig]] = field(default_factory=dict)

    @property
    def is_published(self) -> bool:
        """Whether it is a paper's table, under the paper's number and by its settings."""
        return self.name == f"{self.paper}-{self.number}"

    def beside(self, suffix: str, title: str, **changes: Any) -> Table:
        """Return table ``<name>-<suffix>``: this one, without its other names, but for the title and these changes."""
        return replace(self, name=f"{self.name}-{suffix}", title=title, aliases=(), **changes)

    @property
    def default_protocol(self) -> str:
        return self.protocols[0]

    def plans(
        self, protocol: str | None = None, seeds: Collection[int] | None = None
    ) -> Iterator[tuple[Row, str, list[RunConfig]]]:
        """Yield every row and data set with its runs. ``seeds``: only these replicates (by position)."""
        chosen = self.check_protocol(protocol)
        for row in self.rows:
            for dataset in self.datasets:
                yield row, dataset, self.row_runs(row, dataset, chosen, seeds)

    def runs(self, protocol: str | None = None, seeds: Collection[int] | None = None) -> list[RunConfig]:
        """Return configurations of all runs of the table without repeats. ``seeds``: as for :meth:`plans`."""
        every = (config for _, _, runs in self.plans(protocol, seeds) for config in runs)
        return list({run_key(config): config for config in every}.values())

    def cell_runs(
        self, row: Row, column: Column, protocol: str | None = None, seeds: Collection[int] | None = None
    ) -> list[RunConfig]:
        """Return configurations of the runs that one cell averages over; empty without a method."""
        return self.row_runs(row, column.cell.dataset, self.check_protocol(protocol), seeds)

    def metrics_of_runs(self, protocol: str | None = None, seeds: Collection[int] | None = None) -> dict[str, set[str]]:
        """Return the metrics that the table shows of each run, with the scores that they use, by its key."""
        metrics_of: dict[str, set[str]] = {}
        for row, dataset, runs in self.plans(protocol, seeds):
            cells = [column.cell_of(row) for column in self.columns if column.cell.dataset == dataset]
            metrics = {cell.metric for cell in cells} | {score_of(cell.condition) for cell in cells} - {""}
            for config in runs:
                metrics_of.setdefault(run_key(config), set()).update(metrics)
        return metrics_of

    def keys_of_rows(self, protocol: str | None = None, seeds: Collection[int] | None = None) -> dict[str, set[str]]:
        """Return the keys of the runs of every row, by its label."""
        keys: dict[str, set[str]] = {}
        for row, _, runs in self.plans(protocol, seeds):
            keys.setdefault(row.label, set()).update(map(run_key, runs))
        return keys

    def replicates(self, protocol: str | None = None) -> int:
        """Return the largest number of replicates of its cells."""
        return max((len(runs) for _, _, runs in self.plans(protocol)), default=0)

    def reduction(self, protocol: str) -> str:
        """Return the reductions of a protocol in words: as declared, and evaluation sets of some images only."""
        sets = (name for _, _, runs in self.plans(protocol) for run in runs for name in run["evaluation"]["sets"])
        counts = {*map(image_sets.reduction, sets)} - {None}
        some = " or ".join(f"{count:,}" for count in sorted(filter(None, counts)))
        images = (
            f"{some} of the test images, of each class its share, where they are corrupted or attacked" if some else ""
        )
        return "; ".join(filter(None, (self.reductions.get(protocol, "").rstrip("."), images)))

    def notes_on(self, protocol: str) -> tuple[Note, ...]:
        """Return what a reader needs beside the numbers of a protocol."""
        return tuple(map(Note, self.notes.get(protocol, ()))) if self.notes else notes_of(self.name, protocol)

    def lacks(self, row: Row, dataset: str, protocol: str | None = None) -> str:
        """Return why no run of a row on a data set can be planned: its plug-in or its file is absent; else empty."""
        return self._planned(row, dataset, self.check_protocol(protocol))[1]

    def also(self, method: str) -> Table:
        """Return the table with an added row for a method of the catalogue, made with its recipe.

        Raises :class:`NoRecipe` where the recipe does not support it.
        """
        if any(row.method == method for row in self.rows):
            return self
        row = Row(f"{method} (not in the paper)", None, method, added=True)
        table = replace(self, rows=(*self.rows, row))
        try:
            supported = any(
                self.recipe(_trained(row), dataset, protocol)
                for protocol in self.protocols
                for dataset in self.datasets
            )
        except (LookupError, ValueError):  # the recipe looks its row's label up, or reads a number from its variant
            supported = False
        if not supported:
            raise NoRecipe(
                f"table {self.name} cannot make a row of {method!r}: its recipe knows its own methods alone; "
                "choose another table, or add one of your own (docs/extend.md)"
            )
        return table

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column.cell.dataset for column in self.columns))

    def check_protocol(self, protocol: str | None) -> str:
        """Return the protocol, or the table's default for None. Raises :class:`benchmarks.errors.UnknownName`."""
        if protocol is None:
            return self.default_protocol
        if protocol not in self.protocols:
            raise unknown(f"protocol of table {self.name}", protocol, self.protocols)
        return protocol

    def recorded_as(self, protocol: str) -> str:
        """Return the name of a protocol in configurations."""
        return self.recorded.get(protocol, protocol)

    def row_runs(self, row: Row, dataset: str, protocol: str, seeds: Collection[int] | None = None) -> list[RunConfig]:
        """Return configurations of the runs of a row on a data set; empty without a method."""
        runs, _ = self._planned(row, dataset, protocol)
        return [config for i, config in enumerate(runs) if seeds is None or i in seeds]

    def _planned(self, row: Row, dataset: str, protocol: str) -> tuple[list[RunConfig], str]:
        if (row, dataset, protocol) in self.external:
            return self.external[row, dataset, protocol], ""
        own_files = os.environ.get(user_arrays.VARIABLE)
        try:
            return planned(self.recipe, row, dataset, protocol, self.recorded_as(protocol), own_files)
        except (UnknownPart, UnfitValue) as error:
            raise InvalidRecipe(f"table {self.name}, row {row.label} on {dataset}: {error}") from error


def _trained(row: Row) -> Row:
    """Return the row for recipes: with the method whose trainings it shares, if there is one."""
    return replace(row, method=methods.get(row.made_by).trained_as or row.method)


@cache  # many tables have the same recipes, and reports make tables of some rows of a table
def planned(
    make: Make, row: Row, dataset: str, protocol: str, recorded: str, own_files: str | None
) -> tuple[list[RunConfig], str]:
    """Return the configurations of a row's runs on a data set, and why none can be planned, if so.

    own_files: the setting that names a user's own files, which configurations depend on.
    """
    try:
        recipe = make(_trained(row), dataset, protocol) if row.method else None
        if recipe is not None and row.added and methods.brought(row.made_by):
            recipe = recipe.keeping(methods.get(row.made_by).own_parts())
        if recipe is not None and row.added and protocol == "smoke":
            recipe = with_quick_fits(recipe, row.made_by)
        return ([] if recipe is None else make_configs(row.made_by, dataset, recorded, recipe)), ""
    except (methods.UnknownMethod, datasets.UnknownDataset, datasets.DataNotFound) as error:
        what = "data" if isinstance(error, datasets.DataNotFound) else "plug-in"
        return [], f"{what} absent: {error}"
