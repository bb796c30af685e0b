"""Commands that messages name: so that they can be pasted where they are read."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

VARIABLE = "FVI_COMMAND"  # the command of make that started this process, quoted for a shell


def again() -> str:
    """The command that was given."""
    return shlex.join(shlex.split(os.environ.get(VARIABLE, ""))) or benchmarks(*sys.argv[1:])


def benchmarks(*words: str) -> str:
    """A command of this command line, with the interpreter of now."""
    return module("benchmarks", *words)


def module(name: str, *words: str) -> str:
    """A command of a module, with the interpreter of now."""
    return shlex.join([interpreter(), "-m", name, *words])


def option(name: str, value: str) -> str:
    """An option as the command was given: one of make, or of this command line."""
    return f"{name}={value}" if os.environ.get(VARIABLE) else f"--{name.lower()} {value}"


def flag(name: str) -> str:
    """An option without a value, likewise."""
    return f"{name}=1" if os.environ.get(VARIABLE) else f"--{name.lower()}"


def interpreter() -> str:
    """The present interpreter as it is called from here: python if that is it, else its path."""
    here, found = Path(sys.executable), shutil.which("python")
    if found and Path(found).absolute().parent == here.parent:
        return "python"
    return str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here)
