"""Data sets of users: tables and images from files, functions; what they read belongs to a run's identity."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import datasets
from datasets import Arrays, BadData, Pixels, Split, registry
from datasets.tabular import assemble

RANDOM = np.random.RandomState(0)
X, Y = RANDOM.normal(size=(40, 3)), RANDOM.normal(size=40)
TEXT = "a,b,c,y\n" + "".join(f"{','.join(map(str, row))},{target}\n" for row, target in zip(X, Y))


@pytest.fixture(autouse=True)
def entries(monkeypatch):
    monkeypatch.setattr(registry, "ENTRIES", dict(registry.ENTRIES))


@pytest.fixture
def table(tmp_path):
    """table(text, **options) writes mine.csv and adds it as the data set mine."""

    def add(text=TEXT, **options):
        registry.ENTRIES.pop("mine", None)
        (tmp_path / "mine.csv").write_text(text)
        datasets.add_table("mine", tmp_path / "mine.csv", **options)
        return tmp_path / "mine.csv"

    return add


def test_a_table_becomes_standardised_splits_that_are_described_as_they_are(table):
    table(target="y", splits=3, validation=0.1)
    known, splits = datasets.describe("mine"), [datasets.load("mine", i) for i in range(3)]
    assert (known.task, known.shape, known.n_splits, known.n_train, known.n_test) == ("regression", (3,), 3, 32, 4)
    for split in splits:
        assert (len(split.train), len(split.validation), len(split.test), split.version) == (32, 4, 4, known.version)
        assert abs(split.train.x.mean()) < 1e-6 and abs(split.train.y.std() - 1) < 1e-9
        rows = np.concatenate(list(split.rows.values()))
        assert sorted(rows) == list(range(40))
        assert np.allclose(split.test.y * split.y_std + split.y_mean, Y[split.rows["test"]])
    assert len({split.fingerprint for split in splits}) == 3
    with pytest.raises(datasets.UnknownSplit):
        datasets.load("mine", 3)


def test_one_table_in_every_form_is_the_same_data(table, tmp_path):
    table(target="y")
    wanted = datasets.load("mine").train
    others = {
        "first.csv": ("y;a;b;c\n" + "".join(f"{y};{a};{b};{c}\n" for (a, b, c), y in zip(X, Y)), {"target": 0}),
        "blank.csv": ("\n".join(" ".join(map(str, (*row, y))) for row, y in zip(X, Y)), {}),
    }
    for file, (text, options) in others.items():
        (tmp_path / file).write_text(text)
        datasets.add_table(file, tmp_path / file, **options)
    np.savez(tmp_path / "mine.npz", x=X, other=Y)
    datasets.add_table("npz", tmp_path / "mine.npz", target="other")
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y, "c": X[:, 2]}).to_parquet(tmp_path / "mine.parquet")
    datasets.add_table("parquet", tmp_path / "mine.parquet", target="y")
    for name in (*others, "npz", "parquet"):
        found = datasets.load(name).train
        assert np.array_equal(found.x, wanted.x) and np.array_equal(found.y, wanted.y), name


def test_classes_are_named_or_numbered_and_each_subset_has_its_share(table):
    labels = ["cat", "dog"] * 15 + ["owl"] * 10
    table(
        "a,kind\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels)),
        task="classification",
        test=0.2,
        standardise=False,
    )
    split = datasets.load("mine", 4)
    assert datasets.describe("mine").n_outputs == split.n_outputs == 3
    assert np.bincount(split.test.y).tolist() == [3, 3, 2] and split.train.x.max() > 30
    assert split.train.y.dtype == np.int64 and split.y_std == 1


def test_test_parts_may_be_files_of_row_numbers(table, tmp_path):
    for i, rows in enumerate(("0 1 2", "5 6 7")):
        (tmp_path / f"test{i}.txt").write_text(rows)
    files = [tmp_path / "test0.txt", tmp_path / "test1.txt"]
    table(test_rows=files)
    assert datasets.describe("mine").n_splits == 2 and datasets.load("mine", 1).rows["test"].tolist() == [5, 6, 7]
    rows = datasets.load("mine", 1).rows
    assert sorted([*rows["train"], *rows["test"]]) == list(range(datasets.describe("mine").n_train + 3))
    before = datasets.training_content("mine")
    assert set(before) == {"mine/table", "mine/test-rows-0", "mine/test-rows-1"}
    for single in (files[0], str(files[0])):
        registry.ENTRIES.pop("mine")
        table(test_rows=single)
        assert datasets.describe("mine").n_splits == 1 and datasets.load("mine").rows["test"].tolist() == [0, 1, 2]
    files[1].write_text("5 6")
    registry.ENTRIES.pop("mine")
    table(test_rows=files)
    with pytest.raises(BadData, match="test1.txt: expected 3 test rows as in .*test0.txt.*, found 2; correct the file"):
        datasets.describe("mine")
    assert datasets.training_content("mine") != before


def test_another_file_and_another_cut_are_other_runs(table):
    path = table(target="y")
    before, version = datasets.training_content("mine"), datasets.describe("mine").version
    assert list(before) == ["mine/table"] and datasets.evaluation_content("mine") == {}
    path.write_text(TEXT.replace("a,b", "b,a"))
    assert datasets.training_content("mine") != before
    table(target="y", test=0.2)
    assert datasets.training_content("mine") == before and datasets.describe("mine").version != version
    path.unlink()
    with pytest.raises(
        BadData, match="mine.csv: expected a file, found: FileNotFoundError.*; put it there, or name the right"
    ):
        datasets.training_content("mine")


WRONG = {
    "no such target": ({"target": "z"}, "expected the column 'z', found a, b, c, y"),
    "a word": ({"text": "a,y\n1,2\ncat,3\n"}, "line 3, column 'a': expected a number, found 'cat'"),
    "a word for a target": ({"text": "a,y\n1,2\n3,cat\n"}, "line 3, column 'y': expected a number, found 'cat'"),
    "a gap": ({"text": "a,y\n1,2\n,3\n"}, "line 3, column 'a': expected a value, found '', as in 1 of 2 rows"),
    "a short line": ({"text": "a,b,y\n1,2,3\n1,2\n"}, "line 3: expected 3 columns, found 2"),
    "not finite": ({"text": "a,y\n1,2\nnan,3\n"}, "line 3, column 'a': expected a value, found 'nan'"),
    "infinite": ({"text": "a,y\n1,2\ninf,3\n"}, "line 3, column 'a': expected finite numbers up to 1e.150, found inf"),
    "too large": (
        {"text": "a,y\n1e308,2\n-1e308,3\n"}, "line 2, column 'a': expected finite numbers .*, found 1e.308"),
    "one class": (
        {"text": "a,y\n1,2\n2,2\n", "task": "classification"}, "expected two classes or more .*, found one class"),
    "real classes": ({"text": "a,y\n1,2.5\n2,2\n", "task": "classification"}, "found numbers such as 2.5"),
    "nothing": ({"text": ""}, "expected a column, found nothing"),
    "too few": ({"text": "a,y\n1,2\n"}, "subset and two or more to train, found 1 in all: 0 for train, 1 for test"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_file_that_does_not_fit_is_named_with_what_was_expected_and_found(table, what):
    options, message = WRONG[what]
    path = table(**options)
    for ask in (datasets.describe, datasets.load):
        with pytest.raises(BadData, match=f"^{path}.*{message}.*; correct the file, or how add_table describes it"):
            ask("mine")


def test_options_that_mean_nothing_and_names_that_are_taken_are_refused(tmp_path):
    for options, message in (({"task": "regresion"}, "task is 'regresion'"), ({"test": 1.5}, "expected 0 < test < 1")):
        with pytest.raises(ValueError, match=f"data set mine: {message}"):
            datasets.add_table("mine", "mine.csv", **options)
    with pytest.raises(ValueError, match="mine.xlsx is none of .csv, .npz, .parquet"):
        datasets.add_table("mine", "mine.xlsx")
    with pytest.raises(ValueError, match="two data sets are named 'yacht'"):
        datasets.add_table("yacht", "mine.csv")


@pytest.fixture
def images(tmp_path):
    """Images [N, 5, 4, 3] of two classes."""
    for subset, n in (("train", 12), ("test", 6), ("other", 7)):
        values = RANDOM.randint(0, 256, (n, 5, 4, 3)).astype(np.uint8)
        np.savez(tmp_path / f"{subset}.npz", images=values, labels=np.arange(n) % 2)
    return tmp_path


def add_images(folder, **changes):
    options = {"train": folder / "train.npz", "test": folder / "test.npz", "classes": 2, "channels_last": True}
    datasets.add_images("pictures", **options | changes)


def test_images_of_any_shape_are_read_and_described(images):
    add_images(images, ood={"other": images / "other.npz"})
    known, split = datasets.describe("pictures"), datasets.load("pictures")
    assert known.shape == split.train.x.shape[1:] == (3, 5, 4) and (known.n_train, known.n_test) == (12, 6)
    assert split.train.x.dtype == np.uint8 and abs(split.pixels(split.train.x).mean()) < 1e-6
    assert np.allclose(split.pixels(split.train.x).std((0, 2, 3)), 1)
    ood = split.evaluation("ood-other")
    assert (ood.kind, ood.condition, len(ood.x), ood.y) == ("ood", "ood=other", 7, None)
    assert list(datasets.training_content("pictures")) == ["pictures/train"]
    assert list(datasets.evaluation_content("pictures")) == ["pictures/test"]
    assert list(datasets.evaluation_content("pictures", sets=["ood-other"])) == ["pictures/test", "pictures/ood-other"]


def test_real_images_and_pairs_of_files(tmp_path):
    for subset in ("train", "test"):
        np.save(tmp_path / f"{subset}-x.npy", RANDOM.normal(size=(8, 6, 6)))
        np.save(tmp_path / f"{subset}-y.npy", np.arange(8) % 4)
    pairs = {subset: (tmp_path / f"{subset}-x.npy", tmp_path / f"{subset}-y.npy") for subset in ("train", "test")}
    datasets.add_images("real", **pairs, classes=4)
    datasets.add_images("scaled", **pairs, classes=4, mean=[1.0], std=[2.0])
    split, scaled = datasets.load("real"), datasets.load("scaled")
    assert split.pixels is None and split.train.x.shape == (8, 1, 6, 6) and split.train.x.dtype == np.float32
    assert np.allclose(scaled.train.x, (split.train.x - 1) / 2) and scaled.version != split.version
    assert list(datasets.training_content("real")) == ["real/train train-x", "real/train train-y"]


def test_images_that_do_not_fit_are_named(images):
    np.savez(images / "flat.npz", images=np.zeros((4, 3)), labels=np.zeros(4, int))
    np.savez(images / "short.npz", images=np.zeros((4, 5, 4, 3), np.uint8), labels=np.zeros(3, int))
    np.savez(images / "none.npz", pictures=np.zeros((4, 5, 4, 3), np.uint8))
    np.savez(images / "objects.npz", images=np.zeros((4, 5, 4, 3), np.uint8), labels=np.array([{}] * 4))
    np.savez(images / "bare.npz", images=np.zeros((4, 5, 4, 3), np.uint8))
    np.savez(images / "high.npz", images=np.zeros((4, 5, 4, 3), np.uint8), labels=np.array([0, 1, 2, 1]))
    found = {
        "flat": r"expected images \[N, H, W\].*found float64 \[4, 3\]",
        "short": r"expected whole-number labels \[4\].*\[3\]",
        "bare": "expected the arrays images and labels, found no labels",
        "none": "expected the array images, found pictures; correct",
        "objects": r"expected whole-number labels \[4\], one for each image, found object \[4\]",
        "high": "expected labels from 0 to 1, found 0, 1, 2",
        "lost": "expected the array images",
    }
    for file, message in found.items():
        registry.ENTRIES.pop("pictures", None)
        add_images(images, train=images / f"{file}.npz")
        with pytest.raises(BadData, match=f"{file}.npz: {message}"):
            datasets.load("pictures")
    registry.ENTRIES.pop("pictures")
    with pytest.raises(ValueError, match="expected one .npz file, or .npy files"):
        add_images(images, train=images / "train.png")
    with pytest.raises(ValueError, match="found the folder .*: stack its images into one array, with one of labels"):
        add_images(images, train=images)
    with pytest.raises(ValueError, match="expected both mean and std"):
        add_images(images, mean=[0.5])


@pytest.mark.parametrize(
    ("channels", "mean", "std"), [(1, [0.1] * 3, [1.0] * 3), (3, [0.1] * 3, [1.0]), (3, [0.1], [1.0])]
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_means_and_deviations_belong_to_the_channels(tmp_path, channels, mean, std, dtype):
    """Grey images with three means became images of three channels, which the description did not have."""
    for subset in ("train", "test"):
        images = np.ones((6, channels, 5, 5), dtype)
        np.savez(tmp_path / f"{subset}.npz", images=images, labels=np.arange(6) % 2)
    add_images(tmp_path, channels_last=False, mean=mean, std=std)
    for ask in (datasets.describe, datasets.load):
        with pytest.raises(
            BadData, match=rf"train.npz: expected a (mean|std) for each channel.*, {channels}, found [13];"
        ):
            ask("pictures")


@pytest.mark.parametrize("wrong", [{"mean": [np.nan] * 3}, {"std": [1.0, np.nan, 1.0]}, {"std": [1.0, np.inf, 1.0]}])
def test_means_and_deviations_are_numbers(tmp_path, wrong):
    with pytest.raises(ValueError, match="^data set pictures: expected (a finite mean|std above 0), found (nan|inf)$"):
        add_images(tmp_path, **{"mean": np.full(3, 0.5), "std": [1.0] * 3} | wrong)


def test_one_number_is_the_mean_of_one_channel_and_other_images_need_names(tmp_path):
    for subset in ("train", "test"):
        np.savez(tmp_path / f"{subset}.npz", images=np.ones((6, 5, 5), np.uint8), labels=np.arange(6) % 2)
    add_images(tmp_path, channels_last=False, mean=0.1, std=np.float64(0.3))
    assert datasets.load("pictures").pixels == Pixels((0.1,), (0.3,))
    with pytest.raises(ValueError, match="data set pictures: ood: expected files by name, as {'name': 'other.npz'}"):
        add_images(tmp_path, ood=tmp_path / "other.npz")


@pytest.mark.parametrize(("shape", "last"), [((12, 12, 3), False), ((3, 12, 12), True), ((12, 12, 1), False)])
def test_axes_that_only_the_other_order_explains_are_refused(tmp_path, shape, last):
    """Images [N, 12, 12, 3] without channels_last were 12 channels of 12 x 3 pixels: accuracy .333 for 1.000."""
    for subset in ("train", "test"):
        np.savez(tmp_path / f"{subset}.npz", images=np.zeros((6, *shape), np.uint8), labels=np.arange(6) % 2)
    add_images(tmp_path, channels_last=last)
    for ask in (datasets.describe, datasets.load):
        with pytest.raises(
            BadData, match=rf"train.npz: expected \[N, .*channels_last is {last}.*channels_last={not last}"
        ):
            ask("pictures")
    registry.ENTRIES.pop("pictures")
    add_images(tmp_path, channels_last=not last)
    assert datasets.load("pictures").train.x.shape[1:] == (min(shape), 12, 12)


def test_scales_that_do_not_belong_together_are_refused(tmp_path):
    bytes_, labels = np.random.RandomState(0).randint(0, 255, (20, 8, 8, 3)).astype(np.uint8), np.arange(20) % 2
    for name, x in (
        ("train", bytes_ / 255),
        ("test", bytes_.astype(float)),
        ("bytes", bytes_),
        ("wide", bytes_ * 1e300),
    ):
        np.savez(tmp_path / "any.npz", images=x, labels=labels)
        (tmp_path / "any.npz").rename(tmp_path / f"{name}.NPZ")

    def loaded(train, test, **options):
        registry.ENTRIES.pop("pictures", None)
        paths = {"train": tmp_path / f"{train}.NPZ", "test": tmp_path / f"{test}.NPZ"}
        add_images(tmp_path, **paths, **options)
        return datasets.load("pictures")

    assert loaded("bytes", "bytes", mean=(0.5,) * 3, std=(1.0,) * 3).pixels
    with pytest.raises(
        BadData, match="test.NPZ: expected images on the scale of the training images, up to 0.99.*, found"
    ):
        loaded("train", "test")
    with pytest.raises(BadData, match="bytes.NPZ: expected mean and std of bytes / 255, at most 1, found 125"):
        loaded("bytes", "bytes", mean=(125.0,) * 3, std=(60.0,) * 3)
    with pytest.raises(ValueError, match="data set pictures: expected std above 0, found 0"):
        loaded("bytes", "bytes", mean=(0.5,) * 3, std=(0.0,) * 3)
    with pytest.raises(BadData, match="wide.NPZ: expected finite numbers, found inf at .*; correct the file, or how"):
        loaded("wide", "wide")


def test_images_are_measured_without_copies_of_wider_numbers(tmp_path):
    x = np.random.RandomState(0).randint(0, 256, (300, 64, 64, 1)).astype(np.uint8)
    for subset in ("train", "test"):
        np.savez(tmp_path / f"{subset}.npz", images=x, labels=np.arange(len(x)) % 2)
    add_images(tmp_path)
    tracemalloc.start()
    split = datasets.load("pictures")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * x.nbytes  # both subsets, and what finds numbers that are not finite
    assert np.isclose([*split.pixels.mean, *split.pixels.std], [(x / 255).mean(), (x / 255).std()]).all()


def test_wide_whole_numbers_are_refused_with_what_to_do(tmp_path):
    for subset in ("train", "test"):
        np.savez(tmp_path / f"{subset}.npz", images=np.zeros((6, 5, 5), np.uint16), labels=np.arange(6) % 2)
    add_images(tmp_path)
    with pytest.raises(BadData, match=r"train.npz: .*found uint16 \[6, 5, 5\]; write wider whole numbers as float32"):
        datasets.load("pictures")


def test_a_small_member_that_unpacks_into_a_huge_array_is_refused_before_it_is(images, tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.npy.LARGE", 2**16)
    zeros = np.zeros((40, 60, 60, 3), np.uint8)
    np.savez_compressed(images / "packed.npz", images=zeros, labels=np.arange(40) % 2)
    np.savez(images / "plain.npz", images=zeros, labels=np.arange(40) % 2)
    add_images(images, train=images / "plain.npz", test=images / "plain.npz")
    assert len(datasets.load("pictures").train) == 40
    registry.ENTRIES.pop("pictures")
    add_images(images, train=images / "packed.npz")
    with pytest.raises(BadData, match=r"packed.npz: .*the array images unpacks from \d+ to 432128 bytes.*uncompressed"):
        datasets.describe("pictures")


def waves(split: int) -> Split:
    x = np.linspace(-1, 1, 10 + split, dtype=np.float32)[:, None]
    arrays = Arrays(x, np.sin(x[:, 0]).astype(np.float64))
    return Split("waves", "1", split, "", "regression", 1, arrays, arrays, x.min(0), x.max(0))


def test_a_function_makes_a_data_set_whose_code_is_known():
    datasets.add("waves", waves, splits=3)
    assert (datasets.describe("waves").n_train, datasets.describe("waves").n_splits) == (10, 3)
    assert len(datasets.load("waves", 2).train) == 12
    assert datasets.made_by("waves") == __name__ and datasets.made_by("digits") is None


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            lambda split: 1 / split,
            r"mine, split 0: \S*test_user_data.py, line \d+: ZeroDivisionError: .*; correct the fun",
        ),
        (
            lambda split: np.stack([]),
            r"mine, split 0: \S*test_user_data.py, line \d+: ValueError: need at least one array",
        ),
        (lambda split: {"x": X}, "mine, split 0: expected a datasets.Split of the function that loads it, found dict"),
        (
            lambda split: assembled(X, np.stack([Y, Y, Y], 1)),
            "found .40, 3. and .40, 3.; for several targets return a da",
        ),
    ],
)
def test_a_function_that_fails_or_returns_no_split_is_named(returned, message):
    datasets.add("mine", returned)
    for use in (datasets.describe, datasets.load):
        with pytest.raises(BadData, match=message):
            use("mine")


def assembled(x, y):
    return assemble("mine", "1", 0, "", x, y, {"train": np.arange(30), "test": np.arange(30, 40)})


def test_classes_are_counted_in_any_whole_number(images):
    add_images(images, classes=np.arange(2).max() + 1)
    assert datasets.load("pictures").n_outputs == 2
    for wrong in (2.0, "2", 1):
        with pytest.raises(ValueError, match=f"data set pictures: classes: expected how many .*, found {wrong!r}"):
            add_images(images, classes=wrong)
