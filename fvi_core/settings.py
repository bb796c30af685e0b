"""Settings of the whole process, which code from outside may change for its own ends."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

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
    found: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "errors": (np.geterr(), lambda kinds: np.seterr(**kinds)),
        "folder": (_folder(), os.chdir),
    }
    if torch := sys.modules.get("torch"):
        found |= {
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
    return found


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return os.sep
