"""The figure of PIT values is drawn from records that have them, and skipped for records that were made before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.metrics import SetInfo, evaluate
from benchmarks.records.predictions import RegressionPredictions
from reports.figures import FIGURES, draw, style
from reports.figures.parts import stack
from reports.records import Records
from tests.reports.fakes import Cell, Column, FakeSuite, Row, fake_table

SUITE = FakeSuite(
    fake_table(
        "uci", tuple(Row(m, None, m) for m in ("MAP", "GP")), (Column(Cell("boston", "", "rmse"), "rmse"),), n_runs=2
    )
)
FIGURE = FIGURES["uci-pit-boston"]


def test_pit_values_are_drawn(write: Callable[..., Path], tmp_path: Path, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    rows, curves = evaluate(
        "regression", "boston", [SetInfo("test", "id")], {"test": RegressionPredictions(np.zeros((2, 400)), 2.0, y)}
    )
    values = {(row["condition"], row["metric"]): [row["value"]] * 2 for row in rows}
    write("MAP", "boston", values, curves=curves)
    canvases = []
    monkeypatch.setattr(style, "save", lambda canvas, files: canvases.append(canvas))
    (drawn,) = draw([FIGURE], SUITE, Records(tmp_path / "results"), tmp_path / "out")
    assert drawn.skipped == "" and drawn.problems == ()
    (axis,) = [axis for axis in canvases[0].axes if axis.get_visible()]
    heights = np.array([bar.get_height() for bar in axis.patches])
    np.testing.assert_allclose(heights, stack([curves["test/pit"]], "count")[0] / 400 * 20)
    assert heights.mean() == 1 and heights[9] > 1.5 > 0.1 > heights[0]  # twice too wide: a hump in the middle
    assert axis.get_title().startswith("MAP\nKS 0.")


def test_records_without_them_are_skipped(write: Callable[..., Path], tmp_path: Path) -> None:
    write("MAP", "boston", {("", "rmse"): [1.0, 2.0]}, curves={"test/epistemic_entropy": {"value": [0.0]}})
    (drawn,) = draw([FIGURE], SUITE, Records(tmp_path / "results"), tmp_path / "out")
    assert drawn.skipped == "the records hold no curve test/pit (table uci, protocol paper)" and not drawn.files


def test_only_runs_with_pit_values_are_counted(write: Callable[..., Path], tmp_path: Path) -> None:
    curve = {"test/pit": {"edges": [0.0, 0.5, 1.0], "count": [40, 60]}}
    write("MAP", "boston", {("", "rmse"): [1.0, 1.0]}, curves=curve)
    write("GP", "boston", {("", "rmse"): [1.0]}, curves=curve)
    write("GP", "boston", {("", "rmse"): [None, 1.0]}, curves={"test/epistemic_entropy": {"value": [0.0]}})
    (drawn,) = draw([FIGURE], SUITE, Records(tmp_path / "results"), tmp_path / "out", forms=[".txt"])
    (caption,) = drawn.files
    assert "protocol paper, n = 1 to 2 runs; error bars: SE" in caption.read_text()
