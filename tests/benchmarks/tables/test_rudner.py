"""Settings of rudner2021 and rudner2022 on images, each with its source.

"Code of 2022": fsvibnns/fsvi; its notebook: reproduce_experiments/reproduce_fashionmnist_experiments.ipynb. "Code of
2023": timrudner/FSVI.
"""

from __future__ import annotations

import pytest

import datasets
from benchmarks import tables
from benchmarks.records.config import run_key, training_key
from benchmarks.tables import Row, cifar, fashion_mnist_readings
from benchmarks.tables.recipes import merge
from tests.configs import runs, words_of
from tools.cost.images import random_images
from tools.cost.trainings import training_of


def parts(table: str, label: str, dataset: str, protocol: str = "paper") -> dict:
    return runs(table, label, dataset, protocol)[0]["parts"]


def has(found: dict, **wanted) -> bool:
    return {name: found.get(name) for name in wanted} == wanted


@pytest.mark.parametrize("label", ["FSVI (rudner2021)", "MFVI", "MAP", "Deep Ensemble"])
@pytest.mark.parametrize("protocol", ["paper", "short"])
def test_cifar10_is_cropped_and_flipped_and_fashion_mnist_is_not(label: str, protocol: str) -> None:
    """Code of 2022, fsvi/utils/datasets.py: data set cifar10 is get_CIFAR10(augmentation_train=True)."""
    assert parts("rudner2021-1", label, "cifar10", protocol)["training"]["augment"] == {"crop": 4, "flip": True}
    assert parts("rudner2021-1", label, "fashion_mnist", protocol)["training"]["augment"] is None


@pytest.mark.parametrize(
    ("dataset", "protocol", "epochs", "stopped"),
    [
        ("fashion_mnist", "paper", 30, 10),
        ("cifar10", "paper", 30, 10),
        ("fashion_mnist", "short", 5, 2),
        ("cifar10", "short", 10, 3),
    ],
)
def test_mfvi_is_stopped_early_and_fsvi_is_not(dataset: str, protocol: str, epochs: int, stopped: int) -> None:
    """rudner2021, supplement, section 3; after which part of the training is not said."""
    table = tables.get("rudner2021-1")
    for label in ("FSVI (rudner2021)", "MAP", "Deep Ensemble"):
        assert parts("rudner2021-1", label, dataset, protocol)["training"]["epochs"] == epochs
    assert parts("rudner2021-1", "MFVI", dataset, protocol)["training"]["epochs"] == stopped
    assert f"{stopped} of {epochs}" in words_of(table, protocol)


def test_settings_of_rudner2021() -> None:
    """Supplement, sections 2 and 3; learning rate, epochs, batch and draws of the code of 2022's notebook."""
    for dataset in ("fashion_mnist", "cifar10"):
        found = parts("rudner2021-1", "FSVI (rudner2021)", dataset)
        assert has(found["divergence"], jacobian="full", covariance="diagonal", stop_gradient=True)
        assert has(found["prior"], name="gaussian_functions", variance=1e6, mean=0.0)
        assert has(found["context"], name="uniform_noise", points=4, margin=0.0)
        assert found["weight"]["scaling"] == "batch" and list(found["family"]["log_var_init"]) == [-10.0, -8.0]
        assert has(found["training"], batch_size=128, samples=5) and found["training"]["optimiser"]["lr"] == 5e-4
        assert has(parts("rudner2021-1", "MFVI", dataset)["prior"], name="gaussian_weights", variance=1.0)
        assert parts("rudner2021-1", "MAP", dataset)["prior"]["variance"] == 10.0


def test_figure_8_says_how_many_runs_it_has() -> None:
    table = tables.get("rudner2021-figure-8")
    assert table.replicates("paper") == table.replicates("short") == 3
    for protocol in ("paper", "short"):
        assert "here 3" in words_of(table, protocol) and "here 10" not in words_of(table, protocol)
    assert "here 10" in words_of(tables.get("rudner2021-1"), "paper")
    assert tables.get("rudner2021-1").replicates("paper") == 10


FSVI = [
    ("rudner2022-1", "FSVI (monochrome)", "fashion_mnist"),
    ("rudner2022-1", "FSVI (KMNIST)", "fashion_mnist"),
    ("rudner2022-1", "FSVI Ensemble (monochrome)", "fashion_mnist"),
    ("rudner2022-figure-2", "FSVI", "mnist"),
]


