"""Guards against code from outside: settings of the process are restored after it, tensors that parts share must not
be changed by it."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

FRESH = {"dtype": "float32", "device": "cpu", "gradients": True, "products": "highest", "algorithms": False}
"""Settings of PyTorch as it is imported."""


@contextmanager
def restored() -> Iterator[None]:
    """Put settings of Python, NumPy and PyTorch that other runs depend on back when the block ends."""
    before = {name: value for name, (value, _) in _settings().items()}
    with warnings.catch_warnings():
        try:
            yield
        finally:
            for name, (value, put) in _settings().items():
                if (old := before.get(name, FRESH.get(name, value))) != value:
                    put(old)


def _settings() -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    """Return the value of each setting, and the function that sets it."""
    settings: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "errors": (np.geterr(), lambda kinds: np.seterr(**kinds)),
        "folder": (_folder(), os.chdir),
    }
    if torch := sys.modules.get("torch"):
        settings |= {
            "dtype": (
                str(torch.get_default_dtype()).removeprefix("torch."),
                lambda name: torch.set_default_dtype(getattr(torch, name)),
            ),
            "device": (
                str(torch.get_default_device()),
                lambda name: torch.set_default_device(None if name == "cpu" else name),
            ),
            "gradients": (torch.is_grad_enabled(), torch.set_grad_enabled),
            "threads": (torch.get_num_threads(), torch.set_num_threads),
            "products": (torch.get_float32_matmul_precision(), torch.set_float32_matmul_precision),
            "algorithms": (torch.are_deterministic_algorithms_enabled(), torch.use_deterministic_algorithms),
        }
    return settings


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return os.sep


class ChangedInPlace(ValueError):
    """A part wrote into tensors that others use too."""


@contextmanager
def unchanged(stage: str, tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """Raise ChangedInPlace if any of the tensors, by name, is written into before the block ends.

    PyTorch counts the writes to a tensor and to its views (``Tensor._version``). A write through ``Tensor.data`` or a
    NumPy array is not counted.
    """
    before = {name: tensor._version for name, tensor in tensors.items()}
    yield
    changed = [name for name, tensor in tensors.items() if tensor._version != before[name]]
    if changed:
        raise ChangedInPlace(
            f"a part of the run wrote into {', '.join(changed[:3])} in place during {stage}, where they are shared: "
            "let it change a copy (x.clone(), or x - 1 in place of x -= 1)"
        )
