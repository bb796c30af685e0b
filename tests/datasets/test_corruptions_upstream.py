"""Published arrays: read from an archive or a folder, checked, refused when damaged; without them, generated ones."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from datasets import BadData, DataNotFound
from datasets.corruptions import SEVERITIES, corrupt, corrupted, source, upstream
from tests.datasets.corrupting import LABELS, N, as_npy, as_tar, clean, files, photos, published

TAR = "cifar10_c/CIFAR-10-C.tar"


def read(name: str = "gaussian_noise", severity: int = 2, labels: np.ndarray = LABELS) -> tuple[np.ndarray, str]:
    return corrupted("cifar10", name, severity, clean(), labels)


@pytest.mark.parametrize("place", ["cache", "mirror"])
@pytest.mark.parametrize("form", ["tar", "folder", "flat"])
def test_every_severity_is_its_block(places: tuple[Path, Path], write: Callable, place: str, form: str) -> None:
    root = places[place == "mirror"]
    if form == "tar":
        write(root, TAR, as_tar(files()))
    else:
        for name, content in files().items():
            write(root, f"cifar10_c/{'CIFAR-10-C/' if form == 'folder' else ''}{name}", content)
    for severity in SEVERITIES:
        images, whose = read(severity=severity)
        expected = corrupt(photos()[:N], "gaussian_noise", severity, seed=7)
        assert images.dtype == np.uint8 and np.array_equal(images, expected.transpose(0, 3, 1, 2))
        assert whose == "CIFAR-10-C, published arrays"
    assert np.array_equal(read("saturate", 3)[0].transpose(0, 2, 3, 1), corrupt(photos()[:N], "saturate", 3))
    assert not list(places[0].rglob("*generated*"))


def test_the_other_set_has_its_own_archive(places: tuple[Path, Path], write: Callable) -> None:
    write(places[1], "cifar100_c/CIFAR-100-C.tar", as_tar(files()))
    assert corrupted("cifar100", "contrast", 1, clean(), LABELS)[1] == "CIFAR-100-C, published arrays"
    assert corrupted("cifar10", "contrast", 1, clean(), LABELS)[1].startswith("CIFAR-10-C, generated")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"gaussian_noise": None},
            "expected the file gaussian_noise.npy, found contrast.npy, labels.npy, saturate.npy",
        ),
        (
            {"gaussian_noise": published()["contrast.npy"][: 4 * N]},
            r"expected uint8 \[60, 32, 32, 3\], found uint8 \[48",
        ),
        ({"gaussian_noise": published()["contrast.npy"] / 255}, "expected uint8 .*, found float64"),
        ({"gaussian_noise": published()["contrast.npy"].transpose(0, 3, 1, 2)}, r"found uint8 \[60, 3, 32, 32\]"),
        (
            {"gaussian_noise": np.concatenate(np.split(published()["gaussian_noise.npy"], 5)[::-1])},
            "grow over severities 1, 2, 3, 4, 5, found",
        ),
        ({"gaussian_noise": published()["gaussian_noise.npy"][::-1]}, "severities or images are in another order"),
        ({"gaussian_noise": np.array([{"an": "object"}] * 60)}, "expected an array of numbers, found object"),
        ({"gaussian_noise": b"\x93NUMPY"}, "expected a .npy array, found"),
        (
            {"gaussian_noise": b"<html>" * 100},
            "expected a .npy array, found: ValueError: the magic string is not correct",
        ),
        (
            {"gaussian_noise": as_npy(published()["gaussian_noise.npy"])[:-9]},
            "truncated: expected 184448 bytes .*, found 184439",
        ),
        ({"labels": np.tile(LABELS, 4)}, r"labels.npy: expected whole numbers \[60\].* found int64 \[48\]"),
        ({"labels": np.tile(LABELS, 5) / 2}, "labels.npy: expected whole numbers .* found float64"),
        ({"labels": np.tile(LABELS[::-1], 5)}, "found 1 for 0 at row 0: the test images at hand are in another order"),
        ({"labels": np.repeat(LABELS, 5)}, "found 0 for 1 at row 1"),
        ({"labels": None}, "expected the file labels.npy, found contrast.npy, gaussian_noise.npy, saturate.npy"),
    ],
)
def test_damaged_arrays_are_refused(places: tuple[Path, Path], write: Callable, changes: dict, fault: str) -> None:
    path = write(places[1], TAR, as_tar(files(**changes)))
    with pytest.raises(BadData, match=fault) as caught:
        read()
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (
            as_tar(files())[:100_000],
            "expected a whole, uncompressed tar archive, found: ReadError: unexpected end of data",
        ),
        (as_tar(files(), "w:gz"), "expected a whole, uncompressed tar archive"),
        (b"<html>no such file</html>" * 99, "expected a whole, uncompressed tar archive"),
        (b"", "expected a whole, uncompressed tar archive, found: ReadError: empty file"),
    ],
)
def test_damaged_archives_are_refused(places: tuple[Path, Path], write: Callable, content: bytes, fault: str) -> None:
    write(places[1], TAR, content)
    with pytest.raises(BadData, match=fault):
        read()


def test_links_in_an_archive_are_not_followed(places: tuple[Path, Path], write: Callable, tmp_path: Path) -> None:
    write(tmp_path, "elsewhere.npy", files()["gaussian_noise.npy"])
    stream = io.BytesIO(as_tar(files(gaussian_noise=None)))
    with tarfile.open(fileobj=stream, mode="a") as archive:
        link = tarfile.TarInfo("CIFAR-10-C/gaussian_noise.npy")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "elsewhere.npy")
        archive.addfile(link)
    write(places[1], TAR, stream.getvalue())
    with pytest.raises(BadData, match="expected the file gaussian_noise.npy"):
        read()


def test_a_replaced_archive_is_read_again(places: tuple[Path, Path], write: Callable) -> None:
    write(places[1], TAR, as_tar(files()))
    first = read()[0]
    other = files(gaussian_noise=published(seed=8)["gaussian_noise.npy"], first=np.zeros(3))
    write(places[1], TAR, as_tar(dict(reversed(other.items()))))
    expected = corrupt(photos()[:N], "gaussian_noise", 2, seed=8).transpose(0, 3, 1, 2)
    assert np.array_equal(read()[0], expected) and not np.array_equal(first, expected)


def test_severity_zero_is_the_test_set(places: tuple[Path, Path]) -> None:
    images = clean()
    same, whose = corrupted("cifar10", "fog", 0, images, LABELS)
    assert same is images and whose == "cifar10, test part"
    with pytest.raises(ValueError, match="fog: expected a severity from 0"):
        corrupted("cifar10", "fog", 6, images, LABELS)
    with pytest.raises(ValueError, match="no corruption 'fogg'; did you mean 'fog'"):
        corrupted("cifar10", "fogg", 0, images, LABELS)


def test_without_the_archive_images_are_generated_and_kept(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    images, whose = read("contrast", 4)
    expected = corrupt(photos()[:N], "contrast", 4).transpose(0, 3, 1, 2)
    assert np.array_equal(images, expected) and images.flags.c_contiguous
    assert whose == "CIFAR-10-C, generated from the test part, version 1"
    assert [path.name for path in places[0].rglob("*") if path.is_file()] == ["severity-4.npy"]
    with monkeypatch.context() as nothing_generates:
        nothing_generates.setattr(source, "corrupt", None)
        assert np.array_equal(read("contrast", 4)[0], expected)


@pytest.mark.parametrize("published_arrays", [True, False])
def test_some_images_are_the_same_as_among_all(
    places: tuple[Path, Path], write: Callable, published_arrays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if published_arrays:
        write(places[1], TAR, as_tar(files()))
    monkeypatch.setattr(source, "CORRUPTIONS", ("gaussian_noise", "saturate"))
    rows = np.array([1, 4, 5, 11])
    every, whose = corrupted("cifar10", None, 3, clean(), LABELS)
    some, same = corrupted("cifar10", None, 3, clean(), LABELS, rows=rows)
    assert whose == same and every.shape == (2 * N, 3, 32, 32) and some.dtype == np.uint8
    assert np.array_equal(some, every.reshape(2, N, 3, 32, 32)[:, rows].reshape(-1, 3, 32, 32))
    assert np.array_equal(corrupted("cifar10", "saturate", 3, clean(), LABELS, rows=rows)[0], some[4:])
    assert np.array_equal(corrupted("cifar10", None, 0, clean(), LABELS, rows=rows)[0], clean()[rows])


def test_other_test_images_are_kept_apart(places: tuple[Path, Path]) -> None:
    other = 255 - clean()
    read("contrast", 4)
    assert np.array_equal(
        corrupted("cifar10", "contrast", 4, other, LABELS)[0].transpose(0, 2, 3, 1),
        corrupt(255 - photos()[:N], "contrast", 4),
    )


def test_a_cache_that_cannot_be_written_costs_only_time(places: tuple[Path, Path], write: Callable) -> None:
    write(places[0].parent, places[0].name, b"a file where the folder should be")
    with pytest.warns(UserWarning, match="severity-4.npy: cannot be written .*; these images will be made again"):
        images, _ = read("contrast", 4)
    assert np.array_equal(images.transpose(0, 2, 3, 1), corrupt(photos()[:N], "contrast", 4))


def test_the_order_of_severities_is_checked_on_rows_of_every_subset() -> None:
    arrays = published()
    upstream._check_order(arrays["saturate.npy"], "saturate", photos()[:N], "here")
    blocks = np.split(arrays["saturate.npy"], 5)
    with pytest.raises(BadData, match="grow over severities 3, 1, 2, 4, 5, found"):
        upstream._check_order(np.concatenate([blocks[i] for i in (2, 0, 1, 3, 4)]), "saturate", photos()[:N], "here")


def test_frost_needs_its_files_only_where_it_is_generated(places: tuple[Path, Path], register: Callable) -> None:
    from datasets.corruptions import weather

    weather.frost_overlays.cache_clear()
    register(dict.fromkeys(weather.FROST_FILES, b"not there"))
    with pytest.raises(DataNotFound, match="frost/frost1.png"):
        read("frost", 1)
