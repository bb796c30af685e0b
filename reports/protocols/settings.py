"""Settings of the recipes: files of lines, and their values in the resolved configurations of runs, in words.

A CSV file per paper is beside this module, with a line per setting of a group of tables. Columns: ``tables`` (names,
separated by spaces), ``rows`` (labels joined by ``;``; empty: every row), ``setting``, ``paper`` and ``code`` (their
settings, with the place; ``-`` where they have none), ``ours`` (the recipe's setting, with placeholders), ``why``.

A placeholder is a path in a run's configuration, ``{parts.training.optimiser.lr}``, or ``{runs}``, the number of runs
of a row on a data set; ``{{`` and ``}}`` stand for braces. Values are from protocol ``paper``, or for a row without
runs of it from the table's default protocol.
"""

from __future__ import annotations

import contextlib
import string
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.errors import BenchmarkError
from benchmarks.records import published
from benchmarks.records.hyperparameters import known
from benchmarks.records.lists import check_names, lines_of
from benchmarks.shapes import RunConfig
from benchmarks.suite import Suite

FOLDER = Path(__file__).parent
COLUMNS = ("tables", "rows", "setting", "paper", "code", "ours", "why")
RUNS = "runs"
REPLICATES = ("seed", "dataset.split")  # the only settings in which runs of one row on one data set differ
MOST = 4  # most values listed with their rows; more are given as a range
NAMED = 4  # most rows or data sets named beside a value
ABSENT = object()
JOINED = " + "


@dataclass(frozen=True)
class Line:
    """One setting of some rows of some tables; ``where`` names its file and line."""

    about: str
    tables: tuple[str, ...]
    rows: tuple[str, ...]
    setting: str
    paper: str
    code: str
    ours: str
    why: str
    where: str


def papers(folder: Path = FOLDER) -> list[str]:
    """Return the papers that have a file of settings."""
    return sorted(path.stem for path in folder.glob("*.csv"))


@cache
def load(folder: Path = FOLDER) -> tuple[Line, ...]:
    """Return every line of every file. Raises BenchmarkError."""
    return tuple(line for paper in papers(folder) for line in _read(paper, folder / f"{paper}.csv"))


def _read(paper: str, path: Path) -> Iterable[Line]:
    check_names(str(path), "paper", [paper], published.papers())
    hint, several = "; write - where a source says nothing", {"tables": None, "rows": ";"}
    for found, where in lines_of(path, COLUMNS, ("rows",), hint, several):
        yield Line(paper, **found, where=where)


def check(lines: Iterable[Line], suite: Suite) -> None:
    """Raise BenchmarkError for the first line with an unknown table or row."""
    known = suite.table_names()
    for line in lines:
        check_names(line.where, "table", line.tables, known)
        labels = [row.label for name in line.tables for row in suite.table(name).rows]
        check_names(line.where, f"row of {' '.join(line.tables)}", line.rows, labels)


def of_table(name: str, suite: Suite, lines: Iterable[Line]) -> list[Line]:
    """Return the lines that cover rows of a table."""
    labels = {row.label for row in suite.table(name).rows}
    return [line for line in lines if name in line.tables and (not line.rows or labels & set(line.rows))]


class Place(NamedTuple):
    """Place of runs of one kind: their table, row label, data set."""

    table: str
    row: str
    dataset: str


Found = dict[Place, tuple[Any, ...]]
"""Different values of a setting in the runs of each place."""


def filled_lines(table: str, suite: Suite) -> Iterable[Line]:
    """Return the settings of a table with its own values, without those that a suite with other rows does not fill."""
    for line in of_table(table, suite, load()):
        with contextlib.suppress(BenchmarkError):
            yield replace(line, ours=fill(line, suite, (table,)))


def fill(line: Line, suite: Suite, tables: Iterable[str] = ()) -> str:
    """Return our setting in words, without placeholders; ``tables``: the only tables that values are taken from.

    Raises BenchmarkError for a placeholder without a value in any run, or in a row named in the line.
    """
    try:
        pieces = list(string.Formatter().parse(line.ours))
    except ValueError as error:
        raise BenchmarkError(f"{line.where}: ours is not text with {{placeholders}}: {error}") from None
    words = []
    for text, path, form, conversion in pieces:
        words.append(text)
        if path is None:
            continue
        if form or conversion or not path:
            raise BenchmarkError(f"{line.where}: expected a path like {{parts.training.epochs}}, found {{{path}}}")
        words.append(in_words(_values(line, path, suite, tuple(tables) or line.tables)))
    return "".join(words)


