"""Readers of image files: what is written is read, and damaged files are refused in words that help."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from datasets import BadData, user_arrays
from datasets.images import read_cifar, read_idx, read_svhn

RANDOM = np.random.RandomState(0)


def idx_file(array: np.ndarray) -> bytes:
    """An idx file, written out by hand."""
    return b"\x00\x00\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}i", *array.shape) + array.tobytes()


@pytest.fixture
def grey() -> np.ndarray:
    return RANDOM.randint(0, 256, (7, 3, 2)).astype(np.uint8)


def test_idx_gives_what_was_written(tmp_path: Path, write: Callable, grey: np.ndarray) -> None:
    found = read_idx(write(tmp_path, "x.gz", gzip.compress(idx_file(grey))), grey.shape)
    assert found.dtype == np.uint8 and np.array_equal(found, grey)
    found[0] = 0  # its own memory


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda whole: gzip.compress(whole)[:-20], r"expected a gzipped idx file of bytes \[7, 3, 2\], found: .*end"),
        (lambda whole: b"no gzip", "found: .*[Nn]ot a gzip"),
        (lambda whole: gzip.compress(whole)[:-8] + b"12345678", "found: BadGzipFile: CRC"),
        (lambda whole: gzip.compress(b""), "the header of no byte in place of 00000803"),
        (lambda whole: gzip.compress(b"\x00\x00\x0d" + whole[3:]), "the header 00000d03.* in place of 00000803"),
        (lambda whole: gzip.compress(whole[:9]), "the header 000008030000000700 in place of 00000803"),
        (lambda whole: gzip.compress(whole[:-1]), "cannot reshape array of size 41"),
        (lambda whole: gzip.compress(whole + b"\x00"), "cannot reshape array of size 43"),
        (lambda whole: gzip.compress(idx_file(np.zeros((6, 3, 2), np.uint8))), "header 0000080300000006"),
        (lambda whole: gzip.compress(idx_file(np.zeros(7, np.uint8))), "header 00000801"),
    ],
)
def test_damaged_idx_is_refused(
    tmp_path: Path, write: Callable, grey: np.ndarray, damage: Callable, message: str
) -> None:
    path = write(tmp_path, "x.gz", damage(idx_file(grey)))
    with pytest.raises(BadData, match=message) as caught:
        read_idx(path, grey.shape)
    assert str(path) in str(caught.value) and "make data" in str(caught.value)


def archive(files: dict[str, bytes]) -> bytes:
    """A tar.gz with these files, and a link, a folder and a file beside them."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        folder = tarfile.TarInfo("b")
        folder.type = tarfile.DIRTYPE
        link = tarfile.TarInfo("b/link.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        for entry in (folder, link):
            tar.addfile(entry)
        for name, content in {"b/readme": b"words", **files}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def records(n: int, labels: int) -> tuple[bytes, np.ndarray, np.ndarray]:
    """A file of n records, and the images and last labels in them."""
    marks = RANDOM.randint(0, 10, (n, labels)).astype(np.uint8)
    images = RANDOM.randint(0, 256, (n, 3, 32, 32)).astype(np.uint8)
    return b"".join(bytes(m) + i.tobytes() for m, i in zip(marks, images)), images, marks[:, -1]


@pytest.mark.parametrize("labels", [1, 2])
def test_cifar_gives_the_members_in_the_requested_order(tmp_path: Path, write: Callable, labels: int) -> None:
    (first, x1, y1), (second, x2, y2) = records(3, labels), records(3, labels)
    path = write(tmp_path, "c.tar.gz", archive({"b/2.bin": second, "b/1.bin": first}))
    images, found = read_cifar(path, ["b/1.bin", "b/2.bin"], 3, labels)
    assert images.dtype == np.uint8 and found.dtype == np.int64
    assert np.array_equal(images, np.concatenate([x1, x2])) and np.array_equal(found, np.concatenate([y1, y2]))
    assert [p.name for p in tmp_path.iterdir()] == ["c.tar.gz"]  # nothing is unpacked


@pytest.mark.parametrize(
    ("members", "damage", "message"),
    [
        (
            ["b/1.bin"],
            lambda whole: whole[:-3000],
            "expected a whole tar.gz archive .*, found: EOFError: .*ended",
        ),
        (["b/1.bin"], lambda whole: whole[:200], "expected a whole tar.gz archive .*, found: EOFError: .*ended"),
        (
            ["b/1.bin"],
            lambda whole: whole[:-8] + b"12345678",
            "expected a whole tar.gz archive .*, found: BadGzipFile: CRC",
        ),
        (["b/1.bin"], lambda whole: b"<html>", "expected a whole tar.gz archive"),
        (["b/2.bin"], lambda whole: whole, "records of 3073 bytes in each of b/2.bin, found: KeyError: .*b/2.bin"),
        (["b/link.bin"], lambda whole: whole, "found: KeyError: .*b/link.bin"),
        (
            ["b/1.bin"],
            lambda whole: archive({"b/1.bin": bytes(3 * 3073 - 1)}),
            "3 records of 3073 bytes .*, found: ValueError: cannot reshape array of size 9218",
        ),
    ],
)
def test_damaged_archives_are_refused(
    tmp_path: Path, write: Callable, members: list[str], damage: Callable, message: str
) -> None:
    path = write(tmp_path, "c.tar.gz", damage(archive({"b/1.bin": records(3, 1)[0]})))
    with pytest.raises(BadData, match=message) as caught:
        read_cifar(path, members, 3, 1)
    assert str(path) in str(caught.value) and "make data" in str(caught.value)


def test_svhn_gives_images_first_and_zeros_as_zeros(tmp_path: Path) -> None:
    images = RANDOM.randint(0, 256, (32, 32, 3, 4)).astype(np.uint8)
    savemat(tmp_path / "s.mat", {"X": images, "y": np.array([[1], [10], [9], [2]], np.uint8)})
    found, labels = read_svhn(tmp_path / "s.mat", 4)
    assert labels.tolist() == [1, 0, 9, 2] and labels.dtype == np.int64
    assert found.shape == (4, 3, 32, 32) and found.flags.c_contiguous
    assert all(np.array_equal(found[i, c], images[:, :, c, i]) for i in range(4) for c in range(3))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.zeros((32, 32, 3, 3), np.uint8)}, r"bytes X \[32, 32, 3, 4\] .*, found: .*X uint8 \[32, 32, 3, 3\]"),
        ({"X": np.zeros((32, 32, 3, 4))}, "found: ValueError: X float64"),
        ({"y": np.zeros((4, 1), np.uint8)}, r"y \[4, 1\] from 1 to 10, found: ValueError"),
        ({"y": np.full((4, 1), 11, np.uint8)}, r"y \[4, 1\] from 1 to 10, found: ValueError"),
        ({"y": None}, "found: KeyError: .*y"),
    ],
)
def test_mislabelled_matlab_files_are_refused(tmp_path: Path, changes: dict, message: str) -> None:
    whole = {"X": np.zeros((32, 32, 3, 4), np.uint8), "y": np.ones((4, 1), np.uint8)} | changes
    savemat(tmp_path / "s.mat", {name: value for name, value in whole.items() if value is not None})
    with pytest.raises(BadData, match=message):
        read_svhn(tmp_path / "s.mat", 4)


