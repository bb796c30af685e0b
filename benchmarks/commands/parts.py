"""Description of every part by kind: purpose, hyper-parameters, compatibility. Loads torch for plug-in parts only."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from textwrap import shorten
from typing import Any

from benchmarks.commands.inspection import columns, listing
from benchmarks.errors import unknown
from benchmarks.records.hyperparameters import (
    FITTING,
    NAMED,
    NAMELESS,
    describe,
    known,
    load_parts,
    own_parts,
    remembered,
)
from fvi_core import plugins
from fvi_core.registry import REGISTRIES
from fvi_core.spelling import limits_in_words


def text(kind: str | None = None, name: str | None = None) -> str:
    """Return all parts, those of a kind with their hyper-parameters, or one, which its name alone finds too. Raises
    UnknownName."""
    plugins.load()
    kinds = [*dict.fromkeys([*NAMED, *REGISTRIES]), *NAMELESS]
    if kind is None:
        purposes, rows = about(), [("kind", "part", "what it is")]
        for each in kinds:
            for part in _parts(each):
                purpose = purposes.get(each, {}).get(part, "")
                rows.append((each, part, shorten(purpose, 100, placeholder=" ...", break_on_hyphens=False)))
        return "\n\n".join([listing(rows), _fitting(None, None)])
    if kind not in kinds:
        if name is None and (of := [each for each in kinds if kind in _parts(each)]):
            return "\n\n".join(text(each, kind) for each in of)
        raise unknown("part or kind of part", kind, [*kinds, *(part for each in kinds for part in _parts(each))])
    parts = _parts(kind)
    if name is not None and name not in parts:
        raise unknown(kind, name, parts)
    chosen = [name] if name is not None else list(parts)
    blocks = [_block(kind, part, parts[part]) for part in chosen] or [f"there is no {kind} yet"]
    return "\n\n".join([*blocks, *([_fitting(kind, name)] if kind in FITTING else [])])


def _parts(kind: str) -> dict[str, dict[str, Any]]:
    """Return the hyper-parameters of every part of a kind, by its name; plug-ins' last."""
    own = {part: describe(REGISTRIES[kind].classes[part]) for part in own_parts().get(kind, ())}
    return dict(sorted(known()[kind].items())) | own


def _block(kind: str, part: str, fields: dict[str, dict[str, Any]]) -> str:
    lines = [f"{kind} {part}".rstrip(), *filter(None, [about().get(kind, {}).get(part, "")])]
    rows = [
        (
            "  ",
            name,
            entry["type"] + (f" (a {entry['of']})" if entry.get("of") in REGISTRIES else ""),
            json.dumps(entry["default"]) if "default" in entry else "has to be given",
            limits_in_words(**entry.get("limits", {})),
        )
        for name, entry in fields.items()
    ]
    return "\n".join([*lines, columns(rows) if rows else "  nothing to choose"])


def _fitting(kind: str | None, name: str | None) -> str:
    """Return a list of the families and priors that fit each divergence, limited to those with a given part."""
    chosen = {kind: name} if kind and name else {}
    fitting = [
        names for names in _triples(chosen) if all(names[FITTING.index(each)] == part for each, part in chosen.items())
    ]
    rows = []
    for divergence in dict.fromkeys(d for _, d, _ in fitting):
        groups: dict[tuple[str, ...], list[str]] = {}
        for family in dict.fromkeys(f for f, d, _ in fitting if d == divergence):
            groups.setdefault(tuple(p for f, d, p in fitting if (f, d) == (family, divergence)), []).append(family)
        for priors, families in groups.items():
            rows.append((f"  {divergence}:", f"{', '.join(families)}; priors {', '.join(priors)}"))
    head = "Fit together, with one of each list (tried on a tiny network, with defaults):"
    return f"{head}\n{listing(rows)}" if rows else "Fits nothing with its defaults."


def about() -> dict[str, dict[str, str]]:
    """Return the first sentence or line of every part's docstring, by kind and name."""
    own = own_parts()
    return {kind: parts | _first_lines(kind, own[kind]) for kind, parts in _known_lines().items()}


@cache
def _known_lines() -> dict[str, dict[str, str]]:
    def look() -> dict[str, dict[str, str]]:
        load_parts()
        return {kind: _first_lines(kind, known()[kind]) for kind in REGISTRIES}

    return remembered("about", look)


def _first_lines(kind: str, parts: Iterable[str]) -> dict[str, str]:
    return {part: _first_line(REGISTRIES[kind].classes[part]) for part in parts}


def _first_line(cls: type) -> str:
    text = (cls.__dict__.get("__doc__") or "").strip()
    return "" if text.startswith(f"{cls.__name__}(") else " ".join(text.partition("\n\n")[0].split())


def _triples(chosen: dict[str, str]) -> list[tuple[str, ...]]:
    found, own = _known_triples(), own_parts()
    if any(own[kind] for kind in FITTING):
        from benchmarks.experiment.misfits import triples  # loads torch

        return [*found, *triples(own=True, only=chosen)]
    return found


@cache
def _known_triples() -> list[tuple[str, ...]]:
    def look() -> list[tuple[str, ...]]:
        from benchmarks.experiment.misfits import triples  # loads torch

        return triples(own=False)

    return [tuple(names) for names in remembered("triples", look)]
