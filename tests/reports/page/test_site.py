"""The site from records alone: links lead somewhere, names stay text, numbers are those of every other form."""

from __future__ import annotations

import html
import lzma
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from benchmarks import tables
from benchmarks.records.hyperparameters import known
from benchmarks.suite import Suite
from reports.aggregate import aggregate
from reports.cli import build
from reports.coverage import coverage
from reports.figures import FIGURES, draw
from reports.page import assets
from reports.page.book import STATUSES, Book
from reports.page.details import DIGITS, _cell
from reports.page.details import details as of_sheet
from reports.page.methods import Methods, equations
from reports.page.ranks import critical_difference, not_apart, rankings
from reports.page.site import Site, coded, formula, table_page, write
from reports.records import Records
from reports.tables import latex, markdown
from tests.reports.fakes import Cell, Column
from tests.reports.page.reading import Page, details
from tests.reports.page.small import DATASETS, HOSTILE, IMAGE, METHODS, records, site, table
from tests.reports.page.small import Suite as SmallSuite
from tests.reports.test_one_aggregation import made, rows_of

__all__ = ["made"]  # a fixture


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    assert site(folder).start == folder / "site" / "index.html"
    return folder / "site"


def pages(folder: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(folder.rglob("*.html"))}


def test_notes_stand_by_kind_with_bold_leads(small: Path) -> None:
    page = (small / "tables" / "pequignot2020-5.html").read_text()
    assert "<summary>Protocol: 1 note</summary>" in page and "<li><b>A note</b> with &lt;img" in page


def test_no_link_is_dead_and_none_leads_outside(small: Path) -> None:
    found = pages(small)
    assert len(found) == 7 + len(METHODS)
    for path, page in found.items():
        assert page.links
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            assert not parts.scheme and not parts.netloc, link
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file() and target.is_relative_to(small), f"{path.name}: {link}"
            if (
                target in found
                and parts.fragment
                and not re.fullmatch(r"(paper|short)(/\d+/\d+)?|(a|find)=.*", parts.fragment)
            ):
                assert parts.fragment in found[target].names, link


def test_the_pages_of_the_library_are_linked_where_they_are(small: Path, tmp_path: Path) -> None:
    assert "Library" not in (small / "index.html").read_text()
    pages = tmp_path / "site" / "api"
    pages.mkdir(parents=True)
    (pages / "index.html").write_text("functions")
    site(tmp_path)
    for name, root in (("index.html", ""), ("tables/index.html", "../")):
        assert f'<a href="{root}api/index.html">Library</a>' in (tmp_path / "site" / name).read_text()
    assert (pages / "index.html").read_text() == "functions"


def test_the_first_page_says_which_rows_are_best(small: Path) -> None:
    text = (small / "index.html").read_text()
    part = text.partition("Which method is best where")[2].partition("Newest results")[0]
    line = re.search(r"where rows are told apart: ([^.]*)\.", (small / "tables/pequignot2020-5.html").read_text())
    assert line, "the table's page names them too"
    for label, count in re.findall(r"([^,]+?) in (\d+)", line[1]):
        assert f"<b>{label.strip()}</b> {count}" in part


def test_names_stay_text(small: Path) -> None:
    for path, page in pages(small).items():
        text = path.read_text(encoding="utf-8")
        computed = len(re.findall(r'<img src="[\w-]+-computed\.svg"', text))
        assert HOSTILE not in text and IMAGE not in text and page.images == computed
        own = 2 + len(re.findall(r'<script defer src="[./]*assets/\w+\.js">', text))
        assert page.scripts == own, path
    for path in small.glob("data/*.js"):
        assert "<" not in path.read_text()
    assert HOSTILE.replace("<", "&lt;").replace(">", "&gt;") in (small / "tables/pequignot2020-5.html").read_text()


def test_protocols_have_sheets_of_their_own(small: Path) -> None:
    cells = Page(small / "tables/pequignot2020-5.html").cells
    assert cells["paper", 1, 0]["value"] == "2.100 ± 0.058" and cells["short", 1, 0]["value"] == "7.000 (1/3)"
    assert cells["paper", 0, 0]["value"] == "3.050 ± 0.050 (2/3)"
    assert cells["paper", 0, 0]["published"].endswith(cells["short", 0, 0]["published"])
    assert "partial" in details(small / "data/pequignot2020-5-paper.js")["cells"][0][0]["verdict"]


