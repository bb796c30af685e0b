"""Plug-in of a user: the snippets of docs/extend.md as files, with the data that they read."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "extend.md").read_text()
COMMANDS = re.findall(r"^    ((?:make|\.venv/bin/python) .*)$", TEXT, re.MULTILINE)


def write(folder: Path) -> Path:
    """Write mine.py, its data and pyproject.toml; return the path of mine.py."""
    files: dict[str, str] = {}
    for name, text in re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", TEXT, re.DOTALL):
        files[name] = files.get(name, "") + text
    for name, text in files.items():
        (folder / name).write_text(text)
    random = np.random.RandomState(0)
    rows = random.normal(size=(50, 3)).round(3)
    (folder / "bikes.csv").write_text(
        "wind,rain,rentals\n" + "".join(f"{a},{b},{a - b + c / 10}\n" for a, b, c in rows)
    )
    for part in ("train", "test"):
        np.savez(
            folder / f"{part}.npz", images=random.randint(0, 256, (12, 6, 5)).astype(np.uint8), labels=np.arange(12) % 3
        )
    return folder / "mine.py"


def run(*words: str, environment: dict[str, str], module: str = "benchmarks") -> subprocess.CompletedProcess[str]:
    """Run a command of the suite in another process."""
    return subprocess.run(
        [sys.executable, "-m", module, *words], cwd=ROOT, env=environment, capture_output=True, text=True
    )
