"""The catalogue: every method is a named row that picks a family, a divergence, a prior and a context.

Each module of this package, and each file named in the environment variable ``FVI_METHODS`` (as in ``PATH``), may add
rows with :func:`add`, and new parts with the registries of :mod:`fvi_core.registry`. Nothing else needs to know.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import importlib.util
import os
import pkgutil
import re
import sys
import traceback
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from fvi_core.registry import forget, nearest

PARTS = ("family", "divergence", "prior", "context", "weight", "fit")


class UnknownMethod(KeyError):
    """No catalogue row of that name; the message names the nearest."""

    def __str__(self) -> str:
        return self.args[0]


class PluginError(ValueError):
    """A file of one's own that cannot be used; the message names the file, the line and the error."""


@dataclass(frozen=True)
class Method:
    """One row of the catalogue: the four parts with their hyper-parameters, and the weight of the divergence.

    ``fit``: what is done to the trained parameters before they predict (a Laplace approximation, say). ``likelihood``
    and ``training``, where they are given, stand in for those of every table.
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
    fit: dict[str, Any] | None = None
    likelihood: dict[str, Any] | None = None
    training: dict[str, Any] | None = None
    aliases: tuple[str, ...] = ()

    def parts(self) -> dict[str, Any]:
        """The four parts and the weight as a fresh plain dict."""
        return copy.deepcopy({name: getattr(self, name) for name in PARTS})

    def brought(self) -> dict[str, Any]:
        """The parts that a table else chooses and that this method brings itself, as a fresh plain dict."""
        own = {"likelihood": self.likelihood, "training": self.training}
        return copy.deepcopy({name: part for name, part in own.items() if part is not None})


_ROWS: dict[str, Method] = {}


def add(method: Method) -> Method:
    """Put a row into the catalogue. Raises ValueError if its name or an alias is taken."""
    taken = {name for row in _ROWS.values() for name in (row.name, *row.aliases)}
    for name in (method.name, *method.aliases):
        if name in taken:
            raise ValueError(f"two methods are named {name!r}; give one of them another name")
    _ROWS[method.name] = method
    return method


def catalogue() -> dict[str, Method]:
    """All rows by name, in the order of their files. Raises :class:`PluginError`."""
    _load()
    return dict(_ROWS)


def get(name: str) -> Method:
    """The row of that name or alias. Raises :class:`UnknownMethod`, :class:`PluginError`."""
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
    for path in map(os.path.realpath, filter(None, os.environ.get("FVI_METHODS", "").split(os.pathsep))):
        if path not in _loaded:
            _loaded.add(path)  # before it is run, since it may ask for rows itself
            try:
                _run(path)
            except BaseException:
                _loaded.discard(path)
                raise


def _run(path: str) -> None:
    if not Path(path).is_file():
        found = "a folder" if Path(path).is_dir() else "not a file"
        raise PluginError(f"FVI_METHODS names {path}, which is {found}; give Python files that call add(Method(...))")
    place = hashlib.sha256(path.encode()).hexdigest()[:8]
    name = f"fvi_methods_{re.sub('[^a-zA-Z0-9]', '_', Path(path).stem)}_{place}"
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, SourceFileLoader(name, path)))
    rows = dict(_ROWS)
    sys.modules[name] = module  # dataclasses look for their module here
    try:
        module.__spec__.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        _ROWS.clear()
        _ROWS.update(rows)
        forget(name)
        if isinstance(error, PluginError | KeyboardInterrupt):
            raise
        raise PluginError(_fault(path, error)) from error


def _fault(path: str, error: BaseException) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    text = str(error)
    if isinstance(error, SyntaxError) and error.filename == path:
        lines, text = [error.lineno], error.msg
    where = f"{path}, line {lines[-1]}" if lines else path
    what = f"{type(error).__name__}: {' '.join(text.split())[:300]}"
    return f"FVI_METHODS: {where}: {what}; correct the file, or take it out of FVI_METHODS"


@cache
def source_digest(cls: type) -> str | None:
    """The first 16 digits of the SHA-256 of the file that defines a part, as it is at the first call; None if built in.

    If the file's folder is a package, of all Python files in that folder. Raises :class:`PluginError` without a file.
    """
    if cls.__module__.partition(".")[0] == "fvi_core":
        return None
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is None:
        raise PluginError(f"{cls.__qualname__} is defined in {cls.__module__}, which is no file: expected one, to name "
                          "the code that runs; move the part into a file, and let FVI_METHODS name that")
    path = Path(file)
    try:
        if not (path.parent / "__init__.py").is_file():
            return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        digest = hashlib.sha256()
        for name in sorted(each.relative_to(path.parent).as_posix() for each in path.parent.rglob("*.py")):
            content = (path.parent / name).read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    except OSError as error:
        raise PluginError(f"{path}, which defines {cls.__qualname__}, cannot be read ({error}); put it back") from error
    return digest.hexdigest()[:16]
