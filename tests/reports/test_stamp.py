"""Reports are made again when anything they depend on has changed, and only then."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.records import stamp as stamps
from benchmarks.state.failures import Failures
from benchmarks.suite import Suite
from reports import coverage as counting
from reports import stamp
from reports.cli import build
from reports.figures import FIGURES, draw
from reports.page import site
from reports.records import Records
from tests.reports.fakes import Cell, Column, FakeSuite, Row, fake_table
from tests.reports.page import small

GRID = {"grid/grid": {"x": [[0.0], [1.0]], "mean": [0.5, 0.5], "std": [0.1, 0.1], "samples": [[0.0, 1.0]]}}


@pytest.fixture
def results(write: Callable[..., Path]) -> Path:
    return write("MFVI", "cinquin_1d", {("", "rmse"): [1.0, 2.0]}, curves=GRID)


def swap(path: Path, old: bytes, new: bytes) -> None:
    """Change a file; its size and its time stay."""
    before, content = path.stat(), path.read_bytes()
    assert old in content and len(old) == len(new)
    path.write_bytes(content.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_all_that_reports_depend_on_is_in_their_digest(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, settings = tmp_path / "state", tmp_path / "settings"
    monkeypatch.setenv("MATPLOTLIBRC", str(settings))
    for variable in stamp.OWN_FILES:
        monkeypatch.delenv(variable, raising=False)

    def now(suite: object = Suite()) -> str:
        stamp.code.cache_clear()
        return stamp.everything(suite, Records(results, state))  # type: ignore[arg-type]

    first, second = sorted(results.rglob("*.json"))
    seen = [now()]
    assert now() == seen[0] != ""
    assert now(FakeSuite()) == now(Suite(tables="tests.mine")) == "", "the code of another suite is not known"
    for change in (
        lambda: swap(first, b'"value": 1.0', b'"value": 3.0'),
        lambda: first.rename(first.with_name("renamed.json")),
        lambda: first.with_name("renamed.json").unlink() or second.chmod(0o600) or swap(second, b"2.0", b"4.0"),
        lambda: second.unlink() or second.symlink_to("nothing"),
        lambda: monkeypatch.setattr(Failures, "keys", lambda _: ["0123"]),
        lambda: monkeypatch.setattr(stamps, "code", lambda *rooms: f"{rooms}"),
        lambda: settings.write_text("font.size: 10"),
        lambda: settings.write_text("font.size: 20"),
        lambda: settings.unlink() or settings.mkdir() or (settings / "matplotlibrc").write_text("font.size: 25"),
        lambda: (settings / "matplotlibrc").write_text("font.size: 30"),
    ):
        change()
        seen.append(now())
    assert len(set(seen)) == len(seen) and "" not in seen
    for name in stamp.OWN_FILES:
        with monkeypatch.context() as own:
            own.setenv(name, str(tmp_path))
            assert now() == ""
    monkeypatch.setattr(stamps, "plugged", lambda: True)
    assert now() == ""
    stamp.code.cache_clear()


def test_figures_are_drawn_again_for_other_records_code_or_rows(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = (Column(Cell("cinquin_1d", "", "rmse"), "RMSE"),)

    def drawn(*rows: Row) -> bool:
        suite = FakeSuite(fake_table("toys", (Row("MFVI", None, "MFVI"), *rows), columns, n_runs=2))
        (found,) = draw([FIGURES["cinquin2024-figure-5"]], suite, Records(results), tmp_path, forms=(".csv",))
        again = found.files[0].read_text() != "left alone"
        found.files[0].write_text("left alone")
        return again

    assert drawn() and not drawn()
    for path in sorted(results.rglob("*.json")):
        path.touch()
    assert not drawn(), "only the content counts"
    (stamped,) = tmp_path.rglob(".*.stamp")
    stamped.write_bytes(b"\xff")
    assert drawn() and not drawn(), "a damaged stamp counts as none"
    monkeypatch.setattr("reports.figures.code", lambda: "other")
    assert drawn() and not drawn()
    assert drawn(Row("MAP", None, "MAP")) and not drawn(Row("MAP", None, "MAP"))
    store = Records(results).store
    record = store.read(min(results.rglob("*.json")))
    store.write(record | {"provenance": {"commit": "other"}})
    assert drawn(Row("MAP", None, "MAP"))


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """page(digest) -> whether the small site was written, not only found, where it depends on this digest."""
    small.records(tmp_path)
    write, suite, written = site._Writer.write, small.Suite(small.table()), []
    monkeypatch.setattr(site._Writer, "write", lambda *given: written.append(1) or write(*given))

    def make(digest: str = "one", figures: bool = False) -> bool:
        monkeypatch.setattr(stamp, "everything", lambda _suite, _records, *more: digest and f"{digest} {more}")
        written.clear()
        made = site.write(suite, Records(tmp_path / "results"), tmp_path / "site", figures)
        assert made.pages == len(list((tmp_path / "site").rglob("*.html"))) - (tmp_path / "site" / site.API).exists()
        assert made.bytes == sum(made.sizes.values()) > 1e6 and made.start.exists() and made.problems
        return bool(written)

    broken = min((tmp_path / "results").rglob("*.json"))
    swap(broken, b'"value": ', b'"value":0')
    return make


def test_a_site_is_found_only_where_nothing_has_changed(page: Callable[..., bool], tmp_path: Path) -> None:
    out = tmp_path / "site"
    assert page() and not page() and not page()
    for change in (
        lambda: (out / "index.html").write_text("changed"),
        lambda: (out / "assets" / "page.js").unlink(),
        lambda: swap(out / "data" / "search.js", b"Page.received", b"Page.Received"),
        lambda: (out / stamp.STAMP).write_text("{}"),
        lambda: (out / stamp.STAMP).unlink(),
        lambda: swap(out / stamp.STAMP, b"Not counted", b"All counted"),
        lambda: (out / stamp.LISTING).write_text("index.html"),
        lambda: (out / site.API).parent.mkdir() or (out / site.API).write_text(""),
    ):
        change()
        assert page() and not page()
    assert page("two") and not page("two")
    assert page("two", figures=True) and not page("two", figures=True)
    assert page("") and page(""), "what it depends on is not known"


def test_a_site_that_was_not_finished_is_made_again(
    page: Callable[..., bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert page() and not page()
    with monkeypatch.context() as failing:
        failing.setattr(site, "entries", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            page("two")
    (tmp_path / "site" / "index.html").write_text("of the site that failed")
    assert page("two") and not page("two")


def test_damaged_numbers_of_a_figure_are_an_error_that_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable
) -> None:
    name = "cinquin2024-figure-17"
    monkeypatch.setattr("reports.page.site.FIGURES", {name: FIGURES[name]})
    monkeypatch.setattr("reports.page.site.LARGE", 100)
    where = ["--results", str(small.records(tmp_path).root), "--state", str(tmp_path), "--out", str(tmp_path / "site")]
    make = lambda: call(build(small.Suite(small.table())), "page", *where)
    assert not make()[0]
    (numbers,) = (tmp_path / "site").rglob("*.csv.xz")
    whole = numbers.read_bytes()
    for damaged in (whole[:-20], b"", whole[:50] + b"?" + whole[51:]):
        numbers.write_bytes(damaged)
        status, _, errors = make()
        assert status == 1 and errors.startswith(f"error: {numbers}: expected the numbers of a figure"), errors
        assert "delete it, and repeat the command" in errors
    numbers.unlink()
    assert not make()[0] and numbers.read_bytes() == whole


def test_coverage_is_counted_again_for_other_records(
    write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {("", "accuracy"): [0.9170, 0.9175, 0.9172]}
    results, file = write("MAP", "fashion_mnist", values), tmp_path / "kept"
    monkeypatch.setattr(counting, "everything", lambda _, records: stamps.digest(sorted(records.digests.items())))
    table = fake_table(
        "rudner2022-1", (Row("MAP", "MAP", "MAP"),),
        (Column(Cell("fashion_mnist", "", "accuracy"), "accuracy", Cell("fashion_mnist", "", "accuracy"), scale=100),),
        paper="rudner2022", number="1",
    )  # fmt: skip
    suite = FakeSuite(table)
    first = counting.remembered(Records(results), suite, file)
    assert first == counting.coverage(results, suite) and sum(row.recorded for row in first) == 1
    with monkeypatch.context() as counted:
        counted.setattr(counting, "Book", None)
        assert counting.remembered(Records(results), suite, file) == first
    swap(min(results.rglob("*.json")), b'"value": 0.917', b'"value": 0.817')
    second = counting.remembered(Records(results), suite, file)
    assert second == counting.coverage(results, suite) and sum(row.broken for row in second) == 1
    assert counting.remembered(Records(results), suite, file) == second != first
