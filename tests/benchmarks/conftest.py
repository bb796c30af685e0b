"""Folders and commands of tests that run the fakes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.commands.cli import build
from benchmarks.suite import Suite
from tests.benchmarks import fakes


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Return the paths of the results and of the state; neither exists yet."""
    return tmp_path / "results", tmp_path / "state"


@pytest.fixture
def command(call: Callable[..., tuple[int, str, str]], folders: tuple[Path, Path]) -> Callable[..., Any]:
    """``command(*words)``: run a command in the folders of the test; return its exit status, output and errors."""
    where = ["--results", str(folders[0]), "--state", str(folders[1])]

    def run(*words: str, suite: Suite = fakes.SUITE, folders: bool = True) -> tuple[int, str, str]:
        return call(build(suite), *words, *(where if folders else ()))

    return run


@pytest.fixture
def say(command: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, str]]:
    """``say(*words)``: run a command as ``command`` does; return its exit status and all that it prints."""

    def run(*words: str, **options: Any) -> tuple[int, str]:
        status, output, errors = command(*words, **options)
        return status, output + errors

    return run


@pytest.fixture
def sweep(folders: tuple[Path, Path]) -> Callable[..., Any]:
    """``sweep(configs, ...)``: sweep over configurations in the folders of the test; return the summary."""
    return partial(fakes.sweep, results=folders[0], state=folders[1])
