"""Site: pages from templates, details for scripts, figures with their numbers."""

from __future__ import annotations

import itertools
import json
import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from benchmarks import files
from benchmarks.errors import BenchmarkError
from benchmarks.records.form import slug
from benchmarks.suite import Suite
from benchmarks.sweep.progress import Ticker
from benchmarks.tables.spec import UNREDUCED
from reports import stamp
from reports.captions import caption, counts, heading, notes
from reports.figures import FIGURES, Drawn
from reports.figures.processes import drawing
from reports.findings import words as findings_words
from reports.findings.page import of_book
from reports.findings.verdicts import MEANINGS, Verdict
from reports.labels import name as metric_name
from reports.marks import bold
from reports.page import assets
from reports.page.book import STATUSES, Book, Sheet
from reports.page.compare import comparisons
from reports.page.details import details, sort_key
from reports.page.forest import forest
from reports.page.methods import Measured, Methods
from reports.page.pvalues import histogram
from reports.page.ranks import rankings
from reports.page.rugs import rugs
from reports.page.search import entries
from reports.page.slim import slim
from reports.protocols.settings import filled_lines
from reports.records import Records
from reports.significance import RULE
from reports.tried import Differences, cause, listed

LARGE = 20_000  # from this number of bytes on, numbers are compressed
MOST = 20_000_000  # bytes of a site that most mail servers take
# What HTML lets out in a table of thousands of cells: end tags before another one, quotes around a word.
SPARE = re.compile(r'</t[dhr]>\s*(?=</?t)|( data-(?:order|cell)=)"([\w./#-]*\w)"(?=[ >])')
NAMED = 5  # largest files named if it is larger
NEWEST = 12
API = "api/index.html"  # written by make docs
LOOKS = {  # the status whose mark and colour a verdict on a claim has
    Verdict.HOLDS: "reproduced", Verdict.SO_FAR: "reproduced", Verdict.PART: "differs", Verdict.REVERSED: "differs",
    Verdict.OPEN: "uninformative", Verdict.UNTESTED: "missing",
}  # fmt: skip
PAPERS = {
    "pequignot2020": "Implicit variational inference: the parameter and the predictor space",
    "rudner2021": "Rethinking function-space variational inference in Bayesian neural networks",
    "rudner2022": "Tractable function-space variational inference in Bayesian neural networks",
    "dirichlet2022": "Function-space variational inference for deep Bayesian classification",
    "cinquin2024": "Well-defined function-space variational inference in Bayesian neural networks via regularized "
    "KL-divergence",
}


@dataclass(frozen=True)
class Site:
    """Result: the start page, number of pages, bytes of every file, and files that do not count, with reasons."""

    start: Path
    pages: int
    sizes: dict[str, int]
    problems: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """Total bytes of all files."""
        return sum(self.sizes.values())

    @property
    def warning(self) -> str:
        """Name the largest files if the site is too large; else empty."""
        if self.bytes <= MOST:
            return ""
        largest = sorted(self.sizes.items(), key=lambda file: file[1], reverse=True)[:NAMED]
        names = ", ".join(f"{name} ({size / 1e6:.1f} MB)" for name, size in largest)
        return f"larger than {MOST / 1e6:.0f} MB, which many mail servers refuse: the largest files are {names}"


def write(suite: Suite, records: Records, out: Path, figures: bool = True) -> Site:
    """Write the whole site into a folder, unless nothing has changed since the last time.

    Raises OSError, and BenchmarkError where a library lacks its scripts.
    """
    digest = stamp.everything(suite, records, figures, (out / API).exists())
    found = stamp.last_site(out, digest)
    if found is None:
        chosen, writer = list(FIGURES.values()) if figures else [], _Writer(suite, records, out)
        with drawing(chosen, suite, records, out, None, None, (".svg", ".csv.xz")) as drawn:
            found = writer.write(drawn)
        stamp.keep_site(out, digest, *found)
    names, problems = found
    sizes = {name: (out / name).stat().st_size for name in names}
    return Site(out / "index.html", sum(name.endswith(".html") for name in sizes), sizes, tuple(problems))


