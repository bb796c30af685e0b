"""Commands in messages, spelled so that they can be pasted into the user's shell."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.records.provenance import ROOT
from benchmarks.sweep import threads

USUAL = {"results": ROOT / "results", "state": ROOT / ".state"}
"""Default folders of commands, by option."""
VARIABLE = "FVI_COMMAND"  # the command of make that started this process, quoted for a shell


def again() -> str:
    """Return the command that started this process, with its number of threads: checkpoints hold for that number."""
    command = shlex.join(shlex.split(os.environ.get(VARIABLE, ""))) or benchmarks(*sys.argv[1:])
    setting = f"{threads.VARIABLE}={threads.threads()}"
    return command if threads.threads() == 1 or setting in shlex.split(command) else f"{setting} {command}"


def benchmarks(*words: str) -> str:
    """Return a command of this command line, with the present interpreter; empty words are left out."""
    return module("benchmarks", *filter(None, words))


def module(name: str, *words: str) -> str:
    """Return a command of a module, with the present interpreter."""
    return shlex.join([interpreter(), "-m", name, *words])


def folders(**paths: str | Path) -> list[str]:
    """Return the options for folders, ``folders(results=..., state=...)``, that are not the default ones."""
    named = {option: Path(folder) for option, folder in paths.items() if Path(folder) != USUAL[option]}
    return [word for option, folder in named.items() for word in (f"--{option}", str(folder))]


def also(methods: Iterable[str]) -> list[str]:
    """Return the options that add a row for each method."""
    return [word for method in methods for word in ("--also", method)]


def option(name: str, value: str = "") -> str:
    """Spell an option, or a flag without a value, as in the present command: for make, or for this command line."""
    if os.environ.get(VARIABLE):
        return f"{name}={value or 1}"
    return f"--{name.lower()} {value}".rstrip()


def interpreter() -> str:
    """Return the present interpreter as the shell would call it: python if that is it, else its path."""
    here, found = Path(sys.executable), shutil.which("python")
    if found and Path(found).absolute().parent == here.parent:
        return "python"
    return str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here)
