"""A file that cannot be trusted is not counted but named, wherever it is needed; nothing in results stops a report."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import files
from benchmarks.records.store import Store
from reports.aggregate import TableResult, aggregate
from reports.cli import build
from reports.records import Broken, Records, plain
from reports.tables import latex, markdown, text
from tests.reports.detex import words_of
from tests.reports.fakes import Cell, Column, FakeSuite, Row, config, fake_table

Writer = Callable[..., Path]
CELL = Cell("fashion_mnist", "", "accuracy")
TABLES = [
    fake_table(f"rudner2022-{number}", (Row("MAP", "MAP", "MAP"), Row("Ensemble", None, "Ensemble")),
               (Column(CELL, "accuracy", CELL, scale=100),), paper="rudner2022", number=number)
    for number in ("1", "2")
]  # fmt: skip
SUITE = FakeSuite(*TABLES, fake_table("digits", TABLES[0].rows, (Column(Cell("digits", "", "ece"), "ECE"),)))
WEIRD = "a_b & 100 % {σ}"


def forged(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a record and its SHA-256 with it, so that only what it holds is wrong."""
    record = json.loads(path.read_text())
    record.pop("sha256", None)
    change(record)
    body = "{\n" + "".join(f'"{name}": {json.dumps(value)},\n' for name, value in record.items())
    path.write_text(f'{body}"sha256": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n')


def file_of(results: Path, run: int = 0) -> str:
    return Store(results).path(config("MAP", "fashion_mnist", split=run)).relative_to(results).as_posix()


@pytest.fixture
def results(write: Writer) -> Path:
    """Three runs of two methods; of MAP's, the first file is cut short and the second is another's."""
    write("Ensemble", "fashion_mnist", {("", "accuracy"): [0.91, 0.92, 0.93]})
    found = write("MAP", "fashion_mnist", {("", "accuracy"): [0.5, 0.6, 0.9173]})
    (found / file_of(found)).write_text('{\n"schema": 1,\n"metric')
    forged(found / file_of(found, 1), lambda record: record.update(key=WEIRD))
    return found


