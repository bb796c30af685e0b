"""The comparisons that the forms of claims name, with effects computed by hand."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy import stats

from benchmarks.errors import UsageError
from reports.aggregate import TableResult, aggregate
from reports.findings import verdicts
from reports.findings.claims import Claim, Rule
from reports.findings.comparisons import of
from reports.findings.words import best, details, result_line, summary
from reports.records import Records
from tests.reports.fakes import Cell, Column, Row, fake_table

Writer = Callable[..., Path]


def effects(result: TableResult, test: Rule) -> dict[str, float]:
    found = {}
    for each in of(test, {"free": result}, False):
        tested = each.tested()
        found[f"{each.words}, {each.column}"] = tested.gap if not isinstance(tested, str) else math.nan
    return found


COLUMNS = tuple(
    Column(Cell("mnist", f"angle={angle}", metric), f"{metric} {angle}")
    for metric in ("accuracy", "predictive_entropy")
    for angle in (0, 10, 20)
)
WIDE = fake_table("free", tuple(Row(name, None, name) for name in "abcd"), COLUMNS, n_runs=2, one_split=True)
MEANS = {"a": (0.9, 0.8, 0.6), "b": (0.7, 0.7, 0.7), "c": (0.5, 0.6, 0.9), "d": (0.2, 0.1, 0.05)}


@pytest.fixture
def wide(write: Writer) -> TableResult:
    for row, means in MEANS.items():
        values = {
            (column.cell.condition, column.cell.metric): [mean - 0.01, mean + 0.01]
            for column, mean in zip(COLUMNS, means * 2)
        }
        results = write(row, "mnist", values, one_split=True)
    return aggregate(WIDE, "paper", Records(results))


AT = "mnist:angle={}:accuracy".format


@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        (Rule(("free",), ("a",), ("b", "c"), (AT(0),), "each"), [0.2, 0.4]),
        (Rule(("free",), ("a", "b"), ("c", "d"), (AT(0),), "matched"), [0.4, 0.5]),
        (Rule(("free",), ("a",), ("b",), (AT(0),), "equal"), [0.2, -0.2]),
        (Rule(("free",), ("a", "b", "c"), (), (AT(0),), "rows", -1), [0.2, 0.2]),
        (Rule(("free",), ("a",), (), (AT("*"),), "columns", 1), [-0.1, -0.2]),
        (Rule(("free",), ("a",), (), (AT(0),), "each", value=0.85), [0.05]),
        (Rule(("free",), ("b",), (), (AT(20),), "each", base=(AT(0),)), [0.0]),
        (Rule(("free",), ("a",), ("c",), ("mnist:angle=20:predictive_entropy",), "each", 1, base=(AT(0),)), [-0.7]),
        (Rule(("free",), ("a minus b",), ("c minus d",), (AT(0),), "each"), [-0.1]),
    ],
)
def test_forms_compare_what_they_say(wide: TableResult, test: Rule, wanted: list[float]) -> None:
    assert list(effects(wide, test).values()) == pytest.approx(wanted)


def test_equal_differences_of_binary_fractions_are_no_effect(wide: TableResult) -> None:
    """0.7 - 0.5 and 0.4 - 0.2 differ by rounding alone, by the same in every run: its spread is 0."""
    (each,) = of(Rule(("free",), ("a minus b",), ("c minus d",), (AT(0),), "each"), {"free": wide}, False)
    values = [dict.fromkeys([(0, 0), (0, 1)], value) for value in (0.7, 0.5, 0.4, 0.2)]
    terms = tuple((w, dataclasses.replace(cell, values=v)) for (w, cell), v in zip(each.terms, values, strict=True))
    tested = dataclasses.replace(each, terms=terms).tested()
    assert math.fsum(w * cell.values[0, 0] for w, cell in terms) != 0
    assert not isinstance(tested, str) and (tested.gap, tested.p) == (0, 1)


def test_equal_differences_are_never_certain(wide: TableResult) -> None:
    """a - b is 0.2 in both runs, whether or not a and b vary; a sign test of two runs has p = 1/2."""
    (each,) = of(Rule(("free",), ("a minus b",), ("c minus d",), (AT(0),), "each"), {"free": wide}, False)
    for varied in (0.1, 0.0):
        values = [
            {(0, 0): mean, (0, 1): mean + more} for mean, more in ((0.7, varied), (0.5, varied), (0.4, 0), (0.3, 0))
        ]
        terms = tuple((w, dataclasses.replace(cell, values=v)) for (w, cell), v in zip(each.terms, values, strict=True))
        tested = dataclasses.replace(each, terms=terms).tested()
        assert not isinstance(tested, str) and (tested.gap, tested.p) == (pytest.approx(0.1), 0.5)


def test_ranks_are_compared_over_data_sets(write: Writer) -> None:
    """By the rule of cinquin2024: a is first twice and second once, b the reverse."""
    columns = tuple(Column(Cell(name, "", "rmse"), name) for name in ("boston", "energy", "wine"))
    table = fake_table("free", (Row("a", None, "a"), Row("b", None, "b")), columns, one_split=True)
    for row, means in (("a", (1, 1, 2)), ("b", (2, 2, 1))):
        for name, mean in zip(("boston", "energy", "wine"), means):
            results = write(row, name, {("", "rmse"): [mean - 0.01, mean, mean + 0.01]}, one_split=True)
    test = Rule(("free",), ("a",), ("b",), ("*::rmse",), "rank")
    (each,) = of(test, {"free": aggregate(table, "paper", Records(results))}, False)
    tested = each.tested()
    assert not isinstance(tested, str) and tested.n == 3
    assert tested.gap == pytest.approx((1 + 1 - 1) / 3) and tested.p == pytest.approx(
        stats.ttest_1samp([1, 1, -1], 0).pvalue
    )
    ranks = Claim("x", "p", "1", "Words.", "absolute")
    found = verdicts.Finding(
        ranks, "paper", (verdicts.Tested(dataclasses.replace(each, ranked=(tested, None)), tested),), family=1
    )
    assert re.search(r"n=3 data sets\. .* 10 data sets would decide 0 of 1 comparisons, about \d+ all", details(found))
    equal = dataclasses.replace(tested, gap=0.0)
    for ranked, count in (((equal, None), 0), (None, 1)):
        same = verdicts.Tested(dataclasses.replace(each, ranked=ranked), equal)
        _, _, open_claims = summary([dataclasses.replace(found, tested=(same,))])
        assert f"; in {count} of them some comparison would need more than 1,000 runs" in open_claims


def test_infinite_values_and_runs_without_a_partner_are_not_tested(wide: TableResult) -> None:
    (each,) = of(Rule(("free",), ("a",), ("b",), (AT(0),), "each"), {"free": wide}, False)
    (first, mine), (second, other) = each.terms

    def reason(**changes: object) -> object:
        return dataclasses.replace(
            each, terms=((first, mine), (second, dataclasses.replace(other, **changes)))
        ).tested()

    assert reason(values={(0, 0): 1.0, (0, 1): math.inf}) == "b: infinite values"
    assert reason(values={(0, 0): 1.0, (0, 7): 1.0}) == "fewer than two splits and seeds that all rows have"
    assert str(reason(machines=frozenset({"one", "other"}))).startswith("times of different machines")


def test_a_metric_without_a_better_side_needs_one(wide: TableResult) -> None:
    with pytest.raises(UsageError, match="needs a side"):
        effects(wide, Rule(("free",), ("a",), ("b",), ("mnist:angle=0:predictive_entropy",), "each"))


def test_rows_that_equal_the_third_best_are_named_too(wide: TableResult) -> None:
    cells = [
        [dataclasses.replace(cell, bold=i != 0 or j == 0) for j, cell in enumerate(row)]
        for i, row in enumerate(wide.cells)
    ]
    found = dataclasses.replace(wide, cells=[*cells, cells[1]])
    assert best(found) == (6, [("b", 6), ("b", 6), ("c", 6), ("d", 6)])
    assert best(dataclasses.replace(wide, cells=cells[:2])) == (6, [("b", 6), ("a", 1)])
    assert result_line(found).startswith("Not significantly worse than any other row, in the 6 columns")
    none = [[dataclasses.replace(cell, bold=False) for cell in row] for row in cells]
    assert result_line(dataclasses.replace(wide, cells=none)) == ""