@pytest.mark.parametrize(("table", "label", "dataset"), FSVI)
def test_fsvi_is_the_notebooks_runs_3_3_and_3_4_whole(table: str, label: str, dataset: str) -> None:
    """Their command lines: final_layer_variational, dropout_rate 0.1, prior_type fixed, prior_cov 10, no full_cov,
    grad_flow_jacobian, kl_scale none, inducing_points 4, n_samples 5, Adam 5e-4, 30 epochs, batches of 128."""
    found = parts(table, label, dataset)
    family = found["family"].get("base", found["family"])
    assert has(family, name="gaussian_head", rate=0.1) and list(family["log_var_init"]) == [-10.0, -8.0]
    assert has(found["divergence"], name="gaussian_kl", jacobian="last_layer", covariance="diagonal", sets=1)
    assert has(found["divergence"], stop_gradient=False, jitter=1e-10)
    assert has(found["prior"], name="gaussian_functions", variance=10.0, mean=0.0)
    assert has(found["weight"], scaling="batch", factor=1.0)
    assert has(found["training"], epochs=30, batch_size=128, samples=5, augment=None)
    assert has(found["training"]["optimiser"], name="adam", lr=5e-4)
    assert runs(table, label, dataset)[0]["evaluation"]["samples"] == 10
    if "KMNIST" in label:
        assert found["context"] == {"name": "images", "points": 4, "pool": "kmnist"}
    else:  # inducing_input_type train_pixel_rand_0.5
        assert [(part["name"], part["points"]) for part in found["context"]["parts"]] == [
            ("training_batch", 2),
            ("random_monochrome", 2),
        ]


def test_readings_begin_with_the_tables_own_rows_and_are_each_codes_combination() -> None:
    table = tables.get("rudner2022-1-readings")
    for label in ("FSVI (monochrome)", "FSVI (KMNIST)"):
        own = [training_key(run) for run in runs("rudner2022-1", label, "fashion_mnist", "short")]
        assert [training_key(run) for run in runs(table, label, "fashion_mnist", "short")] == own
        found = {
            reading: runs(table, f"{label}, {reading}", "fashion_mnist", "short")[0]["parts"]
            for reading in fashion_mnist_readings.READINGS
            if reading not in ("", fashion_mnist_readings.MONOCHROME_ALONE, fashion_mnist_readings.TRAINING_OF_2023)
        }
        points = {
            reading: each["context"].get("points") or sum(part["points"] for part in each["context"]["parts"])
            for reading, each in found.items()
        }
        assert points == {reading: 32 if "code of 2023" in reading else 4 for reading in found}
        for reading, each in found.items():
            of_2023 = "code of 2023" in reading
            assert each["weight"]["scaling"] == ("elbo" if of_2023 else "batch")
            assert each["family"]["name"] == "mean_field"
            assert each["training"]["optimiser"]["name"] == ("sgd" if reading == "code of 2023" else "adam")
        # notebook, run B: prior_type fixed, prior_cov 10, neither full_cov nor grad_flow_jacobian
        first = found["all layers (code of 2022)"]
        assert has(first["divergence"], jacobian="full", covariance="diagonal", stop_gradient=True, jitter=1e-10)
        assert has(first["prior"], name="gaussian_functions", variance=10.0)
        # run 1: prior_type bnn_induced, prior_cov 0.005, full_cov; fsvi/utils/utils.py adds 1e-3 to covariances
        full = found["all layers, full covariance (code of 2022)"]
        assert has(full["divergence"], jacobian="full", covariance="full", stop_gradient=False, jitter=1e-3)
        assert has(full["prior"], name="gaussian_weights", variance=0.005, jacobian="full", features="draw")
        # configs/fsvi-cnn-fmnist.json; trainer.py: jitter 1e-6, gradients clipped at 1
        second = found["code of 2023"]
        assert has(second["divergence"], jacobian="last_layer", covariance="full", jitter=1e-6)
        assert has(second["prior"], variance=1.0, features="initial", jacobian="last_layer", centred=False)
        assert list(second["family"]["log_var_init"]) == [-20.0, -20.0]
        assert second["family"]["log_var_init_of"] == {"head.weight": [-50.0, -49.9], "head.bias": [-8.0, -7.9]}
        assert has(second["training"], samples=1, clip=1.0, batch_size=128)
        assert has(second["training"]["optimiser"], lr=0.005, momentum=0.9, weight_decay=0.0)
        assert second["training"]["schedule"] == {"name": "cosine", "final": 0.005}


