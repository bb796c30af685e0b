"""Tables of retinopathy: RETINA's settings, the same images for all rows, and what each protocol trains on."""

from __future__ import annotations

from pathlib import Path

import pytest

import datasets
from benchmarks import tables
from benchmarks.experiment.execute import execute
from benchmarks.tables.spec import make_configs
from fvi_core import methods
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


def test_paper_has_retinas_settings() -> None:
    found = {label: run["parts"] for label, run in runs("retinopathy", "paper").items()}
    for label, parts in found.items():
        if label != "mask only (linear)":
            assert parts["network"] == {"name": "resnet50", "width": 64} and parts["training"]["epochs"] == 90
            assert parts["training"]["optimiser"]["nesterov"] and parts["training"]["augment"] is None
    fsvi = found["FSVI"]
    assert fsvi["training"]["optimiser"]["lr"] == 0.021451 and fsvi["training"]["optimiser"]["momentum"] == 1 - 0.019218
    assert fsvi["prior"]["variance"] == 15.3595 and fsvi["context"]["points"] == 10
    assert fsvi["divergence"]["covariance"] == "diagonal" and fsvi["weight"]["scaling"] == "context"
    assert fsvi["training"]["batch_size"] == 256 and fsvi["training"]["samples"] == 5
    assert found["MC Dropout"]["family"]["rate"] == 0.17798
    # 1/(2 v) |w|^2 of the prior, for all images, is l2 |w|^2 for each of them.
    for run in (run for run in tables.get("retinopathy").runs("paper") if run["method"] == "MAP"):
        if not run["dataset"]["scheme"].startswith("outline"):
            images = datasets.describe(run["dataset"]["name"], run["dataset"]["scheme"]).n_train
            assert 1 / (2 * run["parts"]["prior"]["variance"]) / images == pytest.approx(1.0674e-4)
    severity = runs("retinopathy-severity", "paper")["FSVI"]
    assert severity["parts"]["prior"]["variance"] == 5.6301 and severity["parts"]["context"]["points"] == 20


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
    """On few images in the layout of upstream's."""
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
