"""Arrays of users: refused before memory is taken for them, and named by their content."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import datasets
from datasets import BadData, evaluation_content, fetch, training_content, user_arrays
from datasets.fundus import sources
from datasets.images import SOURCES, read_subset
from tests.datasets.corrupting import as_npy
from tests.datasets.image_files import SIZES, few, random_images, upstream
from tests.datasets.mutations import TERA, archive, marked, npy

ROOT = Path(__file__).resolve().parents[2]
SHAPE = (3, 32, 32)
LABELS = as_npy(np.arange(20) % 10)
IMAGES = as_npy(np.arange(20 * 3072, dtype=np.uint8).reshape(20, *SHAPE))


@pytest.fixture(autouse=True)
def nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a test no files but those that it writes."""
    (tmp_path / "arrays").mkdir()
    monkeypatch.setenv(user_arrays.VARIABLE, str(tmp_path / "arrays"))
    monkeypatch.setenv(fetch.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(fetch.MIRROR_VARIABLE, "")
    monkeypatch.setenv(fetch.OFFLINE_VARIABLE, "1")


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            ["cifr10/test.npz"],
            "cifr10/test.npz, expected <data set>/<subset>.npz in FVI_ARRAYS; for 'cifr10': did you m",
        ),
        (
            ["cifar10/tst.npz", "cifar10/train.npz"],
            "cifar10/tst.npz, expected <data set>/<subset>.npz in FVI_ARRAYS; for",
        ),
        (["Mnist/a.npz", "Mnist/b.npz"], "Mnist/a.npz and 1 more, expected <data set>/<subset>.npz"),
        (["cifar10/train.npz", "mnist/test.npz", "cifar10/notes.txt", "more/readme.txt"], ""),
    ],
)
def test_misspelt_arrays_are_noted_once(tmp_path, monkeypatch, capsys, files, message) -> None:
    monkeypatch.setattr("datasets.notices._said", set())
    for name in files:
        (path := tmp_path / "arrays" / name).parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    for _ in range(2):
        training_content("cifar10")
        with pytest.raises(datasets.DataNotFound):
            read_subset("fashion_mnist", "test")
    said = capsys.readouterr().err
    assert said.count("\n") == bool(message)
    assert not message or said.startswith(f"note: nothing reads {tmp_path}/arrays/{message}")


@pytest.mark.parametrize(
    ("folder", "files", "message"),
    [
        ("", [], "found nothing"),
        ("", ["train.npz", "TEST.NPZ"], "found TEST.NPZ, train.npz"),
        ("cifar10", ["cifar10/train.npz"], "found train.npz; name {}"),
        ("", ["cifar10/train.npy"], "found cifar10"),
    ],
)
def test_a_folder_without_arrays_is_noted(tmp_path, monkeypatch, capsys, folder, files, message) -> None:
    monkeypatch.setattr("datasets.notices._said", set())
    for name in files:
        (path := tmp_path / "arrays" / name).parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(user_arrays.VARIABLE, f"arrays/{folder}")
    user_arrays.note_unread({"cifar10", "mnist"}, {"train", "test"})
    said, arrays = capsys.readouterr().err.splitlines()[-1], tmp_path / "arrays"
    assert said.startswith(f"note: nothing of {arrays / folder} is read: expected <data set>/<subset>.npz in FVI_ARR")
    assert said.endswith(message.format(arrays))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            archive({"images.npy": npy("|u1", (TERA, *SHAPE)), "labels.npy": npy("<i8", (TERA,))}),
            r"the array images has \d+ bytes, and 30720{10}\d\d belong to uint8 \[10{12}, 3, 32, 32\]; "
            "write it with numpy.savez",
        ),
        (
            archive({"images.npy": npy("<f4", (TERA, *SHAPE)), "labels.npy": LABELS}),
            r"the array images has \d+ bytes, and \d+ belong to float32 \[10{12}",
        ),
        (
            archive({"images.npy": IMAGES, "labels.npy": npy("<i8", (TERA,))}),
            r"the array labels has \d+ bytes, and \d+ belong to int64 \[10{12}\]",
        ),
        (
            archive({"images.npy": IMAGES, "labels.npy": npy("<m8[s]", (20,), bytes(160))}),
            r"found timedelta64\[s\] \[20\]",
        ),
        (archive({"images.npy": npy("|u1", (-20, *SHAPE)), "labels.npy": LABELS}), "Error: an axis of negative length"),
        (
            archive({"images.npy": npy("|u1", (20, *SHAPE), version=b"\3\0"), "labels.npy": LABELS}),
            "ValueError: version ",
        ),
        (marked(archive({"images.npy": IMAGES, "labels.npy": LABELS}), 0, 1), "found: RuntimeError: .*encrypted"),
        (marked(archive({"images.npy": IMAGES, "labels.npy": LABELS}), 2, 99), "found: NotImplementedError: "),
        (
            archive({"images.npy": IMAGES, "labels": LABELS}),
            "the arrays images and labels, found images; write it with",
        ),
        (IMAGES, "expected an npz file of plain arrays, found: BadZipFile"),
    ],
)
def test_unfit_files_are_refused_before_they_are_read(
    tmp_path: Path, write: Callable, content: bytes, message: str
) -> None:
    path = write(tmp_path, "a.npz", content)
    tracemalloc.start()
    try:
        with pytest.raises(BadData, match=message) as caught:
            user_arrays.read(path, SHAPE)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)


