"""Named parts: a part is a dataclass of JSON-able hyper-parameters, found by name and built from a plain dict."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from inspect import get_annotations
from typing import Any

from fvi_core.spelling import LIMITS, check_limits, nearest

__all__ = ["REGISTRIES", "PartSpec", "Registry", "UnknownPart", "checked", "later", "nested"]


PartSpec = dict[str, Any]
"""Part in a configuration: its name and hyper-parameters, which its class declares."""


class UnknownPart(ValueError):
    """Unknown part or hyper-parameter; the message names the nearest known ones.

    >>> FITS.build({"name": "laplase"})
    Traceback (most recent call last):
    fvi_core.registry.UnknownPart: fit 'laplase' is not known; did you mean 'laplace'?
    """


class Registry:
    """Parts of one kind (families, divergences, ...), each a dataclass registered under a name; ``needs``: a method
    that every part of the kind has.

    >>> sorted(Registry("shape").classes)
    []
    """

    def __init__(self, kind: str, needs: str = ""):
        self.kind, self.needs = kind, needs
        self.classes: dict[str, Any] = {}

    def register(self, name: str):
        """Class decorator that adds a dataclass under ``name``. Raises ValueError for a name that is taken, TypeError
        for a class that cannot be a part.

        >>> shapes = Registry("shape")
        >>> @shapes.register("square")
        ... @dataclasses.dataclass(frozen=True)
        ... class Square:
        ...     side: float = 1.0
        >>> Square.name
        'square'
        """

        def add(cls: Any) -> Any:
            if name in self.classes:
                raise ValueError(f"{self.kind} {name!r} is registered twice: {self.classes[name]} and {cls}")
            fields_of_its_own = vars(cls).get("__dataclass_fields__")
            if fields_of_its_own is None and (get_annotations(cls) or not hasattr(cls, "__dataclass_fields__")):
                raise TypeError(
                    f"{self.kind} {name!r}: expected a dataclass, found {cls.__name__}: put @dataclass(frozen=True) "
                    "between register() and the class"
                )
            if self.needs and not callable(getattr(cls, self.needs, None)):
                raise TypeError(f"{self.kind} {name!r}: {cls.__name__} has no method {self.needs}()")
            self.classes[name] = cls
            cls.name = name
            return cls

        return add

    def build(self, spec: PartSpec) -> Any:
        """Build the part that ``{"name": ..., **hyper-parameters}`` describes. Raises :class:`UnknownPart`, and
        ValueError for a hyper-parameter beyond its limits.

        >>> FITS.build({"name": "laplace", "structure": "kronecker"}).structure
        'kronecker'
        """
        if not isinstance(spec, Mapping):
            found = repr(spec) if isinstance(spec, str | int | float | None) else f"an object {type(spec).__name__}"
            raise UnknownPart(f"{self.kind}: expected {{'name': ..., hyper-parameters}}, found {found}")
        if "name" not in spec:
            raise UnknownPart(f"{self.kind}: a 'name' is needed, found only {sorted(spec)}")
        hyper = dict(spec)
        name = hyper.pop("name")
        if name not in self.classes:
            raise UnknownPart(f"{self.kind} {name!r} is not known; {nearest(name, self.classes)}")
        return make(f"{self.kind} {name!r}", self.classes[name], hyper)


def make(place: str, cls: type, hyper: Mapping[str, Any]) -> Any:
    """Build a dataclass from hyper-parameters. Raises UnknownPart for an unknown or missing one, and ValueError for one
    beyond its limits; ``place``: the dataclass's name in messages.

    >>> make("weight", Weight, {"factor": 0.1}).scaling
    'elbo'
    """
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for key in hyper:
        if key not in fields:
            raise UnknownPart(f"{place} has no hyper-parameter {key!r}; {nearest(key, fields)}")
    for key, field in fields.items():
        if key not in hyper:
            if field.default is field.default_factory is dataclasses.MISSING:
                raise UnknownPart(f"{place}: expected the hyper-parameter {key!r}, found {sorted(hyper) or 'none'}")
            continue
        value, limits, of = hyper[key], field.metadata.get("limits"), field.metadata.get("of")
        if limits and value is not field.default:
            check_limits(f"{place}: {key}", value, str(field.type), **limits)
        if isinstance(of, type) and value is not None:
            if not isinstance(value, Mapping):
                raise UnknownPart(f"{place}: {key}: expected a dict of {sorted(of.__annotations__)}, found {value!r}")
            make(f"{place}: {key}", of, value)
    return cls(**hyper)


def nested(of: Registry | type, default: Any = dataclasses.MISSING) -> Any:
    """Declare a dataclass field that holds specifications of other parts, a dict or a list of dicts.

    ``of``: the registry that builds them, or a dataclass without a name.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Sum:
    ...     kernel: PartSpec = nested(KERNELS, default={"name": "rbf"})
    >>> Sum().kernel
    {'name': 'rbf'}
    """
    metadata = {"of": of}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def checked(default: Any = dataclasses.MISSING, among: Iterable[str] = (), **limits: float) -> Any:
    """Declare a hyper-parameter with limits: ``among`` these names, or a number that is ``least`` or more, ``above``,
    ``most`` or less, ``below`` another, or None where that is the default; in a list, each. :meth:`Registry.build`
    checks them. Raises TypeError for another limit.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Square:
    ...     side: float = checked(1.0, above=0)
    >>> Square()
    Square(side=1.0)
    """
    return dataclasses.field(default=default, metadata=_limits(among, limits))


def later(default: Any, among: Iterable[str] = (), **limits: float) -> Any:
    """Declare a hyper-parameter added when records of the part existed; the default reproduces these records.

    A configuration holds it only if it differs from the default, so that existing records keep their keys; the default
    must never change. Limits as of :func:`checked`.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Square:
    ...     colour: str = later("black")
    >>> Square()
    Square(colour='black')
    """
    return dataclasses.field(default=default, metadata={"later": True, **_limits(among, limits)})


def _limits(among: Iterable[str], limits: dict[str, float]) -> dict[str, Any]:
    if unknown := set(limits) - set(LIMITS):
        raise TypeError(f"limit {min(unknown)!r} is not known; {nearest(min(unknown), [*LIMITS, 'among'])}")
    return {"limits": limits | ({"among": tuple(among)} if among else {})}


REGISTRIES: dict[str, Registry] = {}
"""Registries by kind; each is also a constant of this module, as ``FITS``."""


def _registry(kind: str, needs: str = "") -> Registry:
    return REGISTRIES.setdefault(kind, Registry(kind, needs))


NETWORKS, FAMILIES, DIVERGENCES = _registry("network", "build"), _registry("family"), _registry("divergence")
PRIORS, CONTEXTS, LIKELIHOODS = _registry("prior"), _registry("context"), _registry("likelihood")
KERNELS, OPTIMISERS, SCHEDULES = _registry("kernel"), _registry("optimiser"), _registry("schedule")
TRAININGS, FITS = _registry("training"), _registry("fit")
