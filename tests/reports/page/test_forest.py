"""Forest plots: numbers and readings stand where they belong on one axis, distant readings at its ends."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reports.page.forest import MARGIN, forest
from reports.tried import Difference, Reading


def fake_cell(row: str, mean: float, stderr: float = float("nan"), **about: object) -> SimpleNamespace:
    return SimpleNamespace(row=SimpleNamespace(label=row), mean=mean, stderr=stderr, **about)


def reading(row: str, mean: float, stderr: float = float("nan"), status: str = "undecided") -> Reading:
    return Reading("other", fake_cell(row, mean, stderr, status=status, agreement="differs, worse"), str(mean))


def cell(*readings: Reading, own: float = 10.0, target: float = 4.0) -> Difference:
    shown = {"value": "10", "published": "4", "difference": "+3 better"}
    ours = fake_cell("M", own, 1.0, published=SimpleNamespace(mean=target, stderr=0.5))
    return Difference(ours, shown, readings=readings)


def test_the_ends_of_the_axis_are_those_of_the_widest_interval() -> None:
    found = forest(cell())
    (ours,) = found.lines
    assert (found.low, ours.high) == (MARGIN, 100 - MARGIN), "3 and 12 are the ends of the intervals"
    width = 100 - 2 * MARGIN
    assert found.at == pytest.approx(MARGIN + width * 1 / 9, abs=0.05) and found.high > found.at
    assert ours.at == pytest.approx(MARGIN + width * 7 / 9, abs=0.05)
    assert (ours.label, ours.table, ours.status, ours.verdict) == ("ours", "", "differs", "+3 better")


def test_a_reading_within_reach_widens_the_axis_and_a_distant_one_stands_at_its_end() -> None:
    found = forest(cell(reading("low", -1.0), reading("far", 99.0, 1.0), reading("very low", -99.0)))
    low, *distant = found.lines[1:]
    assert low.label == "low" and low.at == MARGIN and low.beyond == 0, "as far below as ours is above"
    assert [(each.label, each.beyond) for each in distant] == [("far", 1), ("very low", -1)]
    assert [each.at for each in distant] == [100 - MARGIN, MARGIN] and distant[0].low == 100 - MARGIN
    assert [each.verdict for each in (low, distant[0])] == ["one run", "differs, worse"]


def test_readings_that_reproduce_the_number_come_first() -> None:
    found = forest(cell(reading("near", 4.5), reading("same", 6.0, 1.0, "reproduced"), reading("next", 5.0)))
    assert [line.label for line in found.lines] == ["ours", "same", "near", "next"]


def test_ours_below_the_published_number() -> None:
    found = forest(cell(own=1.0, target=4.0))
    assert found.lines[0].at < found.at and found.lines[0].low == MARGIN and found.high == 100 - MARGIN
