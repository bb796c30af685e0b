"""Figures of screening: curves of a test set and of another country's, from records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from benchmarks.metrics import SetInfo, evaluate
from benchmarks.records.predictions import ClassificationPredictions
from reports.figures import FIGURES, collect, looks, screening, style
from reports.records import Records
from tests.reports.fakes import Cell, Column, FakeSuite, FakeTable, Row, fake_table

LABELS = ("mask only (linear)", "MAP", "MFVI", "MC Dropout", "MFVI (radial)", "Rank1", "FSVI")
ROWS = (*LABELS, *(f"{label} Ensemble" for label in LABELS[1:]))
SETS = [SetInfo("test", "id"), SetInfo("shift-idrid", "shift", "shift=country;to=idrid")]


def table(name: str, dataset: str) -> FakeTable:
    rows = tuple(Row(label, None, label) for label in ROWS)
    return fake_table(name, rows, (Column(Cell(dataset, "", "training_seconds"), dataset),), n_runs=2)


@pytest.fixture
def drawn(write: Callable[..., Path], tmp_path: Path) -> Iterator[Callable[..., Canvas]]:
    """drawn(sets): the canvas of the figure of table retinopathy on APTOS, of two runs of every row but the last."""

    def draw(sets: list[SetInfo], measure: str = "auroc"):
        random = np.random.default_rng(0)
        for strength, label in enumerate(ROWS[:-1]):
            labels = np.arange(200) % 3 % 2
            logits = random.normal(0.2 * strength * labels[:, None] * [-1, 1], 1.0, (3, 200, 2))
            found = {s.name: ClassificationPredictions(logits, labels) for s in sets}
            rows, curves = evaluate("classification", "aptos", sets, found, screens=True)
            values = {(r["condition"], r["metric"]): [r["value"]] * 2 for r in rows}
            write(label, "aptos", values, curves=curves)
        figure = FIGURES["retinopathy-aptos"]
        looks.assign(ROWS)
        shown = FakeSuite(table("retinopathy", "aptos")).table("retinopathy")
        return screening.referral(collect(figure, shown, "paper", Records(tmp_path / "results")), measure)

    yield draw
    looks.assign(())
    style.plt.close("all")


def gap_beside_marker(handle: Line2D) -> bool:
    """Return whether a legend's line has a gap that the marker in its middle does not cover."""
    offset, dashes = handle._dash_pattern
    length, half = np.ptp(handle.get_xdata()), handle.get_markersize() / 2
    places = np.linspace(0, length, 1001)
    ends = np.cumsum(dashes)
    part = np.searchsorted(ends, (places + offset) % ends[-1], side="right")
    return bool(np.any((part % 2 == 1) & (abs(places - length / 2) > half)))


def test_single_networks_stand_above_their_ensembles(drawn: Callable[..., Canvas]) -> None:
    canvas = drawn(SETS)
    axes = canvas.axes
    assert [axis.get_title() for axis in axes[:4]] == ["ROC, APTOS", "ROC, IDRiD", "referral, APTOS", "referral, IDRiD"]
    assert len(axes) == 8
    for axis, labels in ((axes[0], LABELS), (axes[4], ROWS[7:-1])):
        shown = [line.get_label() for line in axis.lines if not line.get_label().startswith("_")]
        assert shown == [*labels, "NHS: sensitivity 85 %, specificity 80 %"]
        ((x, y),) = [line.get_xydata()[0] for line in axis.lines if line.get_label().startswith("NHS")]
        assert (x, y) == pytest.approx((0.2, 0.85))
        looks = {(str(line._dash_pattern), line.get_marker()) for line in axis.lines if line.get_label() in labels}
        assert len(looks) == len(labels)  # told apart without colours
    colours = {line.get_label(): line.get_color() for axis in axes for line in axis.lines}
    assert all(colours[label] == colours[label.removesuffix(" Ensemble")] for label in ROWS[1:-1])
    assert "MAP Ensemble" in {text.get_text() for text in canvas.legends[0].texts}
    legend = canvas.legends[0]
    handles = dict(zip((text.get_text() for text in legend.texts), legend.legend_handles))
    assert all(gap_beside_marker(handles[label]) for label in ROWS[7:-1])  # broken lines are seen to be broken
    assert canvas.get_supxlabel().endswith("\nno records: FSVI Ensemble")
    assert [axis.get_ylabel().split("\n")[0] for axis in (axes[0], axes[4])] == ["single networks", "ensembles"]


def test_curves_are_those_of_the_records(drawn: Callable[..., Canvas]) -> None:
    axes = drawn(SETS, "accuracy").axes
    random = np.random.default_rng(0)
    random.normal(size=(3, 200, 2))  # the first row's
    labels = np.arange(200) % 3 % 2
    logits = random.normal(0.2 * labels[:, None] * [-1, 1], 1.0, (3, 200, 2))
    right = (np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)).mean(0).argmax(-1) == labels
    line = next(line for line in axes[2].lines if line.get_label() == "MAP")
    assert line.get_xdata()[0] == 0 and line.get_xdata()[-1] == pytest.approx(0.9) and len(line.get_xdata()) == 91
    assert line.get_ydata()[0] == pytest.approx(right.mean(), abs=0.011)  # in float16


def test_a_table_without_a_shift_has_two_panels_in_a_row(drawn: Callable[..., Canvas]) -> None:
    assert len(drawn(SETS[:1]).axes) == 4
