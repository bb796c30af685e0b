"""Contents that many records share, each parsed once: metric rows, their format and possible values; configurations and
metric versions.

The value of a metric is a number, or "inf" or "-inf" in quotes, since JSON has no such numbers: external predictions
may give a label the probability 0. Except for values many records have the same rows; except for split and seed many
have the same configuration.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from array import array
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter
from typing import Any, cast

import numpy as np

from benchmarks.records.config import LARGE, MARKS, check_form, evaluation_key, is_external, run_key, training_keys
from benchmarks.shapes import MetricRow, RunConfig

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
        versions = self._versions[text]
        return dict(versions) if isinstance(versions, dict) else versions

    def config(self, text: bytes) -> tuple[RunConfig, str]:
        """Return the configuration in a file's text, and its key. Raises ValueError, KeyError or TypeError."""
        matches = list(NUMBERS.finditer(text))
        if len(matches) == len(MARKS):
            (a, b), (c, d) = (each.span(1) for each in matches)
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


Cell = tuple[str, str, str]  # data set, condition, metric
FIELDS: dict[str, set[type]] = {
    "dataset": {str},
    "condition": {str},
    "metric": {str},
    "value": {int, float},
    "n": {int},
}
INFINITE = {"inf": math.inf, "-inf": -math.inf}
VALUE = re.compile(rb'"value": (-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|"-?inf"), "n": ')
SLACK = 1e-9
"""Rounding errors of values at the ends of their range, such as an AUPR of 1 + 2e-16."""


@dataclass(frozen=True)
class Bounds:
    """Smallest and largest value of a metric; worst: its possible infinite value, else nan; counts: whether its row
    without a condition covers the test set's points."""

    low: float = -math.inf
    high: float = math.inf
    worst: float = math.nan
    counts: bool = False


@dataclass(frozen=True, eq=False)
class Rows:
    """Metric rows of a record without their values, in order; records with the same rows share one object."""

    cells: tuple[Cell, ...]
    n: tuple[int, ...]
    bounds: tuple[Bounds, ...]

    @cached_property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Return smallest and largest finite values, with room for rounding errors."""
        low, high = (np.array([getattr(each, end) for each in self.bounds]) for end in ("low", "high"))
        most = sys.float_info.max
        return np.maximum(low - SLACK, -most), np.minimum(high + SLACK, most)

    @cached_property
    def tested(self) -> frozenset[int]:
        """Return the numbers of points in the rows of the test set."""
        return frozenset(
            n for (_, condition, _), n, each in zip(self.cells, self.n, self.bounds) if each.counts and not condition
        )

    @cached_property
    def datasets(self) -> frozenset[str]:
        """Return the data sets that rows name."""
        return frozenset(dataset for dataset, _, _ in self.cells)

    def with_values(self, values: array) -> list[MetricRow]:
        """Return the rows with their values."""
        return [
            {"dataset": dataset, "condition": condition, "metric": metric, "value": value, "n": n}
            for (dataset, condition, metric), value, n in zip(self.cells, values, self.n)
        ]

    def check(self, values: array, config: RunConfig) -> None:
        """Raise ValueError for values that are impossible for this configuration."""
        about = config["dataset"]
        name = about["name"]
        if self.datasets != {name}:
            raise ValueError(f"its rows belong to data set {', '.join(sorted(self.datasets))}, its run to {name}")
        numbers = np.frombuffer(values)
        low, high = self.limits
        if not ((numbers >= low) & (numbers <= high)).all():
            self._check_one_by_one(values, is_external(config))
        own = about["content"] or config["evaluation"]["content"]  # a user's files
        points = None if own or not self.tested else test_points(name, about["scheme"], about["version"])
        if points and not self.tested <= {points, points - 1}:  # the folds of a split differ by one
            wrong = max(self.tested - {points, points - 1})
            raise ValueError(f"its test set has {wrong} points, that of data set {name} has {points}")

    def _check_one_by_one(self, values: Iterable[float], external: bool) -> None:
        for (_, condition, metric), value, each in zip(self.cells, values, self.bounds):
            where = metric + (f" ({condition})" if condition else "")
            if math.isinf(value) and not (external and value == each.worst):
                raise ValueError(f"{where} is {value}")
            if not each.low - SLACK <= value <= each.high + SLACK:
                raise ValueError(f"{where} is {value}, expected a value from {each.low:g} to {each.high:g}")


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs. Raises ValueError for a repeated key."""
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)!r} occurs twice")
    return result


