"""Every command of the documents is run, or read without being run: its options, and the names in it.

The rule. What only reads (READS) is run as it stands, `demo` with one seed. Of `make`, the recipes are run with a
Python that writes down how it is called, and then each call is read, as every other command is: options are parsed by
the command itself; tables, methods, data sets, protocols, seeds, executors and options of a cluster have to exist. The
commands of docs/extend.md are run for real in test_docs.py. What is not checked stands in UNCHECKED with the reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.commands import cli
from benchmarks.suite import Suite
from tests import outsider
from tests.commands import DOCUMENTS, ROOT, UNCHECKED, Checker, Command, commands
from tests.plugins import forgotten

READS = ("tables", "methods", "parts", "explain", "show")
EVERY = commands()
READ = [
    command for command in EVERY if command.document != "docs/extend.md" and command.words[2:3] == ["benchmarks"]
    and command.words[3] in READS
]  # fmt: skip


@pytest.fixture
def checker(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Checker:
    return Checker(checkout, monkeypatch)


def test_commands_are_found() -> None:
    texts = {command.text for command in EVERY}
    assert len(texts) > 60 and {"make demo", "make table-uci DRY_RUN=1", "export FVI_PLUGINS=mine.py"} <= texts
    assert {command.document for command in EVERY} >= {"README.md", "CONTRIBUTING.md", "docs/cluster.md", "docs/gpu.md"}
    assert "reports/cli.py" in {command.document for command in EVERY}, "what --help names"
    assert len(READ) >= 3


@pytest.mark.parametrize("document", dict.fromkeys(command.document for command in EVERY))
def test_every_command_means_something(document: str, checker: Checker, tmp_path: Path, monkeypatch) -> None:
    if document in ("docs/extend.md", "docs/figures.md"):  # these name the table of the first one's plug-in
        (tmp_path / "own").mkdir()
        monkeypatch.setenv("FVI_PLUGINS", str(outsider.write(tmp_path / "own")))
    with forgotten():
        for command in EVERY:
            if command.document == document and command.text not in UNCHECKED:
                try:
                    checker.check(command.words)
                except (Exception, SystemExit) as error:
                    raise AssertionError(f"{document}: {command.text}: {error}") from error


def test_nothing_is_left_unchecked_without_need() -> None:
    assert {command.text for command in EVERY} >= set(UNCHECKED) and len(UNCHECKED) < 6


@pytest.mark.parametrize("command", READ, ids=lambda command: command.text)
def test_commands_that_read_say_something(command: Command, call) -> None:
    status, output, errors = call(cli.build(Suite()), *command.words[3:])
    assert not status and output and not errors, errors


def test_the_demonstration_gives_the_numbers_of_the_records(call, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr("benchmarks.commands.upkeep.Workers", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    status, output, _ = call(cli.build(Suite()), "demo", "--seeds", "1")
    assert not status and "MAP, MFVI, FSVI: 3 runs" in output, output
    assert "Every metric of 3 runs" in output or "of 3 runs differ from their records" in output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "make table-nosuch",
        "make table-uci PROTOCL=smoke",
        "make nosuch",
        "python -m benchmarks run digits --protocol short",
        "python -m benchmarks explain nosuch MAP boston",
        "python -m reports tables --seed 1",
        "export FVI_NOSUCH=1",
        "python -m benchmarks run digits --method Nobody",
        "python -m datasets fetch nosuch",
        "python -m tools.cost --nosuch",
        "python -m reports figures dirichlet2022-figure-2",
        "python -m reports figures dirichlet2022-figure-8 --column acuracy",
        "python -m reports figures rudner2021-figure-6-fashion_mnist --row FVI",
        "make table-uci EXECUTOR=slurm SLURM=nosuch=1",
        "make table-uci SEEDS=x",
        "squeue",
    ],
)
def test_what_means_nothing_is_found(text: str, checker: Checker) -> None:
    with pytest.raises((Exception, SystemExit)):
        checker.check(Command("", text).words)


def test_every_page_is_in_the_index_and_the_readme_fits_a_screen() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {Path(name).name for name in DOCUMENTS if name.startswith("docs/")} - {"README.md"}
    assert [name for name in sorted(pages) if f"]({name})" not in index] == []
    assert len((ROOT / "README.md").read_text().splitlines()) <= 80
