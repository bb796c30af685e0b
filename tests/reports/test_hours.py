"""Tests of the hours of recorded runs and of missing runs, against sums by hand."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reports.aggregate import aggregate
from reports.captions import caption
from reports.hours import Hours, hours
from reports.records import Layout, Recorded, Records
from tests.reports.fakes import Cell, Column, Row, config, fake_table

LAYOUT = Layout({}, frozenset())
HOUR = 3600.0


def run(training: float | None, evaluation: float | None = None, accelerated: bool = False) -> Recorded:
    seconds = tuple(None if value is None else HOUR * value for value in (training, evaluation))
    return Recorded("boston/map/0.json", LAYOUT, array("d"), (), "", (), seconds, accelerated)  # type: ignore[arg-type]


def with_draws(samples: int, seed: int, method: str = "MAP") -> dict[str, Any]:
    return config(method, "boston", seed=seed) | {"evaluation": {"samples": samples, "sets": ["test"]}}


def test_a_training_that_serves_several_evaluations_counts_once() -> None:
    found = hours([(with_draws(10, 0), run(2.0, 0.25)), (with_draws(20, 0), run(2.0, 0.5))])
    assert found == Hours(2, 2.75)
    assert found.sentence == "Cost, by their records: 2 runs took 2.8 core-hours."


def test_what_lacks_costs_the_median_of_its_kind() -> None:
    done = [(with_draws(10, seed), run(cost, 0.1 * cost)) for seed, cost in enumerate((1.0, 2.0, 9.0))]
    lacking = [(with_draws(10, 3), None), (with_draws(20, 3), None), (with_draws(20, 0), None)]
    other = [(with_draws(10, 0, "MFVI"), None)]
    found = hours([*done, *lacking, *other, *lacking])
    # Seed 3 is trained once, 2 hours; ten draws are .2; nothing tells of 20 draws, and seed 0 is trained already.
    assert (found.runs, found.lacking, found.known) == (3, 4, 3)
    assert round(found.spent, 9) == 13.2 and round(found.wanted, 9) == 2.2
    assert found.sentence == (
        "Cost, by their records: 3 runs took 13 core-hours. Without a record: 4 runs; 3 would take 2.2, the cost of 1 "
        "is not known, as none of their kind is recorded."
    )


def test_nothing_recorded_says_nothing_and_a_gpu_is_named() -> None:
    assert hours([(with_draws(10, 0), None)]).sentence == ""
    said = hours([(with_draws(10, 0), run(0.001, accelerated=True)), (with_draws(10, 1), run(None))]).sentence
    assert said == "Cost, by their records: 2 runs took less than 0.01 hours of a core or a GPU."
    assert hours([(with_draws(10, 0), run(0.5))]).sentence == "Cost, by their records: 1 run took 0.50 core-hours."


def test_the_caption_says_it(write: Callable[..., Path]) -> None:
    column = Column(Cell("boston", "", "rmse"), "boston")
    table = fake_table("t", (Row("MAP", "MAP", "MAP"),), (column,))
    results = write("MAP", "boston", {("", "rmse"): [3.0, 4.0]})
    result = aggregate(table, "paper", Records(results))
    assert (result.hours.runs, result.hours.lacking) == (2, 1) and result.hours.sentence in caption(result)
