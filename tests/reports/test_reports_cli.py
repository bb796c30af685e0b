"""The command line of reports."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.suite import Suite
from reports.cli import build
from reports.figures import FIGURES
from reports.findings import page
from tests.reports.fakes import Cell, Column, FakeSuite, Row, fake_table, on_own_files

TABLE = fake_table(
    "pequignot2020-5",
    (Row("MC Dropout", "MC Dropout", "MC Dropout"),),
    (Column(Cell("boston", "", "rmse"), "boston", Cell("boston", "experiment=2", "rmse")),),
    paper="pequignot2020", number="5",
)  # fmt: skip


@pytest.fixture
def run(
    write: Callable[..., Path], tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> Callable[..., tuple[int, str, str]]:
    """run(arguments) -> exit status, output, errors, over one table with three records."""
    results = write("MC Dropout", "boston", {("", "rmse"): [3.0, 3.5, 4.0]})
    where = ("--results", str(results), "--out", str(tmp_path / "out"))
    return lambda *arguments, suite=FakeSuite(TABLE): call(build(suite), *arguments, *where)


def test_table_prints_and_says_where_it_wrote(run, tmp_path: Path) -> None:
    status, output, _ = run("table", "pequignot2020-5")
    assert status == 0
    assert "3.50 ± 0.29" in output and "reproduced" in output
    for form, name in (("Markdown", "pequignot2020-5-paper.md"), ("LaTeX", "pequignot2020-5-paper.tex")):
        assert f"{form}: {tmp_path / 'out' / name}" in output
        assert (tmp_path / "out" / name).exists()
    listed = output.partition("In full, with all notes:\n")[2].splitlines()[:3]
    assert [line.split(":")[0] for line in listed] == ["  Markdown", "  LaTeX", "  LaTeX alone"]
    _, bare, _ = run("table", "pequignot2020-5", "--no-notes")
    assert "Files, without notes:\n  Markdown" in bare and "all notes" not in bare


def test_table_takes_protocol_and_seeds(run) -> None:
    assert "3.25 ± 0.25" in run("table", "pequignot2020-5", "--seeds", "2")[1]
    assert "4.000" in run("table", "pequignot2020-5", "--seeds", "2-2")[1]
    assert "no run" in run("table", "pequignot2020-5", "--protocol", "short")[1]


def test_without_a_protocol_a_table_is_shown_under_one_that_has_records(run, write, tmp_path: Path) -> None:
    results = write("MC Dropout", "boston", {("", "rmse"): [5.0]}, protocol="short")
    assert "protocol short" not in run("table", "pequignot2020-5")[1]
    for path in results.rglob("*.json"):
        if json.loads(path.read_text())["config"]["protocol"] == "paper":
            path.unlink()
    output = run("table", "pequignot2020-5")[1]
    assert output.startswith("no run is recorded at protocol paper yet; this is protocol short:\n")
    assert "5.000" in output
    assert "pequignot2020-5: 1 of 1 cells, protocol short; " in run("tables")[1]
    assert "5.000" not in run("table", "pequignot2020-5", "--protocol", "paper")[1]
    assert "the most faithful one with records" in " ".join(run("table", "pequignot2020-5", "--help")[1].split())


def test_runs_on_a_users_own_files_are_shown_where_there_are_no_others(run, write, tmp_path: Path) -> None:
    results = write("MC Dropout", "boston", {("", "rmse"): [3.0, 3.5, 4.0]})
    first = on_own_files(results, "boston/train", more=1.0)
    note = "since none is recorded on those at hand: boston/train aaaaaaaaaaaaaaaa (3 runs)."
    own = run("table", "pequignot2020-5")[1]
    assert "3.50 ± 0.29" in own and note not in " ".join(own.split())
    for path in first:
        path.unlink()
    for protocol in ([], ["--protocol", "paper"]):
        output = run("table", "pequignot2020-5", *protocol)[1]
        assert "4.50 ± 0.29" in output and note in " ".join(output.split())
    assert "4.50" not in run("table", "pequignot2020-5", "--protocol", "short")[1]


def test_more_seeds_than_there_are_is_said_first(run) -> None:
    note = "--seeds 9: table pequignot2020-5 has 3 replicates at protocol paper, all 3 are used\n"
    assert run("table", "pequignot2020-5", "--seeds", "9")[1] == note + run("table", "pequignot2020-5")[1]
    assert run("tables", "--seeds", "9")[1] == note + run("tables")[1]


def test_tables_writes_every_table(run, tmp_path: Path) -> None:
    status, output, _ = run("tables")
    written = tmp_path / "out" / "pequignot2020-5-paper.md"
    assert (status, output) == (0, f"pequignot2020-5: 1 of 1 cells, protocol paper; {written}\n")


def test_the_figures_of_a_table_are_drawn_where_all_of_it_is_printed(run, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = replace(FIGURES["cinquin2024-figure-15"], name="mine", table="pequignot2020-5")
    monkeypatch.setattr("reports.figures.FIGURES", {"mine": figure})
    assert "Figure mine: " in run("table", "pequignot2020-5", "--digits", "1")[1]
    for chosen in (("--row", "MC Dropout"), ("--column", "boston"), ("--metric", "rmse")):
        assert "Figure" not in run("table", "pequignot2020-5", *chosen)[1]


def test_figures_says_what_it_skips(run) -> None:
    status, output, _ = run("figures", "digits-roc")
    assert (status, output) == (0, "Figure digits-roc: skipped: there is no table digits\n")


def test_figures_are_listed_with_the_rows_that_have_records(run, tmp_path: Path) -> None:
    names = ("pequignot2020-5-points", "digits-roc", "cinquin2024-figure-17")
    status, output, _ = run("figures", *names, "--list")
    assert (status, [line.split(maxsplit=1) for line in output.splitlines()]) == (
        0,
        [
            ["pequignot2020-5-points", "protocol paper, n = 3 runs, 1 of 1 rows"],
            ["digits-roc", "there is no table digits"],
            ["cinquin2024-figure-17", "computed"],
        ],
    )
    status, output, _ = run("figures", "pequignot2020-figure-1", "--list", suite=Suite())
    assert status == 0
    assert output.split(maxsplit=1)[1].startswith("protocol paper, 0 of 7 rows: none of MFVI; MC Dropout; ")
    assert not (tmp_path / "out").exists()


def test_figures_have_a_row_more(run, tmp_path: Path) -> None:
    status, output, errors = run("figures", "digits-points", "--also", "swag", suite=Suite())
    assert status == 0, errors
    assert output.startswith("Figure digits-points: skipped: ") and "SWAG (not in the paper)" in output
    status, _, errors = run("figures", "--also", "SWAG", suite=Suite())
    assert status == 2 and "--also SWAG is for figures that are named" in errors


@pytest.mark.parametrize("command", [("table", "pequignot2020-5"), ("coverage",)])
def test_a_folder_of_records_that_is_not_there_is_a_mistake(command, run, tmp_path: Path) -> None:
    (tmp_path / "results").rename(tmp_path / "others")
    status, output, errors = run(*command)
    assert (status, output) == (2, "") and f"there is no folder {tmp_path / 'results'}" in errors
    assert not (tmp_path / "out").exists()


def test_coverage_prints_and_writes_the_counts(run, tmp_path: Path) -> None:
    status, output, _ = run("coverage")
    assert status == 0
    assert [line.split()[:4] for line in output.splitlines() if line.startswith("all")] == [
        ["all", "papers", "all", "2034"]
    ]
    assert "**2034**" in (tmp_path / "out" / "coverage.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table", "pequignot2020-55"), "did you mean|nearest|pequignot2020-5"),
        (("figures", "digits-rock"), "did you mean 'digits-roc'"),
        (("table", "pequignot2020-5", "--protocol", "papers"), "did you mean 'paper'"),
        (("table", "pequignot2020-5", "--seeds", "x"), "--seeds is 'x', expected"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(run, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    suite = Suite() if arguments[1] == "pequignot2020-55" else FakeSuite(TABLE)
    status, output, errors = run(*arguments, suite=suite)
    assert (status, output, errors.count("\n")) == (2, "", 1)
    assert errors.startswith("error: ")
    assert re.search(message, errors)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_named(run, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file where the folder should be")
    status, output, errors = run("table", "pequignot2020-5")
    assert (status, output) == (1, "")
    assert str(tmp_path / "out") in errors and "--out" in errors


def test_pages_of_other_records_leave_the_docs_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., tuple[int, str, str]]
) -> None:
    (tmp_path / "records").mkdir()
    for name in ("DOCS", "OUT"):
        monkeypatch.setattr(f"reports.cli.{name}", tmp_path / name)
    monkeypatch.setattr("reports.cli.README", front := tmp_path / "README.md")
    front.write_text(f"{page.START}ours\n{page.END}")
    for command in (["findings", "--out", str(tmp_path / "OUT")], ["causes"]):
        assert not call(build(Suite()), *command, "--results", str(tmp_path / "records"))[0]
        assert (tmp_path / "OUT" / f"{command[0]}.md").is_file()
    assert "ours" in front.read_text() and not (tmp_path / "DOCS").exists()