def test_monochrome_images_alone_differ_from_the_tables_own_row_in_the_context() -> None:
    """Paper, section 3.3: "only contains randomly sampled monochrome images"."""
    own = parts("rudner2022-1", "FSVI (monochrome)", "fashion_mnist", "short")
    found = parts("rudner2022-1-readings", "FSVI (monochrome), monochrome images alone", "fashion_mnist", "short")
    assert has(found["context"], name="random_monochrome", points=4)
    assert {**found, "context": own["context"]} == own


def test_at_protocol_paper_a_reading_has_the_epochs_of_its_code() -> None:
    for reading, epochs in (("", 30), ("code of 2023", 200), ("code of 2023, training of 2022", 30)):
        label = ", ".join(filter(None, ("FSVI (KMNIST)", reading)))
        assert parts("rudner2022-1-readings", label, "fashion_mnist", "paper")["training"]["epochs"] == epochs
        assert parts("rudner2022-1-readings", label, "fashion_mnist", "short")["training"]["epochs"] == 5
    own = runs("rudner2022-1", "FSVI (KMNIST)", "fashion_mnist", "paper")[0]
    same = runs("rudner2022-1-readings", "FSVI (KMNIST)", "fashion_mnist", "paper")[0]
    assert training_key(own) == training_key(same)
    found = parts("rudner2022-1-readings", "FSVI (KMNIST), training of 2023", "fashion_mnist", "paper")
    code = parts("rudner2022-1-readings", "FSVI (KMNIST), code of 2023", "fashion_mnist", "paper")
    assert found == {**own["parts"], "training": {**code["training"], "epochs": 30}}


@pytest.mark.parametrize("row", tables.get("rudner2022-1-readings").rows, ids=lambda row: row.variant)
def test_every_reading_trains(row: Row) -> None:
    (config, *_) = tables.get("rudner2022-1-readings").row_runs(row, "fashion_mnist", "smoke")
    (trained,) = training_of(config["parts"], [random_images("fashion_mnist", 6, pools=("kmnist",))])()()
    assert trained.reason is None and trained.epochs == 1 and trained.warnings == []


def test_the_former_pair_of_weight_and_prior_is_a_reading_with_its_records() -> None:
    found = parts("rudner2022-1-readings", "FSVI (KMNIST), last layer's weights, KL of 2022", "fashion_mnist", "short")
    assert has(found["divergence"], jacobian="last_layer", covariance="full", jitter=1e-6)
    assert has(found["prior"], name="gaussian_weights", variance=1.0, features="initial", centred=True)


def test_penalties_begin_with_the_tables_own_map_and_differ_in_the_prior_alone() -> None:
    found = [
        training
        for label in ("MAP", "MAP, decay 1e-4", "MAP, decay 1e-3")
        for training in runs("rudner2022-1-penalty", label, "fashion_mnist", "paper")[:1]
    ]
    assert training_key(found[0]) == training_key(runs("rudner2022-1", "MAP", "fashion_mnist", "paper")[0])
    decays = [1 / (60_000 * each["parts"]["prior"]["variance"]) for each in found]
    assert decays == pytest.approx([1 / 60_000, 1e-4, 1e-3])
    same = [merge(each["parts"], {"prior": {"variance": 1.0}}) for each in found]
    assert same == [found[0]["parts"]] * 3


@pytest.mark.parametrize(
    ("name", "label", "variants", "part", "key", "expected"),
    [
        ("dropout", "MC Dropout", ("rate .25", "rate .5"), "family", "rate", [0.1, 0.25, 0.5]),
        (
            "prior",
            "MFVI",
            ("variance 0.1", "variance 0.01", "variance 0.005"),
            "prior",
            "variance",
            [1.0, 0.1, 0.01, 0.005],
        ),
        (
            "weight",
            "MFVI",
            ("3 times the weight", "5 times the weight", "10 times the weight"),
            "weight",
            "factor",
            [1.0, 3.0, 5.0, 10.0],
        ),
    ],
)
def test_unprinted_settings_begin_with_the_tables_own_and_differ_in_one_number(
    name: str, label: str, variants: tuple[str, ...], part: str, key: str, expected: list[float]
) -> None:
    labels = (label, *(f"{label}, {variant}" for variant in variants))
    found = [runs(f"rudner2022-1-{name}", each, "fashion_mnist", "paper")[0] for each in labels]
    assert training_key(found[0]) == training_key(runs("rudner2022-1", label, "fashion_mnist", "paper")[0])
    assert [each["parts"][part][key] for each in found] == expected
    assert [merge(each["parts"], {part: {key: expected[0]}}) for each in found] == [found[0]["parts"]] * len(expected)
    notes = words_of(tables.get(f"rudner2022-1-{name}"), "paper")
    assert all(f" {number:g}" in notes for number in expected[1:]), "the notes name every number"


