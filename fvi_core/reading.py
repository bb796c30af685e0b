"""Data as users have them: pairs of tensors, arrays, frames or lists, data sets, DataLoaders; labels, other targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NoReturn, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, Subset

from fvi_core.data import TrainingData
from fvi_core.families.base import NotSupported
from fvi_core.likelihoods import Likelihood
from fvi_core.random import seed_from

Data = Any
"""A pair (x, y), a Dataset of such pairs, or a DataLoader or another iterable of batches (x, y)."""
READ = 256
"""Points of a Dataset read together."""


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
        y, outputs = _tensor(y, self.classes), self.count or outputs
        y = y.squeeze(1) if y.dim() == 2 and y.shape[1] == 1 else y
        if not self.classification:
            shape = (len(y),) if outputs == 1 else (len(y), outputs)
            if y.shape != shape:
                raise ValueError(f"targets: expected shape {list(shape)} for {outputs} outputs, found {list(y.shape)}")
            mean, std = (torch.tensor(v, dtype=torch.float64) for v in (self.mean, self.std))
            scaled = (y.reshape(len(y), -1).double() - mean) / std
            _check_finite(scaled, "targets: expected finite numbers")
            return scaled.reshape(y.shape).to(y.dtype if y.is_floating_point() else torch.float32)
        if y.is_floating_point() or y.dim() != 1:
            raise ValueError(f"labels: expected whole numbers [N], found {y.dtype} {list(y.shape)}")
        if len(y) and not 0 <= int(y.min()) <= int(y.max()) < outputs:
            from_one = (int(y.min()), int(y.max())) == (1, outputs)
            remedy = "subtract 1" if from_one else "points without a label (ignore_index) must be left out"
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
        if _is_text(y):
            classes = sorted(set(_texts(y)))
            count = _other_count(len(classes), outputs, likelihood)
            if len(classes) != (count or outputs):
                raise ValueError(
                    f"labels: found {len(classes)} classes {classes[:5]}, the module has {outputs} outputs"
                )
            return cls(True, classes, count=count)
        held = _tensor(y, None)
        regression = held.is_floating_point() if likelihood is None else likelihood.has_noise
        found = 0 if not len(held) else held[:1].numel() if regression else int(held.max()) + 1
        count = _other_count(found, outputs, likelihood)
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
        _check_finite(rows, "targets: expected finite numbers")
        if not standardise:
            return cls(False, None, (0.0,) * rows.shape[1], (1.0,) * rows.shape[1], count)
        std = rows.std(0, correction=0)
        return cls(False, None, tuple(rows.mean(0).tolist()), tuple(torch.where(std > 0, std, 1.0).tolist()), count)


def training_data(
    x: Tensor,
    y: Any,
    targets: Targets,
    outputs: int,
    device: torch.device,
    dtype: torch.dtype,
    validation: Data | None = None,
    contexts: Mapping[str, Any] = MappingProxyType({}),
) -> TrainingData:
    """Return data in memory as training takes them; tokens too become floating-point numbers, which the network
    converts back.
    """

    def same(place: str, given: Any) -> Tensor:
        found = torch.as_tensor(given)
        if found.shape[1:] != x.shape[1:]:
            expected = str(["N", *x.shape[1:]]).replace("'", "")
            raise ValueError(f"{place}: expected inputs {expected}, found {list(found.shape)}")
        return found.to(device, dtype)

    def pair(place: str, x: Tensor, y: Any) -> tuple[Tensor, Tensor]:
        return same(place, x), _real(targets.encode(y, outputs).to(device), dtype)

    def context(name: str, pool: Any) -> Tensor:
        place = f"contexts: {name!r}"
        if not len(found := same(place, inputs(pool, place))):
            raise ValueError(f"{place}: expected inputs, found none")
        return found

    own, labels = pair("data", x, y)
    held = None if validation is None else [pair("validation", *read(validation))]
    pools = {name: context(name, pool) for name, pool in contexts.items()}
    return TrainingData(own[None], labels[None], own.amin(0)[None], own.amax(0)[None], held, pools)


def streamed(
    data: Data, survey: Survey, seed: int, targets: Targets, outputs: int, training: TrainingData
) -> TrainingData:
    """Return training data of a few points that stand for all that a loader yields, read again at each epoch."""
    x, y = training.x, training.y

    def batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        with drawn_from(seed_from("loader", seed, epoch)):
            empty = True
            for inputs, labels in map(_pair, data):
                empty = False
                yield inputs.to(x), _real(targets.encode(labels, outputs).to(y.device), x.dtype)
        if empty:
            raise ValueError(
                f"data: expected a batch or more in each epoch, found none in epoch {epoch + 1}; leave drop_last off, "
                "and give a data set that can be read again"
            )

    n = len(survey.y)
    return replace(
        training,
        x=cast(Tensor, Unheld((1, n, *x.shape[2:]), x.device, True)),
        y=cast(Tensor, Unheld((1, n, *y.shape[2:]), x.device, y.is_floating_point())),
        low=survey.low[None].to(x),
        high=survey.high[None].to(x),
        batches=batches,
        steps=survey.steps,
    )


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """Set torch's random numbers to a seed within this context."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _real(y: Tensor, dtype: torch.dtype) -> Tensor:
    return y.to(dtype) if y.is_floating_point() else y


