"""Read image sets by name and subset, as uint8 arrays that a process reads once.

Formats: idx (MNIST and similar sets), CIFAR's binary version, and MATLAB files of SVHN. They need small readers only:
torchvision would add its import, and for CIFAR unpickling (its Python version), which runs code.
"""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from . import user_arrays
from .checks import GET_AGAIN, DataNotFound, check_labels, reading, stamped
from .fetch import Folder, at_hand, locate
from .image_schemes import SUBSETS

Read = Callable[..., tuple[np.ndarray, np.ndarray]]  # paths -> images [N, C, H, W], labels [N]
GREY = (1, 28, 28)
UNSIGNED_BYTE = 0x08
SIDE = 32
COLOUR = (3, SIDE, SIDE)
CHUNK = 2**20


def read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Return the uint8 array [*shape] of a gzipped idx file.

    Format: two zero bytes, type, number of axes, each axis's length as a big-endian int32, then the values.
    Raises BadData for another header, and for a file that is truncated, damaged or too long.
    """
    header = bytes([0, 0, UNSIGNED_BYTE, len(shape)]) + np.array(shape, ">i4").tobytes()
    with reading(path, f"a gzipped idx file of bytes {list(shape)}"), gzip.open(path) as stream:
        if (start := stream.read(len(header))) != header:
            raise ValueError(f"the header {start.hex() or 'of no byte'} in place of {header.hex()}")
        return np.frombuffer(bytearray(stream.read()), np.uint8).reshape(shape)


def read_cifar(path: Path, members: Sequence[str], records: int, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images uint8 [N, 3, 32, 32] and labels int64 [N] of members of a tar.gz archive, one after another.

    records: in each member, of label bytes and an image; labels: bytes before each image, the last of which is the
    label (CIFAR-100: coarse, fine). Nothing is unpacked to disk. Raises BadData on a damaged archive, a missing member,
    a member of another length.
    """
    size = labels + int(np.prod(COLOUR))
    contents: dict[str, np.ndarray] = {}
    with (
        reading(path, f"a whole tar.gz archive with {records} records of {size} bytes in each of {', '.join(members)}"),
        gzip.open(path) as stream,
        tarfile.open(fileobj=stream, mode="r:") as archive,
    ):
        for entry in archive:
            if entry.isfile() and entry.name in members:
                content = archive.extractfile(entry)
                assert content is not None  # it is a file
                contents[entry.name] = np.frombuffer(content.read(), np.uint8).reshape(records, size)
        while stream.read(CHUNK):  # gzip compares the checksum at the end
            pass
        rows = np.concatenate([contents[member] for member in members])
    return rows[:, labels:].reshape(-1, *COLOUR), rows[:, labels - 1].astype(np.int64)


