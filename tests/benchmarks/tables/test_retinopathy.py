"""Tables of retinopathy: RETINA's settings, the same images for all rows, and what each protocol trains on."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from benchmarks import tables
from benchmarks.experiment.execute import execute
from benchmarks.tables.recipes import make_configs
from fvi_core import methods
from fvi_core.objective import Weight
from tests.datasets.fundus_files import aptos, eyepacs, idrid

NAMES = ("retina-mnist", "retinopathy", "retinopathy-mild", "retinopathy-severity")


def runs(name: str, protocol: str) -> dict[str, dict]:
    """The first run of each row."""
    table = tables.get(name)
    found = {row.label: table.cell_runs(row, table.columns[0], protocol) for row in table.rows}
    return {label: made[0] for label, made in found.items() if made}


def test_every_member_has_its_ensemble_of_three_and_one_row_sees_the_outline_only() -> None:
    for name in NAMES:
        table = tables.get(name)
        labels = [row.label for row in table.rows]
        members = ["MAP", "MFVI", "MC Dropout", "MFVI (radial)", "Rank1", "FSVI"]
        assert labels == ["mask only (linear)", *members, *(f"{member} Ensemble" for member in members)]
        for protocol in table.protocols:
            for label, run in runs(name, protocol).items():
                assert run["dataset"]["scheme"].startswith("outline") == (label == "mask only (linear)"), (name, label)
                assert not label.endswith("Ensemble") or run["parts"]["family"]["size"] == 3


@pytest.mark.parametrize("name", ["retinopathy", "retinopathy-mild", "retinopathy-severity"])
def test_an_ensemble_is_trained_as_its_members_are(name: str) -> None:
    found = runs(name, "paper")
    for label, run in found.items():
        if label.endswith("Ensemble"):
            own, member = run["parts"], found[label.removesuffix(" Ensemble")]["parts"]
            assert own["family"]["base"] == member["family"]
            assert {k: v for k, v in own.items() if k != "family"} == {k: v for k, v in member.items() if k != "family"}
            assert run["evaluation"]["samples"] == 15


# google/uncertainty-baselines, baselines/diabetic_retinopathy_detection/experiments/top_config,
# <method>/{aptos,severity}/*-indomain*.yaml: base_learning_rate, one_minus_momentum, (per_core_)batch_size
# times num_cores.
OPTIMISERS = {
    "retinopathy": {
        "MAP": (0.023072, 0.0098467, 32 * 8),
        "MFVI": (0.48065, 0.076935, 32 * 8),
        "MC Dropout": (0.027250, 0.035193, 16 * 8),
        "MFVI (radial)": (0.18958, 0.016700, 16 * 8),
        "Rank1": (0.032299, 0.066501, 16 * 8),
        "FSVI": (0.021451, 0.019218, 64 * 4),
    },
    "retinopathy-severity": {
        "MAP": (0.058737, 0.015731, 32 * 8),
        "MFVI": (0.042732, 0.038292, 32 * 8),
        "MC Dropout": (0.026561, 0.023244, 16 * 8),
        "MFVI (radial)": (0.20617, 0.027963, 16 * 8),
        "Rank1": (0.028553, 0.077592, 16 * 8),
        "FSVI": (0.029950, 0.021384, 64 * 4),
    },
}
OPTIMISERS["retinopathy-mild"] = OPTIMISERS["retinopathy"]  # RETINA has no configuration of its own


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_are_those_of_retinas_configurations(name: str) -> None:
    found = {label: run["parts"] for label, run in runs(name, "paper").items()}
    for label, (rate, slowness, batch) in OPTIMISERS[name].items():
        training = found[label]["training"]
        expected = {"name": "sgd", "lr": rate, "momentum": 1 - slowness, "nesterov": True, "weight_decay": 0.0}
        assert training["optimiser"] == expected and training["batch_size"] == batch, label
        assert training["epochs"] == 90 and training["augment"] is None
        steps = {"name": "multistep", "at": [1 / 3, 2 / 3], "factor": 0.2}
        line = {"name": "linear", "start": 0.0, "end": 1.0, "final": 0.01}
        assert training["schedule"] == (line if label == "MAP" else steps)
        assert training["samples"] == (5 if label == "FSVI" else 1)
        weighted = found[label]["likelihood"].get("class_weights")
        assert weighted == (None if label == "FSVI" else "batch"), label


def parts_of(name: str, label: str) -> dict:
    return runs(name, "paper")[label]["parts"]


@pytest.mark.parametrize(("name", "rate"), [("retinopathy", 0.17798), ("retinopathy-severity", 0.18813)])
def test_map_and_dropout_have_no_penalty(name: str, rate: float) -> None:
    """deterministic.py, dropout.py: l2 times the sum of model.losses, and models/resnet50_deterministic.py and
    resnet50_dropout.py have no regulariser."""
    for label in ("MAP", "MC Dropout"):
        parts = parts_of(name, label)
        assert parts["divergence"] is None and parts["prior"] is None, label
        assert parts["network"]["init"] == "he" and parts["network"]["width"] == 64
    assert parts["family"] == {"name": "dropout", "rate": rate, "masks": "input"}
    assert parts["network"]["dropout"] == "convolutions"


@pytest.mark.parametrize(
    ("name", "deviation", "spread", "radial"),
    [("retinopathy", 9.7618e-4, 0.41994, 1.4498e-4), ("retinopathy-severity", 1.0821e-3, 0.012984, 0.012607)],
)
def test_weights_of_mfvi_and_radial_mfvi(name: str, deviation: float, spread: float, radial: float) -> None:
    """variational_inference.py, radial.py: tied_mean_prior, sqrt(2 / fan_in), KL annealed over 200 of 90 epochs;
    stddev_mean_init and stddev_stddev_init of the truncated normal before softplus."""
    for label in ("MFVI", "MFVI (radial)"):
        parts = parts_of(name, label)
        assert parts["divergence"] == {"name": "tied_weight_kl", "gain": 2.0} and parts["prior"] is None
        assert parts["weight"] == {"scaling": "elbo", "factor": 90 / 200, "rise": 1.0}
        assert parts["family"]["layers"] == "weighted"
    assert F.softplus(torch.tensor(parts["family"]["rho_init"])).item() == pytest.approx(radial, rel=1e-3)
    z = math.log(math.expm1(deviation)) + spread * truncated(100_001)
    log_variances = 2 * F.softplus(z).log()
    low, high = parts_of(name, "MFVI")["family"]["log_var_init"]
    assert (low + high) / 2 == pytest.approx(log_variances.mean().item(), abs=0.02)
    assert (high - low) / 12**0.5 == pytest.approx(log_variances.std().item(), abs=0.01)


def truncated(points: int) -> torch.Tensor:
    """Quantiles of a standard normal number between -2 and 2, as TensorFlow's truncated normal has them."""
    levels = torch.linspace(-1, 1, points, dtype=torch.float64) * math.erf(2**0.5)
    return torch.erfinv(levels) * 2**0.5