class _Writer:
    def __init__(self, suite: Suite, records: Records, out: Path) -> None:
        self.suite, self.out = suite, out
        self.book = Book(suite, records)
        self.methods = Methods(self.book)
        self.differences = Differences(self.book)
        self.findings = findings_words.flat(of_book(self.book))
        self.written: list[str] = []
        self.rankings = {id(sheet): rankings(sheet) for sheet in self.book.flat}
        self.environment = Environment(
            loader=PackageLoader("reports.page"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.filters |= {
            "bold": lambda words: Markup(bold(str(escape(words)), r"<b>\1</b>")),
            "coded": coded,
            "formula": formula,
            "slug": slug,
            "metric": metric_name,
        }
        self.environment.globals |= {
            "best": findings_words.best,
            "cause_in_words": cause,
            "heading": heading,
            "histogram": histogram,
            "findings": self.findings,
            "forest": forest,
            "on_table": findings_words.on_table,
            "result_line": findings_words.result_line,
            "summary": findings_words.summary(self.findings),
            "reservations": findings_words.reservations(self.findings),
            "pages": self.methods.pages,
            "papers": PAPERS,
            "rankings_of": lambda sheet: self.rankings.get(id(sheet), []),
            "sort_key": sort_key,
            "status": self.book.status,
            "statuses": STATUSES,
            "unreduced": UNREDUCED,
            "table_page": table_page,
        }

    def write(self, drawn: Iterable[Drawn]) -> tuple[list[str], list[str]]:
        """Write every file; return their names, and the files that do not count."""
        self.out.mkdir(parents=True, exist_ok=True)
        self.written += [f"assets/{name}" for name in assets.write(self.out / "assets")]
        published = dict.fromkeys(picture.name for picture in self.book.pictures)
        self._page(
            "index.html", newest=self._newest(), pictures=self.book.pictures, problems=self.book.problems,
            winners=[sheet for name in published for sheet in self.book.sheets.get(name, [])[:1]],
        )  # fmt: skip
        grouped = {paper: [f for f in self.findings if f.claim.paper == paper] for paper in PAPERS}
        self._page(
            "findings/index.html", "findings.html", rule=findings_words.RULE, meanings=MEANINGS,
            counts=findings_words.counts(grouped), counts_header=findings_words.COUNTS,
            by_paper=findings_words.by_paper, by_records=findings_words.by_records, details=findings_words.details,
            caveats=findings_words.caveats, looks=LOOKS, rugs=rugs,
        )  # fmt: skip
        self._page("tables/index.html", "tables.html", sheets=self.book.sheets)
        first: dict[tuple[Any, ...], str] = {}  # table by its settings, which several tables may share
        pages = itertools.count(1)
        ticker = Ticker(len(self.book.sheets) + len(self.methods.pages) + len(FIGURES), "pages and figures")
        for name, sheets in self.book.sheets.items():
            settings = tuple(filled_lines(name, self.suite))
            cells = self.differences.of(name) if name in self.book.suite.table_names() else []
            self._page(
                table_page(name), "table.html", table=sheets[0].table, sheets=sheets, words=_words,
                settings=settings, alike=first.setdefault(settings, name), differences=cells,
                tried=listed(cells, self.differences),
            )  # fmt: skip
            for sheet in sheets:
                self._data(sheet.file, details(sheet, self.book, self.methods.pages))
            ticker(next(pages))
        self._page("methods/index.html", "methods.html", methods=self.methods)
        for method, page in self.methods.pages.items():
            self._page(page, "method.html", method=method, methods=self.methods)
            ticker(next(pages))
        figures = list(self._figures(drawn, lambda: ticker(next(pages))))
        self._page("figures/index.html", "figures.html", groups=_by_paper(figures))
        self._page("compare/index.html", "compare.html", rule=RULE)
        self._data("data/compare.js", comparisons(self.book, self.methods, table_page))
        self._data("data/search.js", entries(self.book, self.methods, self.findings, figures, table_page))
        self._forget()
        return self.written, self.book.problems

    def _page(self, name: str, template: str | None = None, **context: Any) -> None:
        root = "../" * name.count("/")
        rendered = self.environment.get_template(template or name).render(
            root=root, here=name, book=self.book, api=(self.out / API).exists(), **context
        )
        self._text(name, SPARE.sub(r"\1\2", rendered) + "\n")

    def _data(self, name: str, found: Any) -> None:
        """Write what scripts read, as compressed JSON."""
        self._text(name, assets.packed(json.dumps(found, separators=(",", ":"), allow_nan=False)))

    def _text(self, name: str, text: str) -> None:
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(re.sub(r"\n\s+", "\n", text), encoding="utf-8")
        self.written.append(name)

    def _forget(self) -> None:
        """Remove files of an earlier site that this one does not have."""
        listed = self.out / stamp.LISTING
        before = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
        for name in set(before) - set(self.written):
            path = self.out / name
            if path.resolve().is_relative_to(self.out.resolve()):
                path.unlink(missing_ok=True)
        with files.replacing(listed) as file:
            file.write("\n".join(self.written).encode())

    def _figures(self, found: Iterable[Drawn], tell: Callable[[], None]) -> Iterator[dict[str, Any]]:
        """Yield every figure with records: its title, its protocol, its files by form."""
        for drawn in found:
            tell()
            if not drawn.files:
                continue
            figure, (picture, numbers) = FIGURES[drawn.name], drawn.files
            picture.write_text(slim(picture.read_text("utf-8")), "utf-8")
            protocol = picture.stem.removeprefix(f"{drawn.name}-")
            text = _numbers_of(numbers)
            if len(text) <= LARGE:
                numbers = numbers.with_suffix("")
                numbers.write_bytes(text)
            self.written += [f"figures/{picture.name}", f"figures/{numbers.name}"]
            yield {
                "name": drawn.name, "title": figure.title, "table": figure.table, "paper": figure.paper,
                "number": figure.number, "picture": picture.name, "numbers": numbers.name,
                "protocol": protocol, "remarks": figure.remarks(protocol),
            }  # fmt: skip

    def _newest(self) -> list[Measured]:
        """Return the runs that ended last, by method and data set, each with a cell that shows them."""
        found: dict[tuple[str, str, str], Measured] = {}
        for method, sheet, i in self.methods.rows():
            for j, cell in enumerate(sheet.result.cells[i]):
                if cell.values:
                    found.setdefault((method, cell.column.cell.dataset, sheet.protocol), Measured(sheet, i, j))
        return sorted(found.values(), key=lambda each: each.finished, reverse=True)[:NEWEST]


def _by_paper(figures: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return figures by paper and number, those of no paper last."""
    found: dict[str, list[dict[str, Any]]] = {}
    for figure in sorted(figures, key=lambda each: (not each["paper"], each["paper"], int(each["number"] or 0))):
        found.setdefault(figure["paper"], []).append(figure)
    return found


def _numbers_of(path: Path) -> bytes:
    """Return the numbers of a figure from a compressed file, new or of an earlier site. Raises BenchmarkError."""
    try:
        return lzma.decompress(path.read_bytes())
    except lzma.LZMAError as error:
        raise BenchmarkError(
            f"{path}: expected the numbers of a figure, compressed by xz, found a damaged file ({error}); delete it, "
            "and repeat the command, which draws the figure again"
        ) from error


def table_page(name: str) -> str:
    """Return the file of a table's page."""
    return f"tables/{slug(name)}.html"


def coded(words: str) -> Markup:
    """Convert text between pairs of backquotes to code."""
    parts: Iterable[str] = re.split(r"``(.+?)``", words)
    return Markup("").join(Markup("<code>{}</code>").format(p) if i % 2 else escape(p) for i, p in enumerate(parts))


def formula(words: str) -> Markup:
    """Convert letters after underscores in an equation to subscripts."""
    parts = re.split(r"_(\w+|\{[^}]*\})", words)
    below = Markup("<sub>{}</sub>")
    return Markup("").join(below.format(part.strip("{}")) if i % 2 else escape(part) for i, part in enumerate(parts))


def _words(sheet: Sheet) -> dict[str, Any]:
    """What stands under a table: its caption and its notes, as in every other form."""
    known = [cell for cell in sheet.result.flat if cell.published]
    return {
        "caption": caption(sheet.result), "counts": counts(known) if known else "", "notes": notes(sheet.result),
        "problems": sheet.result.problems,
    }  # fmt: skip
