"""Tests of stamps: a stored result is found only under its digest, which changes with everything that it names."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from benchmarks.records import stamp
from benchmarks.records import store as store_module
from benchmarks.records.form import RecordError
from benchmarks.records.stamp import Checked
from benchmarks.records.store import Store
from tests.benchmarks import fakes
from tests.benchmarks.records.test_store import record


def test_a_value_is_read_under_its_own_digest_alone(tmp_path: Path) -> None:
    path, value = tmp_path / "new" / "value", {"a": [1, 2.5, None]}
    assert stamp.read(path, "one") is None
    stamp.write(path, "one", value)
    assert stamp.read(path, "one") == value
    assert stamp.read(path, "two") is None and stamp.read(path, "") is None
    stamp.write(path, "", [])
    assert stamp.read(path, "one") == value and stamp.read(path, "") is None


@pytest.mark.parametrize("place", [0, 70, -2])
def test_a_damaged_value_is_not_read(tmp_path: Path, place: int) -> None:
    path = tmp_path / "value"
    stamp.write(path, "one", [1, 22, 333])
    text = bytearray(path.read_bytes())
    text[place] = ord("4") if text[place] != ord("4") else ord("5")
    path.write_bytes(text)
    assert stamp.read(path, "one") is None
    path.write_bytes(b"\xff")
    assert stamp.read(path, "one") is None


def test_the_code_is_named_by_content_and_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, site = tmp_path / "root", tmp_path / "site"
    (root / "room" / "inner").mkdir(parents=True)
    (root / "room" / "inner" / "numbers.csv").write_text("1")
    (root / "other").mkdir()
    site.mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])

    def now() -> str:
        stamp.code.cache_clear()
        return stamp.code("room", root=root)

    seen = [now()]
    for passed_over in ("room/__pycache__", "room/output"):
        (root / passed_over).mkdir()
        (root / passed_over / "made").write_text("")
    (root / "other" / "code.py").write_text("")
    assert now() == seen[0], "compiled files, output and other rooms do not count"
    for change in (
        lambda: (root / "room" / "inner" / "numbers.csv").write_text("2"),
        lambda: (root / "room" / "new.py").write_text(""),
        lambda: (root / "room" / "new.py").rename(root / "room" / "renamed.py"),
        lambda: (root / "room" / "renamed.py").unlink() or (root / "room" / "inner" / "numbers.csv").write_text("3"),
        lambda: (site / "library-1.0.dist-info").mkdir(),
        lambda: (site / "library-1.0.dist-info").rename(site / "library-1.1.dist-info"),
    ):
        change()
        seen.append(now())
    assert len(set(seen)) == len(seen)
    stamp.code.cache_clear()


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Store, Path]:
    """Three records, one of them damaged, and the file that lists the others as valid."""
    store, path = fakes.store(tmp_path / "results"), tmp_path / "checked.json"
    paths = [store.write(record(seed)) for seed in range(3)]
    paths[1].write_text(paths[1].read_text().replace('"value": 0.5', '"value": 0.6'))
    assert len(Store(store.root, store.metrics, path).problems()) == 1 and path.exists()
    return store, path


def parsed(store: Store, path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return the numbers of parsed and of invalid records."""
    seen, parse = [], store_module.parse
    monkeypatch.setattr(store_module, "parse", lambda data, at, *more: seen.append(at) or parse(data, at, *more))
    problems = Store(store.root, store.metrics, path).problems()
    monkeypatch.setattr(store_module, "parse", parse)
    return len(seen), len(problems)


def test_valid_records_are_checked_once_and_invalid_ones_every_time(kept, monkeypatch) -> None:
    store, path = kept
    assert parsed(store, path, monkeypatch) == (1, 1)
    again = Store(store.root, store.metrics, path)
    assert [again.status(fakes.config(seed)) for seed in (0, 2)] == [("done", "")] * 2
    path.unlink()
    assert parsed(store, path, monkeypatch) == (3, 1)


def test_a_record_that_has_changed_or_moved_is_checked_again(kept, monkeypatch) -> None:
    store, path = kept
    changed, moved = store.path(fakes.config(0)), store.path(fakes.config(2))
    changed.write_bytes(changed.read_bytes().replace(b'"value": 0.5', b'"value": 0.7'))
    moved.rename(moved.with_name("0123456789abcdef-01234567.json"))
    assert parsed(store, path, monkeypatch) == (3, 3)
    store.write(record(0, value=0.25) | {"metric_versions": {"accuracy": 0}})
    assert Store(store.root, store.metrics, path).status(fakes.config(0))[0] == "stale"
    assert parsed(store, path, monkeypatch) == (3, 2), "what was only looked at was not written"
    assert parsed(store, path, monkeypatch) == (2, 2)


