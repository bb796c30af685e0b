"""Recipes of cinquin2024's tables 1, 4 and 6: settings with their sources, and the readings that keep former ones."""

from __future__ import annotations

import math

import pytest

from benchmarks import tables
from benchmarks.records.config import training_key
from benchmarks.shapes import RunConfig
from benchmarks.tables.choices import choices
from benchmarks.tables.cinquin_candidates import CANDIDATES, FASTER, LATER, SMALL
from tests.configs import runs

SELECTION = tables.get("cinquin2024-1-selection")


def compared(method: str, label: str, dataset: str = "concrete", protocol: str = "paper") -> list[RunConfig]:
    (row,) = [row for row in SELECTION.rows if (row.method, row.variant) == (method, label)]
    (column,) = [column for column in SELECTION.columns if column.cell.dataset == dataset]
    return SELECTION.cell_runs(row, column, protocol)


@pytest.mark.parametrize("method", ["FBNN", "FSVI"])
def test_fvi_and_tfsvi_stop_as_the_authors_later_code_does(method: str) -> None:
    """The authors' FVI trains until the validation objective, computed every 100 epochs, has not improved for 1,000
    epochs, at rates up to 1e-3; with five times that rate both intervals are a fifth."""
    for label in CANDIDATES["paper"][method]:
        (run,) = compared(method, label)
        training = run["parts"]["training"]
        assert training["early_stopping"] == {"patience": 200, "every": 20, "objective": True}
        assert training["optimiser"]["lr"] == 5e-3
        assert training["batch_size"] == 2000  # App. C.3


