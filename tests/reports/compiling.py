"""Compilation of LaTeX for tests, where pdflatex and its packages are installed, and the faults in its log."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from reports.latex import PACKAGES

FAULTS = re.compile(
    r"^(?:Overfull \\[hv]box.*|! .*|Missing character: .*|LaTeX Warning: (?:Float too large|.* undefined).*)",
    re.MULTILINE,
)


def compiled(file: Path, runs: int = 1, packages: tuple[str, ...] = (*PACKAGES, "mathptmx")) -> str:
    """Compile a document and return the log of the last run; skip the test without pdflatex and the packages."""
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    for package in packages:
        if not subprocess.run(["kpsewhich", f"{package}.sty"], capture_output=True).stdout.strip():
            pytest.skip(f"the LaTeX package {package} is not installed")
    for _ in range(runs):
        done = subprocess.run(
            ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", file.name], cwd=file.parent, capture_output=True
        )
    log = file.with_suffix(".log").read_text(encoding="latin-1")
    assert done.returncode == 0, log[-3000:]
    return log


def faults(log: str) -> list[str]:
    """Return LaTeX's warnings about overfull boxes, undefined references and missing glyphs."""
    return FAULTS.findall(log)
