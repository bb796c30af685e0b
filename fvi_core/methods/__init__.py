"""The catalogue: every method is a named row that picks a family, a divergence, a prior and a context.

Each module of this package, and each plug-in (:mod:`fvi_core.plugins`), may add rows with :func:`add`, and new parts
with the registries of :mod:`fvi_core.registry`. Nothing else needs to know.
"""

from __future__ import annotations

import copy
import importlib
import pkgutil
from dataclasses import dataclass, field, replace
from typing import Any

from fvi_core import plugins
from fvi_core.registry import PartSpec
from fvi_core.spelling import nearest

Parts = dict[str, Any]
PARTS = ("family", "divergence", "prior", "context", "weight", "fit")


class UnknownMethod(KeyError):
    """No catalogue row of that name; the message names the nearest."""

    def __str__(self) -> str:
        return self.args[0]


@dataclass(frozen=True)
class Method:
    """One row of the catalogue: the four parts with their hyper-parameters, and the weight of the divergence.

    ``fit``: what is done to the trained parameters before they predict (a Laplace approximation, say). ``likelihood``
    and ``training``, where they are given, stand in for those of every table that does not name the same.
    ``aliases`` are other names that papers use for it. ``trained_as``: the method whose trainings it shares; its fit
    part is then fitted anew by each evaluation, to their parameters, and its name is "<trained_as> (<fit part>)".
    """

    name: str
    description: str
    paper: str
    family: PartSpec
    divergence: PartSpec | None = None
    prior: PartSpec | None = None
    context: PartSpec | None = None
    weight: PartSpec = field(default_factory=lambda: {"scaling": "elbo", "factor": 1.0})
    fit: PartSpec | None = None
    likelihood: PartSpec | None = None
    training: PartSpec | None = None
    aliases: tuple[str, ...] = ()
    trained_as: str | None = None

    def parts(self) -> Parts:
        """The four parts and the weight as a fresh plain dict."""
        return copy.deepcopy({name: getattr(self, name) for name in PARTS})

    def own_parts(self) -> Parts:
        """The parts that a table else chooses and that this method brings itself, as a fresh plain dict."""
        own = {"likelihood": self.likelihood, "training": self.training}
        return copy.deepcopy({name: part for name, part in own.items() if part is not None})


_ROWS: dict[str, Method] = plugins.track({})


def add(method: Method) -> Method:
    """Put a row into the catalogue. Raises ValueError if its name or an alias is taken."""
    load_own()  # else a name that is taken would be noticed too late
    taken = {name for row in _ROWS.values() for name in (row.name, *row.aliases)}
    for name in (method.name, *method.aliases):
        if name in taken:
            raise ValueError(f"two methods are named {name!r}; give one of them another name")
    if method.trained_as is not None:
        _check_shared(method, _ROWS.get(method.trained_as))
    _ROWS[method.name] = method
    return method


def _check_shared(method: Method, base: Method | None) -> None:
    where = f"method {method.name!r}, trained as {method.trained_as!r}"
    if base is None or base.fit is not None or base.trained_as is not None or method.fit is None:
        raise ValueError(
            f"{where}: expected a fit part, and a method of the catalogue that has none and is trained itself"
        )
    if replace(method, name=base.name, description="", paper="", fit=None, aliases=(), trained_as=None) != replace(
        base, description="", paper="", aliases=()
    ):
        raise ValueError(f"{where}: expected the same parts but for fit, found others")
    if method.name != fitted_name(base.name, method.fit):
        raise ValueError(f"{where}: expected the name {fitted_name(base.name, method.fit)!r}")


def fitted_name(method: str, fit: PartSpec) -> str:
    """The name of a method whose trained parameters get a fit part afterwards."""
    return f"{method} ({fit['name']})"


def catalogue() -> dict[str, Method]:
    """All rows by name, in the order of their files. Raises :class:`~fvi_core.plugins.PluginError`."""
    _load()
    return dict(_ROWS)


def get(name: str) -> Method:
    """The row of that name or alias. Raises :class:`UnknownMethod`, :class:`~fvi_core.plugins.PluginError`."""
    _load()
    for method in _ROWS.values():
        if name == method.name or name in method.aliases:
            return method
    raise UnknownMethod(f"no method {name!r}; {nearest(name, _ROWS)}")


def _load() -> None:
    load_own()
    plugins.load()


def load_own() -> None:
    """Import the rows of this project."""
    if not _own:
        _own.extend(sorted(info.name for info in pkgutil.iter_modules(__path__)))
        for module in _own:
            importlib.import_module(f"{__name__}.{module}")


_own: list[str] = []  # modules of this package, from when their import begins
