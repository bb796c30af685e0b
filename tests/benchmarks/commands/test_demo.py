"""The demonstration: it trains from nothing, changes nothing, and says whether the numbers are the recorded ones."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from benchmarks.commands import demo
from benchmarks.commands.cli import build
from benchmarks.errors import UsageError
from benchmarks.records import provenance
from benchmarks.records.store import Store
from benchmarks.suite import Suite
from benchmarks.sweep import runner, verify
from tests.benchmarks import fakes


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The records of a fake table that the demonstration makes, and no other temporary folder than this one."""
    for name, value in {"TABLE": "fake", "PROTOCOL": "smoke", "METHODS": ("MAP",)}.items():
        monkeypatch.setattr(demo, name, value)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    where = {"results": tmp_path / "results", "state": tmp_path / "state"}
    fakes.sweep(fakes.get("fake").runs("smoke"), **where)
    made = fakes.store(tmp_path / "results")
    for record in list(made.records()):
        made.write(made.make(record["config"], record["metrics"], record["curves"], {"cpu": provenance.cpu()}))
    return made


def files(store: Store) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in store.root.rglob("*")}


def run(store: Store, capsys: pytest.CaptureFixture[str], display=None, seeds=None) -> tuple[str, list]:
    found = demo.demo(fakes.SUITE, store, None, display or runner.Display(), seeds)
    return capsys.readouterr().out, found


def test_numbers_stand_beside_the_recorded_ones(store, capsys) -> None:
    before = files(store)
    output, found = run(store, capsys)
    assert len(found) == 5 and "MAP: 5 runs, in a temporary folder" in output
    line = next(line for line in output.splitlines() if line.startswith("MAP     accuracy"))
    now, then, apart = line.removeprefix("MAP     accuracy").strip().replace(" ± ", "±").split()
    assert now == then and apart == "0"
    assert "Every metric of 5 runs, shown or not, agrees to the last bit" in output
    assert "make table-digits" in output and "make page" in output
    assert files(store) == before and os.listdir(tempfile.gettempdir()) == []
    assert "MAP: 1 run, in" in run(store, capsys, seeds=[0])[0]
    output, _ = run(store, capsys, seeds=[0, 99])
    assert "--seeds 0,99: table fake has 5 replicates at protocol smoke, 1 of 2 requested are used" in output


@pytest.mark.parametrize("cpu, words", [("", "They should agree"), ("Another", "Processor models round")])
def test_other_numbers_are_trained_and_not_read(store, capsys, monkeypatch, cpu, words) -> None:
    number = fakes.number
    monkeypatch.setattr(fakes, "number", lambda config: number(config) + (0.01 if config["seed"] == 1 else 0))
    for record in list(store.records()) if cpu else ():
        store.write(store.make(record["config"], record["metrics"], {}, {"cpu": cpu}))
    output, found = run(store, capsys)
    assert "1 of 5 runs differ from their records" in output and words in output and "1.0e+00" in output
    assert any(one.alarming for one in found) is not bool(cpu)


def test_numbers_that_agree_to_rounding_do_not_differ(store, capsys, monkeypatch) -> None:
    number = fakes.number
    monkeypatch.setattr(fakes, "number", lambda config: number(config) * (1 + 1e-15))
    output, found = run(store, capsys)
    assert {one.verdict for one in found} <= {verify.EQUAL, verify.ROUNDED} != {verify.EQUAL}
    assert "Every metric of 5 runs, shown or not, agrees to rounding (largest relative difference" in output
    assert "differ from their records" not in output and "e-1" in output


def test_it_ends_quietly_when_it_is_stopped(store, call, monkeypatch) -> None:
    before = files(store)

    class Stopped(runner.Display):
        def report(self, *_) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr("benchmarks.commands.upkeep.Workers", lambda *_: None)
    monkeypatch.setattr("benchmarks.commands.upkeep.progress.display", lambda **_: Stopped())
    status, output, errors = call(build(fakes.SUITE), "demo", "--results", str(store.root))
    assert status == 130 and "stopped; nothing was saved" in output and "Traceback" not in errors
    assert files(store) == before and os.listdir(tempfile.gettempdir()) == []


def test_without_a_record_there_is_nothing_to_compare_with(store) -> None:
    store.path(fakes.config(3)).unlink()
    with pytest.raises(UsageError, match="no record of MAP, seed 3 on fake.*git checkout"):
        demo.demo(fakes.SUITE, store, None, runner.Display())


def test_its_records_are_there_and_took_less_than_a_minute() -> None:
    records = demo._records(Suite().table(demo.TABLE), Store(runner.RESULTS), None)
    assert {record["config"]["method"] for record in records} == set(demo.METHODS) and len(records) == 15
    assert verify.estimate(records) < 40  # on one core
    label = demo.text(Suite().table(demo.TABLE), [verify.compare(record, record) for record in records])
    assert all(label.count(name) == 3 for name in ("accuracy %", "NLL", "ECE", "AUROC % photographs"))