def test_a_table_without_a_run_of_its_own_protocol_opens_on_another_and_says_so(small: Path, tmp_path: Path) -> None:
    store = records(tmp_path)
    for path in store.root.rglob("*.json"):
        if store.read(path)["config"]["protocol"] == "paper":
            path.unlink()
    write(SmallSuite(table()), Records(store.root), tmp_path / "site", figures=False)
    said = "No run is recorded at protocol paper yet, so protocol short comes first."
    for site_folder, first, second in ((tmp_path / "site", "short", "paper"), (small, "paper", "short")):
        text = (site_folder / "tables/pequignot2020-5.html").read_text()
        sheets = re.findall(r'<section class="sheet" data-protocol="(\w+)"[^>]*?( hidden)?>', text)
        assert sheets == [(first, ""), (second, " hidden")] and (said in text) == (first == "short")
        assert re.findall(r'data-protocol="(\w+)" aria-pressed="true"', text) == [first]
        listed = (site_folder / "tables/index.html").read_text()
        assert re.findall(r'href="[^"]*pequignot2020-5.html(#\w+)?"', listed) == ["", f"#{second}"]


def test_columns_of_which_nothing_is_planned_or_published_are_left_out(tmp_path: Path) -> None:
    whole = table()
    columns = tuple(replace(each, published=Cell("nowhere", "", "rmse")) for each in whole.columns[:2])
    some = replace(whole, rows=whole.rows[:2], columns=(*columns, *whole.columns[2:]), planned={"boston": ()})
    store = records(tmp_path)
    write(SmallSuite(some), Records(store.root), tmp_path / "site", figures=False)
    path = tmp_path / "site/tables/pequignot2020-5.html"
    text, page = path.read_text(), Page(path)
    first = text[: text.index("</table>")]
    heads = re.findall(r'<th scope="col" data-metric="(\w+)" data-better="-?\d" data-dataset="(\w+)"', first)
    rmse, density = "rmse", "log_posterior_predictive"
    assert heads == [(rmse, "concrete"), (rmse, "energy"), *((density, name) for name in DATASETS)]
    assert first.count("<td data-order") == len(some.rows) * len(heads)
    assert page.cells["paper", 1, 1]["value"] == "3.100 ± 0.058", "cells keep their places, which details know"
    cells = details(tmp_path / "site/data/pequignot2020-5-paper.js")["cells"]
    assert not any(row[0] for row in cells) and cells[1][1]["value"] == "3.100 ± 0.058"


def test_times_that_rank_nothing_have_no_better_side_and_no_front(tmp_path: Path) -> None:
    known = Records(records(tmp_path).root)
    for compared in (True, False):
        seconds = Column(Cell("boston", "", "training_seconds"), "seconds", compared=compared)
        book = Book(SmallSuite(replace(table(), columns=(*table().columns, seconds))), known)
        sheet = book.sheets["pequignot2020-5"][0]
        data = of_sheet(sheet, book, {})
        assert data["ranked"] == compared and data["columns"][-1]["better"] == sheet.columns[-1].better == -compared


def test_a_cell_tells_its_runs_and_how_to_make_them(small: Path) -> None:
    found = details(small / "data/pequignot2020-5-paper.js")
    group = found["rows"][1]["groups"]["boston"]
    assert [run["split"] for run in group["runs"]] == [0, 1, 2]
    assert (group["planned"], group["beside"]) == (3, "MC Dropout")
    run = group["runs"][0]
    assert run["commit"] == "0123456789ab with changes" and run["machine"] == "AMD EPYC" and run["seconds"] == 100.0
    assert group["makes"].endswith("run pequignot2020-5 --protocol paper --method Ensemble --dataset boston")
    assert group["again"].endswith("--results again --state again/.state")
    hostile = found["rows"][2]["groups"]["boston"]["makes"]
    assert f"--method '{HOSTILE}'" in hostile
    cell = found["cells"][1][0]
    assert [value for *_, value in cell["values"]] == pytest.approx([2.0, 2.1, 2.2])
    assert cell["paper"]["runs"] and cell["paper"]["mean"] and cell["test"]["p"] is not None


