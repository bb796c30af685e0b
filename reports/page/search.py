"""Index of the site's search: tables, methods, data sets, metrics, claims and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from reports.findings.verdicts import Finding
from reports.labels import name as metric_name
from reports.page.book import Book
from reports.page.methods import Methods

SHOWN = 4  # tables of a data set or metric that are named
Entry = tuple[str, str, str, str, str]
"""Kind, title, a line on it, address from the site's root, and more words that find it."""


def entries(
    book: Book,
    methods: Methods,
    findings: Iterable[Finding],
    figures: Iterable[Mapping[str, Any]],
    page: Callable[[str], str],
) -> list[Entry]:
    """Return all entries; page: the address of a table's page."""
    found: list[Entry] = []
    where: dict[tuple[str, str], list[str]] = {}
    for table, (sheet, *_) in book.sheets.items():
        rows = " ".join(dict.fromkeys(word for row in sheet.table.rows for word in (row.label, row.method or "")))
        metrics = {name: metric_name(name) for name in sheet.metrics}
        words = " ".join((sheet.table.paper or "", rows, *sheet.datasets, *metrics, *metrics.values()))
        found.append(("table", table, sheet.table.title, page(table), words))
        for kind, names in (("data set", sheet.datasets), ("metric", metrics.values())):
            for name in names:
                where.setdefault((kind, name), []).append(table)
    for method, address in methods.pages.items():
        row = methods.catalogue.get(method)
        words = " ".join((row.paper or "", *row.aliases)) if row else ""
        found.append(("method", method, row.description.replace("``", "") if row else "", address, words))
    for (kind, name), tables in sorted(where.items()):
        some = ", ".join(tables[:SHOWN]) + ", ..." * (len(tables) > SHOWN)
        found.append((kind, name, f"in {some}", f"tables/index.html#find={quote(name)}", ""))
    for each in findings:
        about = f"{each.claim.id}: by the paper's numbers {each.by_paper}, by our records {each.by_records}"
        words = f"{each.claim.paper} {each.claim.place} {' '.join(each.claim.tables)}"
        found.append(("claim", each.claim.words, about, f"findings/index.html#{each.claim.id}", words))
    for figure in figures:
        name, about = figure["name"], f"protocol {figure['protocol']}"
        found.append(("figure", figure["title"], about, f"figures/index.html#{name}", f"{figure['paper']} {name}"))
    return found
