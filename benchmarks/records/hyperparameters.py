"""Hyper-parameters of a run's parts, defaults included, so that a configuration is complete.

They are read from the dataclasses of :mod:`fvi_core`. That loads torch, which most commands do without, so the result
is cached beside Python's compiled files, under the digest of the code it was read from.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import marshal
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import fvi_core
from benchmarks.records import stamp
from benchmarks.shapes import PartsConfig
from benchmarks.suite import resolve as imported
from fvi_core import plugins, registry
from fvi_core.plugins import module_digest, source_digest
from fvi_core.registry import REGISTRIES, PartSpec, UnknownPart
from fvi_core.spelling import UnfitValue, check_limits, nearest

NAMED = ("network", "family", "divergence", "prior", "context", "likelihood", "training", "fit")
FITTING = ("family", "divergence", "prior")
"""Kinds whose parts fit together or not."""
OPTIONAL = ("divergence", "prior", "context", "fit")
USUAL = {"training": "gradient"}
"""Default part of a kind."""
NAMELESS = {"weight": "fvi_core.objective:Weight"}
PARTS = (*NAMED, *NAMELESS)
SIMPLE = {"bool", "int", "float", "str", "None", "list", "tuple", "dict"}
"""Words of the types whose values are checked."""

Known = dict[str, dict[str, dict[str, Any]]]
"""Kind of part -> its name ("" where it has none) -> hyper-parameter -> its "type", "default", kind ("of"), "limits",
and whether it is a "later" one."""

_SEEN: dict[tuple[str, bytes], bytes] = {}


def resolve(parts: Mapping[str, Any], kinds: Iterable[str] = PARTS) -> PartsConfig:
    """Return the parts of a run, or some kinds of them, with every hyper-parameter, in plain JSON; integers become
    floats where the type requires it.

    A hyper-parameter added after records existed (:func:`~fvi_core.registry.later`) is left out where it has its
    default.

    Raises :class:`~fvi_core.registry.UnknownPart` for a missing or unknown part, hyper-parameter or value, and
    ValueError for a value beyond its limits.
    """
    plugins.load()
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise UnknownPart(f"parts: {sorted(unknown)} are not known; {nearest(min(unknown), PARTS)}")
    found = _resolved if _extended() else _known_already
    return cast(PartsConfig, {kind: found(kind, parts.get(kind), kind) for kind in kinds})


def sources(parts: PartsConfig, dataset: str) -> dict[str, str]:
    """Return the digest of the source of every plug-in part and data set, by kind and name ("divergence mine").

    Data sets of files alone have none: the contents of the files identify them.
    """
    import datasets  # here, since most commands do without it

    made_by = datasets.made_by(dataset)
    digest = made_by and module_digest(made_by, f"data set {dataset}")
    digests = {f"data set {dataset}": digest} if digest else {}
    for kind, name in named(parts) if _extended() else ():
        cls = REGISTRIES[kind].classes.get(name)
        own = cls is None or name in known()[kind]
        digest = None if own else source_digest(cls)  # type: ignore[arg-type]  # a class can be hashed
        if digest:
            digests[f"{kind} {name}"] = digest
    return digests


def context_pools(context: PartSpec | None) -> set[str]:
    """Return names of the context pools of a context and of its parts."""
    if context is None:
        return set()
    own = {context["pool"]} if "pool" in context else set()
    return own.union(*(context_pools(part) for part in context.get("parts", ())))


@cache
def known() -> Known:
    """Return the hyper-parameters of this project's own parts, from the cache if possible."""
    return remembered("hyperparameters", look)


def own_parts() -> dict[str, list[str]]:
    """Return names of plug-ins' parts by kind."""
    return {kind: [name for name in each.classes if name not in known()[kind]] for kind, each in REGISTRIES.items()}


def _extended() -> bool:
    """Return whether there are parts of plug-ins."""
    return any(each.classes.keys() - known()[kind].keys() for kind, each in REGISTRIES.items())


def remembered(name: str, look: Callable[[], Any]) -> Any:
    """Return the result of ``look`` (as JSON) for the present code of fvi_core, cached in a file."""
    path = Path(fvi_core.__file__).parent / "__pycache__" / f"{name}.json"
    digest = stamp.code("fvi_core")
    value = stamp.read(path, digest)
    if value is None:
        value = json.loads(json.dumps(look()))
        with contextlib.suppress(OSError):  # a folder that cannot be written: computed again next time
            stamp.write(path, digest, value)
    return value


def load_parts() -> None:
    """Import every module that registers parts, and torch with them."""
    importlib.import_module("fvi_core.interface")


def look() -> Known:
    """Read the hyper-parameters of this project's own parts from their dataclasses."""
    load_parts()
    kinds: Known = {
        kind: {name: describe(cls) for name, cls in each.classes.items() if cls.__module__.startswith("fvi_core.")}
        for kind, each in REGISTRIES.items()
    }
    kinds |= {kind: {"": describe(imported(where))} for kind, where in NAMELESS.items()}
    entries = [entry for parts in kinds.values() for part in parts.values() for entry in part.values()]
    kinds |= {of: {"": describe(imported(of))} for entry in entries if ":" in (of := entry.get("of", ""))}
    return json.loads(json.dumps(kinds))


