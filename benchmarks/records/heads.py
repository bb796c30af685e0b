"""Configurations and metric versions of records; those that differ in split and seed only are parsed once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any, cast

from benchmarks.records.config import canonical_json, check_form, digest, run_key
from benchmarks.shapes import RunConfig

NUMBERS = re.compile(rb'\n"(?:split|seed)": (0|[1-9]\d{0,8})(?=,?\n)')  # split and seed, in this order
MARKS = 999_000_001, 999_000_002
Known = tuple[dict[str, Any], list[str], str]  # a configuration, its canonical spelling around split and seed, the rest


class HeadReader:
    """Reader of configurations and metric versions; parses configurations that differ in split and seed once."""

    def __init__(self, decode: Callable[[str], Any]) -> None:
        self._decode = decode
        self._versions: dict[bytes, Any] = {}
        self._configs: dict[bytes, Known | None] = {}

    def versions(self, text: bytes) -> Any:
        """Return the metric versions in a file's text. Raises ValueError for invalid JSON."""
        if text not in self._versions:
            self._versions[text] = self._decode(text.decode())
        found = self._versions[text]
        return dict(found) if isinstance(found, dict) else found

    def config(self, text: bytes) -> tuple[RunConfig, str]:
        """Return the configuration in a file's text, and its key. Raises ValueError, KeyError or TypeError."""
        found = list(NUMBERS.finditer(text))
        if len(found) == len(MARKS):
            (a, b), (c, d) = (each.span(1) for each in found)
            around = b"?".join((text[:a], text[b:c], text[d:]))
            if around not in self._configs:
                self._configs[around] = self._once(b"%b%d%b%d%b" % (text[:a], MARKS[0], text[b:c], MARKS[1], text[d:]))
            known = self._configs[around]
            if known is not None:
                split, seed = text[a:b].decode(), text[c:d].decode()
                return _with(known, split, seed)
        config = self._decode(text.decode())
        check_form(config)
        return config, run_key(config)

    def _once(self, text: bytes) -> Known | None:
        """Parse a configuration with marks for split and seed; None where the marks are in unexpected places."""
        config = self._decode(text.decode())
        check_form(config)
        if (config["dataset"]["split"], config["seed"]) != MARKS:
            return None
        training = canonical_json({name: value for name, value in config.items() if name != "evaluation"})
        spelled = re.split("|".join(map(str, MARKS)), training)
        return (config, spelled, digest(config["evaluation"], 8)) if len(spelled) == len(MARKS) + 1 else None


def _with(known: Known, split: str, seed: str) -> tuple[RunConfig, str]:
    shared, (first, second, third), evaluation = known
    config = {name: dict(value) if isinstance(value, dict) else value for name, value in shared.items()}
    config["dataset"]["split"], config["seed"] = int(split), int(seed)
    key = hashlib.sha256(f"{first}{split}{second}{seed}{third}".encode()).hexdigest()[:16]
    return cast(RunConfig, config), f"{key}-{evaluation}"
