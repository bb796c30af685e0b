"""Evaluation sets of image sets: turned, corrupted, attacked, and other sets' images."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from .checks import DataNotFound
from .contract import Arrays, EvaluationSet
from .image_schemes import Scheme
from .images import SOURCES, context_subset, read_subset
from .rotation import rotate

SPELLINGS = {"notmnist": "not_mnist"}  # in the published tables
CORRUPTED = ("cifar10", "cifar100")
SEVERITIES = range(6)
EPSILONS = ("0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3")  # dirichlet2022 tables 14 to 16, 20 to 22


def partner(name: str, evaluation_set: str) -> str | None:
    """The image set whose images "ood-<partner>" of image set `name` would hold; None for another form or shape."""
    other = evaluation_set.removeprefix("ood-")
    fits = other not in (name, evaluation_set) and other in SOURCES and SOURCES[other].shape == SOURCES[name].shape
    return other if fits else None


class ImageSets(Mapping[str, Callable[[], EvaluationSet]]):
    """Evaluation sets by the form of their name, made when they are called. Iteration gives those of the paper.

    rotation-<degrees>, ood-<set>, <set>_c-<severity> (all corruptions), <set>_c-<corruption>-<severity>,
    fgsm-<epsilon>.
    """

    def __init__(self, name: str, scheme: Scheme, test: Arrays, root: str | os.PathLike | None) -> None:
        self.name, self.scheme, self.test, self.root = name, scheme, test, root

    def __iter__(self) -> Iterator[str]:
        yield from (f"ood-{partner}" for partner in self.scheme.ood)
        yield from (f"rotation-{angle}" for angle in self.scheme.angles)
        yield from (f"{self.name}_c-{severity}" for severity in SEVERITIES if self.scheme.corrupted)
        yield from (f"fgsm-{epsilon}" for epsilon in EPSILONS if self.scheme.attacked)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, name: str) -> Callable[[], EvaluationSet]:
        """Raises KeyError for another name, DataNotFound if a partner is out of reach."""
        forms: list[tuple[str, Callable[..., Callable[[], EvaluationSet]]]] = [
            (r"rotation-(\d+)", self._rotated),
            (r"ood-\w+", self._partner),
            (r"fgsm-(\d+(?:\.\d+)?)", self._attacked),
        ]
        if self.name in CORRUPTED:
            forms.append((rf"{self.name}_c-(?:([a-z_]+)-)?([0-5])", self._corrupted))
        for pattern, make in forms:
            found = re.fullmatch(pattern, name)
            if found:
                return make(name, *found.groups())
        raise KeyError(name)

    def _rotated(self, name: str, angle: str) -> Callable[[], EvaluationSet]:
        condition = f"shift=rotation;angle={int(angle)}"
        return lambda: EvaluationSet(
            name, "shift", condition, rotate(self.test.x, int(angle), self.scheme.rotation), self.test.y
        )

    def _partner(self, name: str) -> Callable[[], EvaluationSet]:
        other = partner(self.name, name)
        if other is None:
            raise KeyError(name)
        subset = read_subset(other, self.scheme.ood_subset, self.root)
        if other in self.scheme.contexts and context_subset(other, self.root) is subset:
            raise DataNotFound(
                f"evaluation set {name}: contexts are drawn from it here ({subset.source}); leave it out, "
                "or get the partner's other subset (`make data`)"
            )
        condition = f"ood={SPELLINGS.get(other, other)}"

        def make() -> EvaluationSet:
            images, source = subset.images, subset.source
            if self.scheme.ood_subset == "train":
                images = images[np.random.RandomState(0).permutation(len(images))[: len(self.test)]]
                source += f", of which {len(images)} drawn at random"
            return EvaluationSet(name, "ood", condition, images, None, source)

        return make

    def _corrupted(self, name: str, corruption: str | None, severity: str) -> Callable[[], EvaluationSet]:
        from .corruptions import CORRUPTIONS, corrupted  # here, since scipy takes a second to load

        if corruption and corruption not in CORRUPTIONS:
            raise KeyError(name)
        which = f"corruption={corruption};" if corruption else ""
        condition = f"shift={self.name}_c;{which}severity={severity}"

        def make() -> EvaluationSet:
            every = (corruption,) if corruption else CORRUPTIONS if int(severity) else CORRUPTIONS[:1]  # clean: once
            made = [corrupted(self.name, each, int(severity), self.test.x, self.test.y, self.root) for each in every]
            sources = " and ".join(dict.fromkeys(source for _, source in made))
            images = made[0][0] if len(made) == 1 else np.concatenate([images for images, _ in made])
            return EvaluationSet(name, "shift", condition, images, np.tile(self.test.y, len(made)), sources)

        return make

    def _attacked(self, name: str, epsilon: str) -> Callable[[], EvaluationSet]:
        condition = f"shift=fgsm;epsilon={epsilon}"
        return lambda: EvaluationSet(name, "attack", condition, self.test.x, self.test.y, epsilon=float(epsilon))