class Unheld:
    """Inputs or targets that are read again at each epoch and not held in memory. It has their shape, and raises
    NotSupported wherever a method needs all values at once."""

    def __init__(self, shape: Sequence[int], device: torch.device, floating: bool):
        self.shape, self.device, self._floating = torch.Size(shape), device, floating

    def is_floating_point(self) -> bool:
        """Return whether the values are floating-point numbers."""
        return self._floating

    def dim(self) -> int:
        """Return the number of axes."""
        return len(self.shape)

    def __getattr__(self, name: str) -> NoReturn:
        raise NotSupported(
            "this method needs all training data at once (for a prior, a fit or a sampler), and the loader is read "
            "again at each epoch; give data in memory (stream=False), or another method"
        )

    def __getitem__(self, index: Any) -> NoReturn:
        self.__getattr__("[]")

    @classmethod
    def __torch_function__(cls, *call: Any, **options: Any) -> NoReturn:
        cls.__getattr__(cls, "call")  # type: ignore[arg-type]


def array(values: Any) -> Any:
    """Return the values of a frame or a column of pandas or Polars as an array; other values as they are. Arrays read
    backwards or with another processor's order of bytes, which torch does not take, are copied."""
    found = np.array(values) if hasattr(values, "to_numpy") else values
    if isinstance(found, np.ndarray) and (not found.dtype.isnative or min(found.strides, default=0) < 0):
        found = found.astype(found.dtype.newbyteorder("="), order="C")
    return found


def inputs(x: Any, place: str = "x") -> Tensor:
    """Return inputs as a tensor, mixed columns of numbers in float64; place: their name in messages.

    Raises TypeError for text and for no numbers, ValueError for NaN and infinity.
    """
    found = array(x)
    try:
        tensor = torch.as_tensor(found.astype(np.float64) if getattr(found, "dtype", None) == np.object_ else found)
    except (RuntimeError, TypeError, ValueError) as error:
        text = hasattr(found, "dtype")
        remedy = "encode text, as pandas.get_dummies does" if text else "predict each batch of a loader by itself"
        raise TypeError(f"{place}: expected numbers [N, ...], found {type(x).__name__}; {remedy} ({error})") from error
    _check_finite(tensor, f"{place}: expected finite inputs", getattr(x, "columns", None))
    return tensor


def _check_finite(found: Tensor, expected: str, columns: Any = None) -> None:
    wrong = (~torch.isfinite(found)).nonzero()
    if len(wrong):
        row, *rest = wrong[0].tolist()
        several = len(rest) == 1 and found.shape[1] > 1
        column = f", column {rest[0] if columns is None else columns[rest[0]]!r}" if several else ""
        raise ValueError(
            f"{expected}, found NaN or infinity in {len(wrong[:, 0].unique())} of {len(found)}, the first in row "
            f"{row}{column}; leave these points out or fill them in"
        )


def _held(values: Any) -> bool:
    return torch.is_tensor(values) or hasattr(values, "__array__")


def in_order(data: Data) -> Iterable[Any]:
    """Batches (x, y) of all points: of a DataLoader that draws each point once, in the order of its data set."""
    if isinstance(data, tuple | list) and data:
        first = data[0]
        if isinstance(first, list) and first and not _held(first[0]):
            raise TypeError("data: expected x as a tensor or an array, found a list: give torch.tensor(x)")
        if len(data) == 2 and _held(first):
            return [tuple(data)]
    if isinstance(data, DataLoader):
        indices = _indices(data)
        if indices is None:
            return data
        options: dict[str, Any] = {"collate_fn": data.collate_fn, "num_workers": data.num_workers}
        return DataLoader(Subset(data.dataset, indices), batch_size=data.batch_size or READ, **options)
    return DataLoader(data, batch_size=READ) if isinstance(data, Dataset) else data


