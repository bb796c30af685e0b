"""Rows without a run are those of the protocol that a table shows, with the cost of their first run."""

from __future__ import annotations

import pytest

from benchmarks.records.store import Store
from benchmarks.suite import Suite
from tests.reports.fakes import Cell, Column, FakeTable, Row, config, fake_table
from tools import missing

ACCURACY = Column(Cell("digits", "", "accuracy"), "accuracy %")
TABLES = {
    name: fake_table(name, tuple(Row(each, each, each) for each in methods), (ACCURACY,))
    for name, methods in (("first", ("MAP", "MFVI", "HMC", "SWAG")), ("second", ("HMC", "Laplace")))
}


class Longer(FakeTable):
    """Runs that share their training with those of the other tables and take more draws in evaluation."""

    def row_runs(self, *about):
        longer = {"samples": 20, "sets": ["test"], "content": {}}
        return [run | {"evaluation": longer} for run in super().row_runs(*about)]


TABLES["longer"] = Longer(**vars(fake_table("longer", (Row("HMC", "HMC", "HMC"),), (ACCURACY,))))
get, names = TABLES.__getitem__, TABLES.keys


@pytest.fixture
def results(tmp_path):
    """MAP has one run of three; MFVI, HMC and Laplace have one on another split, which took 9, 4 and 100 s."""
    store = Store(tmp_path)
    for method, split, seconds in (("MAP", 1, 1.0), ("MFVI", 7, 9.0), ("HMC", 7, 4.0), ("Laplace", 7, 100.0)):
        about = {"cpu": "Z80", "device": "cpu", "threads": 1, "seconds": seconds}
        row = {"dataset": "digits", "condition": "", "metric": "accuracy", "value": 0.5, "n": 9}
        store.write(store.make(config(method, "digits", split=split), [row], {}, about))
    return tmp_path


def test_runs_that_share_a_training_are_estimated_each_by_itself(results):
    suite = Suite(tables=__name__)
    alone = missing.rows(results, results / "state", ["first"], suite)
    both = missing.rows(results, results / "state", suite=suite)
    assert [place[2] for place, *_ in both if place[0] == "longer"] == ["HMC"]
    assert [each for each in both if each[0][0] == "first"] == alone


def test_the_cheapest_row_without_a_run_comes_first_and_one_without_an_estimate_last(results):
    found = missing.rows(results, results / "state", ["first", "second"], Suite(tables=__name__))
    assert [(place, runs, cost.seconds) for place, runs, cost in found] == [
        (("first", "paper", "HMC", "digits"), 3, 4.0),
        (("first", "paper", "MFVI", "digits"), 3, 9.0),
        (("second", "paper", "Laplace", "digits"), 3, 100.0),
        (("first", "paper", "SWAG", "digits"), 3, 0.0),
    ]
    assert [bool(cost.unknown) for *_, cost in found] == [False, False, False, True]


def test_chosen_tables_list_all_their_rows(results):
    found = missing.rows(results, results / "state", ["second"], Suite(tables=__name__))
    assert [place[2] for place, *_ in found] == ["HMC", "Laplace"]


def test_the_list_says_what_a_run_costs(results, monkeypatch, capsys):
    rows = missing.rows(results, results / "state", ["first", "second"], Suite(tables=__name__))
    monkeypatch.setattr(missing, "rows", lambda results, state, names: rows)
    missing.main(["rows"])
    head, *lines = (line.split("  ") for line in capsys.readouterr().out.splitlines())
    assert head[0] == "core-hours a run"
    assert [[each.strip() for each in line if each] for line in (lines[2], lines[3])] == [
        ["at least 0.028", "3", "second", "paper", "Laplace", "digits"],
        ["not known", "3", "first", "paper", "SWAG", "digits"],
    ]
