"""Small image sets that tests write: as a user's arrays, and in the files that upstream publishes."""

from __future__ import annotations

import gzip
import io
import tarfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.io import savemat

from datasets.images import SOURCES, Source

Arrays = dict[str, np.ndarray]  # "images" and "labels"
SIZES = {"train": 200, "test": 100}
BATCHES = 5  # files of CIFAR-10's training subset


def random_images(name: str, n: int, seed: int = 0) -> Arrays:
    """Return n random images with classes of equal frequency."""
    random = np.random.RandomState(seed)
    return {
        "images": random.randint(0, 256, (n, *SOURCES[name].shape)).astype(np.uint8),
        "labels": random.permutation(np.arange(n) % SOURCES[name].n_classes),
    }


def upstream(name: str, subsets: dict[str, Arrays], folder: Path) -> dict[str, bytes]:
    """Registered files of a set that hold these subsets, in the layout that its authors publish; folder: for drafts."""
    files = SOURCES[name].files
    if name == "svhn":
        return {files[subset][0]: _matlab(held, folder / "draft.mat") for subset, held in subsets.items()}
    if name in ("cifar10", "cifar100"):
        return {files["test"][0]: tar_gz(_members(name, subsets))}
    return {file: content for subset, held in subsets.items() for file, content in zip(files[subset], _idx(held))}


def few(name: str) -> Source:
    """Return a source whose readers expect the numbers of images in SIZES."""
    read = {}
    for subset, reader in SOURCES[name].read.items():
        n, known = SIZES[subset], reader.keywords
        first = (n, *reader.args[1:]) if reader.args else ()
        if "records" in known:
            known = {**known, "records": n // len(known["members"])}
        read[subset] = partial(reader.func, *first, **({**known, "n": n} if "n" in known else known))
    return replace(SOURCES[name], read=read)


def _idx(held: Arrays) -> tuple[bytes, bytes]:
    n, side = len(held["labels"]).to_bytes(4, "big"), (28).to_bytes(4, "big")
    return (
        gzip.compress(b"\0\0\x08\x03" + n + side + side + held["images"].tobytes()),
        gzip.compress(b"\0\0\x08\x01" + n + held["labels"].astype(np.uint8).tobytes()),
    )


def _matlab(held: Arrays, draft: Path) -> bytes:
    labels = np.where(held["labels"] == 0, 10, held["labels"]).astype(np.uint8)
    savemat(draft, {"X": held["images"].transpose(2, 3, 1, 0), "y": labels[:, None]})
    return draft.read_bytes()


def _members(name: str, subsets: dict[str, Arrays]) -> dict[str, bytes]:
    before = b"\7" if name == "cifar100" else b""  # the coarse label
    rows = {
        subset: [before + bytes([y]) + x.tobytes() for x, y in zip(held["images"], held["labels"])]
        for subset, held in subsets.items()
    }
    if name == "cifar100":
        return {f"cifar-100-binary/{subset}.bin": b"".join(found) for subset, found in rows.items()}
    size = SIZES["train"] // BATCHES
    batches = {
        f"cifar-10-batches-bin/data_batch_{i + 1}.bin": b"".join(rows["train"][size * i : size * (i + 1)])
        for i in range(BATCHES)
    }
    return {**batches, "cifar-10-batches-bin/test_batch.bin": b"".join(rows["test"])}


def tar_gz(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for member, content in members.items():
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()
