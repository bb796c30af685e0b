"""Plug-ins: files and folders in ``FVI_PLUGINS`` (separated as in ``PATH``), and installed packages.

A plug-in is ordinary Python that registers methods, parts, data sets, metrics or tables. A folder with an
``__init__.py`` is a package; in any other folder every Python file is a plug-in. Packages are found by the entry-point
group ``fvi_bench.plugins``. :func:`load` runs each once in a process, and must be called before names are looked up.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from fvi_core.printing import message
from fvi_core.registry import REGISTRIES
from fvi_core.settings import restored

VARIABLE, GROUP = "FVI_PLUGINS", "fvi_bench.plugins"
ORIGIN = ".origin"
"""Beside a copy of a plug-in's file: where the file itself is. Its ``__file__`` names that, so that it finds its data.
"""


class PluginError(ValueError):
    """A plug-in that cannot be used; the message names the file, the line and the error."""


@dataclass(frozen=True)
class Plugin:
    """One plug-in: the file, or the folder of a package, and its module name; ``package``: the distribution that has
    it."""

    path: Path
    module: str
    package: str = ""

    def contains(self, file: str) -> bool:
        """Return whether a file is the plug-in's."""
        return Path(file) == self.path or self.path in Path(file).parents

    @property
    def title(self) -> str:
        """Who names it, for messages."""
        return f"plug-in of package {self.package}" if self.package else VARIABLE

    @property
    def remedy(self) -> str:
        """Advice to a user on a faulty plug-in."""
        return (
            f"correct it, or uninstall {self.package}"
            if self.package
            else f"correct the file, or take it out of {VARIABLE}"
        )


_TRACKED: list[dict[str, Any]] = []
_loaded: dict[str, Plugin] = {}  # by real path
_settled: list[str] = []  # the value of the variable when all was loaded
_running: dict[int, dict[str, Any]] = {}  # tracked names before the present plug-in; empty if none runs


def track(names: dict[str, Any]) -> dict[str, Any]:
    """Have names that plug-ins add to forgotten, if the plug-in that adds them turns out to be broken. Returns them."""
    _TRACKED.append(names)
    if _running:
        _running[id(names)] = dict(names)
    return names


def load() -> None:
    """Run every plug-in that this process has not run yet. Raises :class:`PluginError`."""
    value = os.environ.get(VARIABLE, "")
    if _running or _settled == [value]:  # a plug-in that looks up names while it runs finds those before it
        return
    for plugin in find():
        key = str(plugin.path)
        if key not in _loaded:
            twin = next((other for other in _loaded.values() if _content(other) == _content(plugin)), None)
            if twin:
                raise PluginError(
                    f"{plugin.title}: {plugin.path} is the same source as {twin.path}; take one of them out"
                )
            _run(plugin)
            _loaded[key] = plugin
    _settled[:] = [value]


def find() -> Iterator[Plugin]:
    """Yield every plug-in, those of the variable first. Raises PluginError for an invalid path."""
    for named in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        path = Path(os.path.realpath(os.path.expanduser(named)))
        files = [path] if path.is_file() or (path / "__init__.py").is_file() else sorted(path.glob("*.py"))
        if not files:
            what = "a folder without Python files" if path.is_dir() else "not there"
            raise PluginError(
                f"{VARIABLE} names {path}, which is {what}; give Python files that add something, or folders of them"
            )
        for file in files:
            place = hashlib.sha256(str(file).encode()).hexdigest()[:8]
            yield Plugin(file, f"fvi_plugins_{re.sub('[^a-zA-Z0-9]', '_', file.stem)}_{place}")
    for point in _installed():
        package = point.dist.name if point.dist else point.name
        try:
            spec = importlib.util.find_spec(point.module)
        except (ImportError, ValueError):
            spec = None
        if spec is None or not spec.origin:
            raise PluginError(
                f"plug-in of package {package}: its entry point {point.name!r} names the module {point.module}, "
                f"which does not exist; install it again, or uninstall {package}"
            )
        path = Path(os.path.realpath(spec.origin))
        yield Plugin(path.parent if path.name == "__init__.py" else path, point.module, package)


@cache
def _installed() -> tuple:
    return tuple(sorted(entry_points(group=GROUP)))