def test_other_arrays_in_the_file_are_left_alone(tmp_path: Path, write: Callable) -> None:
    notes = as_npy(np.array([{"an": "object"}]))
    whole = archive({"images.npy": IMAGES, "labels.npy": LABELS, "notes.npy": notes, "a": b"b"})
    damaged = whole.replace(b"NUMPY", b"NUMPI").replace(b"NUMPI", b"NUMPY", 2)  # the third array's content
    for content in (whole, damaged):
        images, labels = user_arrays.read(write(tmp_path, "a.npz", content), SHAPE)
        assert as_npy(images) == IMAGES and as_npy(labels) == LABELS
        assert images.flags.writeable  # as torch wants them


def in_the_way(tmp_path: Path) -> dict[str, Callable[[Path], None]]:
    def loop(path: Path) -> None:
        path.parent.rmdir()
        path.parent.symlink_to(path.parent)

    return {"folder": Path.mkdir, "dangling link": lambda path: path.symlink_to(tmp_path / "nothing"), "loop": loop}


@pytest.mark.parametrize("what", ["folder", "dangling link", "loop"])
def test_what_is_there_but_no_file_is_not_passed_over(tmp_path: Path, what: str) -> None:
    path = tmp_path / "arrays/svhn/train.npz"
    path.parent.mkdir(parents=True)
    in_the_way(tmp_path)[what](path)
    for use in (lambda: read_subset("svhn", "train"), lambda: training_content("svhn")):
        message = (
            "svhn/train.npz: expected .*, found: (IsADirectory|FileNotFound|OS)Error: .*; write it with numpy.savez"
        )
        with pytest.raises(BadData, match=message):
            use()


@pytest.mark.parametrize("where", ["nowhere", "~nobody_of_this_name/arrays"])
@pytest.mark.parametrize(("variable", "name"), [(user_arrays.VARIABLE, "svhn"), (sources.VARIABLE, "aptos")])
def test_a_variable_that_names_no_folder_is_refused(
    variable: str, name: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, where)
    for use in (training_content, datasets.load):
        with pytest.raises(BadData, match=f"{variable} is '{where}': expected a folder of your data, found none"):
            use(name)


def test_a_set_without_images_is_refused(tmp_path: Path, write: Callable) -> None:
    write(
        tmp_path,
        "arrays/svhn/train.npz",
        archive({"images.npy": npy("|u1", (0, *SHAPE)), "labels.npy": npy("<i8", (0,))}),
    )
    with pytest.raises(BadData, match="svhn/train.npz: expected every label from 0 to 9, found none"):
        read_subset("svhn", "train")


def test_content_is_of_the_files_in_use(bring: Callable, tmp_path: Path) -> None:
    held = {}
    for n, name in enumerate(("mnist", "fashion_mnist", "kmnist", "notmnist"), start=30):
        for subset in ("train", "test"):
            bring(name, subset, n)
            held[f"{name}/{subset}"] = sha(tmp_path / f"arrays/{name}/{subset}.npz")
    assert len(set(held.values())) == 8

    def only(*keys: str) -> dict[str, str]:
        return {key: held[key] for key in keys}

    assert training_content("mnist", "rudner2022") == only("mnist/train")
    assert training_content("mnist", "rudner2022", ["train", "kmnist", "kmnist"]) == only("mnist/train", "kmnist/train")
    assert training_content("mnist", "dirichlet2022", ["kmnist"]) == only("mnist/train")  # whose contexts are others
    assert training_content("kmnist", "") == training_content("kmnist", None) == only("kmnist/train")
    assert evaluation_content("mnist", "rudner2022") == only("mnist/test")
    names = ["test", "rotation-30", "ood-notmnist", "ood-svhn", "notmnist", "ood-mnist"]
    assert evaluation_content("mnist", "rudner2022", names) == only("mnist/test", "notmnist/test")
    sets = (name for name in ("ood-kmnist", "ood-fashion_mnist"))
    assert evaluation_content("mnist", "rudner2022", sets) == only("mnist/test", "kmnist/test", "fashion_mnist/test")
    assert evaluation_content("mnist", "cinquin2024-pixelwise", ["ood-fashion_mnist"]) == only(
        "mnist/test", "fashion_mnist/train"
    )


