"""Catalogue of methods: every method is a named row that picks a family, a divergence, a prior and a context.

Each module of this package, and each plug-in (:mod:`fvi_core.plugins`), may add rows with :func:`add`, and new parts
with the registries of :mod:`fvi_core.registry`.
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

__all__ = ["Method", "UnknownMethod", "add", "catalogue", "get"]

Parts = dict[str, Any]
PARTS = ("family", "divergence", "prior", "context", "weight", "fit")


class UnknownMethod(KeyError):
    """No catalogue row of that name; the message names the nearest.

    >>> get("FSVVI")
    Traceback (most recent call last):
    fvi_core.methods.UnknownMethod: no method 'FSVVI'; did you mean 'FSVI' or 'GFSVI' or 'MFVI'?
    """

    def __str__(self) -> str:
        return self.args[0]


@dataclass(frozen=True)
class Method:
    """Row of the catalogue: the four parts with their hyper-parameters, and the weight of the divergence.

    ``fit``: part that changes trained parameters before prediction (a Laplace approximation, say). ``likelihood`` and
    ``training``, if given, replace a table's parts of another name. ``aliases``: other names in papers. ``trained_as``:
    the method whose trainings it shares; each evaluation then fits the fit part to their parameters, and the method's
    name is "<trained_as> (<fit part>)".

    >>> Method("Mine", "one network", "", family={"name": "point"}).family
    {'name': 'point'}
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
        """Return the four parts and the weight as a new plain dict.

        >>> get("MAP").parts()["divergence"]
        {'name': 'weight_penalty'}
        """
        return copy.deepcopy({name: getattr(self, name) for name in PARTS})

    def own_parts(self) -> Parts:
        """Return the method's own likelihood and training, which tables choose otherwise, as a new plain dict.

        >>> get("MAP").own_parts()
        {}
        """
        own = {"likelihood": self.likelihood, "training": self.training}
        return copy.deepcopy({name: part for name, part in own.items() if part is not None})


_ROWS: dict[str, Method] = plugins.track({})


def add(method: Method) -> Method:
    """Add a row to the catalogue. Raises ValueError if its name or an alias is taken.

    >>> base = get("FSVI")
    >>> mine = add(replace(base, name="Wide FSVI", aliases=(), prior={**base.prior, "variance": 10.0}))
    >>> get("Wide FSVI").prior["variance"]
    10.0
    """
    load_own()  # otherwise a repeated name would be noticed too late
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
    """Return the name of a method that applies a fit part to trained parameters of another."""
    return f"{method} ({fit['name']})"


def catalogue() -> dict[str, Method]:
    """Return all rows by name, in the order of their files. Raises :class:`~fvi_core.plugins.PluginError`.

    >>> {"MAP", "FSVI", "GFSVI"} <= catalogue().keys()
    True
    """
    _load()
    return dict(_ROWS)


def get(name: str) -> Method:
    """Return the row of a name or alias. Raises :class:`UnknownMethod`, :class:`~fvi_core.plugins.PluginError`.

    >>> get("FSVI").divergence["name"]
    'gaussian_kl'
    """
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
