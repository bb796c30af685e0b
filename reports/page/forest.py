"""Forest plots: a cell's number, those of its other readings, and the published one on one axis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from reports.tried import Difference, Number

MARGIN = 4.0  # percent of the width left free at both ends


@dataclass(frozen=True)
class Line:
    """Line of a forest plot, in percent of its width: a mark, and the ends of two standard errors around it.

    beyond: -1 or 1 where the mark's own place is left or right of the axis; table: empty for the table's own row.
    """

    label: str
    table: str
    text: str
    verdict: str
    status: str
    at: float
    low: float
    high: float
    beyond: int = 0


@dataclass(frozen=True)
class Forest:
    """Forest plot of one cell: the place of the published number, the ends of two of its standard errors, the lines."""

    at: float
    low: float
    high: float
    lines: tuple[Line, ...]


def forest(cell: Difference) -> Forest:
    """Return the forest plot of a differing cell, its nearest readings first.

    The axis ends at most as far beyond our number and the published one as these are apart, so that distant readings do
    not hide that distance.
    """
    gap = abs(cell.own.mean - cell.target.mean)
    readings = cell.nearest
    ends = [end for number in (cell.own, cell.target) for end in number.interval]
    least, most = min(cell.own.mean, cell.target.mean) - gap, max(cell.own.mean, cell.target.mean) + gap
    reached = [end for each in readings for end in each.number.interval if least <= end <= most]
    low, high = min(ends + reached), max(ends + reached)

    def place(value: float) -> float:
        inside = (min(max(value, low), high) - low) / (high - low)
        return round(MARGIN + (100 - 2 * MARGIN) * inside, 1)

    def spread(number: Number) -> tuple[float, float, float]:
        first, last = number.interval
        return place(number.mean), place(first), place(last)

    def lines() -> Iterator[Line]:
        yield Line("ours", "", cell.value, cell.verdict, "differs", *spread(cell.own))
        for each in readings:
            mean = each.number.mean
            beyond = (mean > high) - (mean < low)
            verdict = each.verdict if math.isfinite(each.number.stderr) else "one run"  # its distance is drawn
            yield Line(each.row, each.table, each.value, verdict, each.status, *spread(each.number), beyond)

    return Forest(*spread(cell.target), tuple(lines()))
