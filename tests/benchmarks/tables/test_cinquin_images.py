"""Settings of cinquin2024's tables 2 and 8 and figure 13, each with its source: the paper or the code of the first
author's next paper (files experiments_classification, FVI training and objective, CNN)."""

from __future__ import annotations

import pytest
import torch

from benchmarks import tables
from benchmarks.tables import cinquin_images
from fvi_core.data import milios_targets
from tests.configs import runs

TABLES = [tables.get(f"cinquin2024-{name}") for name in ("2", "8", "figure-13")]


def parts(label: str, dataset: str = "mnist", protocol: str = "paper", table: str = "8") -> dict:
    return runs(f"cinquin2024-{table}", label, dataset, protocol)[0]["parts"]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
@pytest.mark.parametrize("protocol", ["paper", "short"])
def test_all_rows_have_pixels_standardised_each_by_itself(table, protocol) -> None:
    runs = table.runs(protocol)
    assert runs and {run["dataset"]["scheme"] for run in runs} == {"cinquin2024-pixelwise"}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_patience_is_20_epochs_and_5_on_fashion_mnist_of_the_whole_objective(table) -> None:
    for run in table.runs("paper"):
        patience = {"mnist": 20, "fashion_mnist": 5}[run["dataset"]["name"]]
        stopping = {"patience": patience, "every": 1, "objective": True}
        assert run["parts"]["training"]["early_stopping"] == stopping


def test_network_and_training_are_those_of_appendix_c4() -> None:
    found = parts("GFSVI (KMNIST)")
    network = {"name": "cnn", "channels": [16, 32, 64], "pool": [1, 1, 0], "dense": [128], "activation": "tanh"}
    assert {name: found["network"][name] for name in network} == network
    training = found["training"]
    assert (training["batch_size"], training["optimiser"]["name"], training["optimiser"]["lr"]) == (100, "adam", 1e-3)


def test_points_are_25_random_25_random_pixels_and_20_of_kmnist() -> None:
    random = parts("TFSVI (random)")["context"]["parts"]
    assert random[0]["name"] == "training_batch" and random[0]["points"] == 12
    assert random[1] == {"name": "uniform_box", "points": 13, "margin": 0.5, "low": None, "high": None}
    assert parts("TFSVI (random pixel)")["context"] == {"name": "random_pixel", "points": 25}
    assert parts("TFSVI (KMNIST)")["context"] == {"name": "images", "points": 20, "pool": "kmnist"}


@pytest.mark.parametrize(("protocol", "draws"), [("paper", 100), ("short", 20)])
def test_the_score_of_fvi_is_of_each_class_from_100_draws_of_its_own(protocol: str, draws: int) -> None:
    found = parts("FVI (KMNIST)", protocol=protocol)
    divergence = {"name": "spectral_kl", "noise": 0.01, "share": 0.99, "outputs": "independent", "draws": draws}
    assert found["divergence"] == divergence and found["weight"]["scaling"] == "batch"
    assert found["family"]["log_var_init"] == [-10.0, -10.0]  # softplus(-5) = .0067 = exp(-10 / 2)


def test_tfsvi_pushes_all_weights_forward_at_the_current_mean() -> None:
    found = parts("TFSVI (random)")
    assert found["divergence"]["jacobian"] == "full"
    assert (found["prior"]["features"], found["prior"]["jacobian"]) == ("current", "full")


def test_columns_have_ten_bins_and_the_partners_first_training_images() -> None:
    for table in TABLES[:2]:
        metrics = {column.cell.metric: (column.published or column.cell).metric for column in table.columns}
        assert metrics["ece_10"] == "ece" and "ece" not in metrics
    for run in TABLES[0].runs("paper"):
        partner = {"mnist": "fashion_mnist", "fashion_mnist": "mnist"}[run["dataset"]["name"]]
        assert f"ood-{partner}" in run["evaluation"]["sets"] and run["evaluation"]["samples"] == 100


def test_figure_13_turns_images_by_multiples_of_20_degrees() -> None:
    assert cinquin_images.ANGLES == (0, 20, 40, 60, 80, 100, 120, 140, 160, 180)
    conditions = {column.cell.condition for column in TABLES[2].columns}
    assert conditions == {f"shift=rotation;angle={angle}" for angle in cinquin_images.ANGLES}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_alpha_eps_is_not_called_the_noise_of_the_labels(table) -> None:
    noise = milios_targets(torch.tensor([[0]]), 2, parts("GFSVI (KMNIST)")["prior"]["alpha_eps"])[1]
    assert noise.min() > 0.5
    notes = " ".join(" ".join((note.text, *note.more)) for note in table.notes_on("paper"))
    assert "with alpha_eps 0.01" in notes and "noise 0.01 (Milios" not in notes
