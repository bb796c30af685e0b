"""Runs that would test claims are those missing of comparisons without a test; further seeds decide the others."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

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


def test_an_undecided_claim_needs_the_seeds_that_would_decide_it_at_the_scatter_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "TABLE", replace(TABLE, n_runs=5))  # two more than are needed
    store, suite = Store(tmp_path), Suite(tables=__name__)
    for method, values in (("MAP", (1.0, 2.0)), ("MFVI", (1.5, 2.6)), ("HMC", (0.9, 2.1))):
        for run, value in enumerate(values):
            about = {"cpu": "Z80", "device": "cpu", "threads": 1, "seconds": 7.0}
            row = {"dataset": "boston", "condition": "", "metric": "rmse", "value": value, "n": 9}
            store.write(store.make(config(method, "boston", split=run), [row], {}, about))
    # MAP and MFVI differ by 0.5 and 0.6, so a third run decides (t = 0.55 / (0.071 / sqrt(3)), 2 degrees of freedom:
    # p = 0.0055, beside 0.025 for the first of two claims); MAP and HMC by -0.1 and 0.1, so none does.
    made = [claim("near", ("MAP",), ("MFVI",)), claim("even", ("MAP",), ("HMC",))]
    records = Records(tmp_path)
    findings = {"paper": judge(made, suite, lambda name, protocol: aggregate(TABLE, protocol, records))}
    assert [each.needed[0] for each in findings["paper"]] == [3, float("inf")]
    monkeypatch.setattr(missing, "of_book", lambda book: findings)
    ((finding, count, cost),) = missing.claims(tmp_path, tmp_path / "state", suite, undecided=True)
    assert (finding.claim.id, count, cost.seconds) == ("near", 2, 14.0)
    keys = {run_key(run) for run in missing.decisive(finding, suite)}
    assert keys == {run_key(config(method, "boston", split=run)) for method in ("MAP", "MFVI") for run in range(3)}


def test_the_list_says_what_each_claim_costs(found, monkeypatch, capsys):
    rows = found()
    monkeypatch.setattr(
        missing, "claims", lambda results, state, undecided, file: rows if file == Path("mine.csv") else []
    )
    missing.main(["claims", "--claims", "mine.csv"])
    head, line = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "claim" and re.split("  +", line) == ["dear", "2", "at least 0.028", "fake"]
