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
    return shlex.join([interpreter(), "-m", "benchmarks", *words])


def interpreter() -> str:
    """The present interpreter as it is called from here: python if that is it, else its path."""
    here, found = Path(sys.executable), shutil.which("python")
    if found and Path(found).absolute().parent == here.parent:
        return "python"
    return str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here)
