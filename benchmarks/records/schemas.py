"""Older schemas of records, and what makes the next schema of each.

Schema 1 left hyper-parameters that had their default out of the configuration, and knew one key for training and
evaluation together. It had no plug-in sources and no contents of users' files, and no record of it that is migrated
used either.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from typing import Any, cast

from benchmarks.records.config import Config, canonical_json, run_key
from benchmarks.records.hyperparameters import resolve
from benchmarks.shapes import Record, RunConfig
from fvi_core.registry import UnknownPart


def upgrade_1(record: Record) -> Record:
    """Return a record of schema 1 as one of schema 2. Raises ValueError if its key is not that of its configuration."""
    old: Any = record["config"]  # of the older schema
    key = hashlib.sha256(canonical_json(old).encode()).hexdigest()[:16]
    if record["key"] != key:
        raise ValueError(f"its configuration has the key {key}, it says {str(record['key'])[:40]!r}")
    dataset = {"scheme": "", **old["dataset"]}
    parts = old["parts"]
    with contextlib.suppress(UnknownPart):  # of parts that this code does not have: readable, and asked for by nobody
        parts = resolve(parts)
    config = Config({
        "schema": 2,
        "method": old["method"],
        "dataset": {**dataset, "content": {}},
        "protocol": old["protocol"],
        "seed": old["seed"],
        "parts": parts,
        "sources": {},
        "evaluation": {**old["evaluation"], "content": {}},
    })  # fmt: skip
    versions = record.get("metric_versions") or {row["metric"]: 1 for row in record["metrics"]}
    provenance = record["provenance"] | {"migrated": {"schema": 1, "key": key}}
    changed: Any = {
        "schema": 2,
        "metric_versions": versions,
        "key": run_key(cast(RunConfig, config)),
        "config": config,
        "provenance": provenance,
    }
    return record | changed


UPGRADES: dict[int, Callable[[Record], Record]] = {1: upgrade_1}
"""Function that upgrades a record to the next schema, by schema."""