def test_contexts_from_test_images_are_content_of_the_training(
    bring: Callable, tmp_path: Path, register: Callable, write: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring("fashion_mnist", "train"), bring("kmnist", "test")
    train, test = (sha(tmp_path / f"arrays/{file}.npz") for file in ("fashion_mnist/train", "kmnist/test"))
    assert training_content("fashion_mnist", None, ["kmnist"]) == {"fashion_mnist/train": train, "kmnist/test": test}
    files = upstream("kmnist", {"train": random_images("kmnist", SIZES["train"])}, tmp_path)
    register(files)
    for name, content in files.items():
        write(tmp_path / "cache", name, content)
    monkeypatch.setitem(SOURCES, "kmnist", few("kmnist"))
    (pool,) = datasets.images.context_subsets("kmnist")
    assert pool.source == "kmnist, train part, 200 images"
    assert training_content("fashion_mnist", None, ["kmnist"]) == {"fashion_mnist/train": train}
    bring("kmnist", "train")
    both = training_content("fashion_mnist", None, ["kmnist"])
    assert both == {"fashion_mnist/train": train, "kmnist/train": sha(tmp_path / "arrays/kmnist/train.npz")}


def test_other_arrays_of_the_same_size_have_another_content(bring: Callable, tmp_path: Path) -> None:
    path = tmp_path / "arrays/svhn/train.npz"
    bring("svhn", "train")
    first = training_content("svhn")
    assert first == training_content("svhn") == {"svhn/train": sha(path)}
    arrays = random_images("svhn", 30, seed=99)
    np.savez(path, **arrays)
    os.utime(path, ns=(0, 1))  # however fast the test is
    assert training_content("svhn") == {"svhn/train": sha(path)} != first


def test_a_file_is_read_once_for_many_plans(bring: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    bring("svhn", "train"), bring("svhn", "test")
    read: list[str] = []
    digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda stream, how: read.append(stream.name) or digest(stream, how))
    found = [(training_content("svhn"), evaluation_content("svhn", None, ["ood-cifar10"])) for _ in range(20)]
    assert found == [found[0]] * 20 and [Path(name).name for name in read] == ["train.npz", "test.npz"]


@pytest.mark.parametrize("name", datasets.names())
def test_without_users_arrays_there_is_nothing_to_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(user_arrays.VARIABLE)
    for module in (datasets.images, datasets.image_sets):
        monkeypatch.setattr(module, "read_subset", None)  # nothing is loaded
    monkeypatch.setattr(fetch, "check_file", None)  # nor looked for
    for scheme in (None, *datasets.describe(name).schemes):
        assert training_content(name, scheme, ["train", "grid", "kmnist", "cifar100"]) == {}
        assert evaluation_content(name, scheme, ["test", "ood-svhn", "ood-notmnist", "ood-uniform"]) == {}


def test_unknown_names_and_schemes_are_refused_for_contents_too() -> None:
    for content in (training_content, evaluation_content):
        with pytest.raises(datasets.UnknownDataset, match="did you mean 'svhn'"):
            content("svnh")
        with pytest.raises(datasets.UnknownSplit, match="cifar10 has no scheme 'gal'"):
            content("cifar10", "gal")


def test_contents_need_no_large_library(bring: Callable) -> None:
    bring("mnist", "train"), bring("mnist", "test"), bring("kmnist", "test")
    program = """
import sys, datasets
training = datasets.training_content("mnist", "rudner2022", ["kmnist"])
evaluation = datasets.evaluation_content("mnist", None, ["ood-kmnist"])
print(*training, *evaluation, *{"sklearn", "scipy", "torch", "PIL", "pooch"} & set(sys.modules))"""
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["mnist/train", "kmnist/test", "mnist/test", "kmnist/test"]
