"""Runs that would decide claims are those missing of the comparisons without a test."""

from __future__ import annotations

import re

import pytest

from benchmarks.records.config import run_key
from benchmarks.records.store import Store
from benchmarks.suite import Suite
from reports.aggregate import aggregate
from reports.findings.claims import Claim, Rule
from reports.findings.verdicts import judge
from reports.records import Records
from tests.reports.fakes import Cell, Column, Row, config, fake_table
from tools import missing

RMSE = Column(Cell("boston", "", "rmse"), "boston", Cell("boston", "experiment=2", "rmse"))
TABLE = fake_table(
    "fake", (*(Row(name, name, name) for name in ("MAP", "MFVI", "HMC")), Row("SPG", "SPG", None)), (RMSE,)
)


def get(name):
    return TABLE


def claim(name, a, b):
    rule = Rule(("fake",), a, b, ("boston:experiment=2:rmse",), "each")
    return Claim(name, "paper", "somewhere", "words", "better", tests=(rule,))


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Three runs of MAP and of MFVI and one of HMC are recorded; MFVI took 7 s, HMC 50 s."""
    store, suite = Store(tmp_path), Suite(tables=__name__)
    for method, runs, seconds in (("MAP", 3, 3.0), ("MFVI", 3, 7.0), ("HMC", 1, 50.0)):
        for run in range(runs):
            about = {"cpu": "Z80", "device": "cpu", "threads": 1, "seconds": seconds}
            row = {"dataset": "boston", "condition": "", "metric": "rmse", "value": run + seconds, "n": 9}
            store.write(store.make(config(method, "boston", split=run), [row], {}, about))
    made = [claim("tested", ("MAP",), ("MFVI",)), claim("dear", ("MFVI",), ("HMC", "SPG"))]

    def findings():
        records = Records(tmp_path)
        return {"paper": judge(made, suite, lambda name, protocol: aggregate(TABLE, protocol, records))}

    monkeypatch.setattr(missing, "of_book", lambda book: findings())
    return lambda: missing.claims(tmp_path, tmp_path / "state", suite)


def test_runs_that_are_missing_of_comparisons_without_a_test_are_counted_and_estimated(found):
    ((finding, count, cost),) = found()
    assert (finding.claim.id, count, cost.seconds) == ("dear", 2, 100.0)
    keys = {run_key(run) for run in missing.lacking(finding, Suite(tables=__name__))}
    assert keys == {run_key(config(method, "boston", split=run)) for method in ("MFVI", "HMC") for run in range(3)}


def test_the_list_says_what_each_claim_costs(found, monkeypatch, capsys):
    rows = found()
    monkeypatch.setattr(missing, "claims", lambda results, state: rows)
    missing.main(["claims"])
    head, line = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "claim" and re.split("  +", line) == ["dear", "2", "at least 0.028", "fake"]