def test_numbers_are_those_of_every_other_form(made, tmp_path: Path) -> None:
    result, store = made

    class One(Suite):
        def table_names(self):
            return [result.table.name]

    records = Records(store.root)
    write(One(), records, tmp_path / "site", figures=False)
    whole = aggregate(result.table, "paper", records)
    shown = Page(tmp_path / "site" / table_page(result.table.name)).cells
    cells = details(next((tmp_path / "site" / "data").glob("*-paper.js")))["cells"]
    lines: dict[tuple[str, str], list[str]] = {}
    label, labels = "", [row.label for row in result.table.rows]
    kinds = ["*published*", "*difference*"]
    for name, *texts in rows_of(markdown(whole), [*labels, *kinds]):
        label = label if name in kinds else name
        kind = name.strip("*") if name in kinds else "value"
        lines.setdefault((label, kind), []).extend(texts)
    compared = 0
    for i, label in enumerate(labels):
        for j, _ in enumerate(result.table.columns):
            cell = whole.cells[i][j]
            if ("paper", i, j) not in shown:
                assert cell.missing == "not planned"
                continue
            for kind, text in shown["paper", i, j].items():
                line = lines.get((label, kind), [])
                expected = line[j] if len(line) == len(result.table.columns) else None
                assert expected in (None, text.removeprefix("published ")), (label, j, kind)
                compared += expected is not None
            assert (cells[i][j]["mean"], cells[i][j]["n"]) == (
                float(f"{cell.mean:.{DIGITS}g}") if cell.values else None, cell.n
            )  # fmt: skip
    assert compared > 30


def test_the_picture_counts_what_coverage_counts() -> None:
    results = Path(__file__).parents[3] / "results"
    suite = Suite()
    chosen = ("pequignot2020-5", "dirichlet2022-3", "cinquin2024-1")
    book = Book(suite, Records(results))
    rows = {f"{row.paper}-{row.table}": row for row in coverage(results, suite)}
    for picture in (picture for picture in book.pictures if picture.name in chosen):
        row = rows[picture.name]
        counted = {name: picture.count(name) for name in STATUSES}
        assert counted == {
            "reproduced": row.reproduced, "shown": row.shown, "differs": row.differing - row.shown,
            "uninformative": row.uninformative, "undecided": row.undecided, "reduced": row.reduced,
            "missing": row.published - row.recorded - row.reduced,
        }  # fmt: skip
        assert len({(square.row, square.column) for square in picture.squares}) == row.published


def test_a_cell_whose_verdict_is_uninformative_tells_how_many_runs_would_tell() -> None:
    book = Book(Suite(), Records(Path(__file__).parents[3] / "results"))
    (sheet, *_) = book.sheets["pequignot2020-5"]
    shown = [_cell(sheet, book, i, j) for i, row in enumerate(sheet.result.cells) for j, _ in enumerate(row)]
    cells = [cell for cell in shown if cell and cell["status"] == "uninformative"]
    assert len(cells) > 5 and all("needed" in cell for cell in cells) and any(cell["needed"] > 1 for cell in cells)
    assert not any("needed" in cell for cell in shown if cell and cell["status"] != "uninformative")
    assert "runs would make" in markdown(sheet.result) and "runs would make" in latex(sheet.result)


def test_a_site_that_grows_too_large_names_its_largest_files(tmp_path, monkeypatch, call) -> None:
    assert Site(tmp_path, 1, {"index.html": 11_000_000}, ()).warning == ""
    warning = Site(tmp_path, 1, {"small": 1, "index.html": 9_000_000, "figures/a.svg": 12_000_000}, ()).warning
    assert "larger than 20 MB" in warning and "figures/a.svg (12.0 MB), index.html (9.0 MB), small" in warning
    monkeypatch.setattr("reports.page.site.MOST", 1000)
    where = ["--results", str(records(tmp_path).root), "--state", str(tmp_path), "--out", str(tmp_path / "site")]
    status, output, _ = call(build(SmallSuite(table())), "page", *where)
    assert not status and "the largest files are assets/" in output


