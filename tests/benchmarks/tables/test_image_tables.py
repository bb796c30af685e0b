"""Tables of image classification: which runs they share, and one row of each from training to its columns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import tables
from benchmarks.experiment.execute import execute
from benchmarks.records import published
from benchmarks.records.config import run_key
from benchmarks.tables import cifar
from benchmarks.tables.recipes import merge
from datasets.image_transforms import rotate
from datasets.images import SOURCES
from fvi_core.contexts import ContextSource
from fvi_core.random import Streams
from fvi_core.registry import CONTEXTS
from tests.configs import words_of
from tools.cost.images import random_images
from tools.cost.trainings import training_of

# Runs that have records: a changed key would make them all again. Renew on purpose only.
DIGESTS = {
    ("digits", "paper"): (60, "82567f6bb9"),
    ("toys", "short"): (36, "0a506b0f4f"),
    ("uci", "paper"): (300, "0501d87920"),
    ("cinquin2024-1", "short"): (60, "78c2aea7f2"),
    ("rotated-mnist", "paper"): (60, "66e389e77c"),
    ("rotated-mnist-index-sets", "paper"): (120, "4f8431d331"),
}
LATER = {"FBNN", "Laplace", "VIP"}  # methods whose rows came after these records
NINE = [f"dirichlet2022-{number}" for number in range(2, 11)]
CIFAR = {"cifar10": range(11, 17), "cifar100": range(17, 23)}


def keys(name: str, protocol: str = "paper") -> set[str]:
    return {run_key(config) for config in tables.get(name).runs(protocol)}


@pytest.mark.parametrize(("name", "protocol"), DIGESTS)
def test_keys_of_recorded_runs_stay(name: str, protocol: str) -> None:
    runs = tables.get(name).runs(protocol)
    found = sorted(run_key(config) for config in runs if config["method"] not in LATER)
    text = "[" + ", ".join(f'"{key}"' for key in found) + "]"
    assert (len(found), hashlib.sha256(text.encode()).hexdigest()[:10]) == DIGESTS[name, protocol]


def test_one_run_serves_all_tables_of_rotated_mnist() -> None:
    assert all(keys(name) == keys("rotated-mnist") for name in NINE)
    assert keys("rotated-mnist") < keys("rotated-mnist-index-sets")
    wide, cells = tables.get("rotated-mnist"), 0
    for name in NINE:
        narrow = tables.get(name)
        assert set(narrow.columns) < set(wide.columns) and narrow.rows == wide.rows
        cells += len(narrow.columns) * len(narrow.rows)
    assert cells == len(wide.columns) * len(wide.rows) == 342
    numbers = published.table("dirichlet2022", None)
    assert all(column.published_key(row) in numbers for column in wide.columns for row in wide.rows)


@pytest.mark.parametrize("protocol", ["paper", "smoke"])
def test_ensembles_of_digits_differ_in_the_prior_of_their_members_alone(protocol: str) -> None:
    table, column = tables.get("digits-ensembles"), tables.get("digits-ensembles").columns[0]
    plain, prior = (table.cell_runs(row, column, protocol)[0]["parts"] for row in table.rows[1:])
    one = table.cell_runs(table.rows[0], column, protocol)[0]["parts"]
    assert {run["method"] for run in table.runs(protocol)} == {"MAP", "Deep Ensemble", "MAP Ensemble"}
    assert plain["divergence"] is None and prior["divergence"] == one["divergence"] and prior["prior"] == one["prior"]
    assert plain["family"] == prior["family"] and plain["family"]["size"] == 5
    assert plain["training"] == prior["training"] and plain["network"] == prior["network"]
    assert keys("digits", protocol) & keys("digits-ensembles", protocol) == {
        run_key(run) for run in table.runs(protocol) if run["method"] != "MAP Ensemble"
    }


def test_lecuns_rows_differ_in_initial_weights_alone_and_are_turned_in_both_ways() -> None:
    plain, table = tables.get("rotated-mnist"), tables.get("rotated-mnist-lecun")
    assert keys("rotated-mnist-lecun") == keys("rotated-mnist-nearest-lecun")
    turned = ["test", *(f"{way}rotation-{angle}" for way in ("", "nearest-") for angle in range(0, 181, 10))]
    for row, other in zip(plain.rows, table.rows, strict=True):
        for one, lecun in zip(
            plain.row_runs(row, "mnist", "paper"), table.row_runs(other, "mnist", "paper"), strict=True
        ):
            network = {**one["parts"]["network"], "init": "lecun"}
            assert lecun["parts"] == {**one["parts"], "network": network} and lecun["seed"] == one["seed"]
            assert lecun["evaluation"]["sets"] == turned


def test_more_draws_are_other_runs_of_the_same_trainings() -> None:
    table = tables.get("rotated-mnist-draws")
    by_row = {row.label: table.cell_runs(row, table.columns[0], "paper") for row in table.rows}
    assert list(by_row) == ["MC Dropout", "MC Dropout, 50 draws", "MC Dropout fVI", "MC Dropout fVI, 50 draws"]
    for method in ("MC Dropout", "MC Dropout fVI"):
        few, many = by_row[method], by_row[f"{method}, 50 draws"]
        assert {run_key(config) for config in few} < keys("rotated-mnist") and len(few) == len(many) == 10
        for one, other in zip(few, many, strict=True):
            assert (one["evaluation"]["samples"], other["evaluation"]["samples"]) == (10, 50)
            assert {**one, "evaluation": None} == {**other, "evaluation": None}


@pytest.mark.parametrize("dataset", CIFAR)
def test_one_run_serves_all_tables_of_a_cifar_set(dataset: str) -> None:
    every = [keys(f"dirichlet2022-{number}") for number in CIFAR[dataset]]
    assert len(every[0]) == 100 and all(found == every[0] for found in every)


@pytest.mark.parametrize("name", ["rudner2022-2", *(f"dirichlet2022-{number}" for number in CIFAR["cifar10"])])
def test_protocol_short_on_cifar10_is_one_for_all_rows_and_says_what_it_is(name: str) -> None:
    table = tables.get(name)
    runs = table.runs("short")
    made = {row.method for row in table.rows if row.method}
    assert {config["method"] for config in runs} == made and {config["seed"] for config in runs} == {0, 1, 2}
    for config in runs:
        training, sets = config["parts"]["training"], config["evaluation"]["sets"]
        assert (config["parts"]["network"]["width"], training["epochs"]) == (cifar.WIDTH, cifar.EPOCHS)
        assert training["augment"] == {"crop": 4, "flip": True}
        assert training["name"] == "vogn" or training["precision"] == "bfloat16"
        if training["schedule"]["name"] == "one_cycle":
            assert training["optimiser"]["lr"] == cifar.PEAK
        assert all(each.endswith("-of-1000") for each in sets if each not in ("test", "ood-svhn"))
    said = table.reduction("short")
    for part in ("16 to 128 channels", "15 epochs", "one cycle", "bfloat16", "3 seeds", "ensembles of 3", "1,000 of"):
        assert part in said
    assert "kept apart for validation" in words_of(table, "short")
    assert all("57 hours" in words_of(table, protocol) for protocol in ("short", "paper"))
    assert keys(name).isdisjoint(keys(name, "short"))


@pytest.mark.parametrize(
    ("table", "label"),
    [
        *(("rudner2022-2", label) for label in ("MAP", "SWAG", "FSVI (monochrome)")),
        *(("dirichlet2022-11", label) for label in ("MC Dropout fVI", "Radial fVI", "Rank1")),
    ],
)
def test_rows_of_protocol_short_train_in_bfloat16(table: str, label: str, processor) -> None:
    processor(True)
    found = tables.get(table)
    config = found.cell_runs(next(row for row in found.rows if row.label == label), found.columns[0], "short")[0]
    parts = merge(config["parts"], {"network": {"width": 2}, "training": {"epochs": 2}})
    train = training_of(parts, [random_images("cifar10", 6, pools=("cifar100",))])
    (trained,) = train()()
    assert trained.reason is None and trained.epochs == 2 and trained.warnings == []


@pytest.mark.parametrize("label", ["VOGN", "DUQ", "DUQ, its own settings"])
def test_rows_with_trainings_and_heads_of_their_own_train_a_normalised_network(label: str) -> None:
    found = tables.get("rudner2022-2")
    row = next(row for row in found.rows if row.label == label)
    config = found.cell_runs(row, found.columns[0], "paper")[0]
    parts = merge(config["parts"], {"network": {"width": 2}, "training": {"epochs": 2, "samples": 2}})
    (trained,) = training_of(parts, [random_images("cifar10", 6)])()()
    assert trained.reason is None and trained.epochs == 2 and trained.loss[1] != trained.loss[0]


def test_rows_of_table_precision_differ_in_nothing_else() -> None:
    table = tables.get("precision")
    by_row = {row.label: table.cell_runs(row, table.columns[0], "paper") for row in table.rows}
    for method in ("MAP", "FSVI"):
        pair = zip(by_row[f"{method} (float32)"], by_row[f"{method} (bfloat16)"], strict=True)
        for seed, (plain, reduced) in enumerate(pair):
            changed = merge(dict(reduced["parts"]), {"training": {"precision": "float32"}})
            assert {**reduced, "parts": changed} == plain != reduced and plain["seed"] == seed < 5


def test_short_names_and_numbers_of_runs() -> None:
    for short, name in (("fashion-mnist", "rudner2022-1"), ("cifar10", "rudner2022-2")):
        assert tables.get(short) is tables.get(name)
    counts = {
        "fashion-mnist": (140, 42), "rudner2021-1": (80, 24), "cinquin2024-2": (100, 60), "cinquin2024-8": (90, 54),
    }  # fmt: skip
    assert {name: (len(keys(name)), len(keys(name, "short"))) for name in counts} == counts
    shared = keys("cinquin2024-2") & keys("cinquin2024-8")
    assert len(shared) == 60, "tables 2 and 8 share what random and KMNIST points made"


def test_log_likelihoods_of_dirichlet2022_are_of_smoothed_probabilities() -> None:
    for name in ("rotated-mnist", "dirichlet2022-12", "dirichlet2022-21"):
        own = {column.cell.metric for column in tables.get(name).columns} - {"accuracy", "ece"}
        assert own == {"smoothed_log_likelihood"}
        assert "smoothed by 1e-4" in words_of(tables.get(name), "paper")


def test_settings_and_notes_of_rotated_mnist() -> None:
    for config in tables.get("rotated-mnist").runs():
        assert config["parts"]["training"]["optimiser"]["weight_decay"] == 0
        assert config["parts"]["training"]["epochs"] == 30 and config["parts"]["training"]["batch_size"] == 256
        assert config["parts"]["family"].get("rate", 0.2) == 0.2 and config["parts"]["family"].get("size", 10) == 10
        assert config["parts"]["divergence"] is None or config["parts"]["divergence"]["name"] == "dirichlet_kl"
    assert "**Weight decay**: none" in words_of(tables.get("rotated-mnist"), "paper")


@pytest.mark.parametrize("name", ["2", "8", "figure-13"])
def test_notes_of_cinquin_are_of_rows_that_are_there(name: str) -> None:
    table = tables.get(f"cinquin2024-{name}")
    labels = " ".join(row.label for row in table.rows)
    for protocol in ("paper", "short"):
        said = words_of(table, protocol)
        for method in ("VIP", "GWI", "Laplace"):
            assert (f"**{method}**" in said) == (method in labels), (protocol, method)
        for context in ("random", "random pixel", "KMNIST"):
            assert (f"**Points {context}**" in said) == (f"({context})" in labels), (protocol, context)
        assert ("OOD accuracy" in said) == (name != "figure-13")
    assert ("Laplace" in table.reduction("short")) == ("Laplace" in labels)


@pytest.mark.parametrize("number", range(11, 23))
def test_notes_of_dirichlet2022_on_cifar_are_of_rows_and_columns_that_are_there(number: int) -> None:
    table = tables.get(f"dirichlet2022-{number}")
    attacked = "attacked" in table.title
    said = words_of(table, "paper")
    assert ("**Attacks**" in said, "**Corruptions**" in said) == (attacked, not attacked)
    assert ("**Subnetwork**" in said) == ("Subnetwork" in [row.label for row in table.rows])


def test_index_sets_are_turned_as_the_test_images_are() -> None:
    images = np.random.RandomState(0).randint(0, 256, (3, 1, 28, 28)).astype(np.float32)
    x = torch.from_numpy(images)[None]
    source = ContextSource(x, x[:, 0], x[:, 0], {})
    for row, angles in (("MAP fVI +90°", (0, 90)), ("Ensemble fVI +90°, +180°", (0, 90, 180))):
        table = tables.get("rotated-mnist-index-sets")
        found = next(each for each in table.rows if each.label == row)
        context = table.cell_runs(found, table.columns[0])[0]["parts"]["context"]
        points = CONTEXTS.build(context)(source, Streams([0]))[0]
        np.testing.assert_array_equal(points, np.concatenate([rotate(images, angle, "bilinear") for angle in angles]))


@pytest.fixture
def tiny_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A few images of every set in place of the real ones."""
    for name, source in SOURCES.items():
        for part, n in (("train", 40), ("test", 20)):
            random, folder = np.random.RandomState(n), tmp_path / "arrays" / name
            folder.mkdir(parents=True, exist_ok=True)
            labels = np.arange(n * source.n_classes // 10) % source.n_classes
            images = random.randint(0, 256, (len(labels), *source.shape)).astype(np.uint8)
            np.savez(folder / f"{part}.npz", images=images, labels=labels)
    places = {"FVI_ARRAYS": tmp_path / "arrays", "FVI_DATA_CACHE": tmp_path / "cache", "FVI_OFFLINE": 1}
    for variable, value in places.items():
        monkeypatch.setenv(variable, str(value))
    yield


@pytest.mark.parametrize(
    ("name", "label", "dataset"),
    [
        ("rotated-mnist-index-sets", "Ensemble fVI +90°, +180°", "mnist"),
        ("rotated-mnist", "MC Dropout", "mnist"),
        ("fashion-mnist", "FSVI Ensemble (monochrome)", "fashion_mnist"),
        ("fashion-mnist", "BNN-Laplace", "fashion_mnist"),
        ("rudner2022-figure-2", "FSVI", "mnist"),
        ("rudner2021-1", "FSVI (rudner2021)", "fashion_mnist"),
        ("cinquin2024-8", "GFSVI (KMNIST)", "fashion_mnist"),
        ("cinquin2024-2", "Laplace", "mnist"),
        ("cifar10", "FSVI (CIFAR-100)", "cifar10"),
        ("dirichlet2022-14", "Rank1 fVI", "cifar10"),
    ],
)
def test_a_smoke_run_fills_its_columns(tiny_images: None, tmp_path: Path, name: str, label: str, dataset: str) -> None:
    table = tables.get(name)
    row = next(each for each in table.rows if each.label == label)
    columns = [column for column in table.columns if column.cell.dataset == dataset]
    config = table.cell_runs(row, columns[0], "smoke")[0]
    # Corruptions need photographs of frost or upstream's arrays; tests of the data sets have them.
    sets = [each for each in config["evaluation"]["sets"] if "_c-" not in each or each.endswith("-0")]
    config = {**config, "evaluation": {**config["evaluation"], "sets": sets}}
    (outcome,) = execute([config], state=tmp_path / "state")
    assert outcome.status == "done", outcome.reason
    found = {(m["dataset"], m["condition"], m["metric"]) for m in outcome.metrics}
    left = {(c.cell.dataset, c.cell.condition, c.cell.metric) for c in columns} - found
    assert all("_c;severity=" in condition for _, condition, _ in left), left


def _points(row, table: str, protocol: str) -> list:
    table = tables.get(table)
    row = next(each for each in table.rows if each.label == row)
    (run, *_) = table.cell_runs(row, table.columns[0], protocol)
    return [part["points"] for part in run["parts"]["context"]["parts"]]


@pytest.mark.parametrize("row", ["FSVI (monochrome)", "FSVI (CIFAR-100)", "FSVI Ensemble (monochrome)"])
def test_context_points_of_cifar_are_fewer_than_features(row: str) -> None:
    assert _points(row, "rudner2022-2", "paper") == [None, 32]  # the batch of 128, and a last layer of 512
    few = _points(row, "rudner2022-2", "short")
    assert few == [32, 8] and sum(few) < 8 * cifar.WIDTH


def test_the_experiment_about_them_has_those_of_the_paper_too() -> None:
    few, all_of_them = (_points(row.label, "cifar10-fsvi", "short") for row in tables.get("cifar10-fsvi").rows)
    assert few == _points("FSVI (monochrome)", "rudner2022-2", "short")
    assert all_of_them == _points("FSVI (monochrome)", "rudner2022-2", "paper")
