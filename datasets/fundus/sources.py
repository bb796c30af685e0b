"""Sources of graded photographs: a user's folder as upstream publishes it, or mosaics of 256 pixels.

$FVI_RETINOPATHY names a folder with a subfolder for each available set:

eyepacs  Kaggle's: trainLabels.csv and train/*.jpeg, and perhaps retinopathy_solution.csv and test/*.jpeg
         (validation: usage Public, test: Private); or what tensorflow-datasets has prepared of it (`prepared`)
aptos    Kaggle's: train.csv and train_images/*.png
idrid    the challenge's part B, "B. Disease Grading"

Without the variable mosaics are searched for, `retina/` in the cache and the mirrors, with the SHA-256 of known.txt.
"""

from __future__ import annotations

import csv
import hashlib
import io
import unicodedata
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import fetch
from ..checks import BadData, DataNotFound, decoded, reading, stamped
from ..fetch import Folder
from ..notices import say
from .source import AGAIN, Source, graded, prepared

if TYPE_CHECKING:
    from PIL import Image

VARIABLE = "FVI_RETINOPATHY"
NAMES = ("eyepacs", "aptos", "idrid")
LABELS = "retina/labels.csv"
TILE, ACROSS = 256, 30  # pixels of a tile, tiles in a row of a mosaic
WIDE = 65535  # the largest value of a 16-bit pixel
READING = b"2"  # 2: upright, 16-bit grey as 8 bits; part of the digest of users' folders
NAMED = 8  # entries of a folder that a message names
HIDDEN = "._"  # begins the names of the files that macOS writes beside others on foreign disks
_WHERE = {
    "eyepacs": "Kaggle's diabetic-retinopathy-detection (trainLabels.csv, train/*.jpeg)",
    "aptos": "Kaggle's aptos2019-blindness-detection (train.csv, train_images/*.png)",
    "idrid": "IDRiD, part B, disease grading (the folder as it is unpacked)",
}


def folder_of(name: str) -> Path | None:
    """Return the user's folder of a set, or None. Raises BadData if FVI_RETINOPATHY names no folder."""
    root = fetch.users_folder(VARIABLE)
    path = root / name if root else None
    return path if path and path.is_dir() else None


def find(name: str, root: Folder = None) -> Source:
    """Return the photographs of a set. Raises DataNotFound, BadData."""
    folder = folder_of(name)
    if folder is None:
        return _mosaics(name, *(_known(file, name, root) for file in (LABELS, *_files(name))))
    tables = (
        path
        for pattern in ("*.csv", "2. Groundtruths/*.csv", "*/2. Groundtruths/*.csv")
        for path in folder.glob(pattern)
        if not path.name.startswith(HIDDEN)
    )
    return _read(name, folder, *(stamped(path, AGAIN) for path in sorted(tables)))


def content(name: str) -> dict[str, str]:
    """Return the digest of a user's folder for a run's key; empty if known files are used."""
    return {f"{name}/images": find(name).digest} if folder_of(name) else {}


def forget() -> None:
    """Free the cached mosaics, some hundred megabytes."""
    _opened.cache_clear()


def at_hand(name: str, root: Folder = None) -> str:
    """Return why a set is not available; empty if it is."""
    try:
        if folder_of(name) is None:
            for file in (LABELS, *_files(name)):
                _known(file, name, root)
        else:
            find(name, root)
    except (DataNotFound, BadData) as error:
        return str(error)
    return ""


def opened(path: Path) -> Image.Image:
    """Read an image, upright by its EXIF orientation, 16-bit grey as 8 bits. Raises BadData."""
    from PIL import Image, ImageOps  # here, since most commands read no image

    with reading(path, "a whole image", AGAIN):
        image = Image.open(path)
        image.load()
        return ImageOps.exif_transpose(_in_bytes(path, image))


