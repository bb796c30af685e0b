"""Data as users have them: pairs of tensors, arrays, frames or lists, data sets, DataLoaders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, NoReturn, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, Subset

from fvi_core.data import TrainingData
from fvi_core.families.base import NotSupported
from fvi_core.random import seed_from
from fvi_core.targets import Targets, check_finite, is_text, numbers_of

Data = Any
"""A pair (x, y), a Dataset of such pairs, or a DataLoader or another iterable of batches (x, y)."""
READ = 256
"""Points of a Dataset read together."""
COMPARED = 32
"""Points of a loader read twice: if it flips each with probability 1/2, it seems unchanging once in 2^32 readings."""


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

    def same(place: str, values: Any) -> Tensor:
        tensor = torch.as_tensor(values)
        if tensor.shape[1:] != x.shape[1:]:
            expected = str(["N", *x.shape[1:]]).replace("'", "")
            raise ValueError(f"{place}: expected inputs {expected}, found {list(tensor.shape)}")
        return tensor.to(device, dtype)

    def pair(place: str, x: Tensor, y: Any) -> tuple[Tensor, Tensor]:
        return same(place, x), _real(targets.encode(y, outputs).to(device), dtype)

    def context(name: str, pool: Any) -> Tensor:
        place = f"contexts: {name!r}"
        if not len(points := same(place, inputs(pool, place))):
            raise ValueError(f"{place}: expected inputs, found none")
        return points

    own, labels = pair("data", x, y)
    held = None
    if validation is not None:
        with named_validation():
            held = [pair("validation", *read(validation))]
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
                _check_shape(inputs, x.shape[2:])
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
def named_validation() -> Iterator[None]:
    """Say of errors within this context that they are about the validation data, not about the training data."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError):  # others take other arguments
            raise
        message = str(error).removeprefix("data: ").removeprefix("validation: ")
        raise type(error)(f"validation: {message}") from error


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
    backwards or with another processor's order of bytes, which torch does not take, are copied, and arrays in memory
    that may not be written to, of which it warns."""
    values = np.array(values) if hasattr(values, "to_numpy") else values
    if isinstance(values, np.ndarray):
        locked = not (values.flags.writeable or isinstance(values, np.memmap))
        if locked or not values.dtype.isnative or min(values.strides, default=0) < 0:
            values = values.astype(values.dtype.newbyteorder("="), order="C")
    return values


def target_values(y: Any) -> Any:
    """Return targets as `array` does, one column of text ``[N, 1]`` as ``[N]``."""
    values = array(y)
    column = isinstance(values, np.ndarray) and values.dtype.kind in "OSU" and values.shape[1:] == (1,)
    return values[:, 0] if column else values


def inputs(x: Any, place: str = "x") -> Tensor:
    """Return inputs as a tensor, mixed columns of numbers in float64; place: their name in messages.

    Raises TypeError for text and for no numbers, ValueError for NaN, missing values and infinity.
    """
    if hasattr(x, "toarray") or (isinstance(x, Tensor) and x.layout != torch.strided):
        raise TypeError(
            f"{place}: expected a dense array, found a sparse {type(x).__name__}; give x.toarray(), of a tensor "
            "x.to_dense()"
        )
    values = array(x)
    if getattr(values, "dtype", None) == np.object_ and hasattr(x, "isna"):  # pandas.NA is no number
        values = np.where(x.isna(), np.nan, values)
    try:
        tensor = torch.as_tensor(values.astype(np.float64) if getattr(values, "dtype", None) == np.object_ else values)
    except (RuntimeError, TypeError, ValueError) as error:
        remedy = "predict each batch of a loader by itself" if place == "x" else "give one tensor for each input"
        if hasattr(values, "dtype"):
            remedy = "encode text, as pandas.get_dummies does, and dates"
        column = next((f", column {name!r}" for name in getattr(x, "columns", ()) if not _numeric(x[name])), "")
        found = f"{place}: expected numbers [N, ...], found {type(x).__name__}"
        raise TypeError(f"{found}; {remedy} ({error}{column})") from error
    check_finite(tensor, f"{place}: expected finite inputs", getattr(x, "columns", None))
    return tensor


def _numeric(column: Any) -> bool:
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def columns_of(data: Data) -> dict[str, list[str] | None]:
    """Return the column names of frames of inputs and, in a pair, of targets; None for other data and for columns with
    numbers for names."""
    x, y = data if isinstance(data, tuple | list) and len(data) == 2 else (data, None)
    return {"columns": _names(x), "target_columns": _names(y)}


def _names(values: Any) -> list[str] | None:
    names = list(getattr(values, "columns", []))
    return names if names and all(isinstance(each, str) for each in names) else None


def check_columns(known: Mapping[str, Any], **places: Data) -> None:
    """Raise ValueError for frames whose columns have other names or another order than those in training, ``known`` as
    :func:`columns_of` returns them."""
    for place, data in places.items():
        for part, found in columns_of(data).items():
            expected = known.get(part)
            if expected is not None and found is not None and found != list(expected):
                was, now = (", ".join(map(repr, names)) for names in (expected, found))
                which = "target columns" if part == "target_columns" else "columns"
                raise ValueError(f"{place}: expected the {which} {was}, in this order as in training, found {now}")


def _is_array(values: Any) -> bool:
    return torch.is_tensor(values) or hasattr(values, "__array__") or hasattr(values, "toarray")


def in_order(data: Data) -> Iterable[Any]:
    """Batches (x, y) of all points: of a DataLoader that draws each point once, in the order of its data set."""
    if isinstance(data, tuple | list) and data:
        first = data[0]
        if isinstance(first, list) and first and not _is_array(first[0]):
            raise TypeError("data: expected x as a tensor or an array, found a list: give torch.tensor(x)")
        if len(data) == 2 and _is_array(first):
            return [tuple(data)]
    if isinstance(data, DataLoader):
        indices = _indices(data)
        if indices is None:
            return data
        options: dict[str, Any] = {"collate_fn": data.collate_fn, "num_workers": data.num_workers}
        return DataLoader(Subset(data.dataset, indices), batch_size=data.batch_size or READ, **options)
    if isinstance(data, Dataset):
        return DataLoader(data, batch_size=READ)
    try:
        return iter(data)
    except TypeError:
        raise TypeError(
            f"data: expected a pair (x, y), a Dataset or a DataLoader, found {type(data).__name__}"
        ) from None


def read(data: Data) -> tuple[Tensor, Any]:
    """Return inputs ``[N, ...]`` and targets of all points, the latter as a tensor or a list of text."""
    pairs = [(x, y) for x, y in map(_pair, in_order(data)) if len(x)]
    if not pairs:
        raise ValueError("data: expected points, found none")
    x, y = zip(*pairs, strict=True)
    for each in x:
        _check_shape(each, x[0].shape[1:])
    return torch.cat(x), _joined(y)


def changes(data: Data) -> bool:
    """Return whether a DataLoader gives other inputs at each reading (augmentation), or draws its points at random."""
    if not isinstance(data, DataLoader) or isinstance(data.dataset, IterableDataset) or data.batch_sampler is None:
        return False
    if _indices(data) is None:
        return True
    with torch.random.fork_rng(devices=[]):
        first, second = (list(islice(_inputs_of(in_order(data)), COMPARED)) for _ in range(2))
    return not all(map(torch.equal, first, second))


def _inputs_of(batches: Iterable[Any]) -> Iterator[Tensor]:
    """Inputs of batches, one by one."""
    return chain.from_iterable(_pair(batch)[0] for batch in batches)


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
            _check_shape(x, some.shape[1:])
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
    if not isinstance(batch, tuple | list):
        remedy = "; give the DataLoader a collate_fn that returns (x, y)" if isinstance(batch, Mapping) else ""
        raise TypeError(f"data: expected a pair (x, y) or batches (x, y), found {type(batch).__name__}{remedy}")
    if len(batch) != 2:
        weights = "; weights of points are not supported" if len(batch) > 2 else ""
        raise TypeError(f"data: expected batches (x, y), found {len(batch)} of them{weights}")
    check_rows(*batch)
    x, y = inputs(batch[0], "data"), target_values(batch[1])
    several = isinstance(y, list | tuple) or (isinstance(y, Tensor | np.ndarray) and y.ndim > 0)
    if not several or len(y) != len(x):
        found = len(y) if several else type(y).__name__
        raise ValueError(f"data: expected a target for each of {len(x)} inputs, found {found}")
    return x, y


def _check_shape(x: Tensor, expected: torch.Size) -> None:
    """Raise ValueError for a batch of inputs of another shape than those before."""
    if x.shape[1:] != expected:
        shapes = (str(["N", *shape]).replace("'", "") for shape in (expected, x.shape[1:]))
        raise ValueError(
            "data: expected inputs of one shape in all batches, found {} and {}; pad them to one length".format(*shapes)
        )


def check_rows(x: Any, y: Any) -> None:
    """Raise ValueError for frames whose indices have the same labels in another order: rows are paired by position."""
    mine, other = (getattr(each, "index", None) if hasattr(each, "to_numpy") else None for each in (x, y))
    if mine is None or other is None or len(mine) != len(other) or not mine.is_unique or mine.equals(other):
        return
    if mine.isin(other).all():
        raise ValueError(
            "data: rows of x and y are paired by position, and their indices have the same labels in another order; "
            "give y.loc[x.index] to pair them by label, y.to_numpy() to pair them as they stand"
        )


def _joined(pieces: Sequence[Any]) -> Any:
    if any(map(is_text, pieces)):
        return [each for piece in pieces for each in piece]
    return torch.cat([numbers_of(piece) for piece in pieces])
