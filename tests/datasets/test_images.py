"""Image sets: facts of the real files, splits of each scheme, partners, contexts, sets by the form of their name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import datasets
from datasets import BadData, DataNotFound, Pixels, evaluation_content, fetch, user_arrays
from datasets.checks import check_split
from datasets.corruptions import CORRUPTIONS, corrupt
from datasets.image_schemes import SCHEMES, some
from datasets.image_sets import reduction
from datasets.image_transforms import rotate
from datasets.images import SOURCES, context_subsets, read_subset
from datasets.needs import lacking
from tests.datasets.image_files import SIZES, few, random_images, upstream

# mean and standard deviation of all pixels / 255, images of each class
FACTS = {
    ("mnist", "train"): (0.13066, 0.30811, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
    ("mnist", "test"): (0.13251, 0.31048, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
    ("fashion_mnist", "train"): (0.28604, 0.35302, [6000] * 10),
    ("fashion_mnist", "test"): (0.28685, 0.35244, [1000] * 10),
    ("kmnist", "train"): (0.1918, 0.3483, [6000] * 10),
    ("kmnist", "test"): (0.18456, 0.34161, [1000] * 10),
    ("notmnist", "test"): (0.42662, 0.45893, [1000] * 10),
    ("cifar10", "train"): (0.47337, 0.25157, [5000] * 10),
    ("cifar10", "test"): (0.47658, 0.25124, [1000] * 10),
    ("cifar100", "train"): (None, None, [500] * 100),
    ("cifar100", "test"): (None, None, [100] * 100),
    ("svhn", "train"): (None, None, [4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659]),
    ("svhn", "test"): (None, None, [1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595]),
}


@pytest.mark.parametrize(("name", "subset"), FACTS)
def test_real_files_hold_what_is_known_of_them(name: str, subset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fetch.OFFLINE_VARIABLE, "1")
    monkeypatch.delenv(user_arrays.VARIABLE, raising=False)
    try:
        found = read_subset(name, subset)
    except DataNotFound as error:
        pytest.skip(str(error).split(". Tried")[0])
    mean, std, counts = FACTS[name, subset]
    assert found.images.shape == (sum(counts), *SOURCES[name].shape) and sum(counts) == SOURCES[name].sizes[subset]
    assert found.images.dtype == np.uint8 and (found.images.min(), found.images.max()) == (0, 255)
    assert np.bincount(found.labels).tolist() == counts
    assert found.source == f"{name}, {subset} part, {sum(counts)} images"
    if mean is not None:
        assert (found.images.mean() / 255, found.images.std() / 255) == pytest.approx((mean, std), abs=6e-5)


def test_known_facts_cover_every_subset() -> None:
    assert set(FACTS) == {(name, subset) for name, source in SOURCES.items() for subset in source.sizes}
    assert all(set(source.files) == set(source.sizes) == set(source.read) for source in SOURCES.values())
    for name, source in SOURCES.items():
        for files in source.files.values():
            assert set(files) <= set(fetch.registry()), name


def test_users_arrays_make_another_split(bring: Callable) -> None:
    train, test = bring("svhn", "train"), bring("svhn", "test", 20)
    split = datasets.load("svhn")
    assert np.array_equal(split.train.x, train["images"]) and np.array_equal(split.test.y, test["labels"])
    assert split.n_outputs == 10 and split.pixels is not None and not split.rows
    first = split.fingerprint
    assert datasets.load("svhn") is split  # read once
    bring("svhn", "test", 21)
    again = datasets.load("svhn")
    assert again.fingerprint != first and len(again.test) == 21


@pytest.mark.parametrize("name", SOURCES)
def test_files_of_the_upstream_format_are_found_and_read(
    name: str, bring: Callable, register: Callable, write: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = {subset: random_images(name, SIZES[subset], seed=SIZES[subset]) for subset in SOURCES[name].files}
    files = upstream(name, arrays, tmp_path)
    register(files)
    for file, content in files.items():
        write(tmp_path / "mirror", file, content)
    monkeypatch.setenv(fetch.MIRROR_VARIABLE, str(tmp_path / "mirror"))
    monkeypatch.setitem(SOURCES, name, few(name))
    for subset, held in arrays.items():
        found = read_subset(name, subset)
        assert np.array_equal(found.images, held["images"]) and np.array_equal(found.labels, held["labels"])
        assert found.source == f"{name}, {subset} part, {SIZES[subset]} images"
    instead = bring(name, "test", 100)
    assert np.array_equal(read_subset(name, "test").images, instead["images"])


def test_missing_files_say_how_to_give_arrays(bring: Callable) -> None:
    bring("cifar10", "test")
    with pytest.raises(DataNotFound, match="cifar-10-binary.tar.gz' was not found") as caught:
        datasets.load("cifar10")
    way = "Or give arrays: set FVI_ARRAYS to a folder with cifar10/train.npz that holds images uint8 [N, 3, 32, 32]"
    assert way in str(caught.value)


def test_labels_out_of_range_are_refused(bring: Callable, tmp_path: Path) -> None:
    bring("svhn", "train"), bring("svhn", "test")
    images, path = np.zeros((11, 3, 32, 32), np.uint8), tmp_path / "arrays" / "svhn" / "test.npz"
    np.savez(path, images=images, labels=np.arange(11))
    with pytest.raises(BadData, match="svhn/test.npz: expected every label from 0 to 9, found 0, 1.* 10; do labels"):
        datasets.load("svhn")


def test_box_is_the_range_of_training_pixels_in_network_units(bring: Callable) -> None:
    arrays = bring("cifar10", "train", 10), bring("cifar10", "test")
    split, x = datasets.load("cifar10", scheme="rudner2022"), arrays[0]["images"]
    for c, (mean, std) in enumerate(zip((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))):
        scaled = (x[:, c] / 255 - mean) / std
        for found, expected in ((split.low[c], scaled.min(0)), (split.high[c], scaled.max(0))):
            assert np.allclose(found, expected, atol=1e-6)


def test_every_channel_needs_its_pixel_scale(bring: Callable) -> None:
    bring("svhn", "train"), bring("svhn", "test")
    damaged = replace(datasets.load("svhn"), pixels=Pixels((0.5, 0.5, 0.5), (0.5,)))
    with pytest.raises(BadData, match="svhn: expected a pixel mean and std for each of 3 channels, found 3 and 1"):
        check_split(damaged)


def test_validation_is_the_last_sixth_or_a_random_tenth(bring: Callable) -> None:
    train, _ = bring("mnist", "train", 60), bring("mnist", "test")
    last = datasets.load("mnist", scheme="ovadia2019")
    assert np.array_equal(last.train.x, train["images"][:50])
    assert np.array_equal(last.validation.y, train["labels"][50:])
    drawn = [datasets.load("mnist", i, scheme="cinquin2024-pixelwise") for i in range(5)]
    assert {(len(s.train), len(s.validation)) for s in drawn} == {(54, 6)}
    assert len({tuple(s.rows["validation"]) for s in drawn}) == 5
    for s in drawn:
        assert np.array_equal(s.validation.y, train["labels"][s.rows["validation"]])
        assert np.array_equal(np.sort(np.concatenate([*s.rows.values()])), np.arange(60))
    assert datasets.load("mnist", scheme="dirichlet2022").validation is None


def test_partners_are_scored_on_their_test_images(bring: Callable) -> None:
    for name in ("fashion_mnist", "mnist", "notmnist"):
        bring(name, "train", 40)
        arrays = bring(name, "test", 20)
    split = datasets.load("fashion_mnist", scheme="rudner2022")
    other = split.evaluation("ood-notmnist")
    assert (other.kind, other.condition, other.y) == ("ood", "ood=not_mnist", None)
    assert np.array_equal(other.x, arrays["images"])
    assert other.source == "notmnist, test part, brought as arrays, 20 images"
    assert split.evaluation("ood-mnist").condition == "ood=mnist"


def test_contexts_are_training_images_or_else_test_images_that_are_not_scored(bring: Callable) -> None:
    bring("fashion_mnist", "train"), bring("fashion_mnist", "test")
    test = bring("kmnist", "test", 20)
    split = datasets.load("fashion_mnist", scheme="rudner2022")
    pool = split.pool("kmnist")
    assert np.array_equal(pool.x, test["images"]) and pool.source == "kmnist, test part, brought as arrays, 20 images"
    for ask in (split.evaluation, lambda name: split.require([name])):
        with pytest.raises(DataNotFound, match="ood-kmnist: contexts are drawn from it here .kmnist, test part"):
            ask("ood-kmnist")
    train = bring("kmnist", "train", 40)
    assert np.array_equal(split.pool("kmnist").x, train["images"])
    assert split.pool("kmnist").source == "kmnist, train part, brought as arrays, 40 images"
    assert np.array_equal(split.evaluation("ood-kmnist").x, test["images"])


@pytest.mark.parametrize("name", SCHEMES)
def test_no_scheme_scores_the_images_that_it_draws_contexts_from(name: str, bring: Callable) -> None:
    for other in SOURCES:
        bring(other, "train", 200), bring(other, "test", 100)
    for scheme, chosen in SCHEMES[name].items():
        bring(name, "train", sum(chosen.part or [200]))
        split = datasets.load(name, scheme=scheme)
        plain = [name for name in split.evaluation_sets() if name in ("test", "validation") or name.startswith("ood-")]
        scored = {image.tobytes() for name in plain for image in split.evaluation(name).x}
        assert len(scored) >= 100
        for pool in split.pool_names():
            assert not {image.tobytes() for image in split.pool(pool).x} & scored, (scheme, pool)


def test_required_sets_need_their_partners_at_hand(bring: Callable) -> None:
    bring("mnist", "train", 60), bring("mnist", "test")
    split = datasets.load("mnist", scheme="rudner2022")
    split.require(["test", "rotation-7"])
    with pytest.raises(DataNotFound, match="notmnist: no file of a test subset|notmnist/t10k"):
        split.require(["test", "ood-notmnist"])
    with pytest.raises(KeyError, match="no evaluation set 'ood-svhn'"):  # of another shape
        split.require(["ood-svhn"])


def test_turned_images_follow_the_scheme(bring: Callable) -> None:
    bring("mnist", "train", 60)
    test = bring("mnist", "test", 20)
    for scheme, method in (("dirichlet2022", "bilinear"), ("rudner2022", "cubic"), ("ovadia2019", "cubic")):
        turned = datasets.load("mnist", scheme=scheme).evaluation("rotation-37")
        assert (turned.kind, turned.condition) == ("shift", "shift=rotation;angle=37")
        assert np.array_equal(turned.x, rotate(test["images"], 37, method)) and np.array_equal(turned.y, test["labels"])
    listed = [n for n in datasets.load("mnist", scheme="dirichlet2022").evaluation_sets() if n.startswith("rot")]
    assert listed == [f"rotation-{angle}" for angle in range(0, 181, 10)]
    listed = [n for n in datasets.load("mnist", scheme="ovadia2019").evaluation_sets() if n.startswith("rot")]
    assert listed == [f"rotation-{angle}" for angle in range(0, 181, 15)]


def test_attacks_hand_over_clean_images(bring: Callable) -> None:
    bring("cifar10", "train")
    test = bring("cifar10", "test", 20)
    attack = datasets.load("cifar10", scheme="dirichlet2022").evaluation("fgsm-0.05")
    assert (attack.kind, attack.condition, attack.epsilon) == ("attack", "shift=fgsm;epsilon=0.05", 0.05)
    assert np.array_equal(attack.x, test["images"]) and np.array_equal(attack.y, test["labels"])


def test_corrupted_images_one_by_one_and_together(bring: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    bring("cifar10", "train")
    test = bring("cifar10", "test", 10)
    split = datasets.load("cifar10", scheme="dirichlet2022")
    expected = corrupt(np.ascontiguousarray(test["images"].transpose(0, 2, 3, 1)), "contrast", 3).transpose(0, 3, 1, 2)
    one = split.evaluation("cifar10_c-contrast-3")
    assert np.array_equal(one.x, expected) and one.condition == "shift=cifar10_c;corruption=contrast;severity=3"
    assert one.source.startswith("CIFAR-10-C, generated from the test part")
    clean = split.evaluation("cifar10_c-0")
    assert np.array_equal(clean.x, test["images"]) and clean.condition == "shift=cifar10_c;severity=0"
    cheap = ("brightness", "contrast")
    monkeypatch.setattr("datasets.corruptions.source.CORRUPTIONS", cheap)
    every = split.evaluation("cifar10_c-3")
    assert every.condition == "shift=cifar10_c;severity=3" and np.array_equal(every.y, np.tile(test["labels"], 2))
    for i, corruption in enumerate(cheap):
        assert np.array_equal(every.x[10 * i : 10 * i + 10], split.evaluation(f"cifar10_c-{corruption}-3").x)
    assert len(CORRUPTIONS) == 19


def test_reduced_sets_have_the_same_images_of_every_set(bring: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.corruptions.source.CORRUPTIONS", ("impulse_noise", "contrast"))
    bring("cifar10", "train")
    test = bring("cifar10", "test", 40)
    split = datasets.load("cifar10", scheme="dirichlet2022")
    rows = some(test["labels"], 12)
    for name in ("cifar10_c-3", "cifar10_c-0", "cifar10_c-impulse_noise-5", "fgsm-0.1"):
        every, reduced = split.evaluation(name), split.evaluation(f"{name}-of-12")
        index = np.concatenate([rows + 40 * i for i in range(len(every.x) // 40)])
        assert np.array_equal(reduced.x, every.x[index]) and np.array_equal(reduced.y, every.y[index])
        assert (reduced.name, reduced.kind, reduced.condition) == (f"{name}-of-12", every.kind, every.condition)
        assert reduced.epsilon == every.epsilon and reduced.fingerprint != every.fingerprint
        assert reduced.source.endswith(", of which 12 drawn with seed 0, of each class its share")
    assert list(split.evaluations) == [name for name in split.evaluations if "-of-" not in name]
    assert evaluation_content("cifar10", "dirichlet2022", ["cifar10_c-3-of-12"]).keys() == {"cifar10/test"}


def test_a_part_has_training_and_test_images_of_the_training_images(
    bring: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = "cifar100", "dirichlet2022-part"
    monkeypatch.setitem(SCHEMES["cifar100"], about[1], replace(SCHEMES["cifar100"][about[1]], part=(200, 100)))
    bring("cifar100", "train", 299)
    with pytest.raises(BadData, match="cifar100, scheme dirichlet2022-part, training images: expected at least 300"):
        datasets.load("cifar100", scheme=about[1])
    images = bring("cifar100", "train", 450)  # without test images
    labels = images["labels"]
    split = datasets.load("cifar100", scheme=about[1])
    drawn = some(labels, 300)
    tested = drawn[some(labels[drawn], 100)]
    assert np.array_equal(split.rows["test"], tested)
    assert np.array_equal(np.union1d(split.rows["train"], tested), drawn) and len(split.train) == 200
    assert np.array_equal(split.test.y, labels[tested]) and np.array_equal(split.train.y, labels[split.rows["train"]])
    assert (datasets.describe(*about).n_train, datasets.describe(*about).n_test) == (200, 100)
    assert evaluation_content(*about, []).keys() == {"cifar100/train"} and not lacking(*about)
    sources = [
        split.evaluation(name).source
        for name in (*(f"cifar100_c-contrast-{s}-of-20" for s in (3, 0)), "fgsm-0.1-of-20")
    ]
    cut, drawn_of = "test images cut from the train part", ", of which 20 drawn with seed 0, of each class its share"
    assert sources[0].startswith(f"CIFAR-100-C, generated from the {cut}, version ")
    assert sources[1:] == [f"cifar100, {cut}{drawn_of}"] * 2


def test_reduced_sets_are_named_for_the_number_of_their_images() -> None:
    assert [reduction(name) for name in ("cifar10_c-3-of-1000", "fgsm-0.1-of-20", "fgsm-0.1", "test", "ood-of-")] == [
        1000,
        20,
        None,
        None,
        None,
    ]


def test_classes_have_their_shares_of_a_reduced_set() -> None:
    labels = np.repeat([0, 1, 2], [50, 30, 10])
    for count in (1, 7, 45, 89):
        rows = some(labels, count)
        shares = np.bincount(labels[rows], minlength=3)
        assert len(set(rows.tolist())) == count and (np.diff(rows) > 0).all()
        assert np.abs(shares - count * np.array([50, 30, 10]) / 90).max() < 1
    most_lost = np.repeat([0, 1, 2], [5, 3, 2])  # shares of 2, 1.2 and 0.8
    assert np.bincount(most_lost[some(most_lost, 4)]).tolist() == [2, 1, 1]
    assert some(np.tile(np.arange(3), 5), 6).tolist() == [
        0,
        1,
        5,
        6,
        7,
        11,
    ]  # other rows would be other runs under the same key


@pytest.mark.parametrize(
    "name",
    [
        "cifar10_c-6",
        "cifar100_c-1",
        "cifar10_c-rain-1",
        "cifar10_c-contrast",
        "cifar10_c-3-of-0",
        "cifar10_c-3-of-012",
        "cifar10_c-3-of-20",
        "cifar10_c-3-of-",
        "rotation-10-of-5",
        "ood-svhn-of-5",
        "test-of-5",
        "rotation--5",
        "rotation-1.5",
        "fgsm-",
        "fgsm--1",
        "ood-cifar10",
        "ood-mnist",
        "ood-imagenet",
    ],
)
def test_sets_that_cannot_be_are_named(name: str, bring: Callable) -> None:
    bring("cifar10", "train"), bring("cifar10", "test", 20)
    split = datasets.load("cifar10", scheme="rudner2022")
    with pytest.raises(KeyError, match=f"data set cifar10 has no evaluation set '{name}'; it has: test, ood-svhn"):
        split.evaluation(name)


def test_a_context_that_is_nowhere_says_where_it_was_looked_for(bring: Callable) -> None:
    with pytest.raises(DataNotFound, match="kmnist/train-images"):
        context_subsets("kmnist")
