"""Named parts: a part is a dataclass of JSON-able hyper-parameters, found by name and built from a plain dict."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from fvi_core.spelling import nearest


class Part(Protocol):
    """A dataclass, which its registry gives a name."""

    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


PartSpec = dict[str, Any]
"""A part as configurations have it: its name and its hyper-parameters, which its class declares."""
T = TypeVar("T", bound=Part)


class UnknownPart(ValueError):
    """A part or a hyper-parameter that does not exist; the message names the nearest ones that do."""


class Registry(Generic[T]):
    """The parts of one kind (families, divergences, ...), each a dataclass registered under a name."""

    def __init__(self, kind: str):
        self.kind = kind
        self.classes: dict[str, type[T]] = {}

    def register(self, name: str):
        """Class decorator that adds a dataclass under ``name``."""

        def add(cls: type[T]) -> type[T]:
            if name in self.classes:
                raise ValueError(f"{self.kind} {name!r} is registered twice: {self.classes[name]} and {cls}")
            self.classes[name] = cls
            cls.name = name
            return cls

        return add

    def build(self, spec: PartSpec) -> T:
        """The part that ``{"name": ..., **hyper-parameters}`` describes. Raises :class:`UnknownPart`."""
        if "name" not in spec:
            raise UnknownPart(f"{self.kind}: a 'name' is needed, found only {sorted(spec)}")
        hyper = dict(spec)
        name = hyper.pop("name")
        if name not in self.classes:
            raise UnknownPart(f"{self.kind} {name!r} is not known; {nearest(name, self.classes)}")
        cls = self.classes[name]
        known = [field.name for field in dataclasses.fields(cls)]
        for key in hyper:
            if key not in known:
                raise UnknownPart(f"{self.kind} {name!r} has no hyper-parameter {key!r}; {nearest(key, known)}")
        return cls(**hyper)


def nested(of: Registry | type, default: Any = dataclasses.MISSING) -> Any:
    """A dataclass field that holds other parts: a dict, or a list of dicts, as ``of`` builds them.

    ``of`` is a registry, or a dataclass without a name of its own.
    """
    metadata = {"of": of}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def later(default: Any) -> Any:
    """A hyper-parameter that a part was given when records of it existed already: what they did is the default.

    A configuration holds it only where it is not the default, so that those records keep their keys; the default is
    never changed.
    """
    return dataclasses.field(default=default, metadata={"later": True})


NETWORKS: Registry = Registry("network")
FAMILIES: Registry = Registry("family")
DIVERGENCES: Registry = Registry("divergence")
PRIORS: Registry = Registry("prior")
CONTEXTS: Registry = Registry("context")
LIKELIHOODS: Registry = Registry("likelihood")
KERNELS: Registry = Registry("kernel")
OPTIMISERS: Registry = Registry("optimiser")
SCHEDULES: Registry = Registry("schedule")
TRAININGS: Registry = Registry("training")
FITS: Registry = Registry("fit")
REGISTRIES = {
    registry.kind: registry
    for registry in (
        NETWORKS,
        FAMILIES,
        DIVERGENCES,
        PRIORS,
        CONTEXTS,
        LIKELIHOODS,
        KERNELS,
        OPTIMISERS,
        SCHEDULES,
        TRAININGS,
        FITS,
    )
}