def describe(cls: type) -> dict[str, dict[str, Any]]:
    """Return the hyper-parameters of a dataclass: type, default (none: required), the kind of part it holds, limits."""
    entries = {}
    for field in dataclasses.fields(cls):
        kind = field.type
        entry: dict[str, Any] = {"type": kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))}
        if field.default is not dataclasses.MISSING:
            entry["default"] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            entry["default"] = field.default_factory()
        of = field.metadata.get("of")
        if of is not None:
            entry["of"] = of.kind if isinstance(of, registry.Registry) else f"{of.__module__}:{of.__qualname__}"
        if field.metadata.get("later"):
            entry["later"] = True
        if limits := field.metadata.get("limits"):
            entry["limits"] = limits
        entries[field.name] = entry
    return entries


def _fields(kind: str, name: str, where: str) -> dict[str, dict[str, Any]]:
    parts = known().get(kind, {})
    if name in parts:
        return parts[name]
    if kind in REGISTRIES and name in REGISTRIES[kind].classes:  # of a plug-in
        return json.loads(json.dumps(describe(REGISTRIES[kind].classes[name])))
    if ":" in kind:
        return describe(imported(kind))
    names = {*parts, *REGISTRIES[kind].classes}
    raise UnknownPart(f"{where}: {kind} {name!r} is not known; {nearest(name, names)}")


def _known_already(kind: str, spec: Any, where: str) -> Any:
    """Return what :func:`_resolved` does for a part of this project, computed once: many rows of tables share parts."""
    try:
        key = kind, marshal.dumps(spec, 2)  # equal bytes are equal values of the same types
    except ValueError:
        return _resolved(kind, spec, where)
    if key not in _SEEN:
        _SEEN[key] = marshal.dumps(_resolved(kind, spec, where))
    return marshal.loads(_SEEN[key])  # a copy, which the caller may change


def _resolved(kind: str, spec: Any, where: str) -> Any:
    if spec is None and (kind in OPTIONAL or kind not in PARTS):
        return None
    if isinstance(spec, list | tuple):
        return [_resolved(kind, each, f"{where}[{i}]") for i, each in enumerate(spec)]
    if spec is None and kind in NAMELESS:
        spec = {}
    if not isinstance(spec, dict):
        raise UnknownPart(f"{where}: expected a dict of hyper-parameters, found {spec!r}")
    named = kind in REGISTRIES
    if kind in USUAL:
        spec = {"name": USUAL[kind], **spec}
    if named and not isinstance(spec.get("name"), str):
        raise UnknownPart(f"{where}: a 'name' is needed, found only {sorted(spec)}")
    name = spec["name"] if named else ""
    fields = _fields(kind, name, where)
    title = f"{where}: {kind} {name!r}" if named else where
    for key in spec:
        if key not in fields and not (named and key == "name"):
            raise UnknownPart(f"{title} has no hyper-parameter {key!r}; {nearest(key, fields)}")
    resolved = {"name": name} if named else {}
    for key, entry in fields.items():
        if key in spec:
            value = spec[key]
        elif entry.get("later"):
            continue
        elif "default" in entry:
            value = entry["default"]
        else:
            raise UnknownPart(f"{title} needs the hyper-parameter {key!r} ({entry['type']})")
        place = f"{where}.{key}"
        resolved[key] = _resolved(entry["of"], value, place) if "of" in entry else _plain(value, entry["type"], place)
        if key in spec and "of" not in entry:
            _check_kind(resolved[key], entry["type"], place)
        if "limits" in entry and not ("default" in entry and value == entry["default"]):
            check_limits(place, resolved[key], entry["type"], **entry["limits"])
        if entry.get("later") and resolved[key] == _plain(entry["default"], entry["type"], place):
            del resolved[key]
    return resolved


def _plain(value: Any, kind: str, where: str) -> Any:
    """Return a value as JSON has it: tuples as lists, and integers as floats where the type requires it."""
    if isinstance(value, list | tuple):
        return [_plain(each, kind, where) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each, kind, where) for key, each in sorted(value.items())}
    if isinstance(value, int) and not isinstance(value, bool) and "float" in kind and "int" not in kind:
        return float(value)
    if not isinstance(value, str | int | float | bool | None):
        raise UnknownPart(f"{where}: expected a number, a text or a list ({kind}), found {value!r}")
    return value


def _check_kind(value: Any, kind: str, where: str) -> None:
    """Raise UnfitValue unless a value's numbers are finite, and of a type like "list[float] | None" (plug-ins may have
    types that are not checked).

    A 1 in place of True, or a 3.0 in place of 3, would give the same run another key.
    """
    words, leaves = _words(kind), list(_leaves(value))
    if words <= SIMPLE and not all(type(leaf).__name__.removesuffix("Type") in words for leaf in leaves):
        raise UnfitValue(f"{where}: expected {kind}, found {value!r}")
    if not all(math.isfinite(leaf) for leaf in leaves if isinstance(leaf, float)):
        raise UnfitValue(f"{where}: expected finite numbers, found {value!r}")


@cache
def _words(kind: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", kind))


def _leaves(value: Any) -> Iterator[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        yield value
    else:
        for each in inner:
            yield from _leaves(each)


def named(spec: Any, kind: str | None = None) -> list[tuple[str, str]]:
    """Kind and name of every part in resolved parts."""
    if kind is None:
        return [pair for each in PARTS for pair in named(spec[each], each)]
    if isinstance(spec, list):
        return [pair for each in spec for pair in named(each, kind)]
    if not isinstance(spec, dict):
        return []
    name = spec.get("name", "") if kind in REGISTRIES else ""
    fields = _fields(kind, name, kind)
    inner = [pair for key, entry in fields.items() if "of" in entry for pair in named(spec[key], entry["of"])]
    return ([(kind, name)] if kind in REGISTRIES else []) + inner
