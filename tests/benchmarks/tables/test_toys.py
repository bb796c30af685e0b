"""The small sets under protocol "paper": what is compared with what, and what protocol "short" goes without."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from benchmarks import tables
from benchmarks.experiment.execute import execute
from benchmarks.tables.recipes import merge
from benchmarks.tables.toys import REFERENCES
from fvi_core.registry import LIKELIHOODS
from tests import configs

TOYS, DISTANCES, GROWTH = (tables.get(f"toys{end}") for end in ("", "-distances", "-uncertainty"))
RUDNER = ("snelson", "two_moons_rudner")


def runs(label: str, dataset: str, protocol: str = "paper") -> list:
    return configs.runs(TOYS, label, dataset, protocol)


def test_all_tables_are_of_the_same_runs() -> None:
    assert DISTANCES.runs("paper") == GROWTH.runs("paper") and GROWTH.runs("short") == TOYS.runs("short")
    assert DISTANCES.runs("paper") == TOYS.runs("paper") and TOYS.default_protocol == "paper"
    assert {config["method"] for config in TOYS.runs("short")} & {"FBNN", "Laplace", "HMC"} == set()
    assert all("reference" not in config["evaluation"] for config in TOYS.runs("short"))


def test_every_run_is_beside_its_reference() -> None:
    for config in TOYS.runs("paper"):
        name, reference = config["dataset"]["name"], config["evaluation"].get("reference")
        if reference is None:  # the reference itself
            assert (config["method"], config["seed"]) == (REFERENCES[name], 0)
            continue
        ((label, (other,)),) = reference["against"].items()
        assert (reference["set"], reference["exact"], other["seed"]) == ("grid", False, 0)
        assert label == other["method"] == REFERENCES[name] == ("GP" if name in ("cinquin_1d", "snelson") else "HMC")
        if label == "HMC":
            assert other["parts"]["network"] == config["parts"]["network"]
    for label, kernel in (("GFSVI (RBF)", "rbf"), ("FVI (Matern 1/2)", "matern12"), ("MFVI", "rbf")):
        for config in runs(label, "cinquin_1d"):
            (other,) = config["evaluation"]["reference"]["against"]["GP"]
            assert other["parts"]["family"]["kernel"]["name"] == kernel


def test_five_seeds_of_as_many_epochs_as_the_notes_say() -> None:
    for dataset, epochs, short in (("cinquin_1d", 10_000, 2000), ("two_moons_cinquin", 3000, 500)):
        found = runs("GFSVI (RBF)", dataset)
        assert [config["seed"] for config in found] == [0, 1, 2, 3, 4]
        assert {config["parts"]["training"]["epochs"] for config in found} == {epochs}
        assert {c["parts"]["training"]["epochs"] for c in runs("GFSVI (RBF)", dataset, "short")} == {short}


def parts(label: str, dataset: str, protocol: str = "paper") -> dict:
    return runs(label, dataset, protocol)[0]["parts"]


def holds(found: dict, expected: dict) -> bool:
    """Return whether parts have these hyper-parameters."""
    return merge(found, expected) == found


def test_snelson_is_the_command_of_the_code_of_rudner2022() -> None:
    """regression.py: fc_100_100, tanh, Adam, 200,000 epochs at 5e-4, batch of all, fixed prior of variance 10, 10
    points half on [-8, 8], 5 draws, no scale of the KL; noise_std 1 is the default.
    """
    points = [{"name": "uniform_box", "points": 5}, {"name": "training_batch", "points": 5}]
    expected = {
        "network": {"name": "mlp", "hidden": [100, 100], "activation": "tanh"},
        "likelihood": {"name": "gaussian", "init_std": 1.0, "learned": False},
        "family": {"name": "mean_field", "mean_init": "default", "log_var_init": [-10.0, -8.0]},
        "divergence": {"name": "gaussian_kl", "jacobian": "full", "covariance": "diagonal", "stop_gradient": True},
        "prior": {"name": "gaussian_functions", "variance": 10.0, "mean": 0.0},
        "weight": {"scaling": "elbo", "factor": 1.0},
        "training": {"epochs": 200_000, "samples": 5, "optimiser": {"name": "adam", "lr": 5e-4}},
    }
    found = parts("FSVI (rudner2021)", "snelson")
    assert holds(found, expected) and found["training"]["batch_size"] >= 148
    assert [{k: part[k] for k in ("name", "points")} for part in found["context"]["parts"]] == points


@pytest.mark.parametrize(
    ("dataset", "epochs", "stopped"), [("snelson", 200_000, 66_666), ("two_moons_rudner", 20_000, 6666)]
)
def test_rows_of_rudner2021_are_those_of_its_supplement(dataset: str, epochs: int, stopped: int) -> None:
    """Section 3: prior variance 1e6, Adam from 1e-4 to 1e-3, MFVI stopped early, weight decay .1; not FSVI."""
    first, vague = (parts(label, dataset) for label in ("FSVI (rudner2021)", "FSVI (rudner2021), prior variance 1e6"))
    assert vague == merge(first, {"prior": {"variance": 1e6}}) and first["prior"]["variance"] == 10.0
    assert parts("MFVI", dataset)["training"] == {**first["training"], "epochs": stopped}
    ensemble = parts("Deep Ensemble", dataset)
    assert holds(ensemble, {"divergence": {"name": "weight_penalty"}, "prior": {"variance": 1 / 0.1}})
    last = parts("FSVI", dataset)
    assert holds(last, {"divergence": {"jacobian": "last_layer", "covariance": "full", "jitter": 1e-3}})
    assert last["context"] == first["context"] and last["prior"]["variance"] == 1.0
    for found in (first, ensemble, last):
        training = found["training"]
        assert (training["epochs"], training["optimiser"]["lr"]) == (epochs, 5e-4) and 1e-4 <= 5e-4 <= 1e-3
        assert found["network"]["activation"] == "tanh"


def test_short_has_a_rate_above_the_range_of_the_paper_and_says_so() -> None:
    for dataset, epochs in zip(RUDNER, (2000, 1000), strict=True):
        full, short = (parts("FSVI (rudner2021)", dataset, protocol) for protocol in ("paper", "short"))
        assert short == merge(full, {"training": {"epochs": epochs, "optimiser": {"lr": 0.003}}})
    assert "learning rate 0.003, above the range of the paper (1e-4 to 1e-3)" in TOYS.reduction("short")


@pytest.mark.parametrize("dataset", [name for name, label in REFERENCES.items() if label == "HMC"])
def test_the_quick_reference_has_steps_that_are_accepted(dataset: str, tmp_path: Path) -> None:
    (outcome,) = execute(runs("HMC", dataset, "smoke"), state=tmp_path)
    assert outcome.status == "done", outcome.reason


def test_figure_1_of_pequignot2020_is_the_authors_script() -> None:
    """WaveOOS.py: starts of the mean-field families, patience and epochs of both, k of FuNN-MFVI, full batches and
    decay of MC dropout; Experiments/foong: variance .5 of HMC's prior.
    """
    assert {
        c["parts"]["likelihood"]["learned"] for c in TOYS.runs("paper") if c["dataset"]["name"] == "pequignot_1d"
    } == {False}
    longer = {
        "epochs": 4000,
        "batch_size": 50,
        "schedule": {"name": "plateau", "factor": 0.7, "patience": 90, "min_lr": 1e-4},
    }
    for label, means, std in (("MFVI", 1.0, 1e-5), ("FuNN-MFVI", 0.0, 1e-3)):
        found = parts(label, "pequignot_1d")
        assert holds(found, {"training": longer, "prior": {"variance": 0.25}})
        assert found["family"]["mean_init"] == means
        assert found["family"]["log_var_init"] == pytest.approx([2 * math.log(std)] * 2)
    assert holds(found, {"divergence": {"space": "predictor", "k": 5, "samples": 500}, "context": {"points": 50}})
    for label in ("NN-HyVI", "FuNN-HyVI"):
        assert holds(parts(label, "pequignot_1d"), {"divergence": {"k": 1}, "training": {"schedule": {"patience": 30}}})
    dropout = parts("MC Dropout", "pequignot_1d")["training"]
    assert (dropout["batch_size"], dropout["epochs"], dropout["optimiser"]["lr"]) == (120, 2000, 1e-3)
    assert dropout["optimiser"]["weight_decay"] == pytest.approx(0.1 / 120**0.5 / 120)
    assert parts("HMC", "pequignot_1d")["prior"]["variance"] == 0.5


def test_the_ensemble_of_pequignot2020_descends_the_mean_square_error_at_rate_a_hundredth() -> None:
    """Under SGD with momentum the log-likelihood with noise .1 at a rate r is the mean square error at 50 r."""
    found = parts("Deep Ensemble", "pequignot_1d")
    training, likelihood = found["training"], LIKELIHOODS.build(found["likelihood"])
    assert holds(training, {"epochs": 3000, "batch_size": 50, "optimiser": {"name": "sgd", "momentum": 0.9}})
    f, y = torch.tensor([[[[0.3], [-1.0], [2.0]]]], dtype=torch.float64), torch.tensor([[0.1, 0.5, 2.5]]).double()
    f.requires_grad_()
    (ours,) = torch.autograd.grad(-likelihood.data_term(likelihood.init(1, torch.float64), f, y).sum(), f)
    (theirs,) = torch.autograd.grad((f[0, 0, :, 0] - y[0]).square().mean(), f)
    assert torch.allclose(training["optimiser"]["lr"] * ours, 0.01 * theirs, rtol=1e-6)


@pytest.mark.parametrize(("dataset", "variance"), [("cinquin_1d", 0.2**2), ("two_moons_cinquin", 1.0)])
def test_cinquin2024_has_500_points_and_the_pushforward_of_all_weights(dataset: str, variance: float) -> None:
    """App. C.1 and C.3; FVI starts at deviations of softplus(-5), as in the code of the authors' next paper."""
    for label in ("GFSVI (RBF)", "GFSVI (Matern 1/2)"):
        assert holds(
            parts(label, dataset), {"context": {"points": 500}, "divergence": {"jacobian": "full", "gamma": 1e-10}}
        )
    prior = {"jacobian": "full", "features": "current", "variance": variance}
    assert holds(
        parts("FSVI", dataset), {"context": {"points": 500}, "divergence": {"jacobian": "full"}, "prior": prior}
    )
    found = parts("FVI (RBF)", dataset)
    (batch, box), (low, high) = found["context"]["parts"], found["family"]["log_var_init"]
    assert (batch["name"], batch["points"], box["points"]) == ("training_batch", None, 400)
    assert low == high and math.exp(low / 2) == pytest.approx(math.log1p(math.exp(-5)), rel=0.01)


def test_chains_give_as_many_draws_as_an_evaluation_asks_for_at_least() -> None:
    for config in TOYS.runs("paper"):
        if config["method"] == "HMC":
            drawn = config["parts"]["family"]["size"] * config["parts"]["training"]["samples"]
            assert drawn >= config["evaluation"]["samples"]


def test_a_smoke_run_has_distances_on_the_grid(tmp_path) -> None:
    (outcome,) = execute(runs("Laplace", "cinquin_1d", "smoke"), state=tmp_path)
    found = {m["metric"]: m["value"] for m in outcome.metrics if m["condition"] == "reference=GP;inputs=grid"}
    assert (
        set(found) == {"mean_distance", "std_distance", "wasserstein2", "wasserstein2_squared"}
        and min(found.values()) > 0
    )
    assert {m["metric"] for m in outcome.metrics if m["condition"] == "inputs=grid"} == {
        "std_at_data",
        "std_far",
        "std_far_ratio",
    }
    (same,) = execute(runs("GP (RBF)", "cinquin_1d", "smoke"), state=tmp_path)
    assert not [m for m in same.metrics if m["condition"].startswith("reference")], "it is the reference"
