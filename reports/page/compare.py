"""Every comparison of two methods, by the tests that mark the best rows of the tables."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

from benchmarks.records.store import COSTS
from benchmarks.tables.spec import UNREDUCED
from reports.labels import direction
from reports.page.book import Book, Sheet
from reports.page.details import sort_key
from reports.page.methods import Methods

KINDS = {  # the first that fits a metric's name
    "cost": "|".join(COSTS),
    "out of distribution": "(near_|far_)?ood_",
    "selective prediction": "referral_|selective_|aurc|augrc",
    "calibration": "ece|ace|classwise_|top_label_|coverage_|interval_|pit_|quantile_",
    "likelihood": "nll|brier|crps|(smoothed_|expected_|gaussian_)?log_|collapsed_bound",
    "distance": "knn_kl|(mean|std)_distance|wasserstein",
    "error": "accuracy|balanced_|auroc|auprc|sensitivity_|rmse|mse",
}


def kind(metric: str) -> str:
    """Return what a metric measures, in two words."""
    return next((name for name, pattern in KINDS.items() if re.match(pattern, metric)), "other")


def comparisons(book: Book, methods: Methods, page: Any) -> dict[str, Any]:
    """Return what the page of comparisons reads: for every column the rows of methods and the tests between them.

    page: the address of a table's page. A comparison of the same runs that several tables show is listed once. A test
    is its two rows, 1 where the first is better, -1 where it is worse, 0 where they are not told apart, and its p-value
    and shared runs; two rows alone where there is no test.
    """
    numbers: dict[Any, int] = {}
    listed: set[tuple[int, ...]] = set()
    sheets = []
    for sheet in book.flat:
        columns = [column for j in sheet.shown if (column := _column(sheet, j, numbers, listed))]
        if columns:
            sheets.append({
                "table": sheet.table.name, "page": page(sheet.table.name), "protocol": sheet.protocol,
                "reduced": sheet.protocol not in UNREDUCED,
                "rows": [[row.label, row.method] for row in sheet.table.rows], "columns": columns,
            })  # fmt: skip
    named = {sheet["rows"][i][1] for sheet in sheets for column in sheet["columns"] for i in column["values"]}
    return {"methods": {name: methods.pages[name] for name in sorted(named, key=str.lower)}, "sheets": sheets}


def _column(sheet: Sheet, j: int, numbers: dict[Any, int], listed: set[tuple[int, ...]]) -> dict[str, Any] | None:
    """Return the pairs of rows of a column that no earlier table lists; None where there is none, or no better side.

    numbers: a number for each set of runs, which several tables may show; listed: pairs of them that are listed.
    """
    column, result = sheet.table.columns[j], sheet.result
    sign = direction(column.cell.metric)
    if not (sign and column.compared):
        return None
    number_of: dict[int, int] = {}
    for i, cells in enumerate(result.cells):
        if cells[j].values and cells[j].row.method:
            runs = column.cell_of(cells[j].row), sheet.protocol, column.scale, tuple(cells[j].values.items())
            number_of[i] = numbers.setdefault(runs, len(numbers))
    tests = result.tests[j]
    pairs: list[list[Any]] = []
    for i, k in combinations(number_of, 2):
        both = tuple(sorted((number_of[i], number_of[k])))
        if result.cells[i][j].row.method == result.cells[k][j].row.method or both in listed:
            continue
        listed.add(both)
        test = tests.get((i, k))
        better = (1 if sign * test.paired.gap > 0 else -1) * test.apart if test else 0
        pairs.append([i, k, better, float(f"{test.paired.p:.2g}"), test.paired.n] if test else [i, k])
    if not pairs:
        return None
    texts = sheet.columns[j]
    about = {"place": j, "dataset": column.cell.dataset, "label": texts.label, "metric": texts.title}
    shown = sorted({i for pair in pairs for i in pair[:2]})
    values = {i: str(texts.rows[i]["value"]) for i in shown}
    orders = {i: sort_key(result.cells[i][j]) for i in shown}
    return {**about, "kind": kind(column.cell.metric), "values": values, "orders": orders, "pairs": pairs}
