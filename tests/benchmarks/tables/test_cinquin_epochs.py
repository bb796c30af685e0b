"""The experiment about GFSVI's out-of-distribution accuracy: what its rows differ in."""

from __future__ import annotations

import copy

import pytest

from benchmarks import tables
from benchmarks.records.config import training_key
from benchmarks.tables.cinquin_candidates import SMALL

TABLE = tables.get("cinquin2024-4-epochs")
FIRST, LONG, MIXED, BOTH, CHOSEN = TABLE.rows


def runs(row, protocol="paper", dataset="boston") -> list:
    return TABLE.row_runs(row, dataset, protocol)


@pytest.mark.parametrize("dataset", SMALL)
def test_the_first_row_is_a_candidate_of_table_1(dataset: str) -> None:
    candidates = tables.get("cinquin2024-1-selection")
    row = next(row for row in candidates.rows if (row.method, row.variant) == ("GFSVI", "rbf"))
    column = next(column for column in candidates.columns if column.cell.dataset == dataset)
    (compared,) = candidates.cell_runs(row, column, "paper")
    own = [run for row in TABLE.rows for run in runs(row, dataset=dataset)]
    assert training_key(own[0]) == training_key(compared)
    assert all(run["evaluation"]["sets"] == ["test", "ood-song"] for run in own)


@pytest.mark.parametrize("dataset", SMALL)
@pytest.mark.parametrize("row", [LONG, MIXED, BOTH, CHOSEN], ids=lambda row: row.variant)
def test_rows_differ_in_epochs_and_points_alone(row, dataset: str) -> None:
    paper = tables.get("cinquin2024-4")
    first_runs = paper.row_runs(paper.rows[0], dataset, "paper") if row is CHOSEN else runs(FIRST, dataset=dataset)
    assert len(first_runs) == 5
    for run, first in zip(runs(row, dataset=dataset), first_runs, strict=True):
        own, parts = copy.deepcopy(dict(run["parts"])), copy.deepcopy(dict(first["parts"]))
        if row in (LONG, BOTH, CHOSEN):
            assert (own["training"].pop("epochs"), own["training"].pop("early_stopping")) == (2000, None)
            assert parts["training"].pop("early_stopping") and parts["training"].pop("epochs")
        if row in (MIXED, BOTH, CHOSEN):
            found = own.pop("context")
            assert found["name"] == "mixture" and parts.pop("context")["points"] == 500
            assert [(part["name"], part["points"]) for part in found["parts"]] == [
                ("training_batch", 450),
                ("uniform_box", 50),
            ]
        assert own == parts


def test_smoke_trains_five_steps() -> None:
    assert {run["parts"]["training"]["epochs"] for row in TABLE.rows for run in runs(row, "smoke")} == {5}
