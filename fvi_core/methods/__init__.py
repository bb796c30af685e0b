"""Catalogue of methods: every method is a named row that picks a family, a divergence, a prior and a context.

:mod:`fvi_core.methods.rows` and each plug-in (:mod:`fvi_core.plugins`) may add rows with :func:`add`, and new parts
with the registries of :mod:`fvi_core.registry`.
"""

from __future__ import annotations

from dataclasses import replace

from fvi_core import plugins
from fvi_core.methods.method import PARTS, Method, fitted_name  # noqa: F401  (also for the rooms that read rows)
from fvi_core.methods.rows import ROWS
from fvi_core.spelling import nearest

__all__ = ["Method", "UnknownMethod", "add", "catalogue", "get"]


class UnknownMethod(KeyError):
    """No catalogue row of that name; the message names the nearest.

    >>> get("FSVVI")
    Traceback (most recent call last):
    fvi_core.methods.UnknownMethod: no method 'FSVVI'; did you mean 'FSVI' or 'GFSVI' or 'MFVI'?
    """

    def __str__(self) -> str:
        return self.args[0]


_ROWS: dict[str, Method] = {}


def add(method: Method) -> Method:
    """Add a row to the catalogue. Raises ValueError if its name or an alias is taken.

    >>> base = get("FSVI")
    >>> mine = add(replace(base, name="Wide FSVI", aliases=(), prior={**base.prior, "variance": 10.0}))
    >>> get("Wide FSVI").prior["variance"]
    10.0
    """
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
    trained = replace(method, name=base.name, description="", paper="", fit=None, aliases=(), trained_as=None)
    if trained != replace(base, description="", paper="", aliases=()):
        raise ValueError(f"{where}: expected the same parts but for fit, found others")
    if method.name != fitted_name(base.name, method.fit):
        raise ValueError(f"{where}: expected the name {fitted_name(base.name, method.fit)!r}")


def catalogue() -> dict[str, Method]:
    """Return all rows by name, in the order of their files. Raises :class:`~fvi_core.plugins.PluginError`.

    >>> {"MAP", "FSVI", "GFSVI"} <= catalogue().keys()
    True
    """
    plugins.load()
    return dict(_ROWS)


def brought(name: str) -> bool:
    """Return whether a row is a plug-in's.

    >>> brought("FSVI")
    False
    """
    return get(name) not in ROWS


def get(name: str) -> Method:
    """Return the row of a name or alias. Raises :class:`UnknownMethod`, :class:`~fvi_core.plugins.PluginError`.

    >>> get("FSVI").divergence["name"]
    'gaussian_kl'
    """
    plugins.load()
    for method in _ROWS.values():
        if name == method.name or name in method.aliases:
            return method
    raise UnknownMethod(f"no method {name!r}; {nearest(name, _ROWS)}")


for _row in ROWS:
    add(_row)
plugins.track(_ROWS)  # a broken plug-in that imports this module first leaves these rows
