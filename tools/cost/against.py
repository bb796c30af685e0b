"""Compare two commits: each benchmark in turns, in separate processes, on one machine in one run."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.records import provenance
from tools.cost import kept
from tools.cost.timing import Measurement

PLACES = ("tools/cost", "benchmarks/cost")
"""Folder of the benchmarks, now and in older commits."""


@dataclass(frozen=True)
class Compared:
    """Number of both commits: medians over the turns, wall and process time."""

    after: Measurement
    before: tuple[float, float]

    @property
    def factor(self) -> float:
        """Process time after, divided by process time before."""
        return self.after.process / self.before[1]


def extract(commit: str, folder: Path) -> Path:
    """Write a commit's code to a new folder, with this checkout's benchmarks if the commit has them in the same place.

    Raises ValueError if git knows no such commit.
    """
    done = subprocess.run(["git", "archive", commit], cwd=provenance.ROOT, capture_output=True)
    if done.returncode:
        said = done.stderr.decode().strip()
        raise ValueError(f"--against {commit}: expected a commit of this checkout; git says: {said}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    own = folder / PLACES[0]
    if own.is_dir():
        shutil.rmtree(own)
        shutil.copytree(provenance.ROOT / PLACES[0], own, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def measure(tree: Path, name: str) -> list[Measurement]:
    """Run a benchmark once with a tree's code. Raises RuntimeError if it fails."""
    place = next(place for place in PLACES if (tree / place).is_dir())
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, "-m", place.replace("/", "."), name, "--repeats", "1", "--output", output]
        environment = os.environ | {"PYTHONPATH": str(tree)}
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"benchmark {name} with the code in {tree} failed:\n{done.stderr[-2000:]}")
        found = json.loads((Path(output) / "cost.json").read_text())["measurements"]
    return [Measurement(**{k: v for k, v in m.items() if not k.startswith("met")}) for m in found]


def compare(commit: str, names: Sequence[str], turns: int) -> list[Compared]:
    """Return every number that both commits measure under the same name."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        other = extract(commit, Path(folder))
        for name in names:
            spent: dict[str, tuple[list[Measurement], list[Measurement]]] = {}
            for turn in range(turns):
                print(f"{name}: turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
                for side, tree in enumerate((other, provenance.ROOT)):
                    for m in measure(tree, name):
                        spent.setdefault(m.name, ([], []))[side].append(m)
            for before, after in spent.values():
                if before and after:
                    (wall, process), now = (_medians(side) for side in (before, after))
                    found.append(Compared(replace(after[-1], wall=now[0], process=now[1]), (wall, process)))
    return found


def table(compared: Sequence[Compared]) -> list[Sequence[str]]:
    """Return rows of text under a heading."""
    rows: list[Sequence[str]] = [("benchmark", "measured", "threads", "before", "after", "after/before", "goal", "met")]
    for c in compared:
        m = c.after
        before, after = (f"{w:.3g} ({p:.3g}) {m.unit}" for w, p in (c.before, (m.wall, m.process)))
        rows.append((m.benchmark, m.name, str(m.threads), before, after, f"{c.factor:.2f}", m.aim, m.verdict))
    return rows


def keep(commit: str, about: dict[str, Any], turns: int, compared: Sequence[Compared]) -> Path:
    """Write the comparison for ``docs/speed.md``; return the file. Raises ValueError for uncommitted code."""
    if about["dirty"] is not False:
        raise ValueError("--keep: expected the code of a commit, found changes (or no checkout); commit first")
    file = kept.path(about["cpu"], "-against")
    kept.save(file, {"against": commit, "machine": about, "turns": turns, "rows": table(compared)})
    return file


def compared_block() -> list[str]:
    """Return the document's block "compared": the last kept comparison of every processor."""
    lines: list[str] = []
    for file in sorted(kept.FOLDER.glob("*-against.json")):
        found = json.loads(file.read_text())
        about = found["machine"]
        lines += [*([""] if lines else []), f"### {about['cpu']}, {about['cores']} cores", ""]
        lines += [
            f"Before: commit {found['against'][:10]}; after: {about['commit'][:10]}; load {about['load']} before the "
            f"start, torch {about['versions']['torch']}, medians of {found['turns']} turns, wall (process) time; "
            "after/before by process time.",
            "",
            *kept.markdown(found["rows"]),
        ]
    return lines


def _medians(side: Sequence[Measurement]) -> tuple[float, float]:
    return median(m.wall for m in side), median(m.process for m in side)
