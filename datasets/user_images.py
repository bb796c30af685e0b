"""Users' image sets of any shape: for each subset one npz file with images and labels, or two npy files."""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from numbers import Integral, Real
from pathlib import Path
from typing import IO

import numpy as np

from . import registry
from .checks import BadData, check_finite, check_labels, check_one_label_each, reading, stamped
from .contract import Arrays, Description, EvaluationSet, Pixels, Split, classified
from .fetch import absolute
from .npy import member, read_header

CORRECT = "correct the file, or how add_images describes it"
WIDE = "write wider whole numbers as float32, divided by the largest value that they can have"
CHANNELS = 4  # at most, where only the order of the axes could explain more
SCALE = 50  # bytes are 255 times what they are as fractions
Paths = str | os.PathLike | Sequence[str | os.PathLike]
Source = tuple[Path, ...]  # one npz, or images and labels as npy


@dataclass(frozen=True)
class Form:
    """Options for reading arrays. They are part of the data version: changing them changes the run's key."""

    classes: int
    channels_last: bool
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None

    @property
    def version(self) -> str:
        return "1-" + hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]


def add_images(
    name: str,
    *,
    train: Paths,
    test: Paths,
    classes: int,
    channels_last: bool = False,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    ood: Mapping[str, Paths] | None = None,
) -> None:
    """Add a data set of images [N, H, W], [N, C, H, W] or, if `channels_last`, [N, H, W, C], with labels 0 to classes -
    1.

    train, test: an .npz file with the arrays images and labels, or a pair of .npy files. Bytes enter the network as (x
    / 255 - mean) / std, by channel (one number: of the only one); without mean and std by those of the training images.
    Other numbers enter as (x - mean) / std, or unchanged without both. ood: images of other sources by name, each the
    evaluation set "ood-<name>". More than 4 channels are refused where the other order of the axes would give 4 or
    fewer. Raises ValueError for invalid options; files are read on first use, and raise BadData.
    """
    if (mean is None) != (std is None):
        raise ValueError(f"data set {name}: expected both mean and std, or none, found one of them")
    if not isinstance(ood, Mapping | None):
        raise ValueError(f"data set {name}: ood: expected files by name, as {{'name': 'other.npz'}}, found {ood!r}")
    means, stds = _of_channels(mean), _of_channels(std)
    for what, values, least in (("a finite mean", means, -math.inf), ("std above 0", stds, 0.0)):
        wrong = [value for value in values or () if not least < value < math.inf]
        if wrong:
            raise ValueError(f"data set {name}: expected {what}, found {wrong[0]}")
    if not isinstance(classes, Integral) or classes < 2:
        raise ValueError(f"data set {name}: classes: expected how many there are, two or more, found {classes!r}")
    form = Form(int(classes), channels_last, means, stds)
    sources = {"train": _source(name, train), "test": _source(name, test)}
    sources |= {f"ood-{other}": _source(name, paths, labels=False) for other, paths in (ood or {}).items()}
    files = [
        registry.UserFile(f"{use} {path.stem}" if len(source) > 1 else use, path, "training" if use == "train" else use)
        for use, source in sources.items()
        for path in source
    ]
    registry.add(name, partial(load, name, sources, form), files=files, describe=partial(describe, name, sources, form))


def _of_channels(values: float | Sequence[float] | None) -> tuple[float, ...] | None:
    if values is None:
        return None
    return (float(values),) if isinstance(values, Real) else tuple(map(float, values))  # type: ignore[arg-type]


def describe(name: str, sources: dict[str, Source], form: Form) -> Description:
    """Describe the images from the headers of their arrays. Raises BadData."""
    shapes = {subset: _shape(sources[subset], form) for subset in ("train", "test")}
    channels = shapes["train"][1]
    for what, values in (("mean", form.mean), ("std", form.std)):
        if values is not None and len(values) != channels:
            raise BadData(
                f"{sources['train'][0]}: expected a {what} for each channel of the images, {channels}, found "
                f"{len(values)}; correct {what} of add_images"
            )
    about = name, "classification", form.version, "", ("",), 1, form.classes, shapes["train"][1:]
    sizes, validated = (shapes["train"][0], shapes["test"][0]), "validation" in sources
    return Description(*about, *sizes, "user's images", (), validated=validated)


