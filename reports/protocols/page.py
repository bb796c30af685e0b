"""Page docs/protocols.md: every setting of every table beside those of the paper and of the authors' code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.suite import Suite
from benchmarks.sweep.plan import MEANINGLESS
from reports.marks import anchor, escaped, grid
from reports.protocols.settings import Line, check, fill, load, papers

RENEW = ".venv/bin/python -m reports protocols"
HEADER = ("rows", "setting", "paper", "authors' code", "ours", "why")
NONE = "-"
INTRODUCTION = f"""# Settings: the papers', their authors' code, and ours

    {RENEW}

writes this page from the files in `reports/protocols/`. Column *ours* holds the values of the recipes at protocol
`paper` (where a table lacks it, at its first protocol).

A dash means that a source is silent. A setting without a source is ours, and column *why* says so. Tables of no paper
stand under the papers whose settings they take. [causes.md](causes.md) lists what was tried where numbers differ.
"""


def page(suite: Suite, lines: tuple[Line, ...] | None = None) -> str:
    """Return docs/protocols.md. Raises BenchmarkError for a line with an unknown name."""
    lines = load() if lines is None else lines
    check(lines, suite)
    tables = {name: suite.table(name) for name in suite.table_names()}
    named = {name: {line.about for line in lines if name in line.tables} for name in tables}
    parts = [INTRODUCTION]
    for paper in dict.fromkeys([*papers(), *filter(None, (table.paper for table in tables.values()))]):
        shown = [table for name, table in tables.items() if paper in named[name] or table.paper == paper]
        groups = _groups(line for line in lines if line.about == paper)
        parts += [f"## {paper}\n", _index(shown, {group: _title(paper, i) for i, group in enumerate(groups, 1)})]
        parts += [_section(_title(paper, i), group, groups[group], suite) for i, group in enumerate(groups, 1)]
    return "\n".join(parts)


def _groups(lines: Iterable[Line]) -> dict[tuple[str, ...], list[Line]]:
    found: dict[tuple[str, ...], list[Line]] = {}
    for line in lines:
        found.setdefault(line.tables, []).append(line)
    return found


def _title(paper: str, number: int) -> str:
    return f"{paper}, settings {number}"


def _index(tables: Iterable[Any], titles: dict[tuple[str, ...], str]) -> str:
    """Return where the settings of each table are, and what its reduced protocols leave out; tables that share both in
    one row."""
    found: dict[tuple[str, str], list[str]] = {}
    for table in tables:
        sections = [title for group, title in titles.items() if table.name in group]
        links = ", ".join(f"[{title.rpartition(' ')[2]}](#{anchor(title)})" for title in sections) or NONE
        less = {name: table.reduction(name) for name in table.protocols if name not in ("paper", MEANINGLESS)}
        reduced = "; ".join(f"`{name}`: {words}" for name, words in less.items() if words) or NONE
        found.setdefault((links, escaped(reduced)), []).append(table.name)
    lines = [(briefly(names), *links_and_reduced) for links_and_reduced, names in found.items()]
    return grid(("tables", "settings", "reduced protocol"), lines)


def _section(title: str, group: tuple[str, ...], lines: list[Line], suite: Suite) -> str:
    rows = [
        (", ".join(line.rows) or "all", line.setting, line.paper, line.code, fill(line, suite), line.why)
        for line in lines
    ]
    return f"### {title}\n\nTables: {briefly(group)}.\n\n" + grid(HEADER, [tuple(map(escaped, row)) for row in rows])


def briefly(names: Iterable[str]) -> str:
    """Return names of tables, abbreviating runs of numbers: "a-2 to a-10, b"."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _number(name) and _number(name) == _number(runs[-1][-1], 1):
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)


def _number(name: str, more: int = 0) -> tuple[str, int] | None:
    stem, _, number = name.rpartition("-")
    return (stem, int(number) + more) if number.isdecimal() else None
