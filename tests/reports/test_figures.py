"""Figures are drawn from records alone, say what is missing, and are left alone while their records are unchanged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks import tables
from benchmarks.metrics import SetInfo, evaluate
from benchmarks.records.hyperparameters import known
from benchmarks.records.predictions import ClassificationPredictions, RegressionPredictions
from benchmarks.records.provenance import ROOT
from fvi_core import methods
from reports import figures as figures_module
from reports.figures import FIGURES, collect, draw, kernels, looks, style, toys
from reports.figures.options import Options
from reports.figures.parts import mean_and_error
from reports.records import Records
from tests.reports.fakes import Cell, Column, FakeSuite, FakeTable, Row, fake_table, on_own_files

LABELS = ("MAP", "FSVI", "GFSVI")
TOYS = ("pequignot_1d", "cinquin_1d", "snelson", "two_moons_rudner", "two_moons_dirichlet", "two_moons_cinquin")
PNG = b"\x89PNG"


def table(name: str, datasets: tuple[str, ...], labels: tuple[str, ...] = LABELS) -> FakeTable:
    rows = tuple(Row(label, None, label) for label in labels)
    return fake_table(name, rows, tuple(Column(Cell(d, "", "training_seconds"), d) for d in datasets), n_runs=2)


SUITE = FakeSuite(table("digits", ("digits",)), table("toys", TOYS))


def digits_curves(random: np.random.Generator) -> tuple[dict[tuple[str, str], float], dict[str, Any]]:
    sets = [SetInfo("test", "id"), SetInfo("rotation-90", "shift", "shift=rotation;angle=90")]
    sets.append(SetInfo("ood-photos", "ood", "ood=photos"))
    labels = random.integers(10, size=60)
    logits = {s.name: random.normal(size=(4, 60, 10)) for s in sets}
    logits["test"][:, np.arange(60), labels] += 3
    predictions = {s.name: ClassificationPredictions(logits[s.name], None if s.kind == "ood" else labels) for s in sets}
    rows, curves = evaluate("classification", "digits", sets, predictions)
    return {(row["condition"], row["metric"]): row["value"] for row in rows}, curves


def toy_curves(name: str, random: np.random.Generator) -> dict[str, Any]:
    grid = [SetInfo("grid", "grid", "inputs=grid")]
    if "moons" in name:
        x = np.stack(np.meshgrid(np.linspace(-2, 2, 9), np.linspace(-1, 1, 7), indexing="ij"), -1).reshape(-1, 2)
        predictions = ClassificationPredictions(random.normal(size=(5, len(x), 2)))
        curves = evaluate("classification", name, grid, {"grid": predictions}, {"grid": x})[1]
        return curves | {"train/points": {"x": [[0.0, 0.5], [1.0, -0.5]], "y": [0, 1]}}
    x = np.linspace(-2, 2, 20)[:, None]
    predictions = RegressionPredictions(random.normal(size=(6, 20)), 0.1, None)
    return evaluate("regression", name, grid, {"grid": predictions}, {"grid": x})[1]


@pytest.fixture
def results(write: Callable[..., Path], tmp_path: Path) -> Path:
    """Two runs of two methods on every set; the third method has none."""
    random = np.random.default_rng(0)
    for label in LABELS[:2]:
        values, curves = digits_curves(random)
        write(label, "digits", {key: [value, 0.99 * value] for key, value in values.items()}, curves=curves)
        for name in TOYS:
            write(label, name, {("", "training_seconds"): [1.0, 1.0]}, curves=toy_curves(name, random))
    return tmp_path / "results"


def test_currents_are_drawn_where_they_are(write: Callable[..., Path], tmp_path: Path) -> None:
    x = np.array([[lon, lat] for lat in (1.0, 2.0, 3.0) for lon in (5.0, 6.0, 7.0, 8.0)])
    mean = np.stack([x[:, 0] - 5, 10 * x[:, 1]], -1)
    given = RegressionPredictions(np.stack([mean, mean]), 0.1, np.zeros((12, 2)))
    sets = [SetInfo("test", "id"), SetInfo("grid", "grid", "inputs=grid")]
    both = {"test": given, "grid": given}
    _, curves = evaluate("regression", "gulf_drifters", sets, both, {"grid": x})
    curves |= {"train/points": {"x": [[5.5, 1.5]], "y": [[0.0, 0.0]]}}
    write("GP", "gulf_drifters", {("", "training_seconds"): [1.0]}, curves=curves)
    suite = FakeSuite(table("cinquin2024-3", ("gulf_drifters",), ("GP", "GFSVI")))
    (found,) = draw([FIGURES["cinquin2024-figure-3"]], suite, Records(tmp_path / "results"), tmp_path / "out")
    assert found.skipped == "" and found.files[1].read_bytes().startswith(PNG)
    (first, second), maps = toys._field(curves["grid/grid"], curves["test/squared_errors"])
    assert first.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1]) and second.tolist() == [0, 0.5, 1]
    assert toys._shares([[5.5, 1.5]], curves["grid/grid"]).tolist() == [pytest.approx([1 / 6, 0.25])]
    assert maps["field"][0, 2, 3] == 3 and maps["field"][1, 2, 3] == 30
    assert maps["error"][2, 3] == pytest.approx(909) and maps["speed"][0, 0] == pytest.approx(10)


def test_every_figure_is_drawn(results: Path, tmp_path: Path) -> None:
    figures = [figure for figure in FIGURES.values() if figure.table in SUITE.table_names() and not figure.rows]
    drawn = list(draw(figures, SUITE, Records(results), tmp_path / "out"))
    assert [each.name for each in drawn] == [figure.name for figure in figures] and len(figures) == 9
    assert [each.skipped for each in drawn] == [""] * len(figures)
    for each in drawn:
        pdf, png = each.files
        assert pdf.read_bytes().startswith(b"%PDF") and png.read_bytes().startswith(PNG)
        assert pdf.name == f"{each.name}-paper.pdf"


def test_chosen_rows_keep_the_looks_that_they_have_among_all(results: Path, tmp_path: Path, monkeypatch) -> None:
    assigned: list[list[str]] = []
    monkeypatch.setattr(figures_module, "assign", lambda labels: assigned.append(list(labels)))
    (drawn,) = draw([FIGURES["digits-roc"]], SUITE, Records(results), tmp_path, options=Options(rows=("FSVI",)))
    assert drawn.files and assigned == [["MAP", "FSVI", "GFSVI"], []]


def test_figures_without_records_are_skipped_and_the_others_go_on(results: Path, tmp_path: Path) -> None:
    for path in results.glob("digits/*/*.json"):
        path.unlink()
    figures = [FIGURES["digits-roc"], FIGURES["cinquin2024-figure-5"]]
    drawn = {each.name: each for each in draw(figures, SUITE, Records(results), tmp_path)}
    assert drawn["digits-roc"].skipped == "no records of MAP; FSVI; GFSVI (table digits, protocol paper)"
    assert not drawn["digits-roc"].files and drawn["cinquin2024-figure-5"].files
    (other,) = draw([FIGURES["digits-roc"]], FakeSuite(), Records(results), tmp_path)
    assert other.skipped == "there is no table digits"
    (short,) = draw([FIGURES["cinquin2024-figure-5"]], SUITE, Records(results), tmp_path, "short")
    assert short.skipped.endswith("(table toys, protocol short)")


def test_short_records_are_drawn_under_their_name_where_the_table_has_few_of_its_protocol(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    values, curves = digits_curves(np.random.default_rng(1))
    one = {key: [value] for key, value in values.items()}
    results = write("MAP", "digits", one, "short", curves)
    (drawn,) = draw([FIGURES["digits-roc"]], SUITE, Records(results), tmp_path)
    assert [file.name for file in drawn.files] == ["digits-roc-short.pdf", "digits-roc-short.png"]
    (short,) = draw([FIGURES["digits-roc"]], SUITE, Records(results), tmp_path, "paper")
    assert short.skipped.endswith("(table digits, protocol paper)")
    write("FSVI", "digits", one, "paper", curves)
    (drawn,) = draw([FIGURES["digits-roc"]], SUITE, Records(results), tmp_path)
    assert drawn.files[0].name == "digits-roc-paper.pdf"
    for method in ("FSVI", "GFSVI"):
        write(method, "digits", one, "short", curves)
    (drawn,) = draw([FIGURES["digits-roc"]], SUITE, Records(results), tmp_path)
    assert drawn.files[0].name == "digits-roc-short.pdf", "one row of three is less than half"
    write("MAP", "digits", one, "paper", curves)
    (drawn,) = draw([FIGURES["digits-roc"]], SUITE, Records(results), tmp_path)
    assert drawn.files[0].name == "digits-roc-paper.pdf"


def test_runs_on_a_users_own_files_are_drawn_where_there_are_no_others(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    values, curves = digits_curves(np.random.default_rng(1))
    results = write("MAP", "digits", {key: [value] for key, value in values.items()}, "short", curves)
    (path,) = on_own_files(results, "digits/train")
    path.unlink()
    (drawn,) = draw([FIGURES["digits-roc"]], SUITE, Records(results), tmp_path, forms=(".txt",))
    assert [file.name for file in drawn.files] == ["digits-roc-short.txt"]
    assert drawn.files[0].read_text().endswith("on those at hand: digits/train aaaaaaaaaaaaaaaa (1 run).\n")


def test_title_and_foot_say_protocol_n_and_what_is_missing(results: Path) -> None:
    from reports.figures import digits

    runs = collect(FIGURES["digits-retention"], SUITE.table("digits"), "paper", Records(results))
    canvas = digits.retention(runs)
    assert canvas.get_suptitle() == "Accuracy on the most certain digits"
    assert canvas.get_supxlabel() == "protocol paper, n = 2 runs; bands: SE\nno records: GFSVI"
    style.plt.close(canvas)


def test_single_runs_have_no_errors_to_explain(results: Path) -> None:
    from reports.figures import digits

    runs = collect(FIGURES["digits-retention"], SUITE.table("digits"), "paper", Records(results), seeds=[0])
    canvas = digits.retention(runs)
    assert canvas.get_supxlabel() == "protocol paper, n = 1 run\nno records: GFSVI"
    style.plt.close(canvas)


def test_unchanged_figures_stay_and_changed_ones_are_drawn_again(results: Path, tmp_path: Path) -> None:
    figures = [FIGURES["cinquin2024-figure-5"]]
    first = next(draw(figures, SUITE, Records(results), tmp_path)).files[1]
    first.write_bytes(b"left alone")
    next(draw(figures, SUITE, Records(results), tmp_path))
    assert first.read_bytes() == b"left alone"
    next(results.glob("cinquin-1d/fsvi/*.json")).unlink()
    next(draw(figures, SUITE, Records(results), tmp_path))
    assert first.read_bytes().startswith(PNG)


def test_same_records_same_pdf(results: Path, tmp_path: Path) -> None:
    files = [next(draw([FIGURES["digits-roc"]], SUITE, Records(results), tmp_path / name)).files[0] for name in "ab"]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_sums_of_a_figure_are_in_one_order_on_any_number_of_cores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    threads: list[int] = []

    def estimates(*_: object) -> list[list[float]]:
        threads.extend(pool["num_threads"] for pool in threadpool_info())
        return [[1.0] * len(kernels.SIZES)] * len(kernels.GAMMAS)

    monkeypatch.setattr(kernels, "estimates", estimates)
    with threadpool_limits(2):
        assert next(draw([FIGURES["cinquin2024-figure-20"]], SUITE, Records(tmp_path), tmp_path)).files
    assert set(threads) == {1}


def test_reports_never_load_torch(results: Path, tmp_path: Path) -> None:
    known()  # looked up once, which loads torch, and kept
    code = (
        "import sys\n"
        "import reports.cli, reports.coverage, reports.tables\n"
        "from reports.figures import FIGURES, draw\n"
        "from reports.records import Records\n"
        "from tests.reports.fakes import Cell, Column, FakeSuite, Row, fake_table\n"
        "rows = (Row('MAP', None, 'MAP'),)\n"
        "columns = tuple(Column(Cell(d, '', 'nll'), d) for d in ('digits', 'pequignot_1d', 'two_moons_rudner'))\n"
        "suite = FakeSuite(*(fake_table(n, rows, columns, n_runs=2) for n in ('digits', 'toys')))\n"
        "names = ['digits-rotation', 'pequignot2020-figure-1', 'rudner2021-figure-4']\n"
        "figures = [FIGURES[name] for name in names]\n"
        f"assert all(d.files for d in draw(figures, suite, Records({str(results)!r}), {str(tmp_path)!r}))\n"
        "import benchmarks.tables; benchmarks.tables.names()\n"
        "print([name for name in ('torch', 'gpytorch') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_mean_and_error_leave_out_empty_bins() -> None:
    mean, error = mean_and_error(np.array([[1.0, np.nan, 2.0], [3.0, np.nan, np.nan]]))
    np.testing.assert_array_equal(mean, [2.0, np.nan, 2.0])
    np.testing.assert_array_equal(error, [1.0, 0.0, 0.0])  # sd sqrt(2) over sqrt(2) runs


@pytest.mark.parametrize("name", sorted({figure.table for figure in FIGURES.values() if figure.table}))
def test_no_two_rows_of_a_figure_look_alike_without_colour(name: str) -> None:
    labels = [row.label for row in tables.get(name).rows]
    looks.assign(labels)
    seen = [(str(looks.line(label)["linestyle"]), looks.line(label)["marker"]) for label in labels]
    looks.assign([])
    assert len(set(seen)) == len(labels), seen


def test_a_method_has_one_colour_and_marker_in_every_table() -> None:
    found: dict[str, set] = {}
    for table in tables.tables().values():
        looks.assign(row.label for row in table.rows)
        for row in table.rows:
            if row.label in methods.catalogue():
                look = looks.line(row.label)
                found.setdefault(row.label, set()).add((look["color"], look["marker"], str(look["linestyle"])))
    looks.assign([])
    assert len(found) > 20 and all(len(each) == 1 for each in found.values()), found
    for one, other in (("MAP", "MAP fVI"), ("FSVI", "FSVI Ensemble"), ("Ensemble", "Deep Ensemble")):
        assert looks.line(one)["marker"] == looks.line(other)["marker"]
    markers = {word: look for word, look in looks.METHODS.items() if word != "FVI"}  # FVI is cinquin2024's FBNN
    assert len(set(markers.values())) == len({marker for _, marker in markers.values()}) == len(markers)


def test_a_black_edge_is_visible_on_the_published_marks_of_every_method() -> None:
    def luminance(rgb: tuple[float, ...]) -> float:  # WCAG 2
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    contrast = {word: (luminance(looks.tint(word)) + 0.05) / 0.05 for word in looks.METHODS}
    assert min(contrast.values()) > 3, contrast


def test_titles_are_one_line() -> None:
    for figure in FIGURES.values():
        assert len(figure.title) <= 60 and ";" not in figure.title and "\n" not in figure.title, figure.title


def test_methods_of_the_catalogue_look_different() -> None:
    looks.assign(methods.catalogue())
    seen = {name: tuple(looks.line(name).values()) for name in methods.catalogue()}
    looks.assign([])
    assert len(set(map(str, seen.values()))) == len(seen), seen
    assert all(look[0] != looks.GREY for look in seen.values()), seen