def load(name: str, sources: dict[str, Source], form: Form, split: int) -> Split:
    """Return the only split. Raises BadData."""
    train, test = (_labelled(sources[subset], form) for subset in ("train", "test"))
    _check_like(sources["test"], test.x, train.x)
    pixels = None
    if train.x.dtype == np.uint8:
        mean, std = (form.mean, form.std) if form.mean and form.std is not None else statistics(train.x)
        if max(*mean, *std) > 1:
            raise BadData(
                f"{sources['train'][0]}: expected mean and std of bytes / 255, at most 1, found {max(*mean, *std):g}; "
                f"divide them by 255"
            )
        pixels = Pixels(mean, std)
    elif form.mean:
        train, test = (Arrays(_scaled(arrays.x, form), arrays.y) for arrays in (train, test))
    others = {
        name: partial(_ood, name, source, form, train.x)
        for name, source in sources.items()
        if name not in ("train", "test")
    }
    about, subsets = (name, form.version, split, "", form.classes), {"train": train, "test": test}
    return classified(*about, subsets, evaluations=others, pixels=pixels)


def statistics(images: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation (1 if constant) of each channel of bytes [N, C, H, W] / 255, by exact sums."""
    n = images.size // images.shape[1]
    squares = np.einsum("nchw,nchw->c", images, images, dtype=np.int64)  # needs no wider copy of the images
    sums = list(zip(images.sum((0, 2, 3), dtype=np.int64).tolist(), squares.tolist()))
    return tuple(s / n / 255 for s, _ in sums), tuple(
        math.sqrt(max(n * q - s * s, 0)) / n / 255 or 1.0 for s, q in sums
    )


def _labelled(source: Source, form: Form) -> Arrays:
    images, labels = read(source, form)
    if labels is None:
        raise BadData(f"{source[0]}: expected the arrays images and labels, found no labels; {CORRECT}")
    check_labels(labels, form.classes, str(source[-1]))
    return Arrays(images, labels)


def _ood(name: str, source: Source, form: Form, like: np.ndarray) -> EvaluationSet:
    images, _ = read(source, form)
    _check_like(source, images, like)
    images = _scaled(images, form) if form.mean and images.dtype != np.uint8 else images
    return EvaluationSet(name, "ood", name.replace("-", "=", 1), images, None, source[0].name)


def _check_like(source: Source, images: np.ndarray, like: np.ndarray) -> None:
    """Raise BadData unless images have the training images' shape and type, and were divided by 255 if these were."""
    if images.shape[1:] != like.shape[1:] or images.dtype != like.dtype:
        raise BadData(
            f"{source[0]}: expected images {like.dtype} [N, {', '.join(map(str, like.shape[1:]))}] as the training "
            f"images, found {images.dtype} {list(images.shape)}; {CORRECT}"
        )
    largest, expected = (max(-float(each.min()), float(each.max())) for each in (images, like))
    if 0 < min(largest, expected) < max(largest, expected) / SCALE:
        raise BadData(
            f"{source[0]}: expected images on the scale of the training images, up to {expected:g}, found up to "
            f"{largest:g}; {CORRECT}"
        )


def _scaled(images: np.ndarray, form: Form) -> np.ndarray:
    mean, std = (np.array(values, np.float32)[:, None, None] for values in (form.mean, form.std))
    return (images - mean) / std


def read(source: Source, form: Form) -> tuple[np.ndarray, np.ndarray | None]:
    """Return images [N, C, H, W], bytes or float32, and labels or None. Raises BadData."""
    return _read(tuple(stamped(path, CORRECT) for path in source), form)


@lru_cache(maxsize=8)
def _read(stamps: tuple[tuple[Path, int, int], ...], form: Form) -> tuple[np.ndarray, np.ndarray | None]:
    source = tuple(path for path, *_ in stamps)
    shape = _shape(source, form)
    with _stream(source, "images") as stream:
        images = np.lib.format.read_array(stream, allow_pickle=False)
    images = images.transpose(0, 3, 1, 2) if form.channels_last and images.ndim == 4 else images
    with np.errstate(over="ignore"):
        images = np.ascontiguousarray(images.reshape(shape), np.uint8 if images.dtype == np.uint8 else np.float32)
    check_finite(images, str(source[0]), CORRECT)
    if not _has_labels(source):
        return images, None
    with _stream(source, "labels") as stream:
        check_one_label_each(read_header(stream), shape[0], str(source[-1]), CORRECT)
    with _stream(source, "labels") as stream:
        labels = np.lib.format.read_array(stream, allow_pickle=False)
    check_labels(labels, form.classes, str(source[-1]), all_occur=False)
    return images, labels.astype(np.int64)


def _shape(source: Source, form: Form) -> tuple[int, ...]:
    with _stream(source, "images") as stream:
        header = read_header(stream)
    if (
        header.dtype.kind not in "iuf"
        or len(header.shape) not in (3, 4)
        or 0 in header.shape
        or (header.dtype.kind in "iu" and header.dtype != np.uint8)
    ):
        raise BadData(
            f"{source[0]}: expected images [N, H, W] or with channels, of bytes or real numbers, found {header}; "
            f"{WIDE if header.dtype.kind in 'iu' and header.dtype.itemsize > 1 else CORRECT}"
        )
    n, *axes = header.shape
    shape = (1, *axes) if len(axes) == 2 else (axes[2], axes[0], axes[1]) if form.channels_last else tuple(axes)
    if shape[0] > CHANNELS >= (axes[0] if form.channels_last else axes[2]):
        raise BadData(
            f"{source[0]}: expected {'[N, H, W, C]' if form.channels_last else '[N, C, H, W]'} since channels_last is "
            f"{form.channels_last}, found {list(header.shape)}, which would be {shape[0]} channels of {shape[1]} x "
            f"{shape[2]} pixels; pass channels_last={not form.channels_last} to add_images, or move the axes"
        )
    return n, *shape


@contextmanager
def _stream(source: Source, name: str) -> Iterator[IO[bytes]]:
    path = source[-1 if name == "labels" else 0]
    with reading(path, f"{name} as an .npy file" if _alone(path) else f"the array {name} in an .npz file", CORRECT):
        if _alone(path):
            with open(path, "rb") as stream:
                yield stream
        else:
            with zipfile.ZipFile(path) as archive:
                stored = [each.removesuffix(".npy") for each in archive.namelist()]
                if name not in stored:
                    raise BadData(
                        f"{path}: expected the array {name}, found {', '.join(stored[:20]) or 'none'}; {CORRECT}"
                    )
                with member(archive, name) as stream:
                    yield stream


def _has_labels(source: Source) -> bool:
    if _alone(source[0]):
        return len(source) > 1
    with reading(source[0], "an .npz file", CORRECT), zipfile.ZipFile(source[0]) as archive:
        return "labels.npy" in archive.namelist()


def _alone(path: Path) -> bool:
    return path.suffix.lower() == ".npy"


def _source(name: str, paths: Paths, labels: bool = True) -> Source:
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files = tuple(map(absolute, listed))
    ends = [path.suffix.lower() for path in files]
    if ends not in ([".npz"], [".npy", ".npy"]) and (labels or ends != [".npy"]):
        folder = next((path for path in files if path.is_dir()), None)
        found = f"the folder {folder}: stack its images into one array, with one of labels" if folder else ""
        raise ValueError(
            f"data set {name}: expected one .npz file, or .npy files of images and labels, found "
            f"{found or ', '.join(map(str, files))}"
        )
    return files
