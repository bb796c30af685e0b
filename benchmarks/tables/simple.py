"""Constructor of small tables: some methods on some data sets, with one setting for all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import datasets as data
from benchmarks.records import published as numbers
from benchmarks.tables.recipes import Parts, Recipe, layered, with_quick_fits
from benchmarks.tables.spec import Cell, Column, Row, Table
from fvi_core import methods as catalogue
from fvi_core.spelling import nearest

SMOKE = {"training": {"epochs": 2}}
LIKELIHOODS = {"regression": "gaussian", "classification": "categorical"}


def simple(
    name: str,
    title: str,
    *,
    methods: Sequence[str],
    datasets: Sequence[str],
    metrics: Sequence[str | tuple[str, str]],
    parts: Parts,
    own: Mapping[str, Parts] | None = None,
    seeds: int = 5,
    samples: int = 50,
    sets: Sequence[str] = ("test",),
    published: str | Path | None = None,
) -> Table:
    """Return a table of its own protocol ``paper``, and ``smoke``: 2 epochs, 2 seeds, 10 samples, kernels fitted by at
    most 5 steps.

    metrics: names, or pairs (name, condition) such as ("ood_auroc", "ood=photos"), whose evaluation set has to be among
    ``sets``. parts: settings of all methods (network, training, likelihood; without one "gaussian" or "categorical"),
    which leave the likelihood and training of a plug-in's method as they are; own: further settings by method. Seed i
    is trained on split i, modulo the number of splits. published: a CSV file of the numbers of a paper, to stand beside
    ours, with the columns of :data:`benchmarks.records.published.COLUMNS`, in the units of records. Raises ValueError
    for a method in ``own`` that is not in ``methods``, for a condition where ``sets`` has the test set alone, and for a
    published number that is of no cell of this table.
    """
    for metric in metrics:
        if not isinstance(metric, str) and metric[1] and set(sets) <= {"test"}:
            raise ValueError(
                f"table {name!r}: metrics: {metric!r} has a condition, and sets has the test set alone: add the "
                f"evaluation set, as 'ood-photos' for 'ood=photos'"
            )
    for method in own or {}:
        if method not in methods:
            raise ValueError(
                f"table {name}: own: expected methods of this table, found {method!r}; {nearest(method, methods)}"
            )
    several = len(datasets) > 1

    def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
        smoke, described = protocol == "smoke", data.describe(dataset)
        splits, usual = described.n_splits, {"likelihood.name": LIKELIHOODS[described.task]}
        settings = layered(usual, parts, (own or {}).get(row.made_by, {}), SMOKE if smoke else {})
        replicates = tuple((seed % splits, seed) for seed in range(min(seeds, 2) if smoke else seeds))
        made = Recipe(settings, replicates, samples=min(samples, 10) if smoke else samples, sets=tuple(sets))
        if catalogue.brought(row.made_by):
            made = made.keeping(_left_open(catalogue.get(row.made_by).own_parts(), (own or {}).get(row.made_by, {})))
        return with_quick_fits(made, row.made_by) if smoke else made

    pairs = [(metric, "") if isinstance(metric, str) else metric for metric in metrics]
    columns = tuple(
        Column(
            Cell(dataset, condition, metric), " ".join(filter(None, (dataset if several else "", metric, condition)))
        )
        for dataset in datasets
        for metric, condition in pairs
    )
    rows = tuple(Row(method, method if published else None, method) for method in methods)
    reductions = {"smoke": "2 epochs, 2 seeds, 10 samples: the numbers mean nothing"}
    paper = _paper(published, {column.published_key(row) for row in rows for column in columns}) if published else None
    return Table(name, title, rows, columns, recipe, protocols=("paper", "smoke"), paper=paper, reductions=reductions)


def _left_open(parts: Parts, own: Parts) -> Parts:
    """Return a method's likelihood and training without what a table sets for that method alone."""
    changes = layered(own)
    return {kind: {k: v for k, v in part.items() if k not in changes.get(kind, {})} for kind, part in parts.items()}


def _paper(path: str | Path, keys: Collection[tuple[str, ...] | None]) -> str:
    """Return the paper of a file of published numbers. Raises ValueError for one that is of no cell of the table."""
    paper = numbers.add(path)
    for key in numbers.table(paper, None):
        if key not in keys:
            nearby = nearest(", ".join(key), [", ".join(known) for known in keys if known])
            raise ValueError(
                f"{path}: no cell of the table is {', '.join(key)!r} (data set, condition, method, metric); {nearby}"
            )
    return paper