def _in_bytes(path: Path, image: Image.Image) -> Image.Image:
    """Scale wider pixels to 8 bits; Pillow would clip them at 255, to white."""
    from PIL import Image

    if not image.mode.startswith(("I", "F")):
        return image
    values = np.asarray(image)
    if image.mode == "F" or values.min() < 0 or values.max() > WIDE:
        raise BadData(
            f"{path}: expected 8 or 16 bits for each pixel, found mode {image.mode} with values "
            f"from {values.min():g} to {values.max():g}; convert it to 8 bits"
        )
    grey = Image.fromarray(((values.astype(np.int64) * 255 + WIDE // 2) // WIDE).astype(np.uint8))
    grey.info.update(image.info)
    grey.getexif().update(image.getexif())
    return grey


def table(path: Path, *columns: str) -> list[tuple[str, ...]]:
    """Return columns of a CSV file with a header. Raises BadData."""
    with (
        reading(path, f"a table with the columns {', '.join(columns)}", AGAIN),
        io.StringIO(decoded(path), newline="") as file,
    ):
        rows = csv.DictReader(file, strict=True)
        names = [name.strip() for name in rows.fieldnames or ()]
        if not set(columns) <= set(names):
            found = ", ".join(names)[:100] or "none"
            raise BadData(f"{path}: expected the columns {', '.join(columns)}, found {found}; {AGAIN}")
        rows.fieldnames = names
        return [tuple(row[name] or "" for name in columns) for row in rows]


def digest_of(tables: list[Path], images: list[Path]) -> str:
    """Return 16 digits of the SHA-256 over the content of tables and the names and sizes of images."""
    digest = hashlib.sha256(READING)
    for path in tables:
        with reading(path, "a file", AGAIN):
            digest.update(path.read_bytes())
    for path in images:
        with reading(path, "an image", AGAIN):
            digest.update(f"\0{path.name} {path.stat().st_size}".encode())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=8)
def _read(name: str, folder: Path, *tables: tuple[Path, int, int]) -> Source:
    """A user's folder, looked through once for every state of its tables."""
    if name == "eyepacs" and not (folder / "trainLabels.csv").exists():
        return prepared(folder)
    return _folder(name, folder)


def _folder(name: str, folder: Path) -> Source:
    """Read upstream's files, which must hold exactly the graded images."""
    tables, photographs = {"eyepacs": _eyepacs, "aptos": _aptos, "idrid": _idrid}[name](folder)
    where = " and ".join(map(str, tables))
    ids, grades = graded(where, [(image, grade) for image, (grade, _, _) in photographs.items()])
    paths = [photographs[image][1] for image in ids]
    parts = tuple(photographs[image][2] for image in ids)
    for path in {path.parent for path in paths}:
        stored = _files_of(path, where, [own for own in paths if own.parent == path])
        paths = [stored.get(own, own) for own in paths]
    image, official, digest = lambda i: opened(paths[i]), parts if any(parts) else (), digest_of(tables, paths)
    return Source(name, f"{name}, the user's folder", ids, grades, image, official, digest=digest)


Photographs = dict[str, tuple[str, Path, str]]  # by id: grade, path, official part


def _eyepacs(folder: Path) -> tuple[list[Path], Photographs]:
    labels, solution = folder / "trainLabels.csv", folder / "retinopathy_solution.csv"
    rows = [(image, grade, "train") for image, grade in _once(labels, "image", "level")]
    tables = [labels, solution] if solution.exists() else [labels]
    usage = {"Public": "validation", "Private": "test"}
    for image, grade, used in _once(solution, "image", "level", "Usage") if solution in tables else ():
        if used not in usage:
            raise BadData(f"{solution}: expected the usage Public or Private of {image!r}, found {used!r}; {AGAIN}")
        rows.append((image, grade, usage[used]))
    photographs = {}
    for image, grade, part in rows:
        if image in photographs:
            raise BadData(f"{solution}: expected other images than in {labels.name}, found {image!r}; {AGAIN}")
        path = folder / ("train" if part == "train" else "test") / f"{image}.jpeg"
        photographs[image] = (grade, path, part if solution in tables else "")
    return tables, photographs


def _aptos(folder: Path) -> tuple[list[Path], Photographs]:
    labels, images = folder / "train.csv", folder / "train_images"
    rows = _once(labels, "id_code", "diagnosis")
    return [labels], {image: (grade, images / f"{image}.png", "") for image, grade in rows}


def _idrid(folder: Path) -> tuple[list[Path], Photographs]:
    folder = folder / "B. Disease Grading" if (folder / "B. Disease Grading").is_dir() else folder
    tables, photographs = [], {}
    for part, images, labels in (
        ("train", "a. Training Set", "a. IDRiD_Disease Grading_Training Labels.csv"),
        ("test", "b. Testing Set", "b. IDRiD_Disease Grading_Testing Labels.csv"),
    ):
        tables.append(folder / "2. Groundtruths" / labels)
        for image, grade in _once(tables[-1], "Image name", "Retinopathy grade"):
            photographs[f"{part}/{image}"] = (grade, folder / "1. Original Images" / images / f"{image}.jpg", "")
    return tables, photographs


def _once(path: Path, *columns: str) -> list[tuple[str, ...]]:
    """Return rows of a table that grades each image once; IDRiD's has blank rows, which are dropped."""
    rows = [row for row in table(path, *columns) if any(row)]
    graded(str(path), [(row[0], row[1]) for row in rows])
    return rows


def _files_of(folder: Path, where: str, paths: list[Path]) -> dict[Path, Path]:
    """Return the file of each path, whose name may have decomposed accents.

    Raises BadData for a graded image without a file, and for a file without a grade.
    """
    wanted = {path.name for path in paths}
    with reading(folder, "a folder of images", AGAIN):
        files = [path for path in folder.iterdir() if path.suffix == paths[0].suffix]
    stored = {unicodedata.normalize("NFC", path.name): path for path in files}
    there = set(stored)
    if hidden := {name for name in there if name.startswith(HIDDEN)} - wanted:
        say(f"{folder}: {len(hidden)} files whose names begin with {HIDDEN} are skipped; macOS writes them")
        there -= hidden
    absent, more = wanted - there, there - wanted
    what = f"graded in {where} and missing" if absent else f"there without a grade in {where}"
    if absent or more:
        raise BadData(
            f"{folder}: expected the {len(wanted)} images that are graded, found {len(absent or more)} {what}, "
            f"{min(absent or more)} first; get it again, or take these from both"
        )
    return {path: stored[path.name] for path in paths}


@lru_cache(maxsize=1)
def known_files() -> dict[str, fetch.File]:
    """Return the mosaics by name, from known.txt."""
    rows = fetch.listed(Path(__file__).with_name("known.txt"))
    return {name: fetch.File(name, sha256, int(size)) for name, sha256, size in rows}


def _files(name: str) -> list[str]:
    return [file for file in known_files() if file.startswith(f"retina/{name}-")]


def _known(file: str, name: str, root: Folder) -> Path:
    if users := fetch.users_folder(VARIABLE):  # the mosaics would take the place of the user's images
        entries = sorted(path.name for path in users.iterdir() if not path.name.startswith("."))
        found = ", ".join(entries[:NAMED]) + (", ..." if len(entries) > NAMED else "") or "nothing"
        raise DataNotFound(
            f"data set {name} was not found: {VARIABLE} names {users}, where the folder {name}/ is expected, "
            f"found {found}; put {_WHERE[name]} there (docs/retinopathy.md), or unset {VARIABLE} to use the mosaics"
        )
    tried = []
    for folder in (fetch.cache_folder(root), *fetch.mirror_folders()):
        fault = fetch.check_file(folder / file, known_files()[file])
        if fault is None:
            return folder / file
        tried.append(f"{folder / file}: {fault}")
    raise DataNotFound(
        f"data set {name} was not found. Tried:\n  " + "\n  ".join(tried) + f"\nIt is not fetched: get {_WHERE[name]} "
        f"under the provider's rules (docs/retinopathy.md), and set {VARIABLE} to the folder that holds it as {name}/."
    )


def _mosaics(name: str, labels: Path, *mosaics: Path) -> Source:
    by_name = {path.name: path for path in mosaics}
    columns = ("set", "id", "grade", "file", "tile")
    rows = {image: (grade, file, tile) for own, image, grade, file, tile in table(labels, *columns) if own == name}
    ids, grades = graded(f"{labels}, set {name}", [(image, grade) for image, (grade, _, _) in rows.items()])
    places = []
    for image in ids:
        _, file, tile = rows[image]
        if file not in by_name or not tile.isdecimal():
            raise BadData(
                f"{labels}: expected of {image!r} a tile in {', '.join(by_name)}, found tile {tile!r} of {file!r}; "
                f"{AGAIN}"
            )
        places.append((by_name[file], int(tile)))
    return Source(name, f"{name}, mosaics of {TILE} pixels", ids, grades, partial(_tile, places), (), False, TILE)


def _tile(places: list[tuple[Path, int]], i: int) -> Image.Image:
    path, tile = places[i]
    mosaic = _opened(path)
    left, top = tile % ACROSS * TILE, tile // ACROSS * TILE
    if mosaic.width != ACROSS * TILE or top + TILE > mosaic.height:
        raise BadData(
            f"{path}: expected {ACROSS} tiles of {TILE} pixels in a row, and tile {tile}, found an image of "
            f"{mosaic.width}x{mosaic.height}; {AGAIN}"
        )
    return mosaic.crop((left, top, left + TILE, top + TILE))


@lru_cache(maxsize=2)  # ids run through both of EyePACS's
def _opened(path: Path) -> Image.Image:
    return opened(path)
