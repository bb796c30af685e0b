"""Rows of external predictions, as far as there are records of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, cast

from benchmarks.records.config import EXTERNAL, OPTIONAL, PARTS, fixed, is_external
from benchmarks.records.form import slug
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.suite import Suite
from benchmarks.tables.spec import Row, Table

MARK = "predictions brought"


def template(table: Table, dataset: str, protocol: str) -> list[RunConfig]:
    """Return the runs of the row with most runs on a data set: external rows need their splits, seeds and evaluation
    sets."""
    runs = [table.row_runs(row, dataset, protocol, None) for row in table.rows if row.method]
    return max(runs, key=len, default=[])


def config(run: RunConfig, method: str, digest: str, samples: int) -> RunConfig:
    """Return the configuration of external predictions for a run of the table."""
    evaluation: Any = {**run["evaluation"], "samples": samples}
    for name in OPTIONAL:  # these need more than predictions
        evaluation.pop(name, None)
    changes = {"method": method, "parts": dict.fromkeys(PARTS), "sources": {EXTERNAL: digest}, "evaluation": evaluation}
    return fixed(cast(RunConfig, {**run, **changes}))


def same(config: RunConfig, run: RunConfig) -> bool:
    """Return whether a configuration is of external predictions for a run of the table."""
    return all(config[name] == run[name] for name in ("dataset", "seed", "protocol")) and (  # type: ignore[literal-required]
        config["evaluation"]["sets"] == run["evaluation"]["sets"]
    )


def recorded(store: Store, catalogue: Collection[str]) -> list[RunConfig]:
    """Return the configurations of all records of external predictions; skips folders of the catalogue's methods."""
    own = {slug(name) for name in catalogue}
    folders = (folder for folder in sorted(store.root.glob("*/*/")) if folder.name not in own)
    configs = (record["config"] for folder in folders for record in store.beside(folder))
    return [fixed(config) for config in configs if is_external(config)]


def with_external_rows(tables: list[Any], suite: Suite, store: Store) -> list[Any]:
    """Return the tables with an extra row for every method with external predictions."""
    every = map(suite.table, suite.table_names())  # the catalogue of methods would load torch
    own = {row.method for table in every for row in table.rows if row.method}
    configs = recorded(store, own)
    return [with_rows_of(table, configs) for table in tables] if configs else tables


def with_rows_of(table: Table, configs: list[RunConfig]) -> Table:
    """Return the table with a row for every method with external predictions; missing ones count as missing."""
    here = [config for config in configs if config["dataset"]["name"] in table.datasets]
    rows: dict[str, Row] = {}
    plans: dict[tuple[str, str, str], list[RunConfig]] = {}
    for protocol in table.protocols if here else ():
        for dataset in table.datasets:
            planned = template(table, dataset, protocol)
            for method in dict.fromkeys(each["method"] for each in here):
                own = [each for each in here if each["method"] == method]
                plan = [next((c for c in own if same(c, run)), config(run, method, "", 1)) for run in planned]
                plans[method, dataset, protocol] = plan
                if any(each["sources"][EXTERNAL] for each in plan):
                    rows[method] = Row(f"{method} ({MARK})", None, method, added=True)
    if not rows:
        return table
    external = {(rows[method], data, name): plan for (method, data, name), plan in plans.items() if method in rows}
    return replace(table, rows=(*table.rows, *rows.values()), external=external)
