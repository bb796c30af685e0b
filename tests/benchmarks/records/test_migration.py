"""Records of schema 1 under schema 2: other names and configurations, the same numbers, whatever interrupts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.records import migration
from benchmarks.records.config import run_key, validate_config
from benchmarks.records.migration import migrate
from benchmarks.records.store import Store

FIXTURE = Path(__file__).parent / "fixtures" / "schema-1"
REAL = "1c99a807aae59d29"


@pytest.fixture
def store(tmp_path) -> Store:
    """A folder with a real record of schema 1."""
    (path,) = FIXTURE.rglob(f"{REAL}.json")
    target = tmp_path / path.relative_to(FIXTURE)
    target.parent.mkdir(parents=True)
    shutil.copy(path, target)
    return Store(tmp_path)


def sections(path: Path) -> list[bytes]:
    """The bytes of metrics and curves."""
    text = path.read_bytes()
    start, end = text.index(b'\n"metrics": '), text.index(b'\n"provenance": ')
    return [text[start:end]]


def test_numbers_stay_byte_for_byte_under_a_new_name(store):
    (old,) = store.paths().values()
    before, record = sections(old), json.loads(old.read_bytes())
    assert "python -m benchmarks migrate" in next(iter(store.problems().values()))
    found = migrate(store)
    assert (found.moved, found.present, found.refused) == (1, 0, [])
    (new,) = store.paths().values()
    assert new != old and sections(new) == before and store.problems() == {}
    made = store.read(new)
    validate_config(made["config"])
    assert made["key"] == run_key(made["config"]) == new.stem
    assert made["provenance"] == record["provenance"] | {"migrated": {"schema": 1, "key": REAL}}
    assert made["metric_versions"] == record["metric_versions"]
    for name in ("method", "protocol", "seed"):
        assert made["config"][name] == record["config"][name]
    assert record["config"]["parts"]["network"].items() <= made["config"]["parts"]["network"].items()


def test_a_second_migration_finds_nothing_to_do(store):
    migrate(store)
    (path,) = store.paths().values()
    before = path.read_bytes()
    assert migrate(store).present == 1 and path.read_bytes() == before


def test_a_migration_that_was_stopped_goes_on(store, monkeypatch):
    (old,) = store.paths().values()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        migrate(store)
    assert old.exists() and len(store.paths()) == 2
    assert migrate(store).moved == 1 and len(store.paths()) == 1 and not old.exists()


def test_what_cannot_be_migrated_is_left_alone_and_named(store):
    (old,) = store.paths().values()
    text = old.read_text()
    old.write_text(text.replace('"value": ', '"value": 1', 1))
    (reason,) = migrate(store).refused
    assert f"{old}: changed since it was written" in reason and old.exists()
    old.write_text(text)
    migrate(store)
    (new,) = store.paths().values()
    other = store.read(new)
    other["metrics"][0]["value"] += 1
    store.write(other)
    old.write_text(text)
    (reason,) = migrate(store).refused
    assert f"{new} is another record" in reason and old.exists() and store.read(new) == json.loads(json.dumps(other))


def test_a_write_that_changes_numbers_is_noticed(store, monkeypatch):
    (old,) = store.paths().values()
    monkeypatch.setattr(migration, "_sections", lambda record: repr(record["key"]))
    (reason,) = migrate(store).refused
    assert "its numbers would change" in reason and list(store.paths().values()) == [old]
