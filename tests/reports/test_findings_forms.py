"""The comparisons that the forms of claims name, with effects computed by hand."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.errors import UsageError
from benchmarks.records.published import Published
from reports.aggregate import TableResult, aggregate
from reports.findings import verdicts
from reports.findings.claims import Claim, Margin, Rule
from reports.findings.comparisons import OPEN, Comparison, of
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


def test_printed_ranks_are_tested_over_data_sets(write: Writer) -> None:
    """Where a is first in three sets of four the mean of rank b - rank a is 0.5, its error 0.5."""
    names = ("boston", "energy", "wine", "yacht", "kin8nm")
    columns = tuple(Column(Cell(name, "", "rmse"), name) for name in names)
    table = fake_table("free", (Row("a", None, "a"), Row("b", None, "b")), columns, one_split=True)
    result = aggregate(table, "paper", Records(write("a", "boston", {("", "rmse"): [1.0]}, one_split=True)))

    def compared(gaps: list[int], first: str, second: str) -> Comparison:
        means = [2.0] * len(gaps), [2.0 + gap for gap in gaps]
        cells = [
            [
                dataclasses.replace(
                    cell, published=Published("p", "1", "", "", "", "rmse", mean, 0.1, 10, "", ("", ""))
                )
                for cell, mean in zip(row, printed, strict=False)
            ]
            + row[len(gaps) :]
            for row, printed in zip(result.cells, means, strict=True)
        ]
        rule = Rule(("free",), (first,), (second,), ("*::rmse",), "rank")
        (each,) = of(rule, {"free": dataclasses.replace(result, cells=cells)}, False)
        return each

    assert compared([1, 1, 1, -1], "a", "b").published() == pytest.approx((0.5, 0.5))
    assert compared([1, 1, 1, -1], "a", "b").printed_outcome() == OPEN
    for rows, sign in ((("a", "b"), 1), (("b", "a"), -1)):
        each, ranks = compared([1, 1, 1, 1, 0], *rows), [sign, sign, sign, sign, 0]
        assert each.published() == pytest.approx((np.mean(ranks), stats.sem(ranks)))
        assert each.printed_outcome() == sign and each.tested() == "fewer than two data sets where all rows have runs"
        assert each.printed_against() == pytest.approx(stats.ttest_1samp(ranks, 0, alternative="less").pvalue)
    assert compared([1], "a", "b").published() is None, "one data set is no sample"


def test_a_margin_has_the_scale_of_its_column(wide: TableResult) -> None:
    """In per cent 0.9 - 0.7 is 20, and a margin of 0.01 is 1."""
    columns = tuple(dataclasses.replace(column, scale=100.0) for column in COLUMNS)
    cells = [
        [dataclasses.replace(cell, values={run: 100 * value for run, value in cell.values.items()}) for cell in row]
        for row in wide.cells
    ]
    percent = dataclasses.replace(wide, table=dataclasses.replace(WIDE, columns=columns), cells=cells)
    test = Rule(("free",), ("b",), ("a",), (AT(0),), "each", margin=Margin(0.01, False, ""))
    (each,) = of(test, {"free": percent}, True)
    tested = each.tested()
    assert not isinstance(tested, str) and tested.gap == pytest.approx(-20 + 1)


def test_overlapping_splits_widen_a_claims_test(write: Writer) -> None:
    """Nadeau and Bengio: 1/n + test points / training points in the place of 1/n, in the column's data set alone."""
    a, b = [1.0, 1.4, 1.1, 1.3], [2.1, 2.2, 2.0, 2.3]
    columns = tuple(Column(Cell(name, "", "rmse"), name) for name in ("boston", "energy"))
    table = fake_table("free", (Row("a", None, "a"), Row("b", None, "b")), columns, n_runs=4)
    for name in ("boston", "energy"):
        for row, values in (("a", a), ("b", b)):
            results = write(row, name, {("", "rmse"): values})
    result = dataclasses.replace(aggregate(table, "paper", Records(results)), overlaps={"boston": 1 / 9})
    gaps = [theirs - ours for ours, theirs in zip(a, b, strict=True)]
    t = stats.ttest_1samp(gaps, 0).statistic
    corrected = t * math.sqrt((1 / 4) / (1 / 4 + 1 / 9))
    wanted = [2 * stats.t.sf(corrected, 3), stats.ttest_1samp(gaps, 0).pvalue]
    each = [one.tested() for one in of(Rule(("free",), ("a",), ("b",), ("*::rmse",), "each"), {"free": result}, False)]
    assert [one.p for one in each if not isinstance(one, str)] == pytest.approx(wanted)


def test_steps_and_bases_stay_in_their_data_set_and_metric(write: Writer) -> None:
    """Angles 0 and 10 of two data sets and two metrics, each with its own change."""
    places = [(name, metric) for name in ("mnist", "digits") for metric in ("accuracy", "brier")]
    columns = tuple(
        Column(Cell(name, f"angle={angle}", metric), f"{name} {metric} {angle}")
        for angle in (0, 10) for name, metric in places
    )  # fmt: skip
    table = fake_table("free", (Row("a", None, "a"),), columns, n_runs=2, one_split=True)
    starts, changes = {"mnist": 0.1, "digits": 0.3}, dict(zip(places, (0.1, 0.2, 0.3, 0.4), strict=True))
    for name in ("mnist", "digits"):
        own = {}
        for angle, metric in itertools.product((0, 10), ("accuracy", "brier")):
            value = starts[name] + angle / 10 * changes[name, metric]
            own[f"angle={angle}", metric] = [value, value + 0.05]
        results = write("a", name, own, one_split=True)
    result = aggregate(table, "paper", Records(results))
    steps = effects(result, Rule(("free",), ("a",), (), ("*",), "columns", 1))
    assert list(steps.values()) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    base = ("*:angle=0:accuracy",)
    based = effects(result, Rule(("free",), ("a",), (), ("*:angle=10:accuracy",), "each", 1, base=base))
    assert list(based.values()) == pytest.approx([0.1, 0.3])
