"""Committed measurements, the last of each benchmark on each processor model, which reveal a slower commit.

``tools/cost/measured/<processor>.json`` holds them; ``docs/speed.md`` shows them between two markers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import files
from tools.cost.timing import Measurement

FOLDER = Path(__file__).parent / "measured"
DOCUMENT = Path(__file__).parents[2] / "docs" / "speed.md"
NOISE = 0.15
"""Relative change below which two measurements agree: equal code differs by this much on a quiet machine."""


@dataclass(frozen=True)
class Earlier:
    """Kept number, and the commit of its code."""

    wall: float
    process: float
    commit: str


def path(cpu: str, what: str = "") -> Path:
    """Return the file of a processor model; ``what``: suffix of another kind of measurement than the last ones."""
    return FOLDER / f"{re.sub('[^a-z0-9]+', '-', cpu.lower()).strip('-')}{what}.json"


def read(cpu: str) -> dict[tuple[str, str], Earlier]:
    """Return the kept numbers of a processor model by benchmark and name. Raises ValueError for a damaged file."""
    found = {}
    for benchmark, kept in _load(path(cpu)).items():
        for m in kept["measurements"]:
            found[benchmark, m["name"]] = Earlier(m["wall"], m["process"], kept["machine"]["commit"])
    return found


def keep(about: dict[str, Any], turns: int, measurements: Iterable[Measurement]) -> Path:
    """Replace the kept numbers of these benchmarks; return the file.

    Raises ValueError for uncommitted code, whose numbers could not be reproduced.
    """
    if about["dirty"] is not False:
        raise ValueError("--keep: expected the code of a commit, found changes (or no checkout); commit first")
    file = path(about["cpu"])
    kept = _load(file)
    by_benchmark: dict[str, list[dict[str, Any]]] = {}
    for m in measurements:
        by_benchmark.setdefault(m.benchmark, []).append(asdict(m))
    for benchmark, own in by_benchmark.items():
        kept[benchmark] = {"machine": about, "turns": turns, "measurements": own}
    save(file, kept)
    return file


def save(file: Path, document: Any) -> None:
    """Write one file of kept numbers."""
    file.parent.mkdir(exist_ok=True)
    files.write(file, json.dumps(document, indent=1) + "\n")


def change(m: Measurement, earlier: Earlier | None) -> str:
    """Describe the change from the earlier number, by process time, which other work on the machine affects least."""
    if earlier is None or not earlier.process:
        return ""
    times = m.process / earlier.process
    worse = times < 1 / (1 + NOISE) if m.at_least else times > 1 + NOISE
    return f"{earlier.wall:.3g} {m.unit} at {earlier.commit[:10]}, now x {times:.2f}{' WORSE' if worse else ''}"


def table(kept: dict[str, Any]) -> list[str]:
    """Return a processor's numbers as lines of Markdown."""
    rows: list[Sequence[str]] = [("benchmark", "measured", "threads", "wall", "process", "goal", "met", "commit")]
    for own in kept.values():
        for numbers in own["measurements"]:
            m = Measurement(**numbers)
            rows.append(
                (m.benchmark, m.name, str(m.threads), f"{m.wall:.3g} {m.unit}", f"{m.process:.3g} {m.unit}")
                + (m.aim, m.verdict, own["machine"]["commit"][:10])
            )
    return markdown(rows)


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a table whose first row is the heading."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]]


def insert(text: str, block: str, lines: Sequence[str]) -> str:
    """Replace the lines between a block's markers in a text. Raises ValueError without such markers."""
    begin, end = f"<!-- {block}: begin -->", f"<!-- {block}: end -->"
    head, found, rest = text.partition(begin)
    _, also, tail = rest.partition(end)
    if not (found and also):
        raise ValueError(f"{DOCUMENT.name}: expected the lines {begin!r} and {end!r}, found at most one of them")
    return "\n".join([head + begin, *(["", *lines, ""] if lines else []), end + tail])


def measured() -> list[str]:
    """Return the document's block "measured": every processor's kept numbers."""
    lines: list[str] = []
    for file in sorted(FOLDER.glob("*.json")):
        if file.stem.endswith("-against"):
            continue
        kept = _load(file)
        about = next(iter(kept.values()))["machine"]
        lines += [*([""] if lines else []), f"### {about['cpu']}, {about['cores']} cores", "", *table(kept)]
    return lines


def _load(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{file}: expected kept measurements, found no JSON ({error}); restore it with git") from error
    if not isinstance(document, dict):
        raise ValueError(f"{file}: expected kept measurements, found a {type(document).__name__}; restore it with git")
    return document
