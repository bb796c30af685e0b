"""Rows whose predictions were made elsewhere: a table has them as far as there are records of such rows."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from typing import Any, cast

from benchmarks.records.config import BROUGHT, OPTIONAL, PARTS, fixed, is_brought
from benchmarks.records.form import RecordError, slug
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.tables.spec import Row, Table
from datasets import user_arrays

MARK = "predictions brought"


def template(table: Table, dataset: str, protocol: str) -> list[RunConfig]:
    """Return runs of the row that has most of them on a data set: their splits, seeds and evaluation sets are asked of
    all.
    """
    found = [table.row_runs(row, dataset, protocol, None) for row in table.rows if row.method]
    return max(found, key=len, default=[])


def config(asked: RunConfig, method: str, digest: str, samples: int) -> RunConfig:
    """Return the configuration of predictions brought for what a run of the table was asked."""
    evaluation: Any = {**asked["evaluation"], "samples": samples}
    for name in OPTIONAL["evaluation"]:  # they need more than predictions
        evaluation.pop(name, None)
    given = {"method": method, "parts": dict.fromkeys(PARTS), "sources": {BROUGHT: digest}, "evaluation": evaluation}
    return fixed(cast(RunConfig, {**asked, **given}))


def same(config: RunConfig, asked: RunConfig) -> bool:
    """Return whether predictions were brought for what a run of the table was asked."""
    return all(config[name] == asked[name] for name in ("dataset", "seed", "protocol")) and (  # type: ignore[literal-required]
        config["evaluation"]["sets"] == asked["evaluation"]["sets"]
    )


def recorded(store: Store, catalogue: Collection[str]) -> list[RunConfig]:
    """Return the configurations of all records of predictions brought; folders of methods of the catalogue are not
    opened.
    """
    own = {slug(name) for name in catalogue}
    found = []
    for folder in sorted(store.root.glob("*/*/")):
        for path in sorted(folder.glob("*.json")) if folder.name not in own else ():
            try:
                config = store.read(path, curves=False)["config"]
            except RecordError:
                continue  # told by whoever asks for it
            if is_brought(config):
                found.append(fixed(config))
    return found


def with_brought(table: Table, configs: list[RunConfig]) -> Table:
    """Return the table with a row for every method that predictions were brought of; what they lack counts as
    missing.
    """
    here = [config for config in configs if config["dataset"]["name"] in table.datasets]
    rows: dict[str, Row] = {}
    plans: dict[tuple[str, str, str], list[RunConfig]] = {}
    for protocol in table.protocols if here else ():
        for dataset in table.datasets:
            asked = template(table, dataset, protocol)
            for method in dict.fromkeys(each["method"] for each in here):
                own = [each for each in here if each["method"] == method]
                plan = [next((c for c in own if same(c, one)), config(one, method, "", 1)) for one in asked]
                plans[method, dataset, protocol] = plan
                if any(each["sources"][BROUGHT] for each in plan):
                    rows[method] = Row(f"{method} ({MARK})", None, method, added=True)
    if not rows:
        return table
    more = replace(table, rows=(*table.rows, *rows.values()))
    arrays: Any = os.environ.get(user_arrays.VARIABLE)
    for (method, dataset, protocol), plan in plans.items():
        if method in rows:
            more._made[rows[method], dataset, protocol, arrays] = plan
    return more