def read_svhn(path: Path, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images uint8 [n, 3, 32, 32] and labels int64 [n] of a file with X [32, 32, 3, n] and y [n, 1].

    The digit 0 is labelled 10 in the file and 0 here. Raises BadData.
    """
    from scipy.io import loadmat  # here, since it takes a while to load

    with reading(path, f"a MATLAB file of bytes X {[SIDE, SIDE, 3, n]} and y {[n, 1]} from 1 to 10"):
        content = loadmat(path, variable_names=("X", "y"))
        images, labels = content["X"], content["y"]
        shapes = images.shape == (SIDE, SIDE, 3, n) and labels.shape == (n, 1)
        if not shapes or {images.dtype, labels.dtype} != {np.dtype(np.uint8)} or labels.min() < 1 or labels.max() > 10:
            raise ValueError(f"X {images.dtype} {list(images.shape)} and y {labels.dtype} {list(labels.shape)}")
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), labels[:, 0].astype(np.int64) % 10


@dataclass(frozen=True)
class Source:
    """Image set: registered files and reader of each subset; sizes: number of images in each subset."""

    shape: tuple[int, int, int]
    origin: str
    sizes: dict[str, int]
    files: Mapping[str, tuple[str, ...]]
    read: Mapping[str, Read]
    n_classes: int = 10


@dataclass(frozen=True, eq=False)
class Subset:
    """Images uint8 [N, C, H, W], labels int64 [N], and their source in words: "kmnist, test part, 10000 images"."""

    images: np.ndarray
    labels: np.ndarray
    source: str


def _idx(folder: str, origin: str, train: bool = True) -> Source:
    sizes = {"train": 60000, "test": 10000} if train else {"test": 10000}
    stem = {"train": "train", "test": "t10k"}
    files = {
        subset: tuple(f"{folder}/{stem[subset]}-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1"))
        for subset in sizes
    }
    return Source(GREY, origin, sizes, files, {subset: partial(_read_idx, n) for subset, n in sizes.items()})


def _read_idx(n: int, images: Path, labels: Path) -> tuple[np.ndarray, np.ndarray]:
    return read_idx(images, (n, *GREY[1:]))[:, None], read_idx(labels, (n,)).astype(np.int64)


def _cifar(archive: str, members: dict[str, tuple[str, ...]], labels: int, n_classes: int) -> Source:
    files, sizes = dict.fromkeys(SUBSETS, (archive,)), {"train": 50000, "test": 10000}
    read = {
        subset: partial(read_cifar, members=names, records=sizes[subset] // len(names), labels=labels)
        for subset, names in members.items()
    }
    return Source(COLOUR, "Krizhevsky 2009, binary version", sizes, files, read, n_classes)


SOURCES: dict[str, Source] = {
    "mnist": _idx("mnist", "LeCun, Cortes and Burges 1998"),
    "fashion_mnist": _idx("fashion_mnist", "Xiao, Rasul and Vollgraf 2017"),
    "kmnist": _idx("kmnist", "Clanuwat et al. 2018"),
    "notmnist": _idx("notmnist", "Bulatov 2011, files of davidflanagan/notMNIST-to-MNIST", train=False),
    "cifar10": _cifar(
        "cifar10/cifar-10-binary.tar.gz",
        {
            "train": tuple(f"cifar-10-batches-bin/data_batch_{i}.bin" for i in range(1, 6)),
            "test": ("cifar-10-batches-bin/test_batch.bin",),
        },
        1,
        10,
    ),
    "cifar100": _cifar(
        "cifar100/cifar-100-binary.tar.gz",
        {subset: (f"cifar-100-binary/{subset}.bin",) for subset in SUBSETS},
        2,
        100,
    ),
    "svhn": Source(
        COLOUR,
        "Netzer et al. 2011, cropped digits",
        {"train": 73257, "test": 26032},
        {subset: (f"svhn/{subset}_32x32.mat",) for subset in SUBSETS},
        {"train": partial(read_svhn, n=73257), "test": partial(read_svhn, n=26032)},
    ),
}


def read_subset(name: str, subset: str, root: Folder = None) -> Subset:
    """Return a subset of an image set, from the user's arrays if there are any, else from the registered files.

    Calls share the arrays; do not write to them. Raises DataNotFound, BadData.
    """
    source = SOURCES[name]
    user_arrays.note_unread(SOURCES, SUBSETS)
    arrays = user_arrays.find(name, subset)
    try:
        if not arrays and subset not in source.files:
            raise DataNotFound(f"data set {name}: no file of a {subset} subset is known")
        paths = [arrays] if arrays else [locate(file, root) for file in source.files[subset]]
    except DataNotFound as error:
        raise DataNotFound(f"{error}\nOr {user_arrays.how(name, subset, source.shape)}") from error
    remedy = user_arrays.WRITE_AGAIN if arrays else GET_AGAIN
    return _read(name, subset, arrays is not None, *(stamped(path, remedy) for path in paths))


def context_subsets(name: str, root: Folder = None, whole: bool = False) -> list[Subset]:
    """Return the subsets that contexts draw from. Raises DataNotFound, BadData."""
    return [read_subset(name, subset, root) for subset in which_for_contexts(name, root, whole)]


def which_for_contexts(name: str, root: Folder = None, whole: bool = False) -> tuple[str, ...]:
    """Return the subsets for contexts: "train", or "test" if only its files are there; `whole`: both."""
    files = SOURCES[name].files
    subsets = tuple(
        subset
        for subset in SUBSETS
        if user_arrays.find(name, subset) or (subset in files and all(at_hand(file, root) for file in files[subset]))
    )
    return (subsets or SUBSETS) if whole else (subsets or SUBSETS)[:1]


@lru_cache(maxsize=len(SOURCES) * len(SUBSETS))
def _read(name: str, subset: str, users: bool, *stamped: tuple[Path, int, int]) -> Subset:
    """Read a subset; cached by path, size and time of change of its files."""
    source, paths = SOURCES[name], [path for path, *_ in stamped]
    images, labels = user_arrays.read(paths[0], source.shape) if users else source.read[subset](*paths)
    check_labels(labels, source.n_classes, " and ".join(map(str, paths)))
    origin = f"{name}, {subset} part" + (", brought as arrays" if users else "")  # as records have it
    return Subset(images, labels, f"{origin}, {len(images)} images")
