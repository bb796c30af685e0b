"""Runs on images, from arrays that the tests write: as bytes to the network, shifted, attacked, with named sources."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import datasets
from benchmarks.experiment.assembly import build_data, build_model, inputs_of, training_fingerprint
from benchmarks.experiment.execute import execute
from benchmarks.experiment.prediction import attack, predict
from benchmarks.records import predictions
from benchmarks.records.config import run_key
from benchmarks.tables import Recipe
from datasets.contract import Pool
from datasets.image_schemes import some
from datasets.images import SOURCES
from fvi_core.random import Streams
from tests.benchmarks.experiment.test_execute import numbers
from tests.configs import make_config

CPU = torch.device("cpu")
MLP = {"name": "mlp", "hidden": [6], "activation": "relu"}
CNN = {"name": "cnn", "channels": [3], "dense": [12], "pool": [1]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small arrays of every image set."""
    folder = tmp_path_factory.mktemp("arrays")
    for name, source in SOURCES.items():
        for part, n in (("train", 40), ("test", 20)):
            random = np.random.RandomState(len(name) + n)
            n *= source.n_classes // 10
            labels = random.permutation(np.arange(n) % source.n_classes)
            images = random.randint(0, 128, (n, *source.shape)) + 12 * (labels % 10)[:, None, None, None]
            (folder / name).mkdir(exist_ok=True)
            np.savez(folder / name / f"{part}.npz", images=images.astype(np.uint8), labels=labels)
    return folder


