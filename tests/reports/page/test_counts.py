"""Status, coverage and the site count the same runs and the same cells."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.commands.inspection import status_text
from benchmarks.records.store import Store
from benchmarks.suite import Suite as RealSuite
from reports.coverage import coverage, totals
from reports.page.book import STATUSES, Book
from reports.page.site import _by_paper, write
from reports.records import Records
from tests.reports.fakes import fake_table, on_own_files
from tests.reports.page.reading import details
from tests.reports.page.small import Suite, records, table


def test_status_coverage_and_the_site_count_alike(tmp_path: Path) -> None:
    results, suite = records(tmp_path).root, Suite(table())
    before = set(on_own_files(results, "boston/train"))
    for path in results.rglob("*.json"):  # boston is there on a user's own file only, the others as they were
        if (Store(results).read(path)["config"]["dataset"]["name"] == "boston") == (path in before):
            path.unlink()
    write(suite, Records(results), tmp_path / "site", figures=False)
    book = Book(suite, Records(results))
    start = (tmp_path / "site/index.html").read_text()
    legend = start[start.index('<ul class="legend">') :]
    assert list(book.counts.values()) == list(map(int, re.findall(r"<b>(\d+)</b>", legend[: legend.index("</ul>")])))
    *_, every = totals(coverage(results, suite))
    assert book.counts == {
        "reproduced": every.reproduced, "shown": every.shown, "differs": every.differing - every.shown,
        "uninformative": every.uninformative, "undecided": every.undecided, "reduced": every.reduced,
        "missing": every.published - every.recorded - every.reduced,
    }  # fmt: skip
    assert set(book.counts) == set(STATUSES) and sum(book.counts.values()) == every.published == 2034
    (cells,) = [sheet.result.cells for sheet in book.flat if sheet.protocol == "paper"]
    boston = sum(bool(row[j].values and row[j].published) for row in cells for j in (0, 3))
    assert boston and every.recorded == sum(bool(cell.values and cell.published) for row in cells for cell in row)

    text, _ = status_text([table()], "paper", None, results, tmp_path / ".state", RealSuite())
    done = int(text.splitlines()[1].split()[2])
    groups = [row["groups"] for row in details(tmp_path / "site/data/pequignot2020-5-paper.js")["rows"]]
    shown = {name: sum(len(group.get(name, {}).get("runs", [])) for group in groups) for name in table().datasets}
    assert done == shown["concrete"] + shown["energy"] == 18 and shown["boston"] == 8


def test_the_papers_own_tables_come_first(tmp_path: Path) -> None:
    names = ("toys", "cinquin2024-2-readings", "rudner2021-1", "cinquin2024-10", "cinquin2024-2")
    tables = [
        fake_table(name, (), (), paper=paper if number else "", number=number.partition("-")[0])
        for name in names
        for paper, _, number in [name.partition("-")]
    ]
    order = list(Book(Suite(*tables), Records(tmp_path)).sheets)
    assert order == ["cinquin2024-2", "cinquin2024-10", "rudner2021-1", "toys", "cinquin2024-2-readings"]


def test_figures_stand_under_their_paper_by_number() -> None:
    figures = [{"paper": paper, "number": number} for paper, number in (("", ""), ("b", "1"), ("a", "10"), ("a", "2"))]
    groups = {paper: [each["number"] for each in those] for paper, those in _by_paper(figures).items()}
    assert list(groups.items()) == [("a", ["2", "10"]), ("b", ["1"]), ("", [""])]
