"""Decorator for Numba, where it is installed; compiled code is cached on disk only in a writable folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

try:
    import numba
except ImportError:  # then tensor operations replace it
    numba = None  # type: ignore[assignment]  # None tells that it is absent

F = TypeVar("F", bound=Callable[..., Any])


def njit(**options: Any) -> Callable[[F], F]:
    """Return a decorator like ``numba.njit(cache=True, **options)``.

    Numba refuses to cache where neither the folder of the code, nor the user's, nor $NUMBA_CACHE_DIR can be written (a
    container's user without an account, read-only code): then every process compiles for itself.
    """

    def compiled(function: F) -> F:
        try:
            return numba.njit(cache=True, **options)(function)
        except (RuntimeError, OSError):  # "no locator available"
            _say()
        return numba.njit(**options)(function)

    return compiled


@cache
def _say() -> None:
    warnings.warn(
        "compiled code cannot be cached in any folder, so every process compiles for seconds: "
        "set NUMBA_CACHE_DIR to a folder that you may write",
        stacklevel=3,
    )
