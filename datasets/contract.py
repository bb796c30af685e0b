"""Contract of every data set: arrays, splits, evaluation sets, pools of contexts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True)
class Arrays:
    """Training, validation or test subset of a split.

    x: inputs [N, ...], float32; uint8 images [N, C, H, W] from 0 to 255 where the split has `pixels`.
    y: int64 labels [N], or float64 values [N], [N, D] where a regression split has D > 1 outputs.
    """

    x: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Pixels:
    """Scaling of pixels 0 to 255 for a network: (x / 255 - mean) / std, one mean and std for each channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return pixels [..., C, H, W] in network units, float32."""
        mean, std = (np.array(values)[:, None, None] for values in (self.mean, self.std))
        return ((x / 255 - mean) / std).astype(np.float32)


@dataclass(frozen=True)
class EvaluationSet:
    """Inputs at which a trained model predicts.

    kind: "id" (as the training data), "shift" (changed inputs, labels still hold), "ood" (another source), "grid" (for
    plots), "spectrum" (for the covariance of functions) or "attack" (clean inputs, which an attack changes by at most
    `epsilon`).
    condition: as the published tables write it, "shift=rotation;angle=30".
    x [N, ...] and y [N] as in Arrays, y None for "ood", "grid" and "spectrum". source: origin of the inputs, where the
    name does not show it: "kmnist, test part".
    """

    name: str
    kind: str
    condition: str
    x: np.ndarray
    y: np.ndarray | None
    source: str = ""
    epsilon: float = 0.0

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of name, kind, condition, epsilon, and of both arrays' dtype, shape, bytes."""
        about = [self.name, self.kind, self.condition, float(self.epsilon).hex()]
        return _fingerprint(about, [("x", self.x), *([] if self.y is None else [("y", self.y)])])


@dataclass(frozen=True)
class Pool:
    """Inputs x [P, ...] that contexts draw from, in the units of the training inputs, and their source in words."""

    x: np.ndarray
    source: str

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the inputs' dtype, shape, bytes."""
        return _fingerprint([], [("x", self.x)])


@dataclass(frozen=True)
class Split:
    """One split of one data set, ready for training.

    Targets of regression sets are standardised: y_original = y * y_std + y_mean. low and high [...] bound the
    box of the uniform context points: the range of the training inputs, or the range that the paper names.
    rows: row numbers of each subset in the source; empty for generated data and for sources with subsets.
    pixels: scaling of the inputs if all are pixels; low and high are in network units nevertheless.
    screens: whether label 1 of the two classes is a finding and uncertain cases are referred to an expert.
    """

    name: str
    version: str
    split: int
    scheme: str
    task: str
    n_outputs: int
    train: Arrays
    test: Arrays
    low: np.ndarray
    high: np.ndarray
    validation: Arrays | None = None
    y_mean: float = 0.0
    y_std: float = 1.0
    rows: Mapping[str, np.ndarray] = field(default_factory=dict)
    evaluations: Mapping[str, Callable[[], EvaluationSet]] = field(default_factory=dict, repr=False)
    pools: Mapping[str, Callable[[], Pool]] = field(default_factory=dict, repr=False)
    pixels: Pixels | None = None
    screens: bool = False

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of name, version, scheme, split, target scale, pixels, and of every array's dtype, shape, bytes."""
        return self._fingerprint("train", "validation", "test")

    @cached_property
    def training_fingerprint(self) -> str:
        """SHA-256 as in `fingerprint`, without the test subset: all that training can see."""
        return self._fingerprint("train", "validation")

    def copied(self) -> Split:
        """Return a copy of the split that shares no memory with it; a plug-in may change the arrays that it keeps."""
        evaluations = {name: partial(_copy, make) for name, make in self.evaluations.items()}
        pools = {name: partial(_copy, make) for name, make in self.pools.items()}
        return replace(deepcopy(replace(self, evaluations={}, pools={})), evaluations=evaluations, pools=pools)

    def _fingerprint(self, *subsets: str) -> str:
        scale = [float(self.y_mean).hex(), float(self.y_std).hex()]
        if self.pixels is not None:
            scale += [float(value).hex() for value in (*self.pixels.mean, *self.pixels.std)]
        held = {subset: getattr(self, subset) for subset in subsets}
        return _fingerprint(
            [self.name, self.version, self.scheme, str(self.split), *scale],
            [(subset, array) for subset, a in held.items() if a is not None for array in (a.x, a.y)],
        )

    def evaluation_sets(self) -> list[str]:
        return ["test", *(["validation"] if self.validation is not None else []), *self.evaluations]

    def evaluation(self, name: str) -> EvaluationSet:
        """Return the evaluation set `name`. Raises KeyError, which names the known sets."""
        return self._maker(name)()

    def require(self, evaluation_sets: Iterable[str]) -> None:
        """Raise KeyError for an unknown evaluation set, without making any."""
        for name in evaluation_sets:
            self._maker(name)

    def _maker(self, name: str) -> Callable[[], EvaluationSet]:
        if name == "test":
            return partial(EvaluationSet, "test", "id", "", self.test.x, self.test.y)
        if name == "validation" and (held := self.validation) is not None:
            return partial(EvaluationSet, "validation", "id", "part=validation", held.x, held.y)
        return self._one_of(self.evaluations, name, "evaluation set", self.evaluation_sets())

    def pool_names(self) -> list[str]:
        return ["train", *self.pools]

    def pool(self, name: str) -> Pool:
        """Return inputs that may serve as contexts, never test inputs. Raises KeyError, which names the pools."""
        if name == "train":
            return Pool(self.train.x, f"{self.name}, training part")
        return self._one_of(self.pools, name, "pool of contexts", self.pool_names())()

    def _one_of(self, choices: Mapping, name: str, what: str, known: list[str]):
        if name not in choices:
            raise KeyError(f"data set {self.name} has no {what} '{name}'; it has: {', '.join(known)}")
        return choices[name]


def classified(
    name: str,
    version: str,
    split: int,
    scheme: str,
    n_classes: int,
    subsets: Mapping[str, Arrays],
    *,
    pixels: Pixels | None = None,
    **more: Any,
) -> Split:
    """Return a split of labelled inputs; its box is the range of the training inputs, in network units.

    subsets: "train", "test" and perhaps "validation". more: other fields of the split.
    """
    x = subsets["train"].x
    box = x.min(0), x.max(0)
    low, high = map(pixels, box) if pixels else box
    about, held = (name, version, split, scheme, "classification", n_classes), subsets.get("validation")
    return Split(*about, subsets["train"], subsets["test"], low, high, held, pixels=pixels, **more)


@dataclass(frozen=True)
class Description:
    """Facts about a data set, known without loading it. n_splits: splits of `scheme`; shape: shape of one input;
    redrawn: whether each split draws other test points from the same points; validated: whether it has a validation
    subset, None where a plug-in does not say."""

    name: str
    task: str
    version: str
    scheme: str
    schemes: tuple[str, ...]
    n_splits: int
    n_outputs: int
    shape: tuple[int, ...]
    n_train: int
    n_test: int
    source: str
    files: tuple[str, ...]
    redrawn: bool = False
    validated: bool | None = None


def _copy(make: Callable[[], T]) -> T:
    return deepcopy(make())


def _fingerprint(about: Iterable[str], arrays: Iterable[tuple[str, np.ndarray]]) -> str:
    digest = hashlib.sha256("\0".join(about).encode())
    for name, array in arrays:
        digest.update(f"\0{name} {array.dtype.str} {array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
