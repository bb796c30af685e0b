"""The catalogue: every method is a named row that picks a family, a divergence, a prior and a context.

Each module of this package (and each file named in the environment variable ``FVI_METHODS``, separated as in ``PATH``) may add
rows with :func:`add`, and new parts with the registries of :mod:`fvi_core.registry`. Nothing else needs to know of them.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
import os
import pkgutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fvi_core.registry import nearest

PARTS = ("family", "divergence", "prior", "context", "weight")


class UnknownMethod(KeyError):
    """No catalogue row of that name; the message names the nearest."""

    def __str__(self) -> str:
        return self.args[0]


@dataclass(frozen=True)
class Method:
    """One row of the catalogue: the four parts with their hyper-parameters, and the weight of the divergence.

    ``aliases`` are other names that papers use for it.
    """

    name: str
    description: str
    paper: str
    family: dict[str, Any]
    divergence: dict[str, Any] | None = None
    prior: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    weight: dict[str, Any] = field(default_factory=lambda: {"scaling": "elbo", "factor": 1.0})
    aliases: tuple[str, ...] = ()

    def parts(self) -> dict[str, Any]:
        """The four parts and the weight as a fresh plain dict."""
        return copy.deepcopy({name: getattr(self, name) for name in PARTS})


_ROWS: dict[str, Method] = {}


def add(method: Method) -> Method:
    """Put a row into the catalogue. Raises ValueError if the name is taken."""
    if method.name in _ROWS:
        raise ValueError(f"two methods are named {method.name!r}; give one of them another name")
    _ROWS[method.name] = method
    return method


def catalogue() -> dict[str, Method]:
    """All rows by name, in the order of their files."""
    _load()
    return dict(_ROWS)


def get(name: str) -> Method:
    """The row of that name or alias. Raises :class:`UnknownMethod`."""
    _load()
    for method in _ROWS.values():
        if name == method.name or name in method.aliases:
            return method
    raise UnknownMethod(f"no method {name!r}; {nearest(name, _ROWS)}")


_loaded: set[str] = set()


def _load() -> None:
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        if module not in _loaded:
            importlib.import_module(f"{__name__}.{module}")
            _loaded.add(module)
    for path in filter(None, os.environ.get("FVI_METHODS", "").split(os.pathsep)):
        if path not in _loaded:
            if not Path(path).is_file():
                raise FileNotFoundError(f"FVI_METHODS names {path}, which is not a file; give Python files that call add(Method(...))")
            spec = importlib.util.spec_from_file_location(f"fvi_methods_{len(_loaded)}", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            _loaded.add(path)


def source_digest(cls):
    return None