def read(data: Data) -> tuple[Tensor, Any]:
    """Return inputs ``[N, ...]`` and targets of all points, the latter as a tensor or a list of text."""
    pairs = [(x, y) for x, y in map(_pair, in_order(data)) if len(x)]
    if not pairs:
        raise ValueError("data: expected points, found none")
    x, y = zip(*pairs, strict=True)
    return torch.cat(x), _joined(y)


def changes(data: Data) -> bool:
    """Return whether a DataLoader gives other inputs at each reading (augmentation), or draws its points at random."""
    if not isinstance(data, DataLoader) or isinstance(data.dataset, IterableDataset) or data.batch_sampler is None:
        return False
    if _indices(data) is None:
        return True
    with torch.random.fork_rng(devices=[]):
        first, second = (_pair(next(iter(in_order(data))))[0] for _ in range(2))
    return not torch.equal(first, second)


@dataclass(frozen=True)
class Survey:
    """Result of one reading of a loader: some inputs, the bounds ``[...]`` of all, all targets, and the number of
    batches."""

    x: Tensor
    low: Tensor
    high: Tensor
    y: Any
    steps: int

    @classmethod
    def of(cls, data: Data) -> Survey:
        """Read a loader once, a batch at a time."""
        batches = map(_pair, in_order(data))
        first = next(batches, None)
        if first is None:
            raise ValueError("data: expected points, found none")
        some, y = first
        low, high, targets = some.amin(0), some.amax(0), [y]
        for x, y in batches:
            low, high = low.minimum(x.amin(0)), high.maximum(x.amax(0))
            targets.append(y)
        sized = hasattr(data, "__len__") and not isinstance(getattr(data, "dataset", None), IterableDataset)
        steps = len(data) if sized else len(targets)
        return cls(some, low, high, _joined(targets), steps)


def _indices(loader: DataLoader) -> list[int] | None:
    """Return the points of a data set that a loader draws, if each is drawn once in each epoch; else None."""
    if isinstance(loader.dataset, IterableDataset) or loader.batch_sampler is None:
        return None
    own: Any = loader.sampler if type(loader.batch_sampler) is BatchSampler else loader.batch_sampler
    with torch.random.fork_rng(devices=[]):
        drawn, again = (np.sort(np.concatenate([np.atleast_1d(each) for each in own])) for _ in range(2))
    return drawn.tolist() if np.array_equal(drawn, again) and len(np.unique(drawn)) == len(drawn) else None


def _pair(batch: Any) -> tuple[Tensor, Any]:
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        if not isinstance(batch, tuple | list):
            loader = isinstance(batch, Mapping)
            remedy = "; give the DataLoader a collate_fn that returns (x, y)" if loader else ""
            raise TypeError(f"data: expected a pair (x, y) or batches (x, y), found {type(batch).__name__}{remedy}")
        raise TypeError(
            f"data: expected batches (x, y), found {len(batch)} of them; weights of points are not supported"
        )
    x, y = inputs(batch[0], "data"), array(batch[1])
    several = isinstance(y, list | tuple) or (isinstance(y, Tensor | np.ndarray) and y.ndim > 0)
    if not several or len(y) != len(x):
        found = len(y) if several else type(y).__name__
        raise ValueError(f"data: expected a target for each of {len(x)} inputs, found {found}")
    return x, y


def _joined(pieces: Sequence[Any]) -> Any:
    if any(map(_is_text, pieces)):
        return [each for piece in pieces for each in piece]
    return torch.cat([_numbers(piece) for piece in pieces])


def _other_count(found: int, outputs: int, likelihood: Likelihood | None) -> int:
    """Return the number of classes, or of numbers in a target, if the likelihood has other outputs for them, else 0."""
    other = likelihood is not None and found != outputs and likelihood.outputs(found) == outputs
    return found if other else 0


def _is_text(y: Any) -> bool:
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


def _numbers(y: Any) -> Tensor:
    """Return targets as a tensor, whole ones of any type as int64. Raises ValueError for others."""
    try:
        found = torch.as_tensor(y)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"targets: expected numbers, or labels of text, found {type(y).__name__} ({error})") from error
    return found if found.is_floating_point() else found.long()


def _tensor(y: Any, classes: list[str] | None) -> Tensor:
    if classes is not None:
        numbers = {name: number for number, name in enumerate(classes)}
        given = [str(each) for each in y]
        unknown = sorted(set(given) - numbers.keys())
        if unknown:
            raise ValueError(f"labels: expected {', '.join(classes)}, found {', '.join(unknown[:5])}")
        return torch.tensor([numbers[each] for each in given])
    return _numbers(y)
