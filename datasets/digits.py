"""scikit-learn's 8x8 handwritten digits; shift: rotated digits; out of distribution: patches of photographs.

Pixels (0 to 16) are scaled to [-1, 1]. Splits are stratified, 70 % for training and 30 % for testing, drawn with seed
`split`. Scheme "validation" holds out a fifth of each class of the training images. Contexts ("photos") are patches of
scikit-learn's china.jpg, test patches ("ood-photos") of its flower.jpg, so that no context image is ever scored.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .contract import Arrays, Description, EvaluationSet, Pool, Split, classified
from .fetch import Folder
from .image_transforms import interpolated
from .tabular import stratified

VERSION = "1"
N_SPLITS = 10
N_CLASSES = 10
N_TRAIN, N_TEST = 1258, 539
N_HELD = {"": 0, "validation": 250}
SCHEMES = tuple(N_HELD)
SIDE = 8
BLACK = -1.0
REDUCTION, STRIDE = 4, 2  # photographs: most patches in full resolution are one flat colour
ANGLES = tuple(range(15, 181, 15))
CONTEXT_PHOTO, OOD_PHOTO = "china.jpg", "flower.jpg"


def describe(name: str, scheme: str) -> Description:
    shape, n_train = (1, SIDE, SIDE), N_TRAIN - N_HELD[scheme]
    about = name, "classification", VERSION, scheme, SCHEMES, N_SPLITS, N_CLASSES
    return Description(*about, shape, n_train, N_TEST, "scikit-learn", (), redrawn=True, validated=N_HELD[scheme] > 0)


def load(name: str, split: int, scheme: str, root: Folder = None) -> Split:
    x, y = images_and_labels()
    rows = stratified(y, split, 0.7)
    if scheme == "validation":
        cut = stratified(y[rows["train"]], split, 0.8)
        rows = {"train": rows["train"][cut["train"]], "validation": rows["train"][cut["test"]], "test": rows["test"]}
    subsets = {subset: Arrays(x[chosen], y[chosen]) for subset, chosen in rows.items()}
    evaluations = {f"rotation-{angle}": partial(_rotated, subsets["test"], angle) for angle in ANGLES}
    evaluations["ood-photos"] = partial(_photos, len(subsets["test"]))
    pools = {"photos": lambda: Pool(patches(CONTEXT_PHOTO), f"patches of {CONTEXT_PHOTO}")}
    about = name, VERSION, split, scheme, N_CLASSES
    return classified(*about, subsets, rows=rows, evaluations=evaluations, pools=pools)


def images_and_labels() -> tuple[np.ndarray, np.ndarray]:
    """Return all images [1797, 1, 8, 8] float32 in [-1, 1] and labels [1797]."""
    from sklearn.datasets import load_digits  # here, since it takes a second to load

    data = load_digits()
    return (data.images / 8 - 1).astype(np.float32)[:, None], data.target.astype(np.int64)


@cache
def patches(photo: str) -> np.ndarray:
    """Return 8x8 windows, two pixels apart, of a photograph in grey at a quarter of its size.

    [P, 1, 8, 8] float32 in [-1, 1].
    """
    from sklearn.datasets import load_sample_image

    grey = load_sample_image(photo) @ np.array([0.299, 0.587, 0.114])  # ITU-R BT.601 luma
    height, width = (size // REDUCTION for size in grey.shape)
    blocks = grey[: height * REDUCTION, : width * REDUCTION].reshape(height, REDUCTION, width, REDUCTION)
    windows = sliding_window_view(blocks.mean((1, 3)), (SIDE, SIDE))[::STRIDE, ::STRIDE]
    return (windows.reshape(-1, 1, SIDE, SIDE) / 127.5 - 1).astype(np.float32)


def _rotated(test: Arrays, angle: int) -> EvaluationSet:
    condition = f"shift=rotation;angle={angle}"
    return EvaluationSet(f"rotation-{angle}", "shift", condition, interpolated(test.x, angle, BLACK), test.y)


def _photos(n: int) -> EvaluationSet:
    every = patches(OOD_PHOTO)
    chosen = np.random.RandomState(0).permutation(len(every))[:n]
    return EvaluationSet("ood-photos", "ood", "ood=photos", every[chosen], None)
