"""RetinaMNIST (Yang et al. 2023): fundus photographs of 28x28 pixels from DeepDRiD, graded 0 to 4.

The finding is retinopathy of grade 2 or more ("moderate": it threatens sight) or of grade 1 or more ("mild"). Scheme
"outline" has the finding of "moderate" and outlines of the eye instead of images. Split 0, the only one, has the
source's parts; row numbers count the training, validation and test images in this order.
"""

from __future__ import annotations

import zipfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from .checks import check_labels, reading, stamped
from .contract import Arrays, Description, Pixels, Split, classified
from .fetch import Folder, locate
from .fundus import FINDINGS
from .image_transforms import outlines
from .npy import array

NAME, VERSION = "retina_mnist", "1"
FILE = "retina/retinamnist.npz"
SIDE, GRADES = 28, 5
SIZES = {"train": 1080, "validation": 120, "test": 400}
SCHEMES = ("moderate", "mild", "outline")
_STEMS = {"train": "train", "validation": "val", "test": "test"}
_PIXELS = Pixels((0.5,) * 3, (0.5,) * 3)  # as MedMNIST's own code
_OUTLINE = Pixels((0.5,), (0.5,))


def describe(name: str, scheme: str) -> Description:
    shape = (1, SIDE // 2, SIDE // 2) if scheme == "outline" else (3, SIDE, SIDE)
    about, sizes = (name, "classification", VERSION, scheme, SCHEMES, 1, 2, shape), (SIZES["train"], SIZES["test"])
    return Description(*about, *sizes, "Yang et al. 2023, from DeepDRiD, CC BY 4.0", (FILE,), validated=True)


def load(name: str, split: int, scheme: str, root: Folder = None) -> Split:
    """Return the only split. Raises DataNotFound, BadData."""
    graded = read(*stamped(locate(FILE, root)))
    outline, first = scheme == "outline", FINDINGS["moderate" if scheme == "outline" else scheme]
    parts = {
        part: Arrays(outlines(images, SIDE // 2) if outline else images, (grades >= first).astype(np.int64))
        for part, (images, grades) in graded.items()
    }
    ends = np.cumsum([len(arrays) for arrays in parts.values()])
    rows = {part: np.arange(end - len(parts[part]), end) for part, end in zip(parts, ends)}
    pixels = _OUTLINE if outline else _PIXELS
    return classified(name, VERSION, split, scheme, 2, parts, rows=rows, pixels=pixels, screens=True)


@lru_cache(maxsize=2)
def read(path: Path, size: int, changed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return images uint8 [N, 3, 28, 28] and grades [N] of each part of MedMNIST's file, cached by size and time of
    change of the file. Raises BadData.
    """
    parts = {}
    with reading(path, "an .npz file of images and grades"), zipfile.ZipFile(path) as archive:
        for part, n in SIZES.items():
            images, grades = (array(archive, f"{_STEMS[part]}_{what}") for what in ("images", "labels"))
            if images.dtype != np.uint8 or images.shape != (n, SIDE, SIDE, 3) or grades.shape != (n, 1):
                raise ValueError(f"{_STEMS[part]}: images {images.dtype} {images.shape}, labels {grades.shape}")
            check_labels(grades, GRADES, f"{path}, {_STEMS[part]}_labels", all_occur=False)
            parts[part] = (np.ascontiguousarray(images.transpose(0, 3, 1, 2)), grades[:, 0].astype(np.int64))
    return parts
