"""Suggestions for unknown names, variables of the environment, and limits of values.

Every room may import this module, and it loads nothing.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

VARIABLES = (
    "FVI_ARRAYS", "FVI_ARTIFACTS", "FVI_CHECKPOINT_SECONDS", "FVI_COMMIT", "FVI_DATA_CACHE", "FVI_DATA_MIRROR",
    "FVI_GRAPHS", "FVI_OFFLINE", "FVI_PLUGINS", "FVI_RETINOPATHY", "FVI_SLURM", "FVI_STATE_GB", "FVI_THREADS",
)  # fmt: skip
"""Variables of the environment that users set (docs/README.md)."""
SWITCH = {"": False, "0": False, "false": False, "no": False, "off": False}
SWITCH |= {"1": True, "true": True, "yes": True, "on": True}
"""Words of variables that are on or off."""
SET_HERE = ("FVI_COMMAND", "FVI_MAKE")
"""Variables that make sets for the command line."""
INSTEAD = {
    **dict.fromkeys(
        ("class_weight", "class_weights"),
        "say likelihood={'name': 'categorical', 'class_weights': 'batch'}, so classes count alike",
    ),
    "ignore_index": "leave points without a label out of the data",
    "sample_weight": "a likelihood has no weights of points; repeat points in the data",
    "label_smoothing": "a likelihood has none",
    **dict.fromkeys(("loss", "criterion"), "the method sets the objective; its data term is the likelihood's"),
    "lr": "say optimiser={'name': 'adam', 'lr': ...}",
    "schedule": "say training={'schedule': {'name': 'cosine'}}",
    "kernel": "say prior={'kernel': {'name': ...}}, of a process family={'kernel': {'name': ...}}",
    "hessian_structure": "say fit={'structure': 'kronecker'}",
    "noise_std": (
        "say likelihood={'name': 'gaussian', 'init_std': ..., 'learned': False}, in standard deviations of the targets"
    ),
    **dict.fromkeys(("resume", "checkpoint"), "a training cannot be continued: train again, for more epochs"),
    "device": "move the module, module.to(device); data follow it",
    "early_stopping": "say training={'early_stopping': {'patience': 10}}, with validation data",
}
"""Options of other libraries, and their equivalents as options of ``fvi_core.fit``."""
LIMITS = {
    "least": ("{} or more", operator.ge),
    "above": ("above {}", operator.gt),
    "most": ("{} or less", operator.le),
    "below": ("below {}", operator.lt),
}


class UnfitValue(ValueError):
    """Value of an option that is not among the known ones, or beyond a limit."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return 'did you mean ...' with known names that resemble or contain an unknown one; all names without any."""
    names = sorted(set(known))
    return meant(name, names) or f"known: {', '.join(names) or 'none'}"


def meant(name: str, known: Iterable[str]) -> str:
    """Return 'did you mean ...' as :func:`nearest`; empty where no known name resembles the unknown one."""
    found = near(name, known)
    return f"did you mean {' or '.join(map(repr, found))}?" if found else ""


def unknown_variables() -> list[str]:
    """Return a sentence for every FVI_ variable of the environment that nothing reads: a misspelt one has no effect."""
    unknown = sorted(name for name in os.environ if name.startswith("FVI_") and name not in (*VARIABLES, *SET_HERE))
    return [f"{name} is set, and nothing reads it; {nearest(name, VARIABLES)}" for name in unknown]


def switched(variable: str) -> bool:
    """Return whether a variable of the environment is on; it is off if not set. Raises UnfitValue for other words."""
    text = os.environ.get(variable, "")
    if (word := text.strip().lower()) not in SWITCH:
        raise UnfitValue(f"{variable} is {text!r}, expected 1, true, yes or on, or 0, false, no or off")
    return SWITCH[word]


def check_known(place: str, value: object, known: Iterable[str]) -> None:
    """Raise UnfitValue for a value that is not among the known ones, with the nearest; ``place``: the option's, as in
    "network 'cnn': norm".
    """
    if value not in (values := tuple(known)):
        raise UnfitValue(f"{place} {value!r} is not known; {nearest(str(value), values)}")


def check_limits(place: str, value: Any, kind: str, among: Iterable[str] = (), **limits: float) -> None:
    """Raise UnfitValue for a value that is not among the known ones, or a number, or one in a list, beyond a limit
    ("least", "above", "most", "below"); ``place`` as in :func:`check_known`, ``kind``: the type, as in "list[int]".
    """
    if among:
        return check_known(place, value, among)
    several = isinstance(value, list | tuple)
    form = ("list" in kind or "tuple" in kind) if several else not kind.startswith(("list", "tuple"))
    numbers = value if several else [value]
    number = Integral if "int" in kind and "float" not in kind else Real
    if not form or not all(isinstance(each, number) and not isinstance(each, bool) for each in numbers):
        raise UnfitValue(f"{place}: expected {kind}, found {value!r}")
    if not all(LIMITS[name][1](each, end) for each in numbers for name, end in limits.items()):
        raise UnfitValue(f"{place}: expected {limits_in_words((), **limits)}, found {value!r}")


def limits_in_words(among: Iterable[str] = (), **limits: float) -> str:
    """Return the limits of :func:`check_limits` in words: "full or diagonal", "0 or more and below 1"."""
    return " or ".join(among) or " and ".join(LIMITS[name][0].format(limit) for name, limit in limits.items())


def near(name: str, known: Iterable[str]) -> list[str]:
    """Return a few known names that resemble or contain an unknown one, whatever the case, most similar first."""
    import difflib  # here, since only errors need it

    names = sorted(set(known))
    unknown, lower = str(name).lower(), {each.lower(): each for each in names}
    found = [lower[each] for each in difflib.get_close_matches(unknown, lower, n=3, cutoff=0.5)]
    return found + [each for each in names if unknown and unknown in each.lower() and each not in found][:3]


def alike(start: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return the known names with the longest common prefix with an unknown one, if it is not empty."""

    def shared(name: str) -> int:
        return next((k for k, (a, b) in enumerate(zip(name, start)) if a != b), min(len(name), len(start)))

    return sorted((name for name in known if shared(name)), key=lambda name: (-shared(name), name))[:most]