@pytest.fixture
def run(
    call: Callable[..., tuple[int, str, str]], results: Path, tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """run(arguments) -> exit status, output, errors."""
    where = ("--results", str(results), "--out", str(tmp_path / "out"))
    return lambda *arguments: call(build(SUITE), *arguments, *where)


def test_a_broken_record_is_named_under_the_table_in_every_form(results: Path) -> None:
    result = aggregate(TABLES[0], "paper", Records(results))
    cell = result.cells[0][0]
    assert (list(cell.values), cell.problems) == ([(2, 2)], ("record not counted",))
    for form in map(words_of, (text(result), markdown(result), latex(result))):
        for number in (0, 1):
            assert form.count(f"Not counted: {file_of(results, number)}: ") == 1
        assert "delete it" in form and ("91.730 (1/3)" in form or r"91 & \multicolumn{3}{@{}l}{.730\,(1/3)}" in form)
    assert WEIRD in " ".join(text(result).split())
    assert r"a\_b & 100 % {σ}" in markdown(result)
    assert r"a\_b \& 100 \% \{$\sigma$\}" in latex(result) and "σ" not in latex(result)
    assert "Not counted" not in text(aggregate(TABLES[0], "short", Records(results)))


def test_commands_print_everything_and_end_with_status_1(run, results: Path, tmp_path: Path) -> None:
    files = [file_of(results, number) for number in (0, 1)]
    for arguments, printed in (
        (("table", "rudner2022-1"), "92.00 ± 0.58"),
        (("tables",), "digits: 0 of 2 cells"),
        (("coverage",), "all papers"),
    ):
        status, output, errors = run(*arguments)
        assert (status, errors) == (1, "") and printed in output
        assert [output.count(f"Not counted: {file}: ") for file in files] == [1, 1]
    assert (tmp_path / "out" / "coverage.md").read_text().count("Not counted: ") == 2
    assert re.search(r"rudner2022-2: 2 of 2 cells, protocol paper, not counted: 2; ", run("tables")[1])
    assert run("tables", "--seeds", "2-2")[0] == 0, "records outside the selected seeds are not missed"


def test_figures_name_what_they_leave_out(run, write: Writer) -> None:
    results = write("MAP", "digits", {("", "ece"): [0.1, 0.2]})
    broken = Store(results).path(config("MAP", "digits", split=0))
    broken.write_bytes(b"")
    status, output, _ = run("figures", "digits-roc", "digits-entropy")
    assert status == 1 and output.count("Figure digits-") == 2
    assert output.count(f"Not counted: {broken.relative_to(results)}: ") == 1
    assert "Not drawn" not in output and run("figures", "cinquin2024-figure-1")[0] == 0
    status, output, _ = run("table", "digits")
    assert status == 1 and output.count(f"Not counted: {broken.relative_to(results)}: ") == 1
    assert output.count("Figure digits-") == 5 and "Not drawn" not in output


def test_coverage_counts_a_broken_file_for_every_table_and_names_it_once(run) -> None:
    lines = [line.split() for line in run("coverage")[1].splitlines()]
    broken = {tuple(line[:2]): line[-1] for line in lines if line and line[0] in ("rudner2022", "all")}
    every = (("rudner2022", "1"), ("rudner2022", "2"), ("rudner2022", "all"), ("all", "papers"))
    assert broken == dict(zip(every, "2244"))


def outcome(results: Path) -> tuple[TableResult, list[str]]:
    """The table, printed in all forms, and the reasons of the files that it does not count."""
    result = aggregate(TABLES[0], "paper", Records(results))
    assert all(form(result) for form in (text, markdown, latex))
    return result, [broken.reason for broken in result.broken]


def first_row(record: dict[str, Any]) -> dict[str, Any]:
    return record["metrics"][0]


MALFORMED = {
    "value is text": lambda record: first_row(record).update(value="0.5"),
    "value is nothing": lambda record: first_row(record).update(value=None),
    "value is infinite": lambda record: first_row(record).update(value=float("inf")),
    "value is huge": lambda record: first_row(record).update(value=10**400),
    "a row is a list": lambda record: record.update(metrics=[[1, 2]]),
    "a name is a list": lambda record: first_row(record).update(condition=[]),
    "a name is a number": lambda record: first_row(record).update(metric=3),
    "versions are a list": lambda record: record.update(metric_versions=[]),
    "a version is text": lambda record: record.update(metric_versions={"accuracy": "1"}),
    "fingerprint is a list": lambda record: record["provenance"].update(fingerprint=[1]),
    "fingerprint is a number": lambda record: record["provenance"].update(fingerprint=1),
    "data are text": lambda record: record["provenance"].update(data="test"),
    "data of a set are a number": lambda record: record["provenance"].update(data={"test": 1}),
    "processor is a dict": lambda record: record["provenance"].update(cpu={}),
    "processor is a number": lambda record: record["provenance"].update(cpu=1),
    "schema is of before": lambda record: record.update(schema=0),
    "schema is of later": lambda record: record.update(schema=10**6),
}


@pytest.mark.parametrize("change", MALFORMED.values(), ids=MALFORMED)
def test_records_of_wrong_types_are_named(write: Writer, change: Callable[[dict[str, Any]], Any]) -> None:
    results = write("MAP", "fashion_mnist", {("", "accuracy"): [0.5, 0.6, 0.7]})
    forged(results / file_of(results), change)
    result, reasons = outcome(results)
    assert (result.cells[0][0].n, len(reasons)) == (2, 1) and reasons[0]


@pytest.mark.parametrize("data", [b"", b"{", b"null", b"\xff\xfe\x00", b"[" * 100_000, b"{}\n" * 3, b"1" * 10_000])
def test_files_of_anything_are_named(write: Writer, data: bytes) -> None:
    results = write("MAP", "fashion_mnist", {("", "accuracy"): [0.5, 0.6, 0.7]})
    (results / file_of(results)).write_bytes(data)
    result, reasons = outcome(results)
    assert (result.cells[0][0].n, len(reasons)) == (2, 1)


@given(data=st.data())
def test_no_damage_stops_a_report(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    store = Store(tmp_path_factory.mktemp("damaged"))
    row = {"dataset": "fashion_mnist", "condition": "", "metric": "accuracy", "value": 0.5, "n": 9}
    about = {"fingerprint": "0" * 64, "cpu": "A", "data": {"test": "1"}}
    path = store.write(store.make(config("MAP", "fashion_mnist"), [row], {}, about))
    whole = path.read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 40)))
    path.write_bytes(whole[:start] + data.draw(st.binary(max_size=8)) + whole[end:])
    result, reasons = outcome(store.root)
    assert result.cells[0][0].n + len(reasons) == 1