def test_a_laplace_posterior_has_the_training_precision_or_one_of_held_out_images() -> None:
    variants = ("precision by validation", *(f"precision {d}, in training too" for d in (10, 100)))
    own, held, *both = (
        runs("rudner2022-1-laplace", label, "fashion_mnist", "paper")[0]
        for label in ("BNN-Laplace", *(f"BNN-Laplace, {variant}" for variant in variants))
    )
    assert training_key(own) == training_key(runs("rudner2022-1", "BNN-Laplace", "fashion_mnist", "paper")[0])
    assert [each["parts"]["prior"]["variance"] for each in (own, held, *both)] == [1, 1, 1 / 10, 1 / 100]
    assert [each["parts"]["fit"]["precision"] for each in both] == ["prior", "prior"]
    assert held["parts"] == merge(own["parts"], {"fit": {"precision": "validation"}})
    assert datasets.describe("fashion_mnist", held["dataset"]["scheme"]).n_train == 54_000


@pytest.mark.parametrize("label", ["MAP", "MFVI", "MC Dropout", "Deep Ensemble"])
def test_training_of_2023_is_that_of_fsvi_in_the_code_of_2023_for_as_many_epochs(label: str) -> None:
    own = parts("rudner2022-1", label, "fashion_mnist", "paper")
    found = parts("rudner2022-1-training", f"{label}, training of 2023", "fashion_mnist", "paper")
    fsvi = parts("rudner2022-1-readings", "FSVI (monochrome), code of 2023", "fashion_mnist", "short")
    assert found["training"] == {**fsvi["training"], "epochs": 30}
    assert (
        {**found, "training": own["training"]} == own == parts("rudner2022-1-training", label, "fashion_mnist", "paper")
    )


@pytest.mark.parametrize("label", ["MAP", "MC Dropout", "Deep Ensemble"])
def test_rows_of_other_lengths_differ_from_table_1_in_nothing_else(label: str) -> None:
    own = parts("rudner2022-1", label, "fashion_mnist", "paper")
    for epochs in (10, 20):
        found = parts("rudner2022-1-epochs", f"{label}, {epochs} epochs", "fashion_mnist", "paper")
        assert found == merge(own, {"training": {"epochs": epochs}}) and own["training"]["epochs"] == 30


def test_settings_of_cifar10() -> None:
    """Code of 2023, configs/fsvi-resnet18-cifar10.json; MFVI's log-variances: code of 2022, models/networks.py."""
    for row in tables.get("rudner2022-2").rows:
        if row.method is None:
            continue
        found = parts("rudner2022-2", row.label, "cifar10")
        assert found["training"]["augment"] == {"crop": 4, "flip": True}
        if row.method in ("SWAG", "VOGN") or row.variant == "own":
            continue
        assert has(found["training"], epochs=200, batch_size=128, clip=1.0, samples=1)
        assert has(found["training"]["optimiser"], name="sgd", lr=0.005, momentum=0.9, weight_decay=0.0)
        assert found["training"]["schedule"] == {"name": "cosine", "final": 0.05}
        if "FSVI" in row.method:
            assert found["prior"]["variance"] == 0.1 and found["weight"]["scaling"] == "elbo"
            assert has(found["divergence"], covariance="full", jitter=1e-6)
        if "MFVI" in row.method:
            assert list(found["family"]["log_var_init"]) == [-20.0, -18.0]


def test_mfvis_log_variances_hardly_move_on_cifar10() -> None:
    """The KL's gradient to a log-variance is -1/2 over the training images; what SGD makes of it in all steps."""
    training = parts("rudner2022-2", "MFVI", "cifar10")["training"]
    optimiser, schedule = training["optimiser"], training["schedule"]
    mean_rate = optimiser["lr"] * (1 + schedule["final"]) / 2
    steps = training["epochs"] * 50000 / training["batch_size"]
    moved = steps * mean_rate / (1 - optimiser["momentum"]) * 0.5 / 50000
    assert moved == pytest.approx(0.02, rel=0.05)
    for protocol in ("paper", "short"):
        said = words_of(tables.get("rudner2022-2"), protocol)
        assert "nearly MAP" in said and "0.02 in 200 epochs" in said


