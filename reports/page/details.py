"""Details of a cell: its runs beside the published number, their origin, and the commands that make them."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import Any

from benchmarks.commands.inspection import OWN_FOLDERS, configuration_lines, making
from benchmarks.records.config import differences, is_external
from benchmarks.records.provenance import lost_remark
from benchmarks.shapes import RunConfig
from reports.aggregate import NOT_PLANNED, CellResult
from reports.agreement import Verdict
from reports.figures.looks import outline
from reports.labels import name, side, title
from reports.origins import CellRun
from reports.page.book import Book, Sheet
from reports.records import plain

PYTHON = ".venv/bin/python -m benchmarks"
COST = "training_seconds"
DIGITS = 6


def origin(run: CellRun) -> dict[str, Any]:
    """Return the panel's entry of a run."""
    record = run.record
    seconds = record.value(run.dataset_split[0], "", COST)
    return {
        "key": record.key,
        "file": record.file,
        "split": run.replicate[0],
        "seed": run.replicate[1],
        "commit": plain(record.commit)[:12] + " with changes" * record.changed + lost_remark(record.commit),
        "machine": record.machine,
        "seconds": seconds if isinstance(seconds, float) else _number(record.seconds[0]),
        "finished": plain(record.finished),
    }


def details(sheet: Sheet, book: Book, pages: Mapping[str, str]) -> dict[str, Any]:
    """Return rows, columns and cells of a sheet, and whether times are ranked; pages maps methods to their pages."""
    table = sheet.table
    rows = []
    for i, row in enumerate(table.rows):
        groups = {dataset: _group(sheet, i, dataset) for dataset in table.datasets}
        page = pages.get(row.method or "", "")
        rows.append(
            {"label": row.label, "method": row.method, "page": page, "groups": groups, "look": outline(row.label)}
        )
    columns = [
        {
            "label": column.label,
            "metric": name(column.cell.metric),
            "title": title(column),
            "better": side(column),
            "dataset": column.cell.dataset,
            "condition": column.cell.condition,
        }
        for column in table.columns
    ]
    cells = [[_cell(sheet, book, i, j) for j in range(len(columns))] for i in range(len(rows))]
    return {
        "table": table.name, "protocol": sheet.protocol, "rows": rows, "columns": columns, "cells": cells,
        "ranked": all(column.compared for column in table.columns if column.cell.metric == COST),
    }  # fmt: skip


def _group(sheet: Sheet, i: int, dataset: str) -> dict[str, Any]:
    """Return the runs of a row on a data set, their configuration, and its difference from the neighbouring row's."""
    table, protocol, row = sheet.table, sheet.protocol, sheet.table.rows[i]
    runs = sheet.result.runs[row, dataset]
    configs = [config for config, _ in runs.runs]
    if not configs:
        return {}
    beside = _beside(sheet, i, dataset)
    command = making(table, row, protocol, configs)
    if is_external(configs[0]):
        command = ["score", table.name, "--protocol", protocol, "--method", row.method, "FILE"]
    return {
        "runs": list(map(origin, runs.recorded)),
        "planned": len(configs),
        "configuration": [line.split(": ", 1) for line in configuration_lines(configs[0])],
        "beside": beside[0] if beside else "",
        "differs": differences(configs[0], beside[1]) if beside else [],
        "makes": _shell(command),
        "again": _shell([*command, *OWN_FOLDERS]),
    }


def _beside(sheet: Sheet, i: int, dataset: str) -> tuple[str, RunConfig] | None:
    """Return the nearest row above with runs, else the nearest below, with one of its configurations."""
    rows = sheet.table.rows
    for j in (*range(i - 1, -1, -1), *range(i + 1, len(rows))):
        if runs := sheet.result.runs[rows[j], dataset].runs:
            return rows[j].label, runs[0][0]
    return None


def _cell(sheet: Sheet, book: Book, i: int, j: int) -> dict[str, Any] | None:
    cell = sheet.result.cells[i][j]
    if cell.missing == NOT_PLANNED and cell.published is None:
        return None
    found: dict[str, Any] = {kind: str(shown) for kind, shown in sheet.columns[j].rows[i].items()}
    found |= {
        "verdict": cell.verdict, "status": book.status(cell, sheet.protocol), "n": cell.n, "expected": cell.expected,
        "values": [[*replicate, _number(value)] for replicate, value in cell.values.items()],
        "mean": _number(cell.mean), "stderr": _number(cell.stderr),
    }  # fmt: skip
    if cell.published:
        number = cell.published
        found["paper"] = {
            "mean": number.mean, "stderr": number.stderr, "runs": number.n_runs, "note": number.note,
            "of": f"{number.paper}, table {number.table}, {number.method}",
        }  # fmt: skip
    cause = book.cause(cell, sheet.protocol)
    if cause:
        found["cause"] = f"{cause.cause} (shown by {cause.row}, table {cause.shown_by}; {cause.tally})"
    if cell.comparison:
        found["test"] = {"t": _number(cell.comparison.t), "p": _number(cell.comparison.p)}
        if cell.outcome is Verdict.UNINFORMATIVE:
            found["needed"] = cell.comparison.widest.needed or 0
    return found


def sort_key(cell: CellResult) -> str:
    """Return the sort key of a cell: its mean; empty without one."""
    if math.isinf(cell.mean):
        return "Infinity" if cell.mean > 0 else "-Infinity"
    return "" if math.isnan(cell.mean) else f"{cell.mean:.{DIGITS}g}"


def _number(value: Any) -> float | None:
    """Round a number to one digit more than the panel shows; None for other values."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, int | float) and math.isfinite(value) else None


def _shell(words: list[str]) -> str:
    return f"{PYTHON} {shlex.join(words)}"