@pytest.mark.parametrize("content", [b"", b"<html>", bytes(500)])
def test_damaged_matlab_files_are_refused(tmp_path: Path, write: Callable, content: bytes) -> None:
    with pytest.raises(BadData, match="expected a MATLAB file .*, found.*make data"):
        read_svhn(write(tmp_path, "s.mat", content), 4)


COLOURS = RANDOM.randint(0, 256, (5, 3, 32, 32)).astype(np.uint8)


@pytest.mark.parametrize(
    ("images", "shape"),
    [
        (COLOURS, (3, 32, 32)),
        (COLOURS.transpose(0, 2, 3, 1), (3, 32, 32)),
        (COLOURS[:, :1], (1, 32, 32)),
        (COLOURS[:, 0], (1, 32, 32)),
        (COLOURS[:, :1].transpose(0, 2, 3, 1), (1, 32, 32)),
    ],
)
def test_users_arrays_may_have_their_channels_last(tmp_path: Path, images: np.ndarray, shape: tuple) -> None:
    np.savez(tmp_path / "a.npz", images=images, labels=np.arange(5, dtype=np.uint8))
    found, labels = user_arrays.read(tmp_path / "a.npz", shape)
    assert np.array_equal(found, COLOURS[:, : shape[0]]) and found.flags.c_contiguous
    assert labels.tolist() == [0, 1, 2, 3, 4] and labels.dtype == np.int64


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": COLOURS}, "expected the arrays images and labels, found images"),
        (
            {"images": COLOURS / 255, "labels": np.arange(5)},
            r"expected images uint8 \[N, 3, 32, 32\] or \[N, 32, 32, 3\], found float64",
        ),
        ({"images": COLOURS[:, :, :28, :28], "labels": np.arange(5)}, r"found uint8 \[5, 3, 28, 28\]"),
        (
            {"images": COLOURS, "labels": np.arange(4)},
            r"whole-number labels \[5\], one for each image, found int64 \[4\]",
        ),
        ({"images": COLOURS, "labels": np.arange(5) / 2}, r"whole-number labels \[5\].*found float64"),
        ({"images": COLOURS, "labels": np.array([None] * 5)}, r"whole-number labels \[5\].*found object"),
    ],
)
def test_unfit_arrays_are_refused(tmp_path: Path, arrays: dict, message: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(BadData, match=message) as caught:
        user_arrays.read(tmp_path / "a.npz", (3, 32, 32))
    assert str(tmp_path / "a.npz") in str(caught.value)


def test_a_truncated_npz_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=COLOURS, labels=np.arange(5))
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-100])
    with pytest.raises(BadData, match="expected an npz file of plain arrays"):
        user_arrays.read(tmp_path / "a.npz", (3, 32, 32))