def test_large_sets_have_as_many_steps_without_a_better_loss() -> None:
    for dataset, batches in (("power", 4), ("protein", 17)):
        (run,) = compared("FBNN", "rbf", dataset)
        assert run["parts"]["training"]["epochs"] == -(-10_000 // batches)
        stopping = run["parts"]["training"]["early_stopping"]
        assert stopping == {"patience": -(-200 // batches), "every": 1, "objective": True}
        (other,) = compared("GFSVI", "rbf", dataset)
        assert other["parts"]["training"]["early_stopping"] == {"patience": -(-200 // batches), "every": 1}


def test_fvi_starts_as_in_the_authors_port() -> None:
    """Standard deviations softplus(-5) in all layers, as its FVI class sets them."""
    (run,) = compared("FBNN", "rbf")
    (low, high) = run["parts"]["family"]["log_var_init"]
    assert low == high and math.isclose(math.exp(low / 2), math.log1p(math.exp(-5)), rel_tol=0.01)


def test_fvi_has_450_points_of_the_batch_and_50_of_the_wider_box() -> None:
    """App. C.3; the margin is that of the code, x_min - 0.5 (x_max - x_min) to x_max + 0.5 (x_max - x_min)."""
    (run,) = compared("FBNN", "rbf")
    batch, box = run["parts"]["context"]["parts"]
    assert (batch["name"], batch["points"]) == ("training_batch", 450)
    assert (box["name"], box["points"], box["margin"]) == ("uniform_box", 50, 0.5)


def test_tfsvi_pushes_both_distributions_of_all_weights_forward_at_the_mean() -> None:
    """App. C.3: "the pushforward to function space of the variational distribution and prior on the weights"."""
    (run,) = compared("FSVI", "variance 1")
    parts = run["parts"]
    assert (parts["divergence"]["name"], parts["divergence"]["jacobian"]) == ("gaussian_kl", "full")
    assert (parts["prior"]["features"], parts["prior"]["jacobian"]) == ("current", "full")
    assert (parts["context"]["points"], parts["context"]["margin"]) == (500, 0.5)
    assert parts["training"]["epochs"] == 2000  # ours, because of the cost
    (longer, *_) = runs("cinquin2024-1-later", "TFSVI, rate and end", "concrete")
    assert longer["parts"]["training"]["epochs"] == 10_000


def test_the_prior_scales_of_tfsvi_reach_beyond_those_that_the_paper_prints() -> None:
    """The toys and the ocean of the paper have standard deviations of 0.2, 0.5, 0.75 and 1 (App. C.1, C.2)."""
    scales = [parts["prior"]["variance"] for parts in CANDIDATES["paper"]["FSVI"].values()]
    assert min(scales) < 0.2**2 and max(scales) > 1


@pytest.mark.parametrize("dataset", SMALL)
def test_the_last_layer_stays_a_reading_without_margin(dataset: str) -> None:
    for label in ("last layer", "jitter 1e-06"):
        own = runs("cinquin2024-1-jitter", f"TFSVI, {label}", dataset)
        assert len(own) == 5
        for run in own:
            parts = run["parts"]
            assert (parts["divergence"]["jacobian"], parts["prior"]["jacobian"]) == ("last_layer", "last_layer")
            assert (parts["divergence"]["jitter"], parts["context"]["margin"]) == (1e-6, 0)
            assert parts["training"]["early_stopping"] == {"patience": 200, "every": 10}


def test_choices_are_of_candidates_that_exist() -> None:
    for protocol in ("paper", "short"):
        for method, sets in choices("cinquin2024-1", protocol).items():
            for dataset, entry in sets.items():
                tried = {*entry["scores"], *entry.get("failed", ())}
                assert tried == set(CANDIDATES[protocol][method]), (protocol, method, dataset)


def test_the_lower_rate_is_within_the_range_of_the_authors_later_code() -> None:
    assert 1e-6 <= LATER["training"]["optimiser"]["lr"] <= 1e-3
    assert LATER["training"]["early_stopping"] == {"patience": 1000, "every": 100, "objective": True}
    fast, slow = FASTER["training"], LATER["training"]
    assert fast["optimiser"]["lr"] == pytest.approx(5 * slow["optimiser"]["lr"])
    for name in ("patience", "every"):
        assert 5 * fast["early_stopping"][name] == slow["early_stopping"][name]


def test_laplace_on_naval_may_train_to_a_rate_of_0() -> None:
    (long, *_) = runs("cinquin2024-1-laplace", "Laplace, 50,000 steps, rate to 0", "naval")
    (first, *_) = runs("cinquin2024-1-laplace", "Laplace, validation, expected log-likelihood", "naval")
    training = long["parts"]["training"]
    assert training == {
        **first["parts"]["training"],
        "epochs": 10_000,  # of 5 batches
        "schedule": {"name": "cosine", "final": 0.0},
        "early_stopping": None,
    }
    assert {**long["parts"], "training": None} == {**first["parts"], "training": None}


def test_readings_differ_from_table_1_in_what_they_say() -> None:
    for suffix, label, method, part in (
        ("later", "GFSVI, wider box", "GFSVI", "context"),
        ("softplus", "GFSVI, softplus", "GFSVI", "prior"),
        ("later", "MFVI, rate and end", "MFVI", "training"),
        ("later", "GWI, one length-scale", "GWI", "family"),
        ("softplus", "GWI, softplus", "GWI", "family"),
        ("later", "VIP, Haiku", "VIP", "network"),
    ):
        (read, *_), (first, *_) = runs(f"cinquin2024-4-{suffix}", label, "wine"), runs("cinquin2024-4", method, "wine")
        assert read["evaluation"] == first["evaluation"]
        assert {kind for kind, own in read["parts"].items() if own != first["parts"][kind]} == {part}
    (wide, *_) = runs("cinquin2024-4-later", "GFSVI, wider box", "wine")
    assert wide["parts"]["context"] == {**runs("cinquin2024-4", "GFSVI", "wine")[0]["parts"]["context"], "margin": 0.5}


@pytest.mark.parametrize("suffix", ["songs", "tree", "songs-tree"])
def test_readings_of_table_4_share_the_trainings_of_table_1(suffix: str) -> None:
    own, first = runs(f"cinquin2024-4-{suffix}", "GP", "wine"), runs("cinquin2024-1", "GP", "wine")
    assert [training_key(run) for run in own] == [training_key(run) for run in first]
    assert own[0]["evaluation"]["sets"] == ["test", "ood-song", "ood-song-year"]


@pytest.mark.parametrize("dataset", ["wine", "kin8nm"])
def test_readings_of_the_sparse_process_differ_in_their_inducing_points_alone(dataset: str) -> None:
    (own, *_) = runs("cinquin2024-1", "Sparse GP", dataset)
    for points in (250, 500):
        found = runs("cinquin2024-6-inducing", f"Sparse GP, {points} inducing points", dataset)
        assert found == runs("cinquin2024-1-inducing", f"Sparse GP, {points} inducing points", dataset)
        assert [run["dataset"]["split"] for run in found] == list(range(5))
        family = found[0]["parts"]["family"]
        assert family["points"] == points and own["parts"]["family"]["points"] == 100
        assert found[0]["parts"] | {"family": family | {"points": 100}} == own["parts"]


def test_table_9_times_trainings_at_100_points_and_its_title_says_so() -> None:
    """App. D.8: "using M = 100 context points"."""
    table, timed = tables.get("cinquin2024-1"), tables.get("cinquin2024-9")
    for row in timed.rows:
        own, first = (each.row_runs(row, "boston", "paper")[0] for each in (timed, table))
        assert (training_key(own) == training_key(first)) == (row.label == "MFVI"), row.label
    assert "at 100 context points" in timed.title and "runs of table 1" not in timed.title
