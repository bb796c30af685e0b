"""Page docs/causes.md: every published cell that differs at protocol paper, its shown cause, and experiments."""

from __future__ import annotations

from pathlib import Path

from benchmarks.records.provenance import ROOT
from benchmarks.suite import Suite
from reports.marks import anchor, escaped, grid
from reports.page.book import Book
from reports.records import Records
from reports.tried import NO_RECORD, Difference, Differences, Experiment, Reading, check, load

FILE = ROOT / "docs" / "causes.md"
RENEW = ".venv/bin/python -m reports causes"
HEADER = ("row", "cell", "ours", "published", "difference", "cause shown", "other readings")
INTRODUCTION = f"""# Differences: causes that are shown, and what was tried

    {RENEW}

writes this page from the records, from `reports/causes.csv` and from `reports/tried.csv`. It lists every published cell
that differs at protocol `paper` ([verdicts.md](verdicts.md)).

A cause is *shown* where a row that differs from the table's in nothing but what is named reproduces the number, or,
where published numbers of a column are too close together to tell rows apart (*uninformative*), agrees with it and
could have told a number half of the way back to ours. *Other readings* are rows of further tables beside the same
number. Experiments below a table have their source and what they moved; where no record of one is committed, it says
so. [protocols.md](protocols.md) has the settings of every table.
"""


def page(suite: Suite, records: Records, experiments: tuple[Experiment, ...] | None = None) -> str:
    """Return the whole page. Raises BenchmarkError for a line with an unknown name."""
    experiments = load() if experiments is None else experiments
    check(experiments, suite)
    known = Differences(Book(suite, records), experiments)
    found = {name: cells for name in suite.table_names() if (cells := known.of(name))}
    counts: dict[str, list[int]] = {}
    for name, cells in found.items():
        shown = sum(cell.cause is not None for cell in cells)
        counts[f"[{name}](#{anchor(name)})"] = [len(cells), shown, len(cells) - shown, len(known.untried(cells))]
    counts["all"] = [sum(column) for column in zip([0] * 4, *counts.values())]
    head = ("table", "differ", "cause shown", "no cause shown", "not tried")
    parts = [INTRODUCTION, grid(head, [(name, *map(str, each)) for name, each in counts.items()])]
    parts += [_section(name, cells, known) for name, cells in found.items()]
    return "\n".join(parts)


def _section(name: str, cells: list[Difference], known: Differences) -> str:
    rows = [
        (
            cell.row, cell.column, cell.value, cell.published, cell.verdict, cause(cell),
            "; ".join(map(told, cell.readings)) or "-",
        )
        for cell in cells
    ]  # fmt: skip
    parts = [f"## {name}\n", grid(HEADER, [tuple(map(escaped, row)) for row in rows])]
    items = [f"- {escaped(words)}" for words in listed(cells, known)]
    return "\n".join([*parts, "\n".join(items) + "\n"] if items else parts)


def listed(cells: list[Difference], known: Differences) -> list[str]:
    """Return the experiments on these cells in words, and the cells without any."""
    words = []
    for each, of_it in known.experiments(cells).items():
        where = ", ".join(dict.fromkeys(cell.row for cell in of_it))
        where += f" ({', '.join(dict.fromkeys(cell.column for cell in of_it))})"
        record = "No record is committed." if each.record == NO_RECORD else f"Records: table {each.record}."
        words.append(f"{where}: {_ended(each.tried)} Source: {_ended(each.source)} {_ended(each.moved)} {record}")
    untried = [f"{cell.row}, {cell.column}" for cell in known.untried(cells)]
    return [*words, f"Not tried: {'; '.join(untried)}."] if untried else words


def cause(cell: Difference) -> str:
    """Return the shown cause of a cell, and the row that shows it; a dash without one."""
    return f"{cell.cause.cause} ({cell.cause.row}, table {cell.cause.shown_by})" if cell.cause else "-"


def told(reading: Reading) -> str:
    """Return a reading in words."""
    return f"{reading.value}, {reading.verdict} ({reading.row}, table {reading.table})"


def _ended(words: str) -> str:
    return words if words.endswith(".") else f"{words}."


def write(suite: Suite, records: Records, file: Path = FILE) -> Path:
    """Write the page and return its file."""
    file.write_text(page(suite, records), encoding="utf-8")
    return file
