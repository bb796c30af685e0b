"""UCI: known facts of the real files, the three ways to split, the loader on small files of the same form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold, train_test_split

import datasets
from datasets import BadData, fetch, uci

# rows and features as in Cinquin and Bamler 2024, table 5; mean of the target
FACTS = {
    "boston": (506, 13, 22.5328),
    "concrete": (1030, 8, 35.8180),
    "energy": (768, 8, 22.3072),
    "wine": (1599, 11, 5.6360),
    "yacht": (308, 6, 10.4954),
    "kin8nm": (8192, 8, 0.7143),
    "naval": (11934, 16, 0.9750),
    "power": (9568, 4, 454.3650),
    "protein": (45730, 9, 7.7485),
}


@pytest.mark.parametrize("name", FACTS)
def test_real_files_hold_what_is_known_of_them(name: str, load_or_skip: Callable) -> None:
    rows, features, mean = FACTS[name]
    split = load_or_skip(name)
    y = np.concatenate([split.train.y, split.test.y]) * split.y_std + split.y_mean
    assert (len(y), split.train.x.shape[1]) == (rows, features)
    assert y.mean() == pytest.approx(mean, abs=6e-5)


@pytest.mark.parametrize("name", FACTS)
def test_columns_are_those_of_the_index_files(name: str) -> None:
    source = uci.SOURCES[name]
    folders = [folder / "uci" / source.folder for folder in (fetch.cache_folder(), *fetch.mirror_folders())]
    folder = next((folder for folder in folders if (folder / "index_target.txt").exists()), None)
    if folder is None:
        pytest.skip(f"index_target.txt of {name} is neither in the cache nor in a mirror")
    assert [float(word) for word in (folder / "index_target.txt").read_text().split()] == [source.target]
    features = [float(word) for word in (folder / "index_features.txt").read_text().split()]
    assert features == list(range(source.features))
    assert int((folder / "n_splits.txt").read_text()) == uci.n_splits(name, "gal2016")


def test_naval_has_constant_columns_and_they_stay_finite(load_or_skip: Callable) -> None:
    x = load_or_skip("naval").train.x
    constant = np.ptp(x, axis=0) == 0
    assert constant.sum() == 2 and np.abs(x[:, constant]).max() < 1e-6


def test_known_duplicates_do_not_hide_in_the_row_numbers(load_or_skip: Callable) -> None:
    split = load_or_skip("wine")
    pairs = np.column_stack([split.train.x, split.train.y])
    assert len(np.unique(pairs, axis=0)) < len(pairs)
    assert not set(split.rows["train"]) & set(split.rows["test"])


@pytest.mark.parametrize("name", ["boston", "yacht", "naval"])
@pytest.mark.parametrize("number", [0, 4])
def test_pequignot_splits_are_those_of_sklearn(name: str, number: int) -> None:
    rows = uci.partition(name, number, "pequignot2020")
    everything = np.arange(uci.SOURCES[name].rows)
    train, test = train_test_split(everything, test_size=0.1, random_state=117 + number)
    assert np.array_equal(rows["train"], train) and np.array_equal(rows["test"], test)


@pytest.mark.parametrize("name", ["boston", "concrete", "yacht"])
@pytest.mark.parametrize(("number", "state"), [(0, 42), (1, 1)])
def test_the_splits_of_pequignots_first_experiment_are_those_of_sklearn(name: str, number: int, state: int) -> None:
    rows = uci.partition(name, number, "pequignot2020-1")
    train, test = train_test_split(np.arange(uci.SOURCES[name].rows), test_size=0.1, random_state=state)
    assert np.array_equal(rows["train"], train) and np.array_equal(rows["test"], test)
    assert datasets.describe(name, "pequignot2020-1").n_splits == 2


def test_pequignot_has_ten_small_and_five_large_splits() -> None:
    counts = {name: datasets.describe(name).n_splits for name in FACTS}
    assert counts == {name: 5 if name in {"kin8nm", "naval", "power", "protein"} else 10 for name in FACTS}


@pytest.mark.parametrize("name", FACTS)
def test_cross_validation_tests_every_row_once(name: str) -> None:
    n = FACTS[name][0]
    folds = [uci.partition(name, split, "cinquin2024") for split in range(5)]
    assert sorted(np.concatenate([fold["test"] for fold in folds])) == list(range(n))
    assert len({len(fold["train"]) for fold in folds}) == 1
    for fold in folds:
        assert sorted(np.concatenate(list(fold.values()))) == list(range(n))
        rest = n - len(fold["test"])
        assert abs(len(fold["validation"]) - rest / 10) < 2
        assert abs(len(fold["test"]) - n / 5) < 1


@pytest.mark.parametrize("number", range(5))
def test_folds_are_those_of_sklearn_and_each_draws_its_own_validation_rows(number: int) -> None:
    order = np.random.RandomState(0).permutation(FACTS["yacht"][0])
    rest, test = list(KFold(5).split(order))[number]
    rows = uci.partition("yacht", number, "cinquin2024")
    assert np.array_equal(rows["test"], order[test])
    drawn = np.concatenate([rows["train"], rows["validation"]])
    assert np.array_equal(drawn, np.random.RandomState(number).permutation(order[rest]))


@pytest.fixture
def small(mirror: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> tuple[Path, np.ndarray]:
    """The data set "small", 40 rows in the upstream form, registered and laid into the mirror; its table."""
    table = np.random.RandomState(3).normal(5, 2, (40, 5)).round(3)
    table[:, 2] = 7.25
    contents = {
        "data.txt": b"".join(b" \t".join(b"%.3f" % value for value in row) + b" \n" for row in table) + b"\n",
        "index_train_0.txt": b"".join(b"%d\n" % i for i in range(36)),
        "index_test_0.txt": b"".join(b"%d\n" % i for i in range(36, 40)),
        "index_train_1.txt": b"".join(b"%d\n" % i for i in range(5, 40)),
        "index_test_1.txt": b"".join(b"%d\n" % i for i in range(6)),
    }
    monkeypatch.setitem(uci.SOURCES, "small", uci.Source("small", 40, 5, 3, 4))
    return mirror({f"uci/small/{name}": content for name, content in contents.items()}), table


@pytest.mark.parametrize("scheme", uci.SCHEMES)
def test_small_files_are_cut_and_standardised_by_the_training_subset(small: tuple, scheme: str) -> None:
    table = small[1]
    split = uci.load("small", 0, scheme)
    x, y = table[split.rows["train"], :3], table[split.rows["train"], 4]
    assert (split.y_mean, split.y_std) == pytest.approx((y.mean(), y.std()), abs=1e-12)
    for subset, rows in split.rows.items():
        arrays = getattr(split, subset)
        assert np.allclose(arrays.y * split.y_std + split.y_mean, table[rows, 4], atol=1e-12)
        assert np.allclose(arrays.x[:, :2], (table[rows, :2] - x[:, :2].mean(0)) / x[:, :2].std(0), atol=1e-6)
        assert np.abs(arrays.x[:, 2]).max() < 1e-6
    assert (split.validation is None) == (scheme != "cinquin2024")
    assert np.array_equal(split.low, split.train.x.min(0))
    assert np.array_equal(split.high, split.train.x.max(0))


def test_index_files_give_the_rows(small: tuple) -> None:
    split = uci.load("small", 0, "gal2016")
    assert split.rows["train"].tolist() == list(range(36)) and split.rows["test"].tolist() == [36, 37, 38, 39]


def test_index_files_share_no_row_and_leave_none_out(small: tuple, register: Callable) -> None:
    files = "index_train_1.txt and .*index_test_1.txt: expected each of 40 rows in one of the two"
    with pytest.raises(BadData, match=files):
        uci.load("small", 1, "gal2016")
    shortened = small[0] / "uci/small/index_train_1.txt"
    shortened.write_bytes(b"".join(b"%d\n" % i for i in range(6, 38)))
    register({f"uci/small/{path.name}": path.read_bytes() for path in shortened.parent.iterdir()})
    with pytest.raises(BadData, match=files):
        uci.load("small", 1, "gal2016")


def test_uniform_inputs_fill_the_box(small: tuple) -> None:
    split = uci.load("small", 0, "pequignot2020")
    drawn, some = split.evaluation("ood-uniform"), split.evaluation("train")
    assert drawn.x.shape == split.test.x.shape
    assert (split.low <= drawn.x).all() and (drawn.x <= split.high).all()
    assert np.array_equal(some.x, split.train.x[:4]) and np.array_equal(some.y, split.train.y[:4])


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda content: content[:-40], "truncated"),
        (lambda content: content.replace(b"7.250", b"nan  "), "wrong checksum"),
    ],
)
def test_damaged_files_never_reach_the_loader(small: tuple, damage: Callable, fault: str) -> None:
    path = small[0] / "uci/small/data.txt"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match=fault), pytest.raises(datasets.DataNotFound, match=fault):
        uci.load("small", 0, "pequignot2020")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": 6}, "expected a table of 40 rows and 6 columns, found: ValueError: 40 rows and 5 columns"),
        ({"rows": 41}, "expected a table of 41 rows and 5 columns, found: ValueError: 40 rows and 5 columns"),
    ],
)
def test_files_of_another_shape_are_refused(
    small: tuple, monkeypatch: pytest.MonkeyPatch, change: dict, message: str
) -> None:
    shape = {"rows": 40, "columns": 5} | change
    monkeypatch.setitem(uci.SOURCES, "small", uci.Source("small", **shape, features=3, target=4))
    with pytest.raises(BadData, match=message):
        uci.load("small", 0, "pequignot2020")
