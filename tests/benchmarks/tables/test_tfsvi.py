"""Experiments about TFSVI: what their rows differ in, and that the first of them is a row of table 1."""

from __future__ import annotations

import copy

from benchmarks import tables

DIVERGENCES, FEATURES = tables.get("cinquin2024-1-tfsvi"), tables.get("toys-tfsvi")


def runs(table: tables.Table, label: str, protocol: str) -> list:
    (row,) = [row for row in table.rows if row.label == f"TFSVI, {label}"]
    return table.cell_runs(row, table.columns[0], protocol)


def test_the_settings_of_table_1_are_a_candidate_of_it() -> None:
    candidates = tables.get("cinquin2024-1-selection")
    row = next(row for row in candidates.rows if row.variant == "variance 1")
    column = next(column for column in candidates.columns if column.cell.dataset == "boston")
    assert runs(DIVERGENCES, "100 points, 1e-06", "short") == candidates.cell_runs(row, column, "short")


def test_rows_differ_in_points_and_jitter_alone() -> None:
    for label, points, jitter in (("10 points, 0.0001", 10, 1e-4), ("40 points, 0.01", 40, 0.01)):
        for config, first in zip(
            runs(DIVERGENCES, label, "short"), runs(DIVERGENCES, "100 points, 1e-06", "short"), strict=True
        ):
            parts = copy.deepcopy(dict(config["parts"]))
            assert parts["context"].pop("points") == points and parts["divergence"].pop("jitter") == jitter
            others = {name: part for name, part in first["parts"].items() if name not in ("context", "divergence")}
            assert {name: part for name, part in parts.items() if name in others} == others


def test_priors_that_stay_are_beside_their_exact_posterior() -> None:
    for row in FEATURES.rows:
        (config, *_) = FEATURES.cell_runs(row, FEATURES.columns[0], "paper")
        follows = config["parts"]["prior"]["features"] == "current"
        assert ("current" in row.label) == follows
        assert ("reference" in config["evaluation"]) == (not follows)


def test_the_row_of_table_toys_is_that_of_all_layers_with_more_points() -> None:
    (config, *_) = runs(FEATURES, "all layers, current mean", "paper")
    toys = next(row for row in tables.get("toys").rows if row.label == "FSVI")
    column = next(c for c in tables.get("toys").columns if c.cell.dataset == "cinquin_1d")
    parts = tables.get("toys").cell_runs(toys, column, "paper")[0]["parts"]
    assert config["parts"]["context"]["points"] == 100 and parts["context"]["points"] == 500
    assert {**config["parts"], "context": None} == {**parts, "context": None}


def test_the_first_row_is_the_last_layer_of_the_initial_network() -> None:
    (config, *_) = runs(FEATURES, "initial network", "paper")
    prior, divergence = config["parts"]["prior"], config["parts"]["divergence"]
    assert (prior["features"], prior["jacobian"], divergence["jacobian"]) == ("initial", "last_layer", "last_layer")
    assert config["parts"]["context"]["points"] == 100 and prior["variance"] == 0.2**2