def _run(plugin: Plugin) -> None:
    modules = set(sys.modules)
    _running.update({0: {}} | {id(names): dict(names) for names in _TRACKED})
    try:
        with restored():
            if plugin.package:
                importlib.import_module(plugin.module)
            else:
                _execute(plugin)
    except BaseException as error:
        top = plugin.module.partition(".")[0]
        removed = {name for name in set(sys.modules) - modules if name == top or name.startswith(f"{top}.")}
        for name in removed:
            del sys.modules[name]
        for names in _TRACKED:
            before = _running[id(names)]
            names.clear()
            names.update(before)
        for registry in REGISTRIES.values():
            for name in [name for name, cls in registry.classes.items() if cls.__module__ in removed | {plugin.module}]:
                del registry.classes[name]
        if isinstance(error, PluginError | KeyboardInterrupt):
            raise
        raise PluginError(_fault(plugin, error)) from error
    finally:
        _running.clear()


def _execute(plugin: Plugin) -> None:
    folder = plugin.path if plugin.path.is_dir() else None
    file = str(plugin.path / "__init__.py" if folder else plugin.path)
    loader = SourceFileLoader(plugin.module, file)
    inside = [str(folder)] if folder else None
    spec = importlib.util.spec_from_file_location(plugin.module, file, loader=loader, submodule_search_locations=inside)
    assert spec is not None  # it is given its loader
    module = importlib.util.module_from_spec(spec)
    origin = plugin.path.with_name(ORIGIN)
    if origin.is_file():
        module.__file__ = origin.read_text()
    sys.modules[plugin.module] = module  # dataclasses look for their module here
    loader.exec_module(module)


def _fault(plugin: Plugin, error: BaseException) -> str:
    text = message(error)
    where = _place(error, plugin) or str(plugin.path)
    if isinstance(error, SyntaxError) and error.filename and plugin.contains(error.filename):
        where, text = f"{error.filename}, line {error.lineno}", error.msg
    return f"{plugin.title}: {where}: {type(error).__name__}: {text[:300]}; {_remedy(plugin, error)}"


def _remedy(plugin: Plugin, error: BaseException) -> str:
    folder = plugin.path if plugin.path.is_dir() else plugin.path.parent
    package = f"make {folder} a package (a folder with an __init__.py, named in {VARIABLE})"
    if isinstance(error, ModuleNotFoundError) and (folder / f"{error.name}.py").is_file():
        return f"{f'{package}, and ' * plugin.path.is_file()}write `from . import {error.name}`"
    if isinstance(error, ImportError) and plugin.path.is_file() and "relative import" in str(error):
        return f"{package}, or join the files: a plug-in of one file has no neighbours"
    return plugin.remedy


def place_of(error: BaseException) -> str:
    """Return file and line, " (mine.py, line 3)", of the innermost code of a plug-in that an error, or the error that
    it explains, came through; empty where there is none."""
    if error.__cause__ and (explained := place_of(error.__cause__)):
        return explained
    place = next(filter(None, (_place(error, plugin) for plugin in find())), "")
    return place and f" ({place})"


def _place(error: BaseException, plugin: Plugin) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if plugin.contains(frame.filename)]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else ""


def _content(plugin: Plugin) -> str:
    try:
        return _digest(plugin.path)
    except OSError as error:
        raise PluginError(f"{plugin.title}: {plugin.path} cannot be read ({error}); {plugin.remedy}") from error


def source_digest(cls: type) -> str | None:
    """The :func:`module_digest` of the code that defines a part."""
    return module_digest(cls.__module__, cls.__qualname__)


@cache
def module_digest(module: str, what: str) -> str | None:
    """Return the first 16 digits of the SHA-256 of a module's file, as it is at the first call; None for this project's
    files.

    A module in a package has the digest of all its Python files. Raises :class:`PluginError` without a file.
    """
    if module.partition(".")[0] in ("fvi_core", "datasets"):
        return None
    loaded = sys.modules.get(module)
    file = getattr(getattr(loaded, "__spec__", None), "origin", None) or getattr(loaded, "__file__", None)
    if file is None:
        raise PluginError(
            f"{what} is defined in {module}, which is no file: expected a file, whose digest names the code; "
            f"move it into a file, and name that in {VARIABLE}"
        )
    try:
        return _digest(package_of(Path(file)) or Path(file))[:16]
    except OSError as error:
        raise PluginError(f"{file}, which defines {what}, cannot be read ({error}); put it back") from error


def package_of(file: Path) -> Path | None:
    """The outermost package that a file belongs to, or None."""
    top = None
    for folder in file.parents:
        if not (folder / "__init__.py").is_file():
            break
        top = folder
    return top


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of all Python files of a folder with their names."""
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    for name in sorted(each.relative_to(path).as_posix() for each in path.rglob("*.py")):
        content = (path / name).read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
