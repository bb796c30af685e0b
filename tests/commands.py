"""Commands that the documents name, and a checker of their words that does not run them."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperCommand

import datasets
import reports.cli
import tools.cluster.__main__ as cluster
from benchmarks import metrics, tables
from benchmarks.commands import cli
from benchmarks.suite import Suite
from benchmarks.sweep import begin
from benchmarks.sweep.slurm.options import load
from reports.figures import draw, options
from reports.figures.own import select
from reports.records import Records
from tests.test_packaging import make

ROOMS = (metrics, tables, datasets)  # loaded before plug-ins are, so that what those add can be taken away again
ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md"))]
PROGRAMS = {"make", "git", "cd", "export", "python", "pip", "sbatch", "squeue", "nvidia-cuda-mps-control"}
UNCHECKED = {
    "git clone <this repository>": "needs a network",
    "pip install .": "installs into the reader's environment; tests/test_wheel.py does it in another",
    "cd fvi-bench": "goes where git clone made a folder",
    "nvidia-cuda-mps-control -d": "a program of NVIDIA's, on a machine with a GPU",
}
KEY = next((ROOT / "results" / "digits" / "map").glob("*.json")).stem[:12]
STAND_FOR = {
    "<first digits of a key>": KEY, "<key>": KEY, "KEY": KEY, "<name>": "digits", "TABLE": "digits", "COMMIT": "HEAD",
    "NAME...": "digits-roc",
}  # fmt: skip


@dataclass(frozen=True)
class Command:
    """A command, as the document has it; named: between words, where its arguments may be left out."""

    document: str
    text: str
    named: bool = False

    @property
    def words(self) -> list[str]:
        """Words of the command, with a value in place of each placeholder."""
        text = self.text
        for name, value in STAND_FOR.items():
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", value, text)
        words = shlex.split(text)
        return [*words, "--help"] if self.named and words[2:-1] in (["benchmarks"], ["reports"]) else words


def commands() -> list[Command]:
    """Return every command of every document, without repeats."""
    found: dict[str, Command] = {}
    for text in re.findall(r"python -m reports figures [^\"]*", Path(reports.cli.__file__).read_text()):
        found.setdefault(" ".join(text.split()), Command("reports/cli.py", " ".join(text.split())))
    for name in DOCUMENTS:
        for text in _of_blocks(ROOT / name):
            found.setdefault(text, Command(name, text))
        for text in _between_words(ROOT / name):
            found.setdefault(text, Command(name, text, named=True))
    return list(found.values())


def _of_blocks(path: Path) -> Iterator[str]:
    """Yield the commands in indented blocks that have a line beginning with a program, and in fenced shell blocks."""
    text = re.sub(r"^```(?!sh|bash|console)\w+\n.*?^```$", "", path.read_text(), flags=re.M | re.S)
    text = re.sub(r"^```.*\n((?:.*\n)*?)```$", lambda block: re.sub("(?m)^", "    ", block[1]), text, flags=re.M)
    for block in re.findall(r"(?:^    \S.*\n)+", re.sub(r"\\\n\s*", "", text + "\n"), re.M):
        lines = [re.sub(r"\s+#.*", "", line).strip() for line in block.splitlines()]
        if any(_is_program(line.split()[0]) for line in lines if line):
            yield from (part.strip() for line in lines for part in line.split("&&") if part.strip())


def _between_words(path: Path) -> Iterator[str]:
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
    for found in re.findall(r"(?<!`)`([^`]+)`(?!`)", text):
        words = found.split()
        if len(words) > 1 and (words[0] in PROGRAMS or words[0].startswith(".venv/")):
            yield " ".join(words)


def _is_program(word: str) -> bool:
    """Return whether a word names a program; an installed one needs three letters, as shorter words are quantities."""
    return word in PROGRAMS or word.startswith((".venv/", "./")) or (len(word) > 2 and shutil.which(word) is not None)


class Parsed(Exception):
    """Raised in place of running a command; holds the parsed command line."""


class Checker:
    """Checks the options of commands and their names of tables, methods, data sets and targets."""

    def __init__(self, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.checkout, self.monkeypatch, self.suite = checkout, monkeypatch, Suite()
        (checkout / ".venv" / "bin" / "python").write_text(
            '#!/bin/sh\n[ "$*" != "-m benchmarks tables" ] || exec cat tables\n'
            'printf "%s\\0" "$@" >> words\nprintf "\\n" >> words\n'
        )
        for name in ("ruff", "mypy"):
            (checkout / ".venv" / "bin" / name).symlink_to("/bin/true")
        self.typer: dict[str, Callable[[list[str]], Any]] = {
            "benchmarks": cli.build(self.suite), "reports": reports.cli.build(self.suite), "tools.cluster": cluster.app,
        }  # fmt: skip

    def check(self, words: list[str]) -> None:
        """Raise AssertionError where a command cannot mean anything."""
        if words[0] == "export":
            self.variable(words[1].partition("=")[0])
        elif words[0] == "make":
            for module, *rest in self.recipe(words):
                self.module(module, rest)
        else:
            assert words[0] in ("python", ".venv/bin/python") and words[1] == "-m", words
            self.module(words[2], words[3:])

    def variable(self, name: str) -> None:
        """Check that the code reads an environment variable."""
        rooms = ("fvi_core", "datasets", "benchmarks")
        assert any(f'"{name}"' in path.read_text() for room in rooms for path in (ROOT / room).rglob("*.py")), name

    def recipe(self, words: list[str]) -> list[list[str]]:
        """Return the modules that a command of make runs, each with its words."""
        (self.checkout / "words").write_text("")
        done = make(*words[1:], cwd=self.checkout)
        assert done.returncode == 0, done.stderr
        lines = (self.checkout / "words").read_text().splitlines()
        found = [line.split("\0")[:-1] for line in lines]
        assert found or words[1] in ("help", "check"), f"{words} runs nothing"
        return [line[1:] for line in found]

    def module(self, name: str, words: list[str]) -> None:
        """Check the words that follow python -m."""
        if name == "pytest":
            assert all((ROOT / word).exists() for word in words if not word.startswith("-") and "/" in word), words
        elif words[-1:] == ["--help"]:
            with pytest.raises(SystemExit) as end:
                self.typer[name](words)
            assert not end.value.code, words
        elif name in self.typer:
            command, parameters = self.parsed(name, words)
            self.names(command, parameters)
        else:
            parameters = self.argparsed(name, words)
            if name == "datasets":
                assert set(parameters["wanted"]) <= set(datasets.names()), words

    def parsed(self, name: str, words: list[str]) -> tuple[str, dict[str, Any]]:
        """Return the name and the parameters of a command that typer reads; the command does not run."""

        def stop(command: TyperCommand, context: Any) -> None:
            raise Parsed(command.name, dict(context.params))

        with self.monkeypatch.context() as patched:
            patched.setattr(TyperCommand, "invoke", stop)
            with pytest.raises(Parsed) as found:
                self.typer[name](words)
        return found.value.args[0], found.value.args[1]

    def argparsed(self, name: str, words: list[str]) -> dict[str, Any]:
        """Return the parameters of a command that argparse reads; the command does not run."""
        read = argparse.ArgumentParser.parse_args

        def stop(parser: argparse.ArgumentParser, *arguments: Any) -> None:
            raise Parsed(vars(read(parser, *arguments)))

        with self.monkeypatch.context() as patched:
            patched.setattr(argparse.ArgumentParser, "parse_args", stop)
            with pytest.raises(Parsed) as found:
                module = importlib.import_module(name)
                (module if hasattr(module, "main") else importlib.import_module(f"{name}.__main__")).main(words)
        return found.value.args[0]

    def figures(self, parameters: dict[str, Any]) -> None:
        """Draw the chosen figures that have records, which fails if a figure, row or panel does not exist."""
        records, drawn = (
            Records(ROOT / "results"),
            options.Options(rows=tuple(parameters["rows"] or ()), columns=tuple(parameters["columns"] or ())),
        )
        suite = begin.adding(self.suite, parameters["also"])
        chosen = select(parameters["names"], suite, records) if parameters["names"] else []
        list(draw(chosen, suite, records, self.checkout, forms=(".txt",), options=drawn))

    def names(self, command: str, parameters: dict[str, Any]) -> None:
        """Check the names, the seeds and the options of a cluster in parsed parameters."""
        named = parameters.get("tables") or parameters.get("table") or []
        if command == "table":
            named = parameters.get("name") or named
        tables = [self.suite.table(name) for name in ([named] if isinstance(named, str) else named)]
        if parameters.get("protocol"):
            assert all(parameters["protocol"] in table.protocols for table in tables), parameters
        if command == "figures":
            self.figures(parameters)
        methods = parameters.get("method") if command != "score" else []
        assert {*(methods or []), *(parameters.get("also") or [])} <= set(self.suite.catalogue()), parameters
        assert set(parameters.get("dataset") or []) <= set(datasets.names()), parameters
        begin.parse_seeds(parameters.get("seeds"))
        assert parameters.get("executor", "pool") in begin.EXECUTORS
        load(None, parameters.get("slurm") or [], folder=self.checkout)