@pytest.mark.parametrize("label", ["SWAG", "DUQ, its own settings", "VOGN"])
def test_rows_with_schedules_of_their_own_keep_them_in_fewer_epochs(label: str) -> None:
    paper, short = (parts("rudner2022-2", label, "cifar10", protocol) for protocol in ("paper", "short"))
    assert short["training"]["epochs"] == cifar.EPOCHS
    for name in ("schedule", "optimiser", "lr", "momentum", "damping", "batch_size", "clip"):
        assert short["training"].get(name) == paper["training"].get(name), name
    assert short["network"] == {**paper["network"], "width": cifar.WIDTH}
    assert label.partition(",")[0] in tables.get("rudner2022-2").reduction("short")


def test_all_other_rows_of_protocol_short_have_the_one_cycle() -> None:
    for row in tables.get("rudner2022-2").rows:
        if row.method not in (None, "SWAG", "VOGN") and row.variant != "own":
            training = parts("rudner2022-2", row.label, "cifar10", "short")["training"]
            assert training["schedule"]["name"] == "one_cycle" and training["optimiser"]["lr"] == cifar.PEAK
    assert cifar.DUQ_OWN["training.optimiser"]["lr"] == 0.05


def test_rank1_predicts_once_with_each_of_its_four_members() -> None:
    """dirichlet2022, App. F: 4 members; the input replicated M times gives M distinct predictions."""
    for label in ("Rank1", "Rank1 fVI"):
        for protocol in ("paper", "short"):
            for run in runs("dirichlet2022-11", label, "cifar10", protocol):
                assert run["evaluation"]["samples"] == run["parts"]["family"]["size"] == 4


ONE_FUNCTION = {"MAP", "SWAG", "DUQ", "DUQ, its own settings", "SPG"}
ENSEMBLES = {"Deep Ensemble", "Deep Ensemble of MAP", "FSVI Ensemble (monochrome)"}


def test_100_draws_evaluate_the_trainings_of_the_table_beside_the_same_numbers() -> None:
    table, draws = tables.get("rudner2022-1"), tables.get("rudner2022-1-draws")
    own = {f"{row.label}, 100 draws": row for row in table.rows if row.label not in ONE_FUNCTION | ENSEMBLES}
    assert {row.label for row in draws.rows} == own.keys()
    for row in draws.rows:
        for ours, more in zip(
            runs(table, own[row.label].label, "fashion_mnist"), runs(draws, row.label, "fashion_mnist"), strict=True
        ):
            assert training_key(more) == training_key(ours)
            assert more["evaluation"] == {**ours["evaluation"], "samples": 100}
            assert ours["evaluation"]["samples"] == 10
        for column, other in zip(table.columns, draws.columns, strict=True):
            assert other.published_key(row) == column.published_key(own[row.label])


@pytest.mark.parametrize(("name", "rows"), [("rudner2022-1", 10), ("rudner2022-1-draws", 7)])
def test_scores_are_of_the_same_runs_beside_the_same_numbers(name: str, rows: int) -> None:
    table, scores = tables.get(name), tables.get("rudner2022-1-scores")
    assert len(scores.rows) == 10 + 7
    own = {f"{row.label}, by information": row for row in table.rows if row.label not in ONE_FUNCTION}
    found = [row for row in scores.rows if row.label in own]
    assert len(found) == len(own) == rows
    for row in found:
        pairs = ((table, own[row.label]), (scores, row))
        ours, others = (runs(each, one.label, "fashion_mnist") for each, one in pairs)
        assert list(map(run_key, ours)) == list(map(run_key, others))
        for column, other in zip(table.columns[2:], scores.columns, strict=True):
            assert other.published_key(row) == column.published_key(own[row.label])
            assert other.cell.condition == f"{column.cell.condition};score=mutual_information"


def test_notes_name_the_normalisation_and_the_prior_of_mfvi_on_cifar10() -> None:
    """Code of 2022, fsvi/models/resnet.py: scales and shifts are points without a KL."""
    found = parts("rudner2022-2", "MFVI", "cifar10")
    assert "layers" not in found["family"], "all parameters are random, those of normalisation too"
    assert has(found["prior"], name="gaussian_weights", variance=1.0)
    notes = words_of(tables.get("rudner2022-2"), "paper")
    assert "random scales and shifts" in notes and "MFVI's prior (here N(0, 1)" in notes
