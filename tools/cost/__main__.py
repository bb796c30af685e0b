"""python -m tools.cost"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # Read when torch is loaded. Waiting threads then sleep; where other work wants the cores, threads that
    # spin lose whole time slices at every parallel operation, and ratios measure that.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from benchmarks.commands.inspection import columns
from benchmarks.records import provenance
from fvi_core.spelling import nearest
from reports.marks import grid
from tools import cost
from tools.cost.measures import BENCHMARKS
from tools.cost.timing import Measurement

OUTPUT = Path("reports/output")
REPEATS = 7
HEADING = ("benchmark", "measured", "threads", "wall", "process", "goal", "met", "wall ms (process ms)")


def table(measurements: list[Measurement]) -> list[tuple[str, ...]]:
    """Return rows of text under :data:`HEADING`."""
    rows: list[tuple[str, ...]] = []
    for m in measurements:
        made_of = ", ".join(f"{name} {wall:.4g} ({process:.4g})" for name, (wall, process) in m.times.items())
        wall, process = (f"{value:.3g} {m.unit}" for value in (m.wall, m.process))
        rows.append((m.benchmark, m.name, str(m.threads), wall, process, m.aim, m.verdict, made_of))
    return rows


def machine() -> dict[str, Any]:
    """Return facts about the machine and the code; ``load``: the load average over the last minute."""
    about = {k: v for k, v in provenance.collect().items() if k != "threads"}
    return about | {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "waiting_threads": os.environ.get("OMP_WAIT_POLICY", "default"),
        "made": provenance.now(),
    }


def headline(about: dict[str, Any], repeats: int) -> str:
    """Describe the machine in one line."""
    return (
        f"{about['cpu']}, {about['cores']} cores, load {about['load']} before the start, "
        f"OMP_WAIT_POLICY {about['waiting_threads']}, "
        f"torch {about['versions']['torch']}, commit {about['commit'][:10]}"
        f"{' with changes' if about['dirty'] else ''}; medians of {repeats} turns"
    )


def write(
    folder: Path, about: dict[str, Any], repeats: int, measurements: list[Measurement], rows: list[tuple[str, ...]]
) -> list[Path]:
    """Write ``cost.json`` and ``cost.md`` into the folder; return their paths."""
    entries = [asdict(m) | {"met": m.met(m.wall), "met_by_process_time": m.met(m.process)} for m in measurements]
    page = f"# Cost of training steps\n\n{headline(about, repeats)}\n\n{grid(HEADING, rows)}"
    texts = {
        "cost.json": json.dumps({"machine": about, "turns": repeats, "measurements": entries}, indent=1),
        "cost.md": page,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text.rstrip("\n") + "\n")
    return [folder / name for name in texts]


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write. Return 2 for bad arguments or folder; a missed goal is no error."""
    purpose = cost.__doc__.split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tools.cost", description=purpose)
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(BENCHMARKS)}; none: all")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"turns that are counted ({REPEATS})")
    parser.add_argument("--output", type=Path, default=OUTPUT, help=f"for cost.json and cost.md ({OUTPUT})")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in BENCHMARKS:
            parser.error(f"no benchmark {name!r}; {nearest(name, BENCHMARKS)}")
    if options.repeats < 1:
        parser.error(f"--repeats must be 1 or more, found {options.repeats}")
    about, measurements = machine(), list[Measurement]()
    try:
        for name in dict.fromkeys(options.names or BENCHMARKS):
            print(f"measuring {name} ...", file=sys.stderr)
            measurements += BENCHMARKS[name](options.repeats)
    except (ValueError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    rows = table(measurements)
    print(f"{columns([HEADING, *rows])}\n{headline(about, options.repeats)}")
    try:
        written = write(options.output, about, options.repeats, measurements, rows)
    except OSError as error:
        reason = f"{error.strerror}; name another folder"
        print(f"error: --output {options.output} cannot be written: {reason}", file=sys.stderr)
        return 2
    print("wrote", *written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
