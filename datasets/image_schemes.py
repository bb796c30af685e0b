"""Schemes of image sets, one for each paper: subsets, pixel scale, partners out of distribution, contexts, shifts.

dirichlet2022  all training images (App. F); MNIST with pixels in [-1, 1], rotated every 10 degrees, bilinearly (the
               paper does not say how); CIFAR in units of the training images' mean and standard deviation.
dirichlet2022-part
               ours, for trainings without a GPU: 4,000 training and 1,000 test images, of each class its share, both
               from the training images.
rudner2022     all training images, in the units of the authors' code. The code has no rotated MNIST: there, the
               rotations of Ovadia et al. (2019), as the paper says, and the training images' mean and deviation.
rudner2021     as rudner2022, whose first code it shares.
cinquin2024-pixelwise
               a random tenth of the training images for validation, drawn with seed `split` (App. C.4); every pixel
               standardised by its own mean and deviation, KMNIST's and the partner's by their own images'
               (`standardisation`); out of distribution: the first *training* images of the partner, as many as there
               are test images (App. C.5); contexts from all images of KMNIST, 70,000 in the paper; standardised images
               are rotated, every 20 degrees. Open points are decided by the code of the first author's next paper.
ovadia2019     the last 10,000 training images for validation, pixels in [0, 1], every 15 degrees, cubic splines.

In other schemes partners are scaled like the training images, and their test images are scored. Contexts come from a
partner's training images, or from its test images if the training images are missing; a partner that is also a context
is scored only if its training images serve as contexts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .contract import Pixels

FOLDS = 5
SUBSETS = ("train", "test")
SEED = 0  # of the images of a part or a reduced set


@dataclass(frozen=True)
class Scheme:
    """One paper's use of one image set. held_out: validation images, "" none, the "last" sixth or a "random" tenth.

    pixels: the scale of all images; None if every pixel is standardised separately, and inputs are float32. ood,
    contexts: partners; ood_subset: the subset of them that is scored; whole_contexts: contexts are drawn from all their
    images. angles, rotation: angles and method of rotated test images. corrupted, attacked: whether the tables have
    corrupted test images and attacks. part: numbers of training and test images, both drawn from the training images;
    None for all images.
    """

    pixels: Pixels | None
    held_out: str = ""
    ood: tuple[str, ...] = ()
    ood_subset: str = "test"
    contexts: tuple[str, ...] = ()
    angles: range = range(0)
    rotation: str = "bilinear"
    whole_contexts: bool = False
    corrupted: bool = False
    attacked: bool = False
    part: tuple[int, int] | None = None

    @property
    def subsets(self) -> tuple[str, ...]:
        """Subsets of the image set's files that a split is made of."""
        return SUBSETS[:1] if self.part else SUBSETS

    @property
    def tested(self) -> str:
        """Return in words where the test images come from."""
        return "test images cut from the train part" if self.part else "test part"

    @property
    def n_splits(self) -> int:
        return FOLDS if self.held_out == "random" else 1

    def n_held(self, n: int) -> int:
        """Return how many of n training images are held out."""
        return {"last": n // 6, "random": n // 10}.get(self.held_out, 0)

    def rows(self, labels: np.ndarray, split: int) -> dict[str, np.ndarray]:
        """Return ascending row numbers of each subset that the training images are divided into; empty for none.

        Raises ValueError for fewer images than the part has.
        """
        if self.part:
            drawn = some(labels, sum(self.part))
            tested = drawn[some(labels[drawn], self.part[1])]
            return {"train": np.setdiff1d(drawn, tested), "test": tested}
        n, held = len(labels), np.zeros(len(labels), bool)
        if self.held_out == "last":
            held[n - self.n_held(n) :] = True
        if self.held_out == "random":
            held[np.random.RandomState(split).permutation(n)[: self.n_held(n)]] = True
        return {"train": np.flatnonzero(~held), "validation": np.flatnonzero(held)} if self.held_out else {}


def some(labels: np.ndarray, count: int) -> np.ndarray:
    """Return ascending row numbers of `count` images, drawn with each class's share of the labels.

    The rows are equal for every corruption, severity and epsilon. Shares are rounded down; the classes that lose most
    get one image more, lower labels first. Raises ValueError for more than there are.
    """
    if count > len(labels):
        raise ValueError(f"expected at least {count:,} images, found {len(labels):,}")
    classes, sizes = np.unique(labels, return_counts=True)
    shares, lost = np.divmod(sizes * count, len(labels))
    shares[np.argsort(-lost, kind="stable")[: count - shares.sum()]] += 1
    random = np.random.RandomState(SEED)
    drawn = [random.permutation(np.flatnonzero(labels == c))[:n] for c, n in zip(classes, shares)]
    return np.sort(np.concatenate(drawn))


_UNIT = Pixels((0.0,), (1.0,))
_SYMMETRIC = Pixels((0.5,), (0.5,))
_MNIST = Pixels((0.1307,), (0.3081,))
_FASHION = Pixels((0.2861,), (0.3530,))
_KMNIST = Pixels((0.1918,), (0.3483,))
_CIFAR10 = Pixels((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
_CIFAR10_RUDNER = Pixels((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
_CIFAR100 = Pixels((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762))
_SVHN = Pixels((0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970))
_TENS, _FIFTEENS, _TWENTIES = range(0, 181, 10), range(0, 181, 15), range(0, 181, 20)


def _pixelwise(partner: str) -> Scheme:
    return Scheme(None, "random", (partner,), "train", ("kmnist",), _TWENTIES, "spline", whole_contexts=True)


SCHEMES: dict[str, dict[str, Scheme]] = {
    "mnist": {
        "dirichlet2022": Scheme(_SYMMETRIC, angles=_TENS),
        "rudner2022": Scheme(_MNIST, "", ("fashion_mnist", "notmnist"), "test", ("kmnist",), _FIFTEENS, "cubic"),
        "cinquin2024-pixelwise": _pixelwise("fashion_mnist"),
        "ovadia2019": Scheme(_UNIT, "last", ("fashion_mnist", "notmnist"), "test", ("kmnist",), _FIFTEENS, "cubic"),
    },
    "fashion_mnist": {
        "rudner2022": Scheme(_FASHION, ood=("mnist", "notmnist"), contexts=("kmnist",)),
        "rudner2022-validation": Scheme(_FASHION, "random", ("mnist", "notmnist"), contexts=("kmnist",)),
        "rudner2021": Scheme(_FASHION, ood=("mnist",), contexts=("kmnist",)),
        "cinquin2024-pixelwise": _pixelwise("mnist"),
    },
    "kmnist": {"": Scheme(_KMNIST)},
    "notmnist": {"": Scheme(_SYMMETRIC)},
    "cifar10": {
        "rudner2022": Scheme(_CIFAR10_RUDNER, ood=("svhn",), contexts=("cifar100",), corrupted=True),
        "rudner2021": Scheme(_CIFAR10_RUDNER, ood=("svhn",), contexts=("cifar100",)),
        "dirichlet2022": Scheme(_CIFAR10, corrupted=True, attacked=True),
    },
    "cifar100": {
        "dirichlet2022": Scheme(_CIFAR100, corrupted=True, attacked=True),
        "dirichlet2022-part": Scheme(_CIFAR100, corrupted=True, attacked=True, part=(4000, 1000)),
    },
    "svhn": {"": Scheme(_SVHN)},
}
