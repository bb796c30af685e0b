"""Figures of image tables: what they draw from records, and the published values beside it."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from benchmarks.metrics import SetInfo, evaluate
from benchmarks.records.predictions import ClassificationPredictions
from reports.figures import FIGURES, Figure, Runs, collect, draw, looks, shifts, style
from reports.figures.parts import HOLLOW, PUBLISHED, ROTATION, Shift, by_level, marks
from reports.records import Layout, Recorded, Records
from tests.reports.fakes import Cell, Column, FakeSuite, FakeTable, Row, fake_table

LABELS = ("MAP", "MAP fVI", "Ensemble", "Ensemble fVI", "MC Dropout")
TURNED = ("MAP fVI +90°", "Ensemble fVI +90°, +180°")
OOD = {"mnist": "fashion_mnist", "fashion_mnist": "mnist", "cifar10": "svhn", "cifar100": "svhn"}
FIGURES_OF_IMAGES = [
    figure for figure in FIGURES.values() if figure.dataset in OOD and not figure.draw.startswith("settings")
]
THREE = ("accuracy", shifts.LIKELIHOOD, "ece")
PNG = b"\x89PNG"


def table(name: str) -> FakeTable:
    rows = tuple(Row(label, label, label) for label in LABELS + (TURNED if "index" in name else ()))
    sets = dict.fromkeys(figure.dataset for figure in FIGURES_OF_IMAGES if figure.table == name)
    return fake_table(name, rows, tuple(Column(Cell(d, "", "training_seconds"), d) for d in sets), n_runs=2)


SUITE = FakeSuite(*map(table, dict.fromkeys(figure.table for figure in FIGURES_OF_IMAGES)))


def predicted(
    dataset: str, samples: int, random: np.random.Generator
) -> tuple[dict[tuple[str, str], float], dict[str, Any]]:
    """Metrics and curves of random predictions on a few sets of every kind."""
    sets = [SetInfo("test", "id"), SetInfo(f"ood-{OOD[dataset]}", "ood", f"ood={OOD[dataset]}")]
    sets += [SetInfo(f"rotation-{angle}", "shift", f"shift=rotation;angle={angle}") for angle in (0, 90, 180)]
    sets += [SetInfo(f"c-{level}", "shift", f"shift={dataset}_c;severity={level}") for level in (0, 3)]
    sets += [SetInfo(f"fgsm-{level}", "shift", f"shift=fgsm;epsilon={level}") for level in ("0", "0.05")]
    labels = np.arange(40) % 10
    predictions = {
        s.name: ClassificationPredictions(random.normal(size=(samples, 40, 10)), None if s.kind == "ood" else labels)
        for s in sets
    }
    rows, curves = evaluate("classification", dataset, sets, predictions)
    return {(row["condition"], row["metric"]): row["value"] for row in rows}, curves


@pytest.fixture
def results(write: Callable[..., Path], tmp_path: Path) -> Path:
    """Two runs of every method but the last on every set."""
    random = np.random.default_rng(0)
    for dataset in OOD:
        for label in (*LABELS[:-1], *TURNED):
            values, curves = predicted(dataset, 4 if "Ensemble" in label else 1, random)
            write(label, dataset, {key: [value, 0.75 * value] for key, value in values.items()}, curves=curves)
    return tmp_path / "results"


pytestmark = pytest.mark.usefixtures("no_open_canvas")


def runs(name: str, results: Path) -> Runs:
    figure = FIGURES[name]
    return collect(figure, SUITE.table(figure.table), "paper", Records(results))


def mean_of(found: Runs, label: str, metric: str, condition: str) -> float:
    values = [value for run in found.records[label] for where, value in run.conditions(metric) if where == condition]
    assert len(values) == 2
    return float(np.mean(values))


def test_every_figure_is_drawn(results: Path, tmp_path: Path) -> None:
    drawn = list(draw(FIGURES_OF_IMAGES, SUITE, Records(results), tmp_path / "out"))
    assert [each.skipped for each in drawn] == [""] * len(FIGURES_OF_IMAGES) and len(drawn) == 23
    assert all(each.files[1].read_bytes().startswith(PNG) for each in drawn)
    papers = {(figure.paper, figure.number) for figure in FIGURES_OF_IMAGES}
    assert papers == {
        ("rudner2022", "2"),
        *(("rudner2021", n) for n in "2567"),
        ("cinquin2024", "12"),
        ("cinquin2024", "13"),
        *(("dirichlet2022", n) for n in "1456789"),
    }


def test_published_values_stand_as_marks_in_their_own_unit(results: Path) -> None:
    found = runs("dirichlet2022-figure-8", results)
    canvas = shifts.by_shift(found, "rotation", *THREE)
    accuracy, likelihood, _ = canvas.axes
    assert canvas.get_supxlabel() == "protocol paper, n = 2 runs; bands: SE\nno records: MC Dropout"
    assert {line.get_marker() for line in likelihood.lines} == {"o", "<"}
    assert "published" in {text.get_text() for text in canvas.legends[0].texts}
    (published,) = [
        line
        for line in likelihood.lines
        if line.get_gid() == PUBLISHED and line.get_color() == "#000000" and line.get_markerfacecolor() != HOLLOW
    ]
    assert dict(zip(*published.get_data()))[90] == -7.22 and len(published.get_xdata()) == 19
    (ours,) = [line for line in accuracy.lines if line.get_label() == "MAP fVI"]
    assert list(ours.get_xdata()) == [0, 90, 180]
    assert ours.get_ydata()[1] == pytest.approx(100 * mean_of(found, "MAP fVI", "accuracy", "shift=rotation;angle=90"))


def test_published_marks_tell_rows_apart_without_colours() -> None:
    _, axis = style.plt.subplots()
    looks.assign(["MAP", "MC Dropout", "MC Dropout fVI"])
    for label in ("MAP", "MC Dropout", "MC Dropout fVI"):
        marks(axis, label, [0], [1])
    plain, other, broken = axis.lines
    assert plain.get_marker() == "o" != other.get_marker() == looks.line("MC Dropout")["marker"]
    assert broken.get_markerfacecolor() == HOLLOW != other.get_markerfacecolor()
    looks.assign([])


def test_gains_are_differences_of_means_beside_those_of_the_paper(results: Path) -> None:
    found = runs("dirichlet2022-figure-7-cifar10", results)
    corrupted, attacked = shifts.gains(found).axes
    levels = ((corrupted, "shift=cifar10_c;severity=3", 3), (attacked, "shift=fgsm;epsilon=0.05", 0.05))
    for axis, condition, x in levels:
        bars = {container.get_label(): container for container in axis.containers}
        assert set(bars) == {"MAP", "Ensemble"}
        line = bars["MAP"].lines[0]
        plain, prior = (mean_of(found, label, "smoothed_log_likelihood", condition) for label in ("MAP", "MAP fVI"))
        gain = prior - plain
        assert line.get_xdata()[1] == x and line.get_ydata()[1] == pytest.approx(gain)
    marks = [line for line in corrupted.lines if line.get_gid() == PUBLISHED and line.get_color() == "#000000"]
    np.testing.assert_allclose(marks[0].get_ydata(), [-0.03, 0.04, 0.11, 0.22, 0.36, 0.60], atol=1e-9)  # of table 12


def test_a_gain_over_a_single_run_has_no_error_bar(results: Path) -> None:
    found = runs("dirichlet2022-figure-7-cifar10", results)
    one = replace(found, records={**found.records, "MAP": found.records["MAP"][:1]})
    for several, shown in ((found, True), (one, False)):
        (bar,) = [each for each in shifts.gains(several).axes[0].containers if each.get_label() == "MAP"]
        assert bar.has_yerr == shown
    (bar,) = [each for each in shifts.gains(found).axes[0].containers if each.get_label() == "Ensemble"]
    by_run = [
        by_level(found.records[label], shifts.LIKELIHOOD, Shift("shift=cifar10_c;severity", ""))[1]
        for label in ("Ensemble", "Ensemble fVI")
    ]
    errors = [values.std(0, ddof=1) / np.sqrt(2) for values in by_run]
    low, high = np.array(bar.lines[2][0].get_segments())[:, :, 1].T
    np.testing.assert_allclose((high - low) / 2, np.hypot(*errors))


def test_every_index_set_has_its_panel(results: Path) -> None:
    panels = shifts.index_sets(runs("dirichlet2022-figure-4", results)).axes[:3]
    shown = [{line.get_label() for line in axis.lines if not line.get_label().startswith("_")} for axis in panels]
    plain = {"MAP", "Ensemble", "uniform prior"}
    assert shown == [plain | {"MAP fVI", "Ensemble fVI"}, plain | {"MAP fVI"}, plain | {"Ensemble fVI"}]
    assert all(any(np.allclose(line.get_ydata(), -np.log(10)) for line in axis.lines) for axis in panels)


def test_bands_of_index_sets_are_two_standard_deviations(results: Path) -> None:
    found = runs("dirichlet2022-figure-4", results)
    axis = shifts.index_sets(found).axes[0]
    _, values = by_level(found.records["MAP"], shifts.LIKELIHOOD, ROTATION)
    edges = axis.collections[0].get_paths()[0].vertices[:, 1]
    mean, deviation = values.mean(0), values.std(0, ddof=1)
    assert len(values) > 1 and edges.max() == pytest.approx((mean + 2 * deviation).max())
    assert edges.min() == pytest.approx((mean - 2 * deviation).min())


def test_examples_show_percentiles_of_the_fitted_dirichlet(results: Path) -> None:
    found = runs("dirichlet2022-figure-1", results)
    canvas = shifts.examples(found)
    assert [axis.get_title() for axis in canvas.axes][:3] == [f"Ensemble: a {label}" for label in range(3)]
    curve = found.first("Ensemble")["rotation-90/examples"]
    mean, precision = curve["probability"][1][1], curve["precision"][1]
    axis = canvas.axes[1]
    assert dict(zip(*axis.lines[-1].get_data()))[90] == mean
    outer = axis.collections[3].get_paths()[0].vertices
    expected = [beta.ppf(q, precision * mean, precision * (1 - mean)) for q in (0.01, 0.99)]
    np.testing.assert_allclose(sorted({y for x, y in outer if x == 90}), expected, rtol=1e-6)


def test_records_without_shifted_images_make_no_figure_of_them(write: Callable[..., Path], tmp_path: Path) -> None:
    results = write("MAP", "mnist", {("", "predictive_entropy"): [0.5, 0.6]})
    (drawn,) = draw([FIGURES["cinquin2024-figure-13-mnist"]], SUITE, Records(results), tmp_path / "out")
    assert drawn.skipped == "the records hold nothing by rotation (table cinquin2024-figure-13, protocol paper)"


def test_records_that_lack_what_a_figure_shows_are_said_to(write: Callable[..., Path], tmp_path: Path) -> None:
    results = write("MAP", "mnist", {("shift=rotation;angle=90", "brier"): [0.5, 0.6]})
    results = write("MAP", "cifar10", {("shift=fgsm;epsilon=0", "smoothed_log_likelihood"): [-0.5, -0.6]})
    names = ["dirichlet2022-figure-1", "dirichlet2022-figure-7-cifar10", "cinquin2024-figure-12-mnist"]
    figures = [FIGURES[name] for name in names]
    reasons = {each.name: each.skipped for each in draw(figures, SUITE, Records(results), tmp_path / "out")}
    assert reasons == {
        names[0]: "no records of Ensemble or Ensemble fVI (table rotated-mnist, protocol paper)",
        names[1]: "no method has records both with and without fVI (table dirichlet2022-11, protocol paper)",
        names[2]: "the records hold no out-of-distribution set (table cinquin2024-2, protocol paper)",
    }


def test_levels_that_not_every_run_has_are_left_out() -> None:
    def run(values: dict[str, float]) -> Recorded:
        places = {("mnist", condition, "accuracy"): place for place, condition in enumerate(values)}
        return Recorded("mnist/map/0.json", Layout(places, frozenset()), array("d", values.values()), (), "")

    both = {"": 0.9, "shift=rotation;angle=30": 0.5, "ood=photos": 0.1, "shift=x;epsilon=0.05": 0.4}
    records = [run(both | {"shift=rotation;angle=60": 0.2}), run(both)]
    levels, values = by_level(records, "accuracy", ROTATION, 100)
    np.testing.assert_array_equal(levels, [0, 30])
    np.testing.assert_array_equal(values, [[90, 50], [90, 50]])
    levels, values = by_level(records, "accuracy", Shift("shift=x;epsilon", "size"))
    np.testing.assert_array_equal(levels, [0, 0.05])
    named = [run({"shift=rotation;angle=0": 0.8, "": 0.9})]
    assert by_level(named, "accuracy", ROTATION)[1].tolist() == [[0.8]], "a named level goes before the unchanged set"


def test_a_figure_without_a_paper_has_no_marks(results: Path) -> None:
    figure = Figure("mine", "Mine", "rotated-mnist", "mnist", f"shifts:by_shift rotation {' '.join(THREE)}")
    found = collect(figure, SUITE.table("rotated-mnist"), "paper", Records(results))
    canvas = shifts.by_shift(found, "rotation", *THREE)
    assert not any(found.published.values()) and "published" not in canvas.get_suptitle()