@pytest.mark.parametrize("change", ["code", "metrics", "plug-in", "damage"])
def test_records_are_checked_again_by_other_code(kept, monkeypatch, change: str) -> None:
    store, path = kept
    if change == "code":
        monkeypatch.setattr(stamp, "code", lambda *_: "other")
    elif change == "plug-in":
        monkeypatch.setattr(stamp, "plugged", lambda: True)
    elif change == "damage":
        path.write_text(path.read_text().replace('"accuracy": 1', '"accuracy": 2'))
    else:
        store.metrics = "benchmarks.metrics.registry:METRICS"
    assert parsed(store, path, monkeypatch)[0] == 3


def test_nothing_is_kept_with_plug_ins_or_without_a_folder(kept, tmp_path: Path, monkeypatch) -> None:
    store, _ = kept
    path = tmp_path / "none" / "checked.json"
    assert parsed(store, path, monkeypatch)[0] == 3 and not path.parent.exists()
    monkeypatch.setattr(stamp, "plugged", lambda: True)
    checked = Checked(tmp_path / "new.json", store.metrics)
    checked.add("file", "0", {"key": "k", "metric_versions": {}})
    checked.save()
    assert not (tmp_path / "new.json").exists()


@pytest.fixture
def settled(kept, monkeypatch) -> tuple[Store, Path]:
    """Records whose files count as old; the file that lists the valid ones was written since."""
    store, path = kept
    monkeypatch.setattr(stamp, "TICK", -(10**18))
    assert parsed(store, path, monkeypatch) == (1, 1)
    Store(store.root, store.metrics, path).write(record(3))
    assert parsed(store, path, monkeypatch) == (2, 1)
    return store, path


def opened(store: Store, path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Path], dict[str, str]]:
    """Return the files whose content was read, and what is wrong with which records."""
    seen, read = [], store_module.files.read
    monkeypatch.setattr(store_module.files, "read", lambda at: seen.append(at) or read(at))
    problems = Store(store.root, store.metrics, path).problems()
    monkeypatch.setattr(store_module.files, "read", read)
    return seen, problems


def test_only_records_that_have_changed_are_read_again(settled, monkeypatch) -> None:
    store, path = settled
    damaged = store.path(fakes.config(1))
    assert store.path(fakes.config(3)) not in opened(store, path, monkeypatch)[0]
    assert opened(store, path, monkeypatch)[0] == [damaged], "the files that were new are known by now"
    again = Store(store.root, store.metrics, path)
    monkeypatch.setattr(store_module.files, "read", lambda at: pytest.fail(f"{at} was read"))
    assert [again.status(fakes.config(seed)) for seed in (0, 2, 3)] == [("done", "")] * 3


def replaced(path: Path) -> None:
    other = path.with_name("new")
    other.write_bytes(b" " * path.stat().st_size)
    other.replace(path)


CHANGES = {
    "in place": lambda path: path.write_bytes(path.read_bytes().replace(b'"value": 0.5', b'"value": 0.7')),
    "truncated": lambda path: os.truncate(path, 100),
    "emptied": lambda path: os.truncate(path, 0),
    "replaced": replaced,
    "linked": lambda path: (path.unlink(), path.symlink_to("nothing")),
}


@pytest.mark.parametrize("how", CHANGES)
def test_no_changed_record_counts_even_with_the_time_of_the_old_one(settled, monkeypatch, how: str) -> None:
    store, path = settled
    opened(store, path, monkeypatch)
    changed = store.path(fakes.config(0))
    before = changed.stat()
    CHANGES[how](changed)
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns), follow_symlinks=False)
    seen, problems = opened(store, path, monkeypatch)
    assert changed in seen and str(changed.relative_to(store.root)) in problems
    with pytest.raises(RecordError):
        Store(store.root, store.metrics, path).status(fakes.config(0))
    changed.unlink()
    assert Store(store.root, store.metrics, path).status(fakes.config(0)) == (None, "")


def test_files_that_changed_just_now_are_read_again(kept, monkeypatch) -> None:
    store, path = kept
    for _ in range(2):
        assert len(opened(store, path, monkeypatch)[0]) == 3, "a second change within a tick would not show"


def test_two_commands_at_once_keep_what_they_checked(kept, monkeypatch) -> None:
    store, path = kept
    path.unlink()
    one, two = (Store(store.root, store.metrics, path) for _ in range(2))  # two commands at once
    assert len(one.problems()) == len(two.problems()) == 1
    assert parsed(store, path, monkeypatch) == (1, 1)


def test_a_folder_that_cannot_be_written_is_no_error(kept, monkeypatch) -> None:
    store, path = kept

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(stamp.files, "write", refuse)
    store.path(fakes.config(0)).touch()
    assert len(Store(store.root, store.metrics, path).problems()) == 1