def not_a_number(text: str) -> None:
    """Raise ValueError for NaN and Infinity, which are not JSON."""
    raise ValueError(f"it holds {text}")


DECODER = json.JSONDecoder(parse_constant=not_a_number, object_pairs_hook=once)
"""Decoder of records: strict JSON without repeated keys."""


class RowReader:
    """Reader of metric rows. bounds: bounds of a metric, by name."""

    def __init__(self, bounds: Callable[[str], Bounds] = lambda name: Bounds()) -> None:
        self._bounds = cache(bounds)
        self._known: dict[bytes, Rows] = {}  # by the text around the values, which is long
        self.heads = HeadReader(DECODER.decode)

    def read(self, text: bytes) -> tuple[Rows, array]:
        """Return metric rows as a file has them. Raises ValueError, KeyError or TypeError for invalid ones."""
        parts = VALUE.split(text)
        around, values = hashlib.sha256(b"?".join(parts[::2])).digest(), parts[1::2]
        rows = self._known.get(around)
        if rows is not None and len(values) == len(rows.cells):
            with suppress(ValueError):  # an infinite value is in quotes
                numbers = array("d", map(float, values))
                if all(map(math.isfinite, numbers)):
                    return rows, numbers
        rows, numbers = self.of(readable(DECODER.decode(text.decode())))
        if len(values) == len(numbers):
            rows = self._known.setdefault(around, rows)
        return rows, numbers

    def of(self, rows: list[Any]) -> tuple[Rows, array]:
        """Return parsed metric rows, as columns. Raises ValueError, KeyError or TypeError."""
        if not isinstance(rows, list) or not rows:
            raise ValueError("metrics: expected rows, found none")
        for name, kinds in FIELDS.items():  # column by column, which is several times faster than row by row
            if not set(map(type, map(itemgetter(name), rows))) <= kinds:
                wrong = next(row[name] for row in rows if type(row[name]) not in kinds)
                raise ValueError(f"a metric row has {name} {wrong!r}")
        cells = tuple(map(itemgetter("dataset", "condition", "metric"), rows))
        if len(set(cells)) < len(cells):
            twice = next(cell for cell in cells if cells.count(cell) > 1)
            raise ValueError(f"{twice[2]} of {twice[0]}{f' ({twice[1]})' if twice[1] else ''} occurs twice")
        n = tuple(map(itemgetter("n"), rows))
        if wrong := [each for each in (min(n), max(n)) if not 1 <= each < LARGE]:
            raise ValueError(f"a metric row has n {wrong[0]!r:.80}")
        bounds = tuple(self._bounds(metric) for _, _, metric in cells)
        return Rows(cells, n, bounds), array("d", map(itemgetter("value"), rows))


def readable(rows: list[Any]) -> list[Any]:
    """Return rows with infinite values parsed. Raises ValueError for a number that is too large."""
    for row in rows:
        value = row["value"]
        if type(value) is str and value in INFINITE:
            row["value"] = INFINITE[value]
        elif type(value) is float and not math.isfinite(value):
            raise ValueError(f"{row['metric']} is {value}")
    return rows


def spelled(row: MetricRow) -> dict[str, Any]:
    """Return a metric row as JSON holds it."""
    value = row["value"]
    return {**row, "value": str(float(value))} if math.isinf(value) else dict(row)


@cache
def test_points(name: str, scheme: str, version: str) -> int | None:
    """Return points of the first test subset of a registered data set; None for plug-ins and for absent versions."""
    import datasets  # datasets is not needed by records alone

    with suppress(ValueError, KeyError, OSError):
        if datasets.made_by(name) is None:
            about = datasets.describe(name, scheme or None)
            return about.n_test if about.version == version else None
    return None


SCORE = "score"
"""Part of a condition that names an uncertainty score; parts "<name>=<value>" stand between semicolons."""


def with_score(condition: str, score: str) -> str:
    """Return the condition of a row that was computed by this uncertainty score."""
    return ";".join(filter(None, (condition, f"{SCORE}={score}")))


def score_of(condition: str) -> str:
    """Return the uncertainty score that a condition names; empty where it names none."""
    return next((value for name, _, value in (p.partition("=") for p in condition.split(";")) if name == SCORE), "")