def _values(line: Line, path: str, suite: Suite, names: Iterable[str]) -> Found:
    found, lacking = {}, []
    for place, configs in _places(line, suite, names):
        several = configs if path in REPLICATES else configs[:1]
        values = [len(configs)] if path == RUNS else [look_up(config, path) for config in several]
        if ABSENT in values:
            lacking.append(place)
        else:
            found[place] = tuple(dict.fromkeys(map(spelt, values))) if path != "seed" else _seeds(values)
    if not found:
        raise BenchmarkError(
            f"{line.where}: no run of these tables and rows has {{{path}}}; see python -m benchmarks explain TABLE"
        )
    if line.rows and lacking:
        raise BenchmarkError(
            f"{line.where}: {{{path}}} is not in runs of row {lacking[0].row!r} of {lacking[0].table}; name only rows "
            "that have it"
        )
    return found


def _seeds(values: list[Any]) -> tuple[Any, ...]:
    seeds = sorted(set(values))
    span = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return (f"{seeds[0]} to {seeds[-1]}",) if span else tuple(map(spelt, seeds))


def _places(line: Line, suite: Suite, names: Iterable[str]) -> Iterable[tuple[Place, list[RunConfig]]]:
    for name in names:
        table = suite.table(name)
        for row in table.rows:
            if row.method is None or (line.rows and row.label not in line.rows):
                continue
            for dataset in table.datasets:
                configs = _configs(table, row, dataset)
                if configs:
                    yield Place(name, row.label, dataset), configs


def _configs(table: Any, row: Any, dataset: str) -> list[RunConfig]:
    for protocol in dict.fromkeys(("paper", table.default_protocol)):
        configs = table.row_runs(row, dataset, protocol) if protocol in table.protocols else []
        if configs:
            return configs
    return []


def look_up(config: RunConfig, path: str) -> Any:
    """Return the value at a path of a configuration, or the default of a hyper-parameter added later; ABSENT without
    either."""
    value: Any = config
    kind = ""
    for step in path.split("."):
        if isinstance(value, list):
            if not step.isdecimal() or int(step) >= len(value):
                return ABSENT
            value = value[int(step)]
            continue
        if not isinstance(value, dict):
            return ABSENT
        entry = known().get(kind, {}).get(value.get("name", ""), {}).get(step, {})
        if step not in value and not entry.get("later"):
            return ABSENT
        value = value[step] if step in value else entry["default"]
        kind = entry.get("of", step if path.startswith("parts.") else "")
    return value


def spelt(value: Any) -> str:
    """Return a value of a configuration in words."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        digits, _, power = f"{value:.6g}".partition("e")
        return digits + (f"e{int(power)}" if power else "")
    if isinstance(value, list):
        named = any(isinstance(each, dict) for each in value)
        return (JOINED if named else ", ").join(map(spelt, value)) or "none"
    if isinstance(value, dict):
        options = ", ".join(f"{key} {spelt(each)}" for key, each in value.items() if key != "name" and each is not None)
        return f"{value['name']} ({options})".replace(" ()", "") if "name" in value else options
    return str(value)


def in_words(found: Found) -> str:
    """Return the values of places in words: one value, or each with its rows, data sets or tables."""
    texts = {place: ", ".join(values) for place, values in found.items()}
    different = list(dict.fromkeys(texts.values()))
    if len(different) == 1:
        return different[0]
    axes: dict[str, Callable[[Place], str]] = {
        "row": lambda place: place.row,
        "data set": lambda place: place.dataset,
        "table": lambda place: place.table,
        "row and data set": lambda place: f"{place.row} on {place.dataset}",
        "table and row": lambda place: f"{place.row} of {place.table}",
    }
    for name, axis in axes.items():
        keys: dict[str, set[str]] = {}
        for place, text in texts.items():
            keys.setdefault(axis(place), set()).add(text)
        if all(len(each) == 1 for each in keys.values()):
            return _listed({key: next(iter(each)) for key, each in keys.items()}, name)
    return _brief(different, "table, row and data set")


def _listed(texts: dict[str, str], axis: str) -> str:
    keys: dict[str, list[str]] = {}
    for key, text in texts.items():
        keys.setdefault(text, []).append(key)
    if len(keys) > MOST:
        return _brief(list(keys), axis)
    (usual, count), *_ = Counter(texts.values()).most_common(1)
    unusual = [text for text in keys if text != usual]
    if count > NAMED or (len(keys) > 2 and count > 1):
        return "; ".join(f"{text} ({_some(keys[text])})" for text in unusual) + f"; else {usual}"
    return "; ".join(f"{text} ({_some(names)})" for text, names in keys.items())


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 2 * NAMED else f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"


def _brief(texts: list[str], axis: str) -> str:
    try:
        ordered = sorted(texts, key=lambda text: float(text.replace(",", "")))
    except ValueError:
        return f"{'; '.join(texts)} (by {axis})"
    return f"{ordered[0]} to {ordered[-1]} (by {axis})"
