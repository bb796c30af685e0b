"""Tables that figures are drawn of: what their rows change, and what they share with the tables beside them."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from benchmarks import tables
from benchmarks.metrics import SetInfo, evaluate
from benchmarks.records.config import training_key
from benchmarks.records.predictions import RegressionPredictions
from benchmarks.tables import Table
from benchmarks.tables.cinquin_figures import LABELS, PASSES, STEPS
from benchmarks.tables.rudner2021 import POINTS


def runs(table: Table, label: str, protocol: str = "paper") -> list:
    (row,) = [row for row in table.rows if row.label == label]
    return copy.deepcopy(table.cell_runs(row, table.columns[0], protocol))


@pytest.mark.parametrize(("number", "unit", "lengths"), [("15", "steps", STEPS), ("16", "passes", PASSES)])
def test_lengths_of_training_are_parts_of_one_training(number: str, unit: str, lengths: tuple[int, ...]) -> None:
    table = tables.get(f"cinquin2024-figure-{number}")
    for label in LABELS:
        found = [runs(table, f"{label}, {n} {unit}")[0]["parts"] for n in lengths]
        assert [parts["training"].pop("epochs") for parts in found] == list(lengths)
        assert all(parts == found[0] for parts in found)
        assert found[0]["training"]["early_stopping"] is None
        assert found[0]["training"]["schedule"] == {"name": "constant"}


def test_the_number_of_points_is_all_that_rows_of_figure_8_differ_in() -> None:
    table = tables.get("rudner2021-figure-8")
    found = [runs(table, f"FSVI, {n} points")[0] for n in POINTS]
    assert [config["parts"]["context"].pop("points") for config in found] == list(POINTS)
    assert all(config["parts"] == found[0]["parts"] for config in found)


@pytest.mark.parametrize(("number", "other", "labels"), [("4", "1", 3), ("5", "5", 6)])
def test_distributions_are_of_the_trainings_of_the_tables(number: str, other: str, labels: int) -> None:
    table, known = tables.get(f"pequignot2020-figure-{number}"), tables.get(f"pequignot2020-{other}")
    rows = [row for row in table.rows if row.label != "Prior"]
    assert len(rows) == labels
    trained = {training_key(config) for config in known.runs("paper")}
    for row in rows:
        for config in table.cell_runs(row, table.columns[0], "paper"):
            assert training_key(config) in trained
            assert config["evaluation"]["sets"] == ["test", "train", "ood-uniform"]


def test_the_prior_of_experiment_1_is_that_of_its_other_rows_and_is_not_trained() -> None:
    prior, *more = runs(tables.get("pequignot2020-figure-4"), "Prior")
    assert [each["seed"] for each in (prior, *more)] == [0, 1, 2]
    family, training = prior["parts"]["family"], prior["parts"]["training"]
    assert training["epochs"] == 0 and family["mean_init"] == 0.0
    assert family["log_var_init"] == pytest.approx([math.log(prior["parts"]["prior"]["variance"])] * 2)


def test_eigenvalues_are_those_of_the_covariance_of_the_functions() -> None:
    random = np.random.default_rng(0)
    x, draws = random.uniform(-2, 2, 30), random.normal(size=(4000, 2)).astype(np.float32)
    functions = np.column_stack([draws[:, :1] * np.sin(x), draws[:, 1:] * 0.1 * x]).reshape(4000, 2, 30).sum(1)
    predictions = RegressionPredictions(functions.astype(np.float32), 0.1, None)
    info = SetInfo("spectrum", "spectrum", "inputs=spectrum")
    rows, curves = evaluate("regression", "cinquin_1d", [info], {"spectrum": predictions})
    covariance = np.outer(np.sin(x), np.sin(x)) + 0.01 * np.outer(x, x)
    expected = np.linalg.eigvalsh(covariance)[::-1] / 30
    found = curves["spectrum/eigenvalues"]["value"]
    assert rows == [] and len(found) == 30
    np.testing.assert_allclose(found[:2], expected[:2], rtol=0.1)
    assert max(found[2:]) < 1e-6 * found[1]


@pytest.mark.parametrize("protocol", ["paper", "short"])
def test_figure_9_has_the_runs_of_the_tables_and_one_row_with_five_draws_in_training(protocol: str) -> None:
    table, known = tables.get("dirichlet2022-figure-9"), tables.get("dirichlet2022-11")
    trained = {training_key(config) for config in known.runs(protocol)}
    *others, added = table.rows
    assert all(training_key(config) in trained for row in others for config in runs(table, row.label, protocol))
    five, one = runs(table, added.label, protocol), runs(table, "MC Dropout fVI", protocol)
    assert [config["seed"] for config in five] == [0, 1, 2]
    assert (five[0]["parts"]["training"].pop("samples"), one[0]["parts"]["training"].pop("samples")) == (5, 1)
    assert five[0]["parts"] == one[0]["parts"] and five[0]["evaluation"] == one[0]["evaluation"]