@pytest.fixture(autouse=True)
def only_these(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {"FVI_ARRAYS": folder, "FVI_DATA_CACHE": tmp_path / "cache", "FVI_DATA_MIRROR": "", "FVI_OFFLINE": 1}
    for variable, value in places.items():
        monkeypatch.setenv(variable, str(value))


def config(method="MAP", dataset="mnist", scheme="rudner2022", sets=("test",), parts=None, seed=0, split=0, **training):
    common = {
        "network": MLP,
        "likelihood": {"name": "categorical"},
        "training": {"epochs": 2, "batch_size": 16, "optimiser": {"name": "adam", "lr": 0.01}, **training},
    }
    recipe = Recipe(common | (parts or {}), (), scheme, 6, sets)
    return make_config(method, dataset, "smoke", recipe, split, seed)


def run(configs, tmp_path):
    outcomes = execute(configs if isinstance(configs, list) else [configs], state=tmp_path)
    assert all(outcome.status == "done" for outcome in outcomes), outcomes[0].reason
    return outcomes if isinstance(configs, list) else outcomes[0]


def logits(outcome, tmp_path):
    saved = predictions.load(tmp_path / "artifacts" / f"{run_key(outcome.config)}.npz")
    return {name: found.logits for name, found in saved.items()}


SETS = ("test", "rotation-0", "rotation-30", "ood-notmnist")


def test_shifted_and_foreign_images_are_predicted_and_their_sources_named(tmp_path):
    case = config("FSVI", sets=SETS, parts={"context": {"name": "images", "pool": "kmnist", "points": 5}})
    outcome = run(case, tmp_path)
    f, found = logits(outcome, tmp_path), numbers(outcome)
    assert np.array_equal(f["test"], f["rotation-0"]) and not np.array_equal(f["test"], f["rotation-30"])
    assert found["accuracy", ""] == found["accuracy", "shift=rotation;angle=0"]
    assert ("accuracy", "shift=rotation;angle=30") in found and ("ood_auroc", "ood=not_mnist") in found
    assert outcome.provenance["sources"] == {
        "ood-notmnist": "notmnist, test part, brought as arrays, 20 images",
        "context kmnist": "kmnist, train part, brought as arrays, 40 images",
    }
    assert outcome.provenance["fingerprint"] == datasets.load("mnist", scheme="rudner2022").fingerprint


@pytest.mark.parametrize(
    ("method", "parts"),
    [
        ("MAP", {}),
        ("MC Dropout fVI", {}),
        ("Deep Ensemble", {"family": {"size": 2}}),
        ("MAP", {"network": CNN}),
    ],
)
def test_runs_on_images_are_the_same_alone_and_in_a_stack(method, parts, tmp_path):
    augment = {"crop": 2, "flip": True}
    first, second = (config(method, sets=SETS, parts=parts, seed=seed, augment=augment) for seed in range(2))
    together = run([first, second], tmp_path / "a")
    assert numbers(together[0]) != numbers(together[1]) == numbers(run(second, tmp_path / "b"))


def test_validation_images_stop_training_early_in_splits_of_their_own(tmp_path):
    early = {"epochs": 30, "early_stopping": {"patience": 1, "every": 1}, "optimiser": {"name": "adam", "lr": 0.3}}
    configs = [
        config(scheme="cinquin2024-pixelwise", split=split, sets=("test", "validation"), **early) for split in range(2)
    ]
    outcomes = run(configs, tmp_path)
    assert all(outcome.provenance["epochs"] < 30 for outcome in outcomes)
    assert outcomes[0].provenance["fingerprint"] != outcomes[1].provenance["fingerprint"]
    assert numbers(run(configs[1], tmp_path)) == numbers(outcomes[1])


def test_images_stay_bytes_and_splits_share_them():
    split = datasets.load("mnist", scheme="rudner2022")
    model = build_model(
        config("FSVI", parts={"context": {"name": "images", "pool": "train", "points": 5}})["parts"], split
    )
    training_data = build_data(model, [split, datasets.load("mnist", scheme="rudner2022")], CPU, torch.float32)
    assert training_data.x.dtype == torch.uint8 and training_data.x.shape == (1, 40, 1, 28, 28)
    assert np.shares_memory(training_data.x.numpy(), split.train.x), "no copy of the data set"
    assert training_data.pools["train"].data_ptr() == training_data.x.data_ptr()
    assert training_data.low.dtype == torch.float32 and torch.equal(training_data.low[0], torch.from_numpy(split.low))


def test_inputs_of_the_network_are_the_scaled_pixels():
    split = datasets.load("cifar10", scheme="rudner2022")
    training_data = build_data(build_model(config(dataset="cifar10")["parts"], split), [split], CPU, torch.float32)
    for x in (split.test.x, split.test.x + np.float32(0.7)):  # turned images are not whole numbers
        expected = torch.from_numpy(split.pixels(x))
        torch.testing.assert_close(inputs_of(training_data, torch.from_numpy(x)), expected, rtol=1e-6, atol=1e-6)
    assert torch.allclose(
        inputs_of(training_data, torch.from_numpy(split.train.x)).amin(0), training_data.low[0], atol=1e-6
    )


def test_the_data_of_a_training_include_the_pool_of_its_context():
    split = datasets.load("mnist", scheme="rudner2022")
    parts = config("FSVI", parts={"context": {"name": "images", "pool": "kmnist", "points": 5}})["parts"]
    model, pool = build_model(parts, split), split.pool("kmnist")
    others = [replace(split, pools={"kmnist": lambda n=n: Pool(pool.x[:n], "some")}) for n in (None, 10)]
    same, other = (training_fingerprint(each, model) for each in others)
    assert training_fingerprint(split, model) == same != other


def test_splits_whose_pools_differ_cannot_train_together():
    splits = [datasets.load("mnist", i, scheme="cinquin2024-pixelwise") for i in range(2)]
    model = build_model(
        config("FSVI", parts={"context": {"name": "images", "pool": "train", "points": 5}})["parts"], splits[0]
    )
    with pytest.raises(ValueError, match="splits whose pools 'train' differ cannot train together"):
        build_data(model, splits, CPU, torch.float32)


def trained(dataset="cifar10", scheme="dirichlet2022", parts=None):
    case = config("MFVI", dataset, scheme, parts=parts)
    split = datasets.load(dataset, scheme=scheme)
    model = build_model(case["parts"], split)
    training_data = build_data(model, [split], CPU, torch.float32)
    return model, model.family.init(model.network, Streams([3])), training_data, split


def test_an_attack_moves_every_pixel_by_epsilon_within_black_and_white():
    model, parameters, training_data, split = trained(parts={"network": CNN})
    clean = inputs_of(training_data, torch.from_numpy(split.test.x))
    mean, std = torch.tensor(split.pixels.mean), torch.tensor(split.pixels.std)
    black, white = (0 - mean) / std, (1 - mean) / std
    for epsilon in ("0", "0.1"):
        moved = attack(model, parameters, training_data, split.evaluation(f"fgsm-{epsilon}"), 5, Streams([1]))
        assert moved.shape == clean.shape and (moved - clean).abs().max() <= float(epsilon) + 1e-6
        assert (moved.amin((0, 2, 3)) >= black - 1e-5).all() and (moved.amax((0, 2, 3)) <= white + 1e-5).all()
        assert torch.equal(moved, clean) == (epsilon == "0")


def test_an_attack_stops_at_black_and_white_and_nowhere_before():
    model, parameters, training_data, split = trained(parts={"network": CNN})
    levels = np.random.default_rng(0).integers(0, 256, split.test.x.shape).astype(np.uint8)
    given = replace(split.evaluation("fgsm-0.1"), x=levels)
    moved = attack(model, parameters, training_data, given, 5, Streams([1]))
    # In levels from 0 to 255, in which a channel's epsilon is 255 std epsilon.
    std, mean = (np.reshape(value, (3, 1, 1)) for value in (split.pixels.std, split.pixels.mean))
    found, step = 255 * (moved.numpy() * std + mean), 255 * std * 0.1
    darker, brighter = np.maximum(levels - step, 0), np.minimum(levels + step, 255)
    off = np.minimum(np.abs(found - darker), np.abs(found - brighter))
    # Where the gradient is zero a pixel stays.
    assert np.minimum(off, np.abs(found - levels)).max() < 1e-2 and (off < 1e-2).mean() > 0.9
    for end, inside in ((0, levels > 0), (255, levels < 255)):
        assert (np.abs(found - end)[inside & (abs(levels - float(end)) < step)] < 1e-2).mean() > 0.3


def test_an_attack_hurts_the_functions_that_predict():
    model, parameters, training_data, split = trained()
    clean, attacked = inputs_of(training_data, torch.from_numpy(split.test.x)), split.evaluation("fgsm-0.05")
    moved = attack(model, parameters, training_data, attacked, 5, Streams([1]))
    y = torch.from_numpy(split.test.y)

    def log_likelihood(x):
        p = predict(model, parameters, x, 5, Streams([1]))[0].softmax(-1).mean(0)
        return p.gather(-1, y[:, None]).log()[:, 0]

    noise = 0.05 * torch.randn(clean.shape, generator=torch.Generator().manual_seed(0)).sign()
    assert (log_likelihood(moved) < log_likelihood(clean)).all()
    assert log_likelihood(moved).mean() < log_likelihood(clean + noise).mean() - 0.1


def test_attacks_and_corruptions_are_rows_of_the_record(tmp_path):
    sets = ("test", "fgsm-0", "fgsm-0.1", "cifar10_c-0", "cifar10_c-contrast-5", "ood-svhn")
    augment = {"crop": 4, "flip": True}
    outcome = run(config(dataset="cifar10", sets=sets, parts={"network": CNN}, augment=augment), tmp_path)
    f, found = logits(outcome, tmp_path), numbers(outcome)
    for same in ("fgsm-0", "cifar10_c-0"):
        assert np.array_equal(f[same], f["test"])
    assert found["nll", "shift=fgsm;epsilon=0"] == found["nll", ""] < found["nll", "shift=fgsm;epsilon=0.1"]
    assert ("ece", "shift=cifar10_c;corruption=contrast;severity=5") in found and ("ood_auroc", "ood=svhn") in found
    assert outcome.provenance["sources"]["cifar10_c-contrast-5"].startswith("CIFAR-10-C, generated")


def test_reduced_sets_are_rows_of_the_record_with_their_numbers_of_images(tmp_path):
    names = ("fgsm-0.1", "cifar10_c-contrast-5")
    few = config(dataset="cifar10", sets=("test", *(f"{name}-of-9" for name in names)), parts={"network": CNN})
    all_of_them = config(dataset="cifar10", sets=("test", *names), parts={"network": CNN})
    reduced, whole = run([few, all_of_them], tmp_path)
    rows = some(datasets.load("cifar10", scheme="rudner2022").test.y, 9)
    f, every = logits(reduced, tmp_path), logits(whole, tmp_path)
    for name, condition in zip(names, ("shift=fgsm;epsilon=0.1", "shift=cifar10_c;corruption=contrast;severity=5")):
        np.testing.assert_allclose(f[f"{name}-of-9"], every[name][:, rows], rtol=1e-5, atol=1e-5)
        assert (numbers(reduced)["nll", condition][1], numbers(whole)["nll", condition][1]) == (9, 20)
        assert (
            ", of which 9 drawn with seed 0, of each class its share" in reduced.provenance["sources"][f"{name}-of-9"]
        )
    assert np.array_equal(f["test"], every["test"]) and run_key(few) != run_key(all_of_them)


def test_a_partner_out_of_reach_is_named_before_training(folder, tmp_path, monkeypatch):
    (tmp_path / "arrays").mkdir()
    (tmp_path / "arrays" / "mnist").symlink_to(folder / "mnist")
    monkeypatch.setenv("FVI_ARRAYS", str(tmp_path / "arrays"))
    heard = []
    monkeypatch.setattr("fvi_core.training.Trainer", lambda *a: heard.append(a))
    with pytest.raises(datasets.DataNotFound, match="notmnist/t10k-images-idx3-ubyte.gz' was not found"):
        execute([config(sets=("test", "ood-notmnist"))], state=tmp_path)
    assert not heard
