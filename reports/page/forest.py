"""Forest plots: a cell's number, those of its other readings, and the published one on one axis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.records.published import Published
from reports.aggregate import CellResult
from reports.tried import Difference

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
    own, target, readings = cell.cell, cell.target, cell.nearest
    gap = abs(own.mean - target.mean)
    ends = [*interval(own), *interval(target)]
    least, most = min(own.mean, target.mean) - gap, max(own.mean, target.mean) + gap
    reached = [end for each in readings for end in interval(each.cell) if least <= end <= most]
    low, high = min(ends + reached), max(ends + reached)

    def place(value: float) -> float:
        inside = (min(max(value, low), high) - low) / (high - low)
        return round(MARGIN + (100 - 2 * MARGIN) * inside, 1)

    def spread(number: CellResult | Published) -> tuple[float, float, float]:
        first, last = interval(number)
        return place(number.mean), place(first), place(last)

    def lines() -> Iterator[Line]:
        shown = {kind: str(line) for kind, line in cell.shown.items()}
        yield Line("ours", "", shown["value"], shown["difference"], "differs", *spread(own))
        for each in readings:
            there = each.cell
            beyond = (there.mean > high) - (there.mean < low)
            verdict = str(there.agreement) if math.isfinite(there.stderr) else "one run"  # its distance is drawn
            yield Line(there.row.label, each.table, each.value, verdict, there.status, *spread(there), beyond)

    return Forest(*spread(target), tuple(lines()))


def interval(number: CellResult | Published) -> tuple[float, float]:
    """Return the ends of two standard errors around a mean; the mean alone without an error."""
    reach = 2 * number.stderr if number.stderr and math.isfinite(number.stderr) else 0.0
    return number.mean - reach, number.mean + reach