@pytest.mark.parametrize("name", ["retinopathy", "retinopathy-severity"])
def test_rank1_has_one_member(name: str) -> None:
    """rank1_bnn.py: ensemble_size 1, prior_stddev .05, random_sign_init .75, dropout_rate 1e-3, KL annealed."""
    parts = parts_of(name, "Rank1")
    family = parts["family"]
    assert (family["size"], family["layers"], family["positive"]) == (1, "all", 0.75)
    assert F.softplus(torch.tensor(family["rho_init"])).item() == pytest.approx((0.001 / 0.999) ** 0.5, rel=1e-3)
    assert parts["prior"] == {"name": "gaussian_factors", "mean": 1.0, "variance": pytest.approx(0.05**2)}
    assert parts["weight"] == {"scaling": "elbo", "factor": 0.45, "rise": 1.0}


@pytest.mark.parametrize(
    ("name", "variance", "points"), [("retinopathy", 15.3595, 10), ("retinopathy-severity", 5.6301, 20)]
)
def test_fsvi_weighs_as_four_cores_do(name: str, variance: float, points: int) -> None:
    """fsvi.py, fsvi_utils/objectives.py: (log-likelihood - KL / K) / 64 with K images on each of 4 cores, averaged."""
    parts = parts_of(name, "FSVI")
    assert parts["prior"] == {"name": "gaussian_functions", "variance": variance, "mean": 0.0}
    assert parts["divergence"]["covariance"] == "diagonal" and parts["divergence"]["jacobian"] == "last_layer"
    batch, images = parts["training"]["batch_size"], parts["context"]["points"]
    assert parts["context"]["name"] == "training_batch" and images == 4 * points
    weight = Weight(**parts["weight"])(n_train=35_126, batch=batch, context=images)
    assert weight == pytest.approx(1 / 64 / (4 * points))  # of the KL over all cores' images
    assert parts["family"]["layers"] == "last" and parts["family"]["log_var_init"] == [-20.0, -18.0]
    assert parts["network"]["init"] == "zero_residual"


