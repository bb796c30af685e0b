"""Figures of what a choice decides: a line for each jitter, the points that there are, the published number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reports.figures import FIGURES, NothingToShow, collect, settings
from reports.records import Records
from tests.reports.fakes import Cell, Column, FakeTable, Row, fake_table

METRICS = ("expected_log_likelihood_standardised", "mse_standardised")
LABELS = ("TFSVI, 10 points, 0.01", "TFSVI, 40 points, 0.01", "TFSVI, 10 points, 1e-06", "TFSVI, 100 points, 1e-06")


pytestmark = pytest.mark.usefixtures("no_open_canvas")


def table(labels: tuple[str, ...]) -> FakeTable:
    rows = tuple(Row(label, None, label) for label in labels)
    return fake_table("t", rows, (Column(Cell("boston", "", METRICS[0]), "boston"),), n_runs=2)


def test_lines_of_jitters_over_points(write: Callable[..., Path], tmp_path: Path) -> None:
    for i, label in enumerate(LABELS[:3]):
        write(label, "boston", {("", METRICS[0]): [-1.0 - i, -2.0 - i], ("", METRICS[1]): [0.5, 0.7]})
    figure = FIGURES["cinquin2024-tfsvi-points-and-jitter"]
    found = collect(figure, table(LABELS), "paper", Records(tmp_path / "results"))
    canvas = settings.points_and_jitter(found)
    likelihood, error = canvas.axes
    lines = {container.get_label(): container[0].get_data() for container in likelihood.containers}
    assert {name: tuple(map(list, data)) for name, data in lines.items()} == {
        "jitter 0.01": ([10, 40], [-1.5, -2.5]),
        "jitter 1e-06": ([10], [-3.5]),
    }
    published = {line.get_label(): line.get_ydata()[0] for axis in (likelihood, error) for line in axis.lines}
    assert published["published, 500 points"] == 0.995, "the last panel's"
    assert canvas.get_supxlabel().endswith("\nno records: TFSVI, 100 points, 1e-06")
    assert [label.get_text() for label in error.get_xticklabels()] == ["10", "40"]


def test_rows_that_say_neither_are_no_figure(write: Callable[..., Path], tmp_path: Path) -> None:
    write("TFSVI", "boston", {("", METRICS[0]): [-1.0, -2.0], ("", METRICS[1]): [0.5, 0.7]})
    figure = FIGURES["cinquin2024-tfsvi-points-and-jitter"]
    with pytest.raises(NothingToShow, match="no row says points"):
        settings.points_and_jitter(collect(figure, table(("TFSVI",)), "paper", Records(tmp_path / "results")))