def test_an_older_site_leaves_nothing_behind(tmp_path: Path) -> None:
    site(tmp_path)
    (tmp_path / "site" / "mine.txt").write_text("of somebody else")
    before = set((tmp_path / "site").rglob("*.*"))
    old = tmp_path / "site" / "methods" / "gone.html"
    old.write_text("")
    with (tmp_path / "site" / ".made").open("a") as listed:
        listed.write("\nmethods/gone.html\n../results/kept")
    kept = tmp_path / "results" / "kept"
    kept.write_text("")
    site(tmp_path)
    assert set((tmp_path / "site").rglob("*.*")) == before and kept.exists()


def test_a_site_beside_figures_leaves_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "cinquin2024-figure-17"
    monkeypatch.setattr("reports.page.site.FIGURES", {name: FIGURES[name]})
    monkeypatch.setattr("reports.page.site.LARGE", 100)
    what = SmallSuite(table()), Records(records(tmp_path).root), tmp_path
    ((_, numbers),) = [drawn.files for drawn in draw([FIGURES[name]], *what, None, None, (".svg", ".csv"))]
    before = numbers.read_bytes()
    write(*what)
    assert numbers.read_bytes() == before == lzma.decompress(numbers.with_suffix(".csv.xz").read_bytes())


def test_ranks_and_critical_difference_are_demsars(write: Callable[..., Path]) -> None:
    # Demsar 2006, sec. 3.2.2: four classifiers on 14 data sets, critical difference 1.25 (q = 2.569).
    assert critical_difference(4, 14) == pytest.approx(2.569 * (4 * 5 / (6 * 14)) ** 0.5, abs=2e-3)
    for k, method in enumerate(("MC Dropout", "Ensemble", HOSTILE)):
        for j, dataset in enumerate(("boston", "concrete", "energy")):
            values = {("", "rmse"): [float(3 - k)] * 3}
            if (k, j) == (2, 2):
                values = {("", "rmse"): [2.0] * 3}  # equal to Ensemble's: they share a rank
            folder = write(method, dataset, values)
    (sheet,) = [s for s in Book(SmallSuite(table()), Records(folder)).flat if s.protocol == "paper"]
    (found,) = rankings(sheet)
    assert [(label, round(rank, 4)) for label, rank in found.ranks] == [
        (HOSTILE, round(3.5 / 3, 4)), ("Ensemble", round(5.5 / 3, 4)), ("MC Dropout", 3.0)
    ]  # fmt: skip
    assert found.p == pytest.approx(0.0608, abs=2e-3) and found.difference == pytest.approx(1.9135, abs=1e-3)
    assert "<svg" in found.diagram and HOSTILE not in found.diagram and "currentColor" in found.diagram
    (bar,) = re.findall(r'<path d="M(\S+) \S+H([^"]+)" stroke-width="3"/>', found.diagram)
    dots = [float(x) for x in re.findall(r'cx="(\S+)"', found.diagram)]
    assert tuple(map(float, bar)) == (dots[0], dots[-1]) and len(dots) == 3, "one bar over all rows"
    about = f"Critical difference 1.91; not told apart: {html.escape(HOSTILE)} to MC Dropout"
    assert f'aria-label="{about}"' in found.diagram


def test_a_bar_joins_the_rows_that_do_not_differ_significantly() -> None:
    assert not_apart([1.0, 1.5, 3.0, 4.5, 4.5], 2.0) == [(1.0, 3.0), (3.0, 4.5)]
    assert not_apart([1.0, 2.0, 3.0], 0.5) == [] and not_apart([1.0, 2.0, 3.0], 2.0) == [(1.0, 3.0)]


@pytest.mark.filterwarnings("error")
def test_rows_that_are_equal_everywhere_are_not_tested(write: Callable[..., Path]) -> None:
    for method in ("MC Dropout", "Ensemble", HOSTILE):
        for dataset in ("boston", "concrete", "energy"):
            folder = write(method, dataset, {("", "rmse"): [2.0] * 3})
    (sheet,) = [s for s in Book(SmallSuite(table()), Records(folder)).flat if s.protocol == "paper"]
    (found,) = rankings(sheet)
    assert {rank for _, rank in found.ranks} == {2.0} and found.p is None and not found.diagram


