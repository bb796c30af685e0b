"""Components of the runner and the command line, by name, imported only when needed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.shapes import RunConfig
from fvi_core import plugins


def resolve(name: str) -> Any:
    """Import the object that "module:name" names."""
    module, attribute = name.split(":")
    return getattr(importlib.import_module(module), attribute)


@dataclass(frozen=True)
class Suite:
    """Places of the tables, the methods, the training and the metrics: a module, or "module:name".

    ``reports``: the module whose command prints tables, if any; ``cell``: the function that averages the runs of a
    cell. ``also``: methods with a further row in the tables that are shown.
    """

    tables: str = "benchmarks.tables"
    methods: str = "fvi_core.methods:catalogue"
    execute: str = "benchmarks.experiment.execute:execute"
    limit: str = "benchmarks.records.config:stack_limit"
    metrics: str = "benchmarks.metrics.registry:METRICS"
    measure: str = "benchmarks.experiment.measure:measure_stale"
    reports: str = "reports"
    cell: str = "reports.aggregate:cell"
    fits: str = "benchmarks.experiment.misfits:misfits"
    also: tuple[str, ...] = ()

    def table(self, name: str) -> Any:
        """Return the table of this name. Raises the tables' error for an unknown one."""
        return importlib.import_module(self.tables).get(name)

    def extended(self, name: str) -> Any:
        """Return the table of this name with a row for every method of ``also``. Raises NoRecipe."""
        table = self.table(name)
        for method in self.also:
            table = table.also(method)
        return table

    def table_names(self) -> list[str]:
        """Return the names of all tables."""
        return list(importlib.import_module(self.tables).names())

    def catalogue(self) -> dict[str, Any]:
        """Return every method, by name."""
        return resolve(self.methods)()

    def misfits(self, configs: list[RunConfig]) -> list[str]:
        """Return a sentence for every method of runs whose parts do not fit together."""
        return resolve(self.fits)(configs) if configs else []

    @property
    def stack_limit(self) -> Callable[[RunConfig], int]:
        """Return how many runs that differ only in seed and split are trained together."""
        plugins.load()
        return resolve(self.limit)
