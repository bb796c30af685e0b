"""Mean ranks by the rule of cinquin2024."""

import dataclasses
import math

import pytest

from benchmarks import tables
from benchmarks.records import published
from reports import mean_ranks
from reports.aggregate import CellResult, TableResult

RANKED = ("GFSVI", "FVI", "TFSVI", "MFVI", "VIP", "Laplace")


def test_overlapping_error_bars_share_a_rank_and_the_next_rank_follows_without_a_gap():
    bars = {"a": (1.0, 0.1), "b": (0.9, 0.05), "c": (0.7, 0.1), "d": (0.45, 0.1), "e": (-3.0, 0.2)}
    assert mean_ranks.ranks(bars, 1) == {"a": 1, "b": 1, "c": 2, "d": 3, "e": 4}
    # From the other end d and c do not touch, and neither do c and b.
    assert mean_ranks.ranks(bars, -1) == {"e": 1, "d": 2, "c": 3, "b": 4, "a": 4}


def test_bars_that_touch_are_equal():
    assert mean_ranks.ranks({"a": (0.3, 0.1), "b": (0.1, 0.1)}, 1) == {"a": 1, "b": 1}
    assert mean_ranks.ranks({"a": (1.3, 0.15), "b": (1.0, 0.15)}, 1) == {"a": 1, "b": 1}, "1.3 - 1 > 0.3 in binary"
    assert mean_ranks.ranks({}, 1) == {}


def test_a_single_run_has_no_bar():
    row, column = tables.get("cinquin2024-1").rows[0], tables.get("cinquin2024-1").columns[0]
    one, two = (CellResult(row, column, 2, values) for values in ({(0, 0): 1.0}, {(0, 0): 1.0, (1, 1): 3.0}))
    assert mean_ranks.bar_of_runs(one) is None and mean_ranks.bar_of_runs(two) == (2.0, 1.0)


def test_an_infinite_mean_has_no_error_and_the_last_rank():
    bars = {"a": (-math.inf, math.nan), "b": (-1.0, 0.1), "c": (-1.1, 0.1)}
    assert mean_ranks.ranks(bars, 1) == {"b": 1, "c": 1, "a": 2}


@pytest.mark.parametrize(
    ("number", "metric", "sign", "off"),
    [("1", "expected_log_likelihood", 1, 0.1), ("6", "mse", -1, 0.4), ("4", "ood_accuracy", 1, 0.6)],
)
def test_published_numbers_give_nearly_the_published_mean_ranks(number, metric, sign, off):
    numbers = published.table("cinquin2024", number)
    sets = {key[0] for key in numbers if key[3] == metric}
    found = {label: [] for label in RANKED}
    for name in sets:
        bars = {key[2]: (n.mean, n.stderr) for key, n in numbers.items() if key[0] == name and key[2] in RANKED}
        for label, rank in mean_ranks.ranks(bars, sign).items():
            found[label].append(rank)
    assert len(sets) == 11
    for label, each in found.items():
        printed = numbers["uci", "", label, f"mean_rank_{metric}"].mean
        assert sum(each) / 11 == pytest.approx(printed, abs=off)


def result_of(values):
    """Table 1 with these values of two runs for GFSVI and FVI."""
    table = tables.get("cinquin2024-1")
    rows = [row for row in table.rows if row.label in ("GFSVI", "FVI")]
    numbers = published.table(table.paper, table.number)
    cells = [
        [
            CellResult(row, column, 2, found, numbers.get(column.published_key(row)))
            for column, found in zip(table.columns[:2], values[row.label])
        ]
        for row in rows
    ]
    table = dataclasses.replace(table, rows=tuple(rows), columns=table.columns[:2], ranked=("GFSVI", "FVI"))
    return TableResult(table, "paper", cells)


def test_only_data_sets_where_every_ranked_row_has_runs_count():
    pairs = {(0, 0): -0.5, (1, 1): -0.52}, {(0, 0): -0.9, (1, 1): -0.92}
    sentence = mean_ranks.sentence(result_of({"GFSVI": [pairs[0], pairs[0]], "FVI": [pairs[1], {}]}))
    # Boston is the one set; the published error bars overlap there.
    assert "over one data set" in sentence and "GFSVI 1 (1), FVI 2 (1)" in sentence
    both = mean_ranks.sentence(result_of({"GFSVI": [pairs[0], pairs[1]], "FVI": [pairs[1], pairs[0]]}))
    assert "over the 2 data sets" in both and "GFSVI 1.5" in both and "FVI 1.5" in both
    assert mean_ranks.sentence(result_of({"GFSVI": [pairs[0], {}], "FVI": [{}, pairs[1]]})) == ""


def test_published_ranks_are_left_out_where_a_number_is_not_printed():
    pairs = {(0, 0): -0.5, (1, 1): -0.52}, {(0, 0): -0.9, (1, 1): -0.92}
    result = result_of({"GFSVI": [pairs[0], pairs[0]], "FVI": [pairs[1], pairs[1]]})
    result.cells[1][0] = dataclasses.replace(result.cells[1][0], published=None)
    assert "over the 2 data sets where all of these rows have runs: GFSVI 1, FVI 2;" in mean_ranks.sentence(result)
