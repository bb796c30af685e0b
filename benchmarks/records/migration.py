"""Records of older schemas under the present one: other configurations and names, the same numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks import files
from benchmarks.records.store import RecordError, Store, serialise
from benchmarks.shapes import Record


@dataclass
class Migrated:
    """Result of a migration: the rewritten records, and the ones left alone with the reason."""

    moved: int = 0
    present: int = 0
    refused: list[str] = field(default_factory=list)


def migrate(store: Store, report: Callable[[int], None] = lambda done: None) -> Migrated:
    """Give every record of an older schema its present configuration, key and name; metrics and curves stay.

    Each new file is written, read back and compared before the old one is removed, so a migration that was stopped goes
    on where it was. A record that cannot be read, or whose new name another record has, is left alone and named.
    """
    found = Migrated()
    for done, path in enumerate(store.files(), start=1):
        report(done)
        try:
            record = store.read(path)
            if record["key"] == path.stem:
                found.present += 1
                continue
            target = store.path(record["config"])
            if target.exists() and store.read(target) != json.loads(json.dumps(record)):
                found.refused.append(f"{path}: {target} is another record")
                continue
            before = json.loads(files.read(path))
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


def _sections(record: Record) -> str:
    """Return the sections of a record that a migration leaves alone."""
    return json.dumps([record["metrics"], record["curves"]])
