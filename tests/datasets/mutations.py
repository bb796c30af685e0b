"""Every kind of data file in a small whole copy, ways to damage it, and contents made to mislead its reader."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

from datasets import uci
from datasets.corruptions import VERSION, corrupt, corrupted, weather
from datasets.images import read_subset
from tests.datasets.corrupting import LABELS, as_npy, as_tar, clean, files, prepared
from tests.datasets.image_files import SIZES, Arrays, random_images, tar_gz, upstream

Contents = dict[str, bytes]  # by name; the first is the file to damage
TERA = 10**12
FLIPS = 12  # bits in each format
INSIDE = ("flipped", "overwritten")


@dataclass(frozen=True)
class Format:
    """files: a whole copy and what lies beside it; read: what the loader makes of it; misleading: to be refused.

    checked: whether a checksum covers every value. registered: the registered contents; None where damaged files are
    taken for the registered ones, so that the reader has to find the damage. kept: made again where it cannot be read.
    source: the image set whose readers are to expect small files. inside: whether values in the middle are damaged too.
    seeds: how often all kinds of damage are drawn.
    """

    name: str
    files: Callable[[], Contents]
    read: Callable[[], list[np.ndarray]]
    misleading: Callable[[], list[bytes]] = list
    checked: bool = False
    registered: Contents | None = None
    kept: bool = False
    source: str | None = None
    inside: bool = True
    seeds: int = 1


def damaged(form: Format, content: bytes) -> list[tuple[str, bytes | None]]:
    """Return damages of a file: what was done, and the changed content (None: a folder takes the file's place)."""
    drawn = [found for seed in range(form.seeds) for found in _damaged(content, seed)]
    made = [*drawn, *(("misleading", crafted) for crafted in form.misleading())]
    return [(how, found) for how, found in made if found != content and (form.inside or how not in INSIDE)]


def _damaged(content: bytes, seed: int) -> Iterator[tuple[str, bytes | None]]:
    random = np.random.default_rng(seed)
    n = len(content)
    for _ in range(5):
        yield "truncated", content[: random.integers(1, n)]
    yield "truncated", content[:-1]
    for i in range(FLIPS):
        flipped = bytearray(content)
        flipped[random.integers(min(n, 200) if i < FLIPS // 2 else n)] ^= 1 << random.integers(8)  # half in the header
        yield "flipped", bytes(flipped)
    for fill in (bytes(16), random.bytes(16)):
        at = int(random.integers(n))
        yield "overwritten", (content[:at] + fill + content[at + 16 :])[:n]
    for other in OTHERS.values():
        k = int(random.integers(4, 64))
        yield "header swapped", other[:k] + content[k:]
        yield "another format", other
    yield "longer", content + random.bytes(20)
    yield "moved", b"\n" + content
    yield "empty", b""
    yield "folder", None


def npy(descr: object, shape: object, data: bytes = b"", version: bytes = b"\1\0") -> bytes:
    """Return an npy file with a header of any content."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}\n".encode()
    length = struct.pack("<H" if version == b"\1\0" else "<I", len(text))
    return b"\x93NUMPY" + version + length + text + data


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as held:
        for name, content in members.items():
            held.writestr(name, content)
    return stream.getvalue()


def marked(whole: bytes, offset: int, value: int) -> bytes:
    """A zip archive with a field of all its entries set: 0 is the flags, 2 the compression."""
    changed = bytearray(whole)
    for magic, first in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        at = whole.find(magic)
        while at >= 0:
            changed[at + first + offset : at + first + offset + 2] = struct.pack("<H", value)
            at = whole.find(magic, at + 1)
    return bytes(changed)


def _npz(compressed: bool, **changes: np.ndarray) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **(random_images("svhn", 20) | changes))
    return stream.getvalue()


def _users_arrays() -> list[bytes]:
    held = random_images("svhn", 20)
    images, labels = as_npy(held["images"]), as_npy(held["labels"])

    def with_images(content: bytes) -> bytes:
        return archive({"images.npy": content, "labels.npy": labels})

    whole = with_images(images)
    none = archive({"images.npy": as_npy(held["images"][:0]), "labels.npy": as_npy(held["labels"][:0])})
    return [
        none,
        with_images(labels),
        archive({"images.npy": labels, "labels.npy": images}),
        with_images(npy("|u1", (TERA, 3, 32, 32))),
        with_images(npy("|u1", (10**30, 3, 32, 32))),
        with_images(npy("|u1", (-20, 3, 32, 32))),
        with_images(npy("|u1", (20, 3, 32, 32), bytes(9))),
        with_images(npy("|O", (20, 3, 32, 32))),
        with_images(npy("|u1", "(" * 5000)),
        with_images(npy("|u1", (), b"1")),
        with_images(b"\x93NUMPY\7\7" + images[8:]),
        *map(with_images, (images[:4], b"", images + b"1")),
        with_images(images[:10] + images[10:].replace(b"'shape'", b"'shap\\'", 1)),
        archive({"images": images, "labels": labels}),
        archive({"images.npy": images}),
        archive({}),
        marked(whole, 0, 1),
        *(marked(whole, 2, method) for method in (99, 12, 14)),
        images,
        pickle.dumps(held),
        *(
            _npz(False, **{subset: value})
            for subset, value in (
                ("images", held["images"] / 255),
                ("images", held["images"].astype(">i4")),
                ("labels", held["labels"] / 2),
                ("labels", held["labels"].astype("m8[s]")),
                ("labels", held["labels"].astype(str)),
                ("labels", held["labels"].astype(np.uint64) - np.uint64(1)),
                ("labels", held["labels"][:-1]),
            )
        ),
    ]


def _idx() -> list[bytes]:
    n = SIZES["test"]
    sizes = [(n, 28, 28), (2**31 - 1,) * 3, (-n, 28, 28), (n, 28, 29)]
    return [
        *(gzip.compress(b"\0\0\x08\x03" + struct.pack(">3i", *size) + bytes(99)) for size in sizes),
        gzip.compress(b"\0\0\x0d\x03" + struct.pack(">3i", n, 28, 28) + bytes(n * 784)),
        gzip.compress(b"\0\0\x08\x03" + struct.pack(">3i", n, 28, 28) + bytes(n * 784 + 1)),
    ]


def _tar() -> list[bytes]:
    name, size = "cifar-10-batches-bin/test_batch.bin", SIZES["test"] * 3073
    entry = tarfile.TarInfo(name)
    entry.size = TERA
    huge = entry.tobuf(tarfile.GNU_FORMAT)
    entry.size, entry.type = size, tarfile.GNUTYPE_SPARSE
    sparse = entry.tobuf(tarfile.GNU_FORMAT)
    worded = tarfile.TarInfo.create_pax_global_header({"size": "many", "GNU.sparse.map": "a,b"})
    return [gzip.compress(content) for content in (huge, sparse + bytes(999), worded + huge, bytes(5000))] + [
        tar_gz({name: bytes(size - 1)}),
        tar_gz({name: bytes(size + 1)}),
        tar_gz({"test_batch.bin": bytes(size)}),
    ]


def _mat(compressed: bool, changes: dict | None = None) -> bytes:
    held, stream = random_images("svhn", SIZES["test"]), io.BytesIO()
    arrays = {
        "X": held["images"].transpose(2, 3, 1, 0),
        "y": np.where(held["labels"] == 0, 10, held["labels"]).astype(np.uint8)[:, None],
    } | (changes or {})
    savemat(stream, {name: value for name, value in arrays.items() if value is not None}, do_compression=compressed)
    return b"MATLAB 5.0 MAT-file".ljust(116) + stream.getvalue()[116:]  # without the time


def _matlab() -> list[bytes]:
    whole, n = _mat(False), SIZES["test"]
    sizes = struct.pack("<4i", 32, 32, 3, n)
    huge = whole.replace(sizes, struct.pack("<4i", 32, 32, 3, 2**31 - 1), 1)
    newer = b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM" + bytes(999)
    return [
        huge,
        newer,
        *(
            _mat(False, changes)
            for changes in (
                {"X": None},
                {"y": np.zeros((n, 1), np.uint8)},
                {"y": np.ones((n, 1))},
                {"y": {"a": 1}},
                {"X": "words"},
            )
        ),
    ]


SMALL = uci.Source("small", 40, 5, 4, 4)


def _table() -> bytes:
    rows = np.random.RandomState(3).normal(5, 2, (40, 5)).round(3)
    return b"".join(b" \t".join(b"%.3f" % value for value in row) + b" \n" for row in rows)


def _rows(first: int, last: int) -> bytes:
    return b"".join(b"%d\n" % i for i in range(first, last))


def _uci(*order: str) -> Contents:
    made = {"data.txt": _table(), "index_train_0.txt": _rows(0, 36), "index_test_0.txt": _rows(36, 40)}
    return {f"uci/small/{name}": made[name] for name in (*order, *(name for name in made if name not in order))}


def _cut() -> list[np.ndarray]:
    split = uci.load("small", 0, "gal2016")
    return [split.train.x, split.train.y, split.test.x, split.test.y]


def _published(first: str, form: str) -> Contents:
    if form == "tar":
        return {"cifar10_c/CIFAR-10-C.tar": as_tar(files())}
    held = files()
    return {f"cifar10_c/{name}": held[name] for name in (first, *(name for name in held if name != first))}


def _prepared(victim: str) -> Callable[[], Contents]:
    """Return the files of one corruption that tensorflow-datasets prepared, the victim first."""

    def made() -> Contents:
        held = {name: content for name, content in prepared().items() if "gaussian_noise" in name}
        return {name: held[name] for name in sorted(held, key=lambda name: not name.endswith(victim))}

    return made


def _misleading_arrays() -> list[bytes]:
    whole = files()["gaussian_noise.npy"]
    shapes = [
        (TERA, 32, 32, 3),
        (10**30, 32, 32, 3),
        (-60, -32, 32, 3),
        (2**62, 4, 32, 3),
        (0, 32, 32, 3),
        (),
        (60, 32, 32),
    ]
    return [
        *(npy("|u1", shape, bytes(60 * 3072)) for shape in shapes),
        *(npy("|u1", shape) for shape in shapes),
        npy("|O", (60, 32, 32, 3)),
        npy("|S0", (60, 32, 32, 3)),
        npy("|u1", "(" * 5000),
        whole[:9],
        npy([("a", "|u1")], (60, 32, 32, 3), bytes(60 * 3072)),
        whole[10:].replace(b"'descr'", b"'desc\\'", 1),
    ]


def _corrupted(name: str) -> list[np.ndarray]:
    return [corrupted("cifar10", name, 2, clean(), LABELS)[0]]


def _kept() -> Contents:
    images = np.ascontiguousarray(clean().transpose(0, 2, 3, 1))
    digest = hashlib.sha256(images).hexdigest()[:12]
    return {f"cifar10_c/generated-{VERSION}-{digest}/contrast-2.npy": as_npy(corrupt(images, "contrast", 2))}


def _frost() -> Contents:
    made = {}
    for file in weather.FROST_FILES:
        stream = io.BytesIO()
        pixels = np.random.default_rng(0).integers(0, 256, (200, 170, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(stream, "JPEG" if file.endswith("jpg") else "PNG")
        made[file] = stream.getvalue()
    return made


def _overlays() -> list[np.ndarray]:
    weather.frost_overlays.cache_clear()
    return list(weather.frost_overlays())


def _pictures() -> list[bytes]:
    whole = next(iter(_frost().values()))
    header = b"IHDR" + struct.pack(">2I", 2**31 - 1, 2**31 - 1) + whole[24:29]
    return [whole[:12] + header + struct.pack(">I", zlib.crc32(header)) + whole[33:]]


def _image_set(name: str, *first: str) -> Callable[[], Contents]:
    def made() -> Contents:
        subsets: dict[str, Arrays] = {"test": random_images(name, SIZES["test"])}
        if name.startswith("cifar"):
            subsets["train"] = random_images(name, SIZES["train"], seed=1)
        held = upstream(name, subsets, Path())
        return {file: held[file] for file in sorted(held, key=lambda file: not file.endswith(first))}

    return made


def _subset(name: str, subset: str = "test") -> Callable[[], list[np.ndarray]]:
    def read() -> list[np.ndarray]:
        found = read_subset(name, subset)
        return [found.images, found.labels]

    return read


OTHERS = {
    "page": b"<!DOCTYPE html><html><body>404 Not Found</body></html>\n" * 3,
    "zip": archive({"a.txt": b"words" * 30}),
    "npy": as_npy(np.arange(40)),
    "gzip": gzip.compress(b"words" * 30),
    "pickle": pickle.dumps({"images": [1] * 99}),
}

_MAT = "svhn/test_32x32.mat"
FORMATS = [
    Format("npz", lambda: {"svhn/train.npz": _npz(False)}, _subset("svhn", "train"), _users_arrays, True),
    Format("npz compressed", lambda: {"svhn/train.npz": _npz(True)}, _subset("svhn", "train"), checked=True),
    Format("idx images", _image_set("mnist", "images-idx3-ubyte.gz"), _subset("mnist"), _idx, True, source="mnist"),
    Format("idx labels", _image_set("mnist", "labels-idx1-ubyte.gz"), _subset("mnist"), _idx, True, source="mnist"),
    Format("cifar10", _image_set("cifar10", "gz"), _subset("cifar10"), _tar, True, source="cifar10"),
    Format("cifar100", _image_set("cifar100", "gz"), _subset("cifar100"), _tar, True, source="cifar100"),
    # A flipped bit may end the process of scipy's reader: only the registered checksum keeps such a file from it.
    Format("matlab", lambda: {_MAT: _mat(False)}, _subset("svhn"), _matlab, source="svhn", inside=False),
    Format("matlab compressed", lambda: {_MAT: _mat(True)}, _subset("svhn"), source="svhn", inside=False),
    Format(
        "matlab registered",
        lambda: {_MAT: _mat(False)},
        _subset("svhn"),
        checked=True,
        registered={_MAT: _mat(False)},
        source="svhn",
    ),
    Format(
        "table", lambda: _uci("data.txt"), _cut, lambda: [_table().replace(b".", b",", 1), _table()[:-1] + b"1e999\n"]
    ),
    Format(
        "row numbers",
        lambda: _uci("index_train_0.txt"),
        _cut,
        lambda: [_rows(0, 35), _rows(1, 37), _rows(0, 35) + b"1e999\n", b"0\n" * 36],
    ),
    Format("a registered file", lambda: _uci("data.txt"), _cut, checked=True, registered=_uci("data.txt")),
    Format(
        "published archive",
        lambda: _published("", "tar"),
        lambda: _corrupted("gaussian_noise"),
        lambda: [as_tar(files(gaussian_noise=content)) for content in _misleading_arrays()],
    ),
    Format(
        "published array",
        lambda: _published("gaussian_noise.npy", "flat"),
        lambda: _corrupted("gaussian_noise"),
        _misleading_arrays,
    ),
    Format(
        "published labels",
        lambda: _published("labels.npy", "flat"),
        lambda: _corrupted("gaussian_noise"),
        _misleading_arrays,
        True,
    ),
    Format(
        "prepared images", _prepared("test.array_record-00000-of-00001"), lambda: _corrupted("gaussian_noise"), seeds=3
    ),
    Format(
        "description of prepared images", _prepared("dataset_info.json"), lambda: _corrupted("gaussian_noise"), seeds=3
    ),
    Format("kept images", _kept, lambda: _corrupted("contrast"), kept=True),
    Format("picture", _frost, _overlays, _pictures),
]