def test_short_starts_fsvi_and_mfvi_as_retina_does() -> None:
    table = tables.get("retinopathy")
    short, paper = (
        {row.label: table.row_runs(row, "aptos", protocol)[0]["parts"] for row in table.rows}
        for protocol in ("short", "paper")
    )
    for label in ("FSVI", "MFVI", "FSVI Ensemble", "MFVI Ensemble"):
        same = ["family", "divergence", "prior"] + ["weight"] * label.startswith("MFVI")
        assert all(short[label][kind] == paper[label][kind] for kind in same), label
    assert short["FSVI"]["context"]["points"] == 10 and short["FSVI"]["weight"] == {"scaling": "context", "factor": 1.0}
    assert short["MC Dropout"]["family"]["rate"] == 0.1 and short["Rank1"]["family"]["size"] == 4


def test_protocols_train_on_what_they_say() -> None:
    table = tables.get("retinopathy")
    assert {run["dataset"]["name"] for run in table.runs("short")} == {"aptos"}
    assert {run["dataset"]["name"] for run in table.runs("paper")} == {"aptos", "eyepacs"}
    for protocol, side in (("paper", "512"), ("short", "64"), ("smoke", "64")):
        schemes = {run["dataset"]["scheme"] for run in table.runs(protocol)}
        assert schemes == {f"moderate-{side}", "outline"}
    for each in ("mild", "severity"):
        schemes = {run["dataset"]["scheme"] for run in tables.get(f"retinopathy-{each}").runs("paper")}
        assert schemes == {f"{each}-512", f"outline-{each}"}
    (aptos,) = {tuple(run["evaluation"]["sets"]) for run in table.runs("short")}
    assert aptos == ("test", "shift-eyepacs", "shift-idrid")
    severity = tables.get("retinopathy-severity").runs("paper")
    assert {tuple(run["evaluation"]["sets"]) for run in severity} == {("test", "shift-severity")}
    assert len(table.runs("short")) == 13 * 5 and len(table.runs("paper")) == 2 * 13 * 6


def test_names_of_user_images_are_in_no_key_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FVI_RETINOPATHY", raising=False)
    assert all(run["dataset"]["content"] == {} for run in tables.get("retinopathy").runs("short"))


def test_ensembles_of_the_catalogue_have_the_parts_of_their_members() -> None:
    for name in ("MAP", "MFVI", "MC Dropout", "MFVI (radial)", "Rank1"):
        member, ensemble = methods.get(name), methods.get(f"{name} Ensemble")
        assert ensemble.family == {"name": "ensemble", "base": member.family, "size": 3}
        assert ensemble.parts() | {"family": member.family} == member.parts()


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("retinopathy", "mask only (linear)"),
        ("retinopathy", "FSVI Ensemble"),
        ("retinopathy-mild", "Rank1"),
        ("retinopathy-severity", "MFVI (radial)"),
        ("retinopathy-severity", "mask only (linear)"),
    ],
)
def test_a_smoke_run_fills_its_columns(name: str, label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs train on few images in upstream's layout."""
    for path, content in (eyepacs(official=True) | aptos() | idrid()).items():
        (tmp_path / "mine" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / path).write_bytes(content)
    for variable, value in (("FVI_RETINOPATHY", "mine"), ("FVI_DATA_CACHE", "cache")):
        monkeypatch.setenv(variable, str(tmp_path / value))
    table = tables.get(name)
    row = next(each for each in table.rows if each.label == label)
    columns = [column for column in table.columns if column.cell.dataset == "eyepacs"]
    (config, *_) = make_configs(row.method, "eyepacs", "smoke", table.recipe(row, "eyepacs", "smoke"))
    (outcome,) = execute([config], state=tmp_path / "state")
    assert outcome.status == "done", outcome.reason
    found = {(m["dataset"], m["condition"], m["metric"]) for m in outcome.metrics}
    assert {(c.cell.dataset, c.cell.condition, c.cell.metric) for c in columns} <= found
