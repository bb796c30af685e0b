"""Records of older schemas under the present one: other configurations and names, the same numbers.

Schema 1 left hyper-parameters that had their default out of the configuration, and knew one key for training and
evaluation together. It had no plug-in sources and no contents of brought data, and no record of it that is migrated
used either.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.config import Config, canonical_json
from benchmarks.hyperparameters import resolve
from fvi_core.registry import UnknownPart

if TYPE_CHECKING:
    from benchmarks.store import Store


def upgrade_1(record: dict[str, Any]) -> dict[str, Any]:
    """A record of schema 1 as one of schema 2. Raises ValueError if its key is not that of its configuration."""
    old = record["config"]
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
    return record | {"schema": 2, "metric_versions": versions, "key": config.key, "config": config, "provenance": provenance}


@dataclass
class Migrated:
    """What a migration did: records written anew, those that were left alone and why."""

    moved: int = 0
    present: int = 0
    refused: list[str] = field(default_factory=list)


def migrate(store: Store, report: Callable[[int], None] = lambda done: None) -> Migrated:
    """Give every record of an older schema its present configuration, key and name; metrics and curves stay as they are.

    Each new file is written, read back and compared before the old one is removed, so a migration that was stopped goes
    on where it was. A record that cannot be read, or whose new name another record has, is left alone and named.
    """
    from benchmarks.store import RecordError, serialise

    found = Migrated()
    for done, (key, path) in enumerate(store.paths().items(), start=1):
        report(done)
        try:
            record = store.read(path)
            if record["key"] == key:
                found.present += 1
                continue
            target = store.path(record["config"])
            if target.exists() and store.read(target) != json.loads(json.dumps(record)):
                found.refused.append(f"{path}: {target} is another record")
                continue
            before = json.loads(path.read_bytes())
            if _sections(before) != _sections(json.loads(serialise(record))):
                found.refused.append(f"{path}: its numbers would change")
                continue
            if not target.exists():
                store.write(record)
            if store.read(target) != json.loads(json.dumps(record)):
                found.refused.append(f"{path}: {target} was not written as it should be")
                continue
            path.unlink()
            found.moved += 1
        except (RecordError, OSError) as error:
            found.refused.append(str(error))
    return found


def _sections(record: dict[str, Any]) -> str:
    """What a migration leaves alone."""
    return json.dumps([record["metrics"], record["curves"]])
