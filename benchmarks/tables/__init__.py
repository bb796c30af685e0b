"""All tables by name: the papers' (``<paper>-<number>``), our own (``digits``, ``uci``), and plug-ins'."""

from __future__ import annotations

import importlib
from functools import cache

from benchmarks.errors import UnknownName
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.simple import simple
from benchmarks.tables.spec import Cell, Column, NoRecipe, Row, Table
from fvi_core import plugins
from fvi_core.spelling import nearest

__all__ = [
    "Cell",
    "Column",
    "NoRecipe",
    "Recipe",
    "Row",
    "Table",
    "add",
    "get",
    "names",
    "simple",
    "tables",
]

MODULES = (
    "digits", "toys", "retina", "retinopathy", "precision", "pequignot", "pequignot_posteriors",
    "cinquin", "rotated_mnist", "fashion_mnist", "fashion_mnist_readings", "rudner2021", "cinquin_images", "cifar",
    "cifar_dirichlet", "cinquin_ocean", "cinquin_posteriors", "cinquin_settings",
    "cinquin_readings", "cinquin_figures", "training_times",
)  # fmt: skip
"""Modules of this folder that declare tables, in the order of listing."""


_OWN: dict[str, Table] = plugins.track({})


def add(table: Table) -> Table:
    """Add a table. Raises ValueError if its name or an alias is taken."""
    taken = {name for each in (*declared().values(), *_OWN.values()) for name in (each.name, *each.aliases)}
    for name in (table.name, *table.aliases):
        if name in taken:
            raise ValueError(f"two tables are named {name!r}; give one of them another name")
    _OWN[table.name] = table
    return table


def tables() -> dict[str, Table]:
    """Return every table by its name, those of plug-ins last."""
    plugins.load()
    return declared() | _OWN


@cache
def declared() -> dict[str, Table]:
    """Return the tables of this package by their names."""
    modules = (importlib.import_module(f"benchmarks.tables.{name}") for name in MODULES)
    return {table.name: table for module in modules for table in module.TABLES}


def names() -> list[str]:
    """Return names of all tables."""
    return list(tables())


def get(name: str) -> Table:
    """Return the table of that name or alias. Raises UnknownName."""
    for table in tables().values():
        if name == table.name or name in table.aliases:
            return table
    known = [alias for table in tables().values() for alias in (table.name, *table.aliases)]
    raise UnknownName(f"no table {name!r}; {nearest(name, known)} (your own come from the files in FVI_PLUGINS)")
