"""Error rates of verdicts with few runs or without a published error, for docs/verdicts.md: python -m reports.scatters.

The first two tables are exact (reports.agreement.level_of_few and level). The third compares errors that papers print
with those of the records: the standard deviation of a single run of theirs over ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.records.provenance import ROOT
from benchmarks.suite import Suite
from reports.aggregate import CellResult, aggregate
from reports.agreement import SCATTERS, level, level_of_few
from reports.marks import grid
from reports.records import Records

THEIRS = (0.25, 0.5, 1.0, 2.0, 4.0)
RUNS = (3, 5, 10)
BESIDE = ((2, 10), (3, 10), (5, 10), (2, 5), (3, 5))  # numbers of our runs and theirs
TAKEN = (1.0, SCATTERS[1])
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
LEAST = 3  # fewest runs that give a scatter


def levels_of_few() -> str:
    """Return the chance that equal means differ in the test, by true scatter, and numbers of our runs and theirs."""
    header = ["their scatter / ours", *(f"n = {ours} beside {theirs}" for ours, theirs in BESIDE)]
    rows = [[f"{scatter:g}", *(f"{level_of_few(scatter, *runs):.3f}" for runs in BESIDE)] for scatter in THEIRS]
    return grid(header, rows, "---:")


def levels() -> str:
    """Return the chance that equal means differ in the test, by true scatter, assumed scatter and runs."""
    header = ["their scatter / ours", *(f"taken as {taken:g}, n = {runs}" for taken in TAKEN for runs in RUNS)]
    rows = [
        [f"{theirs:g}", *(f"{level(theirs, taken, runs):.4f}" for taken in TAKEN for runs in RUNS)] for theirs in THEIRS
    ]
    return grid(header, rows, "---:")


def scatters(cells: Iterable[CellResult]) -> dict[str, list[float]]:
    """Return standard deviations of single published runs in units of ours, by paper, from cells with at least LEAST
    runs and a published error of two units of its last digit or more."""
    found: dict[str, list[float]] = {}
    for cell in cells:
        number = cell.published
        if number is None or number.stderr is None or not number.n_runs or cell.is_cost or cell.n < LEAST:
            continue
        own = float(np.std(list(cell.values.values()), ddof=1))
        if own > 0 and number.stderr > 2 * number.half_unit_of_error:
            found.setdefault(number.paper, []).append(number.stderr * number.n_runs**0.5 / own)
    return found


def quantiles(scatters: dict[str, list[float]]) -> str:
    """Return quantiles of these scatters, and their share within the range that verdicts assume."""
    header = ["paper", "cells", *(f"{100 * q:g} %" for q in QUANTILES), f"within {SCATTERS[0]:g} to {SCATTERS[1]:g}"]
    rows, every = [], [value for each in scatters.values() for value in each]
    for paper, values in [*scatters.items(), ("all", every)]:
        inside = np.mean([SCATTERS[0] <= value <= SCATTERS[1] for value in values])
        rows.append([paper, f"{len(values)}", *(f"{x:.2f}" for x in np.quantile(values, QUANTILES)), f"{inside:.0%}"])
    return grid(header, rows, "---:")


def main(results: Path = ROOT / "results") -> None:
    """Print the three tables."""
    suite, records = Suite(), Records(results)
    published = [suite.table(name) for name in suite.table_names()]
    own = [each for each in published if each.is_published and "paper" in each.protocols]
    print(levels_of_few())
    print(levels())
    print(quantiles(scatters(cell for table in own for cell in aggregate(table, "paper", records).flat)))


if __name__ == "__main__":
    main()
