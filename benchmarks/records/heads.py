"""Configurations and metric versions of records; those that differ in split and seed only are parsed once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from benchmarks.records.config import MARKS, check_form, evaluation_key, run_key, training_keys
from benchmarks.shapes import RunConfig

NUMBERS = re.compile(rb'\n"(?:split|seed)": (0|[1-9]\d{0,8})(?=,?\n)')  # split and seed, in this order
Known = tuple[dict[str, Any], Callable[[int, int], str], str]  # a configuration, its training keys, its evaluation's


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
                return _with(known, int(text[a:b]), int(text[c:d]))
        config = self._decode(text.decode())
        check_form(config)
        return config, run_key(config)

    def _once(self, text: bytes) -> Known | None:
        """Parse a configuration with marks for split and seed; None where the marks are in unexpected places."""
        config = self._decode(text.decode())
        check_form(config)
        if (config["dataset"]["split"], config["seed"]) != MARKS:
            return None
        return config, training_keys(config), evaluation_key(config["evaluation"])


def _with(known: Known, split: int, seed: int) -> tuple[RunConfig, str]:
    shared, keys, evaluation = known
    config = {name: dict(value) if isinstance(value, dict) else value for name, value in shared.items()}
    config["dataset"]["split"], config["seed"] = split, seed
    return cast(RunConfig, config), f"{keys(split, seed)}-{evaluation}"
