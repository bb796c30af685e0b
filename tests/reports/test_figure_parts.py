"""Components of figures against values by hand and by SciPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reports.figures import FIGURES, Runs
from reports.figures.ood import _reliability
from reports.figures.parts import FEW, few, mean_and_error, two_histograms
from reports.figures.style import labelled, plt


@pytest.fixture(autouse=True)
def no_open_canvas() -> Iterator[None]:
    yield
    plt.close("all")


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


@pytest.mark.parametrize(("bins", "ece"), [(10, "0.100"), (15, "0.200")])
def test_the_ece_in_a_legend_is_that_of_the_drawn_bins(bins: int, ece: str) -> None:
    class Run:
        def conditions(self, metric: str) -> Iterator[tuple[str, float]]:
            yield "", {"ece_10": 0.1, "ece": 0.2}[metric]

    centres = (np.arange(bins) + 0.5) / bins
    curve = {"confidence": centres, "accuracy": centres, "count": np.full(bins, 50)}
    read: Any = lambda run: {"test/reliability": curve}
    runs = Runs(FIGURES["rudner2021-figure-5-cifar10"], "paper", {"MAP": [Run()]}, (), read)  # type: ignore[list-item]
    _, axis = plt.subplots()
    assert _reliability(axis, runs) == f"; ECE of {bins} bins" and f"MAP  ECE {ece}" in labelled(axis)