def test_what_is_no_file_is_named(write: Writer) -> None:
    results = write("MAP", "fashion_mnist", {("", "accuracy"): [0.5, 0.6, 0.7]})
    folder, loop, nowhere = (results / file_of(results, number) for number in range(3))
    for path in (folder, loop, nowhere):
        path.unlink()
    folder.mkdir()
    loop.symlink_to(loop)
    nowhere.symlink_to("nothing")
    result, reasons = outcome(results)
    assert [broken.file for broken in result.broken] == [file_of(results, number) for number in range(3)]
    assert "Too many levels" in reasons[1]


def test_folders_that_are_none_are_no_records_or_named(write: Writer) -> None:
    results = write("MAP", "fashion_mnist", {("", "accuracy"): [0.5]})
    (results / file_of(results)).unlink()
    (results / "fashion-mnist" / "map").rmdir()
    (results / "fashion-mnist" / "map").write_text("a file where a folder should be")
    assert outcome(results)[0].cells[0][0].missing == "no run"
    (results / "fashion-mnist" / "map").unlink()
    (results / "fashion-mnist" / "map").symlink_to("map")
    assert len(outcome(results)[1]) == 3


def test_a_file_that_may_not_be_read_is_named(write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    results = write("MAP", "fashion_mnist", {("", "accuracy"): [0.5, 0.6, 0.7]})

    def refuse(path: Path, *_: Any) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(files, "read", refuse)
    assert "Permission denied" in outcome(results)[1][0]


def test_curves_of_wrong_types_stop_no_other_figure(run, write: Writer) -> None:
    curves = {"test/reliability": 3, "ood-photos/roc": {"fpr": "x"}}
    write("MAP", "digits", {("", "ece"): [0.1, 0.2, 0.3]}, curves=curves)
    status, output, errors = run("figures", "digits-reliability", "digits-roc", "digits-entropy")
    assert (status, errors) == (1, "")
    assert output.count("Figure digits-") == 3
    assert output.count("Not drawn: digits-reliability: TypeError: ") == 1
    assert output.count("Not drawn: digits-roc: ValueError: ") == 1
    assert "Figure digits-entropy: skipped: the records hold no curve ood-photos/entropy_histogram" in output


def test_reasons_are_one_line_that_can_be_printed(write: Writer) -> None:
    results = write("MAP", "fashion_mnist", {("", "accuracy"): [0.5]})
    forged(results / file_of(results), lambda record: first_row(record).update(condition=["\x1b[2J\n" + "x" * 10_000]))
    found = Records(results).get(config("MAP", "fashion_mnist"))
    assert isinstance(found, Broken) and found.reason.isprintable() and len(found.reason) <= 400
    assert plain("a\n b\x1b[2J" + "c" * 10, length=12) == "a b?[2Jcc..."
