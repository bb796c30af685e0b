"""Components of figures against values by hand and by SciPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks import tables
from benchmarks.records.published import Published
from reports.aggregate import CellResult, TableResult
from reports.figures import FIGURES, Figure, Runs, kernels
from reports.figures.ood import _reliability
from reports.figures.own import BELOW, points
from reports.figures.parts import FEW, few, mean_and_error, two_histograms
from reports.figures.style import labelled, plt, wrapped
from reports.figures.toys import shades

pytestmark = pytest.mark.usefixtures("no_open_canvas")


def test_means_and_errors_are_scipys_without_what_a_run_lacks() -> None:
    values = np.random.default_rng(0).normal(size=(5, 4))
    values[0, 1], values[2, 2] = np.nan, np.inf
    mean, error = mean_and_error(values)
    whole = values[:, [0, 3]]
    assert mean[[0, 3]] == pytest.approx(whole.mean(0)) and error[[0, 3]] == pytest.approx(stats.sem(whole))
    assert (mean[1], error[1]) == pytest.approx((values[1:, 1].mean(), stats.sem(values[1:, 1])))
    assert np.isnan(mean[2])


def test_histograms_show_per_cent_of_the_points_of_all_runs() -> None:
    _, axis = plt.subplots()
    two_histograms(axis, np.array([0, 1, 2]), {"a": np.array([[1, 3], [2, 14]]), "b": np.array([[0, 1]])})
    heights = {
        step.get_label(): list(step.get_data().values) for step in axis.patches if step.get_label() in ("a", "b")
    }
    assert heights == {"a": [15.0, 85.0], "b": [0.0, 100.0]}


def test_few_points_are_few_in_a_run_on_average() -> None:
    assert list(few(np.array([[FEW - 1, FEW - 2, 0], [FEW, FEW + 2, 2 * FEW]]))) == [True, False, False]


class Run:
    """A record with two metrics."""

    def conditions(self, metric: str) -> Iterator[tuple[str, float]]:
        yield "", {"ece_10": 0.1, "ece": 0.2}[metric]


@pytest.mark.parametrize(("bins", "ece"), [(10, "0.100"), (15, "0.200")])
def test_the_ece_in_a_legend_is_that_of_the_drawn_bins(bins: int, ece: str) -> None:
    centres = (np.arange(bins) + 0.5) / bins
    curve = {"confidence": centres, "accuracy": centres, "count": np.full(bins, 50)}
    read: Any = lambda run: {"test/reliability": curve}
    runs = Runs(FIGURES["rudner2021-figure-5-cifar10"], "paper", {"MAP": [Run()]}, (), read)  # type: ignore[list-item]
    _, axis = plt.subplots()
    assert _reliability(axis, runs) == f"; ECE of {bins} bins" and f"MAP  ECE {ece}" in labelled(axis)


def test_points_are_means_with_one_error_and_published_numbers_as_rings_with_theirs() -> None:
    table = tables.get("dirichlet2022-2")
    rows, columns = table.rows[:2], table.columns[:1]
    number = Published("p", "1", "mnist", "", "MAP", "accuracy", 92.0, 0.2, 5, "", ("", ""))
    values = {(0, 0): 89.0, (0, 1): 91.0}
    cells = [[CellResult(rows[0], columns[0], 2, values, number)], [CellResult(rows[1], columns[0], 1, {(0, 0): 95.0})]]
    result = TableResult(replace(table, rows=rows, columns=columns), "paper", cells)
    runs = Runs(Figure("t-points", "t", "t", "", ""), "paper", {}, (), lambda run: {}, cells=lambda: result)
    axis = points(runs).axes[0]
    rings = [each for each in axis.containers if each[0].get_markerfacecolor() == "none"]
    bars = [each.get_children() for each in axis.containers if each not in rings]
    assert [tuple(drawn[0].get_xydata()[0]) for drawn in bars] == [(90.0, 0.0), (95.0, 1.0)]  # type: ignore[attr-defined]
    assert bars[0][-1].get_segments()[0].tolist() == [[89.0, 0.0], [91.0, 0.0]] and len(bars[1]) == 1  # type: ignore[attr-defined]
    assert [ring[0].get_xydata().tolist() for ring in rings] == [[[92.0, BELOW]]]
    assert rings[0].get_children()[-1].get_segments()[0].tolist() == [[91.8, BELOW], [92.2, BELOW]]
    assert "higher is better" in axis.get_xlabel()


def test_numbers_below_points_do_not_run_together() -> None:
    table = tables.get("rudner2022-1")
    columns, labels = table.columns, ("FSVI (monochrome), 100 draws", "FSVI (KMNIST), 100 draws")
    rows = tuple(replace(row, label=label) for row, label in zip(table.rows, labels))
    cells = [[CellResult(row, c, 1, {(0, 0): 92.9595 + 0.17 * i}) for c in columns] for i, row in enumerate(rows)]
    result = TableResult(replace(table, rows=rows), "paper", cells)
    figure = points(Runs(Figure("t", "t", "t", "", ""), "paper", {}, (), lambda run: {}, cells=lambda: result))
    figure.draw_without_rendering()
    for axis in figure.axes:
        low, high = sorted(axis.get_xlim())
        boxes = [each.get_window_extent() for each in axis.get_xticklabels() if low <= each.get_position()[0] <= high]
        apart = boxes[0].height / 2
        assert len(boxes) > 1 and all(left.x1 + apart < right.x0 for left, right in pairwise(boxes))


def test_bands_of_estimates_are_standard_errors_over_draws() -> None:
    runs = Runs(FIGURES["cinquin2024-figure-20"], "computed", {}, (), lambda run: {})
    axis = kernels.divergences(runs).axes[0]
    found = [kernels.estimates("RBF", [1e-2], kernels.SIZES, seed)[0] for seed in range(kernels.DRAWS)]
    band = axis.collections[list(kernels.GAMMAS).index(1e-2)].get_paths()[0].vertices
    for k, size in enumerate(kernels.SIZES):
        edges = band[band[:, 0] == size, 1]  # type: ignore[index]
        assert np.ptp(edges) / 2 == pytest.approx(stats.sem(found)[k], rel=1e-6)


def test_shades_end_one_two_and_three_deviations_from_the_mean() -> None:
    mean, std = [0.0, 1.0], [0.5, 0.25]
    curve = {"x": [[0.0], [1.0]], "mean": mean, "std": std, "samples": []}
    read: Any = lambda run: {"grid/grid": curve}
    axis = shades(Runs(FIGURES["pequignot2020-figure-1"], "paper", {"HMC": [Run()]}, (), read)).axes[0]  # type: ignore[list-item]
    for count, band in zip((3, 2, 1), axis.collections, strict=True):
        corners = band.get_paths()[0].vertices
        assert {tuple(corner) for corner in np.asarray(corners)} == {
            (float(x), mean[x] + side * count * std[x]) for x in (0, 1) for side in (-1, 1)
        }


@pytest.mark.parametrize("points", [6.0, 7.5, 8.0])
def test_broken_lines_are_as_wide_in_every_resolution(points: float) -> None:
    words = "protocol paper, n = 3 runs; bars: SE; no values: boston parameter, concrete parameter, wine predictor"
    figure = plt.figure(figsize=(4, 1), dpi=100)
    for line in wrapped(figure, words, points, 3.0):
        text = figure.text(0, 0, line, fontsize=points)
        for dpi in (72, 100, 200, 400):
            figure.set_dpi(dpi)
            assert text.get_window_extent().width / dpi < 3.02, (line, dpi)
        figure.set_dpi(100)
    plt.close(figure)
