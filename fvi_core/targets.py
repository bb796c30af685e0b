"""Targets as users have them: labels, as numbers or text, and numbers of a regression."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fvi_core.likelihoods import Likelihood


@dataclass(frozen=True)
class Targets:
    """Encoding of targets for training: labels 0 to C - 1, or standardised numbers.

    ``classes``: the labels in order, if they are text; ``mean`` and ``std``: of each number of a regression's targets;
    ``count``: the number of classes, or of numbers in a target, where the module has other outputs for them
    (:meth:`Likelihood.outputs`), else 0.
    """

    classification: bool
    classes: list[str] | None = None
    mean: Sequence[float] = (0.0,)
    std: Sequence[float] = (1.0,)
    count: int = 0

    def encode(self, y: Any, outputs: int) -> Tensor:
        """Return encoded labels ``[N]``, or targets ``[N]`` or ``[N, Q]``. Raises ValueError for targets of another
        kind than in training."""
        y = numbers_of(y) if self.classes is None else _numbered(y, self.classes)
        outputs = self.count or outputs
        y = y.squeeze(1) if y.dim() == 2 and y.shape[1] == 1 else y
        if not self.classification:
            shape = (len(y),) if outputs == 1 else (len(y), outputs)
            if y.shape != shape:
                raise ValueError(f"targets: expected shape {list(shape)} for {outputs} outputs, found {list(y.shape)}")
            mean, std = (torch.tensor(v, dtype=torch.float64) for v in (self.mean, self.std))
            scaled = (y.reshape(len(y), -1).double() - mean) / std
            check_finite(scaled, "targets: expected finite numbers")
            return scaled.reshape(y.shape).to(y.dtype if y.is_floating_point() else torch.float32)
        if y.is_floating_point() or y.dim() != 1:
            raise ValueError(f"labels: expected whole numbers [N], found {y.dtype} {list(y.shape)}")
        if len(y) and not 0 <= int(y.min()) <= int(y.max()) < outputs:
            from_one = (int(y.min()), int(y.max())) == (1, outputs)
            remedy = "subtract 1" if from_one else "points without a label (ignore_index) must be left out"
            if y.unique().tolist() == [-1, 1]:
                remedy = "give (y + 1) // 2 for two classes"
            raise ValueError(
                f"labels: expected 0 to {outputs - 1} for {outputs} outputs, found {int(y.min())} to {int(y.max())}; "
                f"{remedy}"
            )
        return y.long()

    @classmethod
    def of(cls, y: Any, outputs: int, likelihood: Likelihood | None, standardise: bool) -> Targets:
        """Return the encoding of training targets y for a module with so many outputs. Raises ValueError where it is
        not clear whether they are labels, unless a ``likelihood`` says so.
        """
        if is_text(y):
            classes = sorted(set(_texts(y)))
            count = _other_count(len(classes), outputs, likelihood)
            if len(classes) != (count or outputs):
                raise ValueError(
                    f"labels: found {len(classes)} classes {classes[:5]}, the module has {outputs} outputs"
                )
            return cls(True, classes, count=count)
        held = numbers_of(y)
        if held.is_floating_point():  # labels too, where some are missing
            check_finite(held.reshape(len(held), -1), "targets: expected finite numbers")
        regression = held.is_floating_point() if likelihood is None else likelihood.has_noise
        needed = 0 if not len(held) else held[:1].numel() if regression else int(held.max()) + 1
        count = _other_count(needed, outputs, likelihood)
        outputs = count or outputs
        if not held.is_floating_point() and not regression:
            if outputs == 1:
                raise ValueError(
                    "targets are whole numbers, so labels, and the module has one output: give it one for each class, "
                    "or give floating-point targets for a regression"
                )
            return cls(True, count=count)
        if standardise and len(held) > 1 and bool((held == held[:1]).all()):
            raise ValueError(f"targets: expected some that differ, found {len(held)} equal ones")
        if likelihood is None and bool(((held == 0) | (held == 1)).all()):
            raise ValueError(
                "targets are 0 and 1 in floating point: give labels (y.long(), for one-hot rows y.argmax(1)) and a "
                "module with an output for each class, or likelihood={'name': 'gaussian'} for a regression"
            )
        if likelihood is None and held.dim() == 1 and outputs > 1:
            raise ValueError(
                f"targets are floating-point numbers [N], the module has {outputs} outputs: give labels (y.long()), or "
                "a module with one output for a regression"
            )
        if likelihood is not None and not regression:
            raise ValueError(
                f"likelihood {likelihood.name!r} has no noise_std(), so is for labels: expected whole numbers, found "
                f"{held.dtype}"
            )
        rows = held.reshape(len(held), -1).double()
        if not standardise:
            return cls(False, None, (0.0,) * rows.shape[1], (1.0,) * rows.shape[1], count)
        std = rows.std(0, correction=0)
        return cls(False, None, tuple(rows.mean(0).tolist()), tuple(torch.where(std > 0, std, 1.0).tolist()), count)


def check_finite(values: Tensor, expected: str, columns: Any = None) -> None:
    """Raise ValueError for NaN and infinity, with the first row and its column."""
    wrong = (~torch.isfinite(values)).nonzero()
    if len(wrong):
        row, *axes = wrong[0].tolist()
        several = len(axes) == 1 and values.shape[1] > 1
        column = f", column {axes[0] if columns is None else columns[axes[0]]!r}" if several else ""
        raise ValueError(
            f"{expected}, found NaN or infinity in {len(wrong[:, 0].unique())} of {len(values)}, the first in row "
            f"{row}{column}; leave these points out or fill them in"
        )


def _other_count(needed: int, outputs: int, likelihood: Likelihood | None) -> int:
    """Return the number of classes, or of numbers in a target, if the likelihood has other outputs for them, else 0."""
    other = likelihood is not None and needed != outputs and likelihood.outputs(needed) == outputs
    return needed if other else 0


def is_text(y: Any) -> bool:
    """Return whether some label is text."""
    if isinstance(y, Tensor) or (isinstance(y, np.ndarray) and y.dtype.kind not in "OSU"):
        return False
    return any(isinstance(each, str | bytes) for each in y)


def _texts(y: Iterable[Any]) -> list[str]:
    """Return labels of text. Raises ValueError for one that is missing, or something else."""
    for row, each in enumerate(y):
        if not isinstance(each, str) or not each.strip():
            raise ValueError(f"labels: expected text, found {each!r} in row {row}: leave out points without a label")
    return list(map(str, y))


def numbers_of(y: Any) -> Tensor:
    """Return targets as a tensor on the CPU without a gradient, whole ones of any type as int64. Raises ValueError for
    others."""
    try:
        values = torch.as_tensor(y).detach().cpu()
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"targets: expected numbers, or labels of text, found {type(y).__name__} ({error})") from error
    return values if values.is_floating_point() else values.long()


def _numbered(y: Iterable[Any], classes: list[str]) -> Tensor:
    numbers = {name: number for number, name in enumerate(classes)}
    labels = [str(each) for each in y]
    unknown = sorted(set(labels) - numbers.keys())
    if unknown:
        raise ValueError(f"labels: expected {', '.join(classes)}, found {', '.join(unknown[:5])}")
    return torch.tensor([numbers[each] for each in labels])
