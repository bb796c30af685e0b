"""How much of the five papers' tables the records cover, and how much of it agrees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks import published
from benchmarks.suite import Suite
from reports.aggregate import AGREES, CellResult, aggregate
from reports.records import Records
from reports.tables import wrapped

HEADER = ["paper", "table", "published", "with records", "of them partial", "reproduced", "differ", "no error", "reduced", "reproduced"]
EXPLANATION = (
    "Cells of the published tables. With records: at least one run under protocol paper; partial: fewer runs "
    f"than that protocol asks for. Reproduced: within {AGREES:g} combined standard errors of the published mean; differ: "
    "beyond; no error: a standard error is not known on one of the sides. Reduced: cells with records under a "
    "reduced protocol only (smoke apart, which means nothing), counted in the last two columns and nowhere else."
)


@dataclass(frozen=True)
class Coverage:
    """Counts of one published table's cells."""

    paper: str
    table: str
    published: int
    recorded: int = 0
    partial: int = 0
    reproduced: int = 0
    differing: int = 0
    undecided: int = 0
    reduced: int = 0
    reduced_reproduced: int = 0


def coverage(results_dir: Path | str, suite: Suite) -> list[Coverage]:
    """One row per published table.

    A table that the suite does not have counts with all its cells published and none recorded. A published cell counts
    by protocol paper of its own table; a cell that only reduced protocols have is counted as reduced and nowhere else.
    """
    records, known = Records(results_dir), set(suite.table_names())
    numbers = {(cell.paper, cell.table) for paper in published.papers() for cell in published.load(paper)}
    rows = []
    for paper, number in sorted(numbers, key=lambda each: (each[0], int(each[1]))):
        cells = published.table(paper, number)
        name = f"{paper}-{number}"
        if name not in known:
            rows.append(Coverage(paper, number, len(cells)))
            continue
        table = suite.table(name)
        by_protocol = {p: _recorded(table, p, records) for p in table.protocols if p != "smoke"}
        found = by_protocol.pop("paper", {})
        reduced = {key: cell for each in by_protocol.values() for key, cell in each.items() if key not in found}
        agreements = [cell.agreement or "" for cell in found.values()]
        reproduced = agreements.count("reproduced")
        differing = sum(agreement.startswith("differs") for agreement in agreements)
        partial = sum(cell.n < cell.expected for cell in found.values())
        undecided = len(found) - reproduced - differing
        also = sum(cell.agreement == "reproduced" for cell in reduced.values())
        counts = (len(found), partial, reproduced, differing, undecided, len(reduced), also)
        rows.append(Coverage(paper, number, len(cells), *counts))
    return rows


def totals(rows: Iterable[Coverage]) -> list[Coverage]:
    """One row per paper, then one over all."""
    rows = list(rows)
    papers = list(dict.fromkeys(row.paper for row in rows))
    return [_sum(paper, [row for row in rows if row.paper == paper]) for paper in papers] + [_sum("all papers", rows)]


def grid(rows: list[Coverage]) -> list[list[str]]:
    """Header, a line per table, then the totals, as strings."""
    lines = [[str(getattr(row, field.name)) for field in fields(Coverage)] for row in [*rows, *totals(rows)]]
    return [HEADER, *lines]


def text(rows: list[Coverage]) -> str:
    """The counts for the terminal."""
    lines = grid(rows)
    widths = [max(len(line[j]) for line in lines) for j in range(len(HEADER))]
    aligned = [
        "  ".join(cell.ljust(width) if j == 0 else cell.rjust(width) for j, (cell, width) in enumerate(zip(line, widths)))
        for line in lines
    ]
    rule = "─" * len(aligned[0])
    end = 1 + len(rows)
    body = [aligned[0], rule, *aligned[1:end], rule, *aligned[end:]]
    return "\n".join([*body, "", *wrapped(EXPLANATION)]) + "\n"


def markdown(rows: list[Coverage]) -> str:
    """The counts as a Markdown table, totals in bold."""
    lines = grid(rows)
    ends = ["---", "---:"] + ["---:"] * (len(HEADER) - 2)
    end = 1 + len(rows)
    table = [lines[0], ends, *lines[1:end], *([f"**{cell}**" for cell in line] for line in lines[end:])]
    body = "\n".join("| " + " | ".join(line) + " |" for line in table)
    return f"# Coverage of the published tables\n\n{body}\n\n{EXPLANATION}\n"


def _recorded(table: Any, protocol: str, records: Records) -> dict[tuple[str, ...], CellResult]:
    cells = aggregate(table, protocol, records).flat
    return {cell.published.key: cell for cell in cells if cell.published and cell.values}


def _sum(name: str, rows: list[Coverage]) -> Coverage:
    counts = [sum(getattr(row, field.name) for row in rows) for field in fields(Coverage)[2:]]
    return Coverage(name, "all", *counts)
