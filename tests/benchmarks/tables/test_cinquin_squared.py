"""cinquin2024's table 7: its settings with their sources, its readings, and a kernel that is held."""

from __future__ import annotations

import pytest

from benchmarks import tables
from benchmarks.records.config import run_key, training_key
from tests.configs import words_of

TABLE, SQUARED = tables.get("cinquin2024-7-own"), tables.get("cinquin2024-7-squared")
MAIN, ROOT = tables.get("cinquin2024-7"), tables.get("cinquin2024-7-root")


def main_run(label: str, protocol: str = "paper", dataset: str = "wine") -> dict:
    row = next(row for row in MAIN.rows if row.label == label)
    column = next(column for column in MAIN.columns if column.cell.dataset == dataset)
    return MAIN.cell_runs(row, column, protocol)[3 if protocol == "paper" else 1]


def test_table_7_has_squares_and_the_root_beside_it() -> None:
    """emd2_1d(..., metric="sqeuclidean") in the posterior comparison of the first author's next paper."""
    assert {column.cell.metric for column in MAIN.columns} == {"wasserstein2_squared"}
    assert {column.cell.metric for column in ROOT.columns} == {"wasserstein2"}
    assert [column.published for column in MAIN.columns] == [column.published for column in TABLE.columns]
    assert list(map(run_key, MAIN.runs("paper"))) == list(map(run_key, ROOT.runs("paper")))


@pytest.mark.parametrize("label", ["GFSVI", "FVI", "Sparse GP"])
@pytest.mark.parametrize("protocol", ["paper", "smoke"])
def test_the_reference_is_an_exact_rbf_process_of_the_same_fold_fitted_by_itself(label: str, protocol: str) -> None:
    run = main_run(label, protocol)
    reference = run["evaluation"]["reference"]
    assert reference["exact"] is False and list(reference["against"]) == ["rbf_gp"]
    (other,) = reference["against"]["rbf_gp"]
    assert (other["method"], other["dataset"]["split"]) == ("GP", run["dataset"]["split"])
    assert other["parts"]["family"]["kernel"] == {"name": "rbf", "ard": False}
    assert other["parts"]["likelihood"]["min_std"] ** 2 == pytest.approx(1e-4)  # of GPyTorch's GaussianLikelihood


@pytest.mark.parametrize("label", ["GFSVI", "FVI"])
def test_rate_patience_and_margin_are_those_of_that_code(label: str) -> None:
    parts = main_run(label)["parts"]
    assert parts["training"]["optimiser"]["lr"] == 0.0005
    assert parts["training"]["early_stopping"] == {"patience": 2000, "every": 100, "objective": True}
    batch, uniform = parts["context"]["parts"]
    assert (batch["points"], uniform["points"], uniform["margin"]) == (450, 50, 0.5)
    assert parts["network"]["hidden"] == [100, 100] and parts["network"]["activation"] == "tanh"
    assert parts["prior"]["kernel"] == {"name": "rbf", "ard": False}
    if label == "FVI":
        assert parts["family"]["log_var_init"] == [-10.0, -10.0]
    else:
        assert parts["divergence"]["gamma"] == 1e-15


def test_sparse_processes_are_trained_as_for_their_own_reference() -> None:
    row = MAIN.rows[2]
    for column, own in zip(MAIN.columns, TABLE.columns, strict=True):
        for run, other in zip(MAIN.cell_runs(row, column), TABLE.cell_runs(row, own), strict=True):
            assert training_key(run) == training_key(other)


@pytest.mark.parametrize("protocol", ["paper", "smoke"])
def test_the_first_rows_are_those_of_the_table(protocol: str) -> None:
    for row, same in zip(TABLE.rows, SQUARED.rows, strict=False):
        assert (row.label, row.published) == (same.label, same.published)
        for column, squared in zip(TABLE.columns, SQUARED.columns, strict=True):
            assert squared.published == column.published and squared.cell.metric == f"{column.cell.metric}_squared"
            theirs, ours = TABLE.cell_runs(row, column, protocol), SQUARED.cell_runs(same, squared, protocol)
            assert [training_key(run) for run in ours] == [training_key(run) for run in theirs]


@pytest.mark.parametrize(("protocol", "steps"), [("paper", 500), ("smoke", 5)])
def test_a_held_kernel_is_fitted_as_the_prior_of_gfsvi(protocol: str, steps: int) -> None:
    gfsvi, _, trained, held = SQUARED.rows
    column = SQUARED.columns[0]
    prior = SQUARED.cell_runs(gfsvi, column, protocol)[0]["parts"]["prior"]
    for run, other in zip(*(SQUARED.cell_runs(row, column, protocol) for row in (held, trained)), strict=True):
        family = run["parts"]["family"]
        assert family["fit_steps"] == prior["fit_steps"] == steps and family["kernel"] == prior["kernel"]
        assert {**run["parts"], "family": None} == {**other["parts"], "family": None}
        assert {k: v for k, v in family.items() if k != "fit_steps"} == other["parts"]["family"]
    assert held.published == trained.published == "Sparse GP"


def test_rows_by_gamma_differ_in_gamma_alone() -> None:
    table = tables.get("cinquin2024-7-gamma")
    of_energy = next(column for column in TABLE.columns if column.cell.dataset == "energy")
    theirs = TABLE.cell_runs(TABLE.rows[0], of_energy, "paper")
    for row in table.rows:
        for column in table.columns:
            for run, other in zip(table.cell_runs(row, column, "paper"), theirs, strict=True):
                divergence = other["parts"]["divergence"] | {"gamma": float(row.variant)}
                assert run["parts"] == {**other["parts"], "divergence": divergence}
    assert [float(row.variant) for row in table.rows] == [1e-15, 1e-10]


def test_the_collapsed_bound_has_a_falling_rate_and_its_note_says_so() -> None:
    table = tables.get("cinquin2024-7-collapsed")
    ours, theirs = (run["parts"]["training"] for run in (table.runs("paper")[0], main_run("Sparse GP")))
    assert [each["schedule"]["name"] for each in (ours, theirs)] == ["cosine", "constant"]
    assert ours["optimiser"] == theirs["optimiser"] and ours["epochs"] == theirs["epochs"] == 2000
    assert "falls on a cosine" in words_of(table, "paper")