@pytest.mark.parametrize("datasets, count", [(("boston",), 0), (("boston", "energy"), 1)])
def test_ranks_in_a_single_column_are_not_shown(
    datasets: tuple[str, ...], count: int, write: Callable[..., Path]
) -> None:
    for method in ("MC Dropout", "Ensemble"):
        for dataset in datasets:
            folder = write(method, dataset, {("", "rmse"): [2.0, 3.0, 4.0]})
    (sheet,) = [s for s in Book(SmallSuite(table()), Records(folder)).flat if s.protocol == "paper"]
    assert len(rankings(sheet)) == count


def test_rows_that_lack_a_split_have_no_rank_and_no_place(write: Callable[..., Path]) -> None:
    for method, values in (("MC Dropout", [2.0, 3.0, 4.0]), ("Ensemble", [3.0, 4.0, 5.0]), (HOSTILE, [1.0, 1.0])):
        for dataset in ("boston", "energy"):
            folder = write(method, dataset, {("", "rmse"): values})
    book = Book(SmallSuite(table()), Records(folder))
    (found,) = rankings(next(sheet for sheet in book.flat if sheet.protocol == "paper"))
    assert [label for label, _ in found.ranks] == ["MC Dropout", "Ensemble"] and found.left_out == (HOSTILE,)
    measured = Methods(book).measured
    places = [[each.rank for each in measured[name]] for name in ("MC Dropout", "Ensemble", HOSTILE)]
    assert places == [["1 of 2"] * 2, ["2 of 2"] * 2, [""] * 2]


def test_a_module_becomes_a_plain_script() -> None:
    assert "window.DataTable=b;" in assets.classic("var b=1;export{a as Other,b as default};")
    with pytest.raises(Exception, match="no default export"):
        assets.classic("export{a as Other};")


def test_equations_are_of_parts_that_exist() -> None:
    for kind, part in equations():
        assert part in known().get(kind, {}) or kind == "weight", (kind, part)
    choices = Methods(Book(Suite(), Records("nowhere"))).choices("FSVI")
    assert [choice.part for choice in choices[:4]] == ["mean_field", "gaussian_kl", "gaussian_weights", "uniform_box"]
    assert all(choice.equation and choice.source for choice in choices[:4])


def test_a_training_without_a_name_is_the_tables() -> None:
    found = Methods(Book(Suite(), Records("nowhere")))
    found.catalogue = {**found.catalogue, "Mine": replace(found.catalogue["FSVI"], training={"samples": 7})}
    choice = found.choices("Mine")[-1]
    assert (choice.kind, choice.part, choice.options) == ("training", "the table's", "samples = 7")


def test_code_and_equations_are_escaped() -> None:
    assert coded("a < ``b < c``") == "a &lt; <code>b &lt; c</code>"
    assert formula("s_k < N_{<b>}") == "s<sub>k</sub> &lt; N<sub>&lt;b&gt;</sub>"


def test_every_row_of_tables_has_a_page_of_its_own() -> None:
    found = Methods(Book(Suite(), Records("nowhere")))
    assert len(set(found.pages.values())) == len(found.names) >= 30
    assert {row.method for name in tables.names() for row in tables.get(name).rows if row.method} <= set(found.pages)


def test_colours_can_be_read() -> None:
    css = Path(assets.__file__).with_name("static").joinpath("page.css").read_text()
    themes = re.findall(r":root[^{]*\{([^}]*--paper[^}]*)\}", css.partition("@media print")[0])
    assert len(themes) == 2
    for theme in themes:
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", theme))
        for ground in ("paper", "card", "wash"):
            for name, least in {"ink": 7, "soft": 4.5, "accent": 4.5, "missing": 3, **dict.fromkeys(
                ("reproduced", "shown", "differs", "uninformative", "undecided", "reduced"), 3.9)}.items():  # fmt: skip
                assert contrast(colours[name], colours[ground]) >= least, (name, ground)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, as WCAG 2 defines it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
