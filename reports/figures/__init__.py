"""Figures from records alone: a registry of names, and what draws them when their records have changed."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import published
from benchmarks.config import run_key
from benchmarks.errors import unknown
from benchmarks.published import Published
from benchmarks.suite import Suite
from reports.figures.catalogue import FIGURES, Figure
from reports.records import Records

__all__ = ["FIGURES", "Drawn", "Figure", "NothingToShow", "Runs", "collect", "draw", "select"]


FALLBACK = "short"
"""The protocol whose records are shown, under its name, where the table's own has none."""


@dataclass(frozen=True)
class Runs:
    """The records that a figure shows, by row label and in the order of the table, and the labels that have none.

    published: the numbers of the figure's paper by row label, then by (condition, metric as records call it).
    """

    figure: Figure
    protocol: str
    records: dict[str, list[dict[str, Any]]]
    missing: tuple[str, ...]
    published: dict[str, dict[tuple[str, str], Published]] = field(default_factory=dict)

    @property
    def subtitle(self) -> str:
        """Protocol and n."""
        counts = sorted({len(records) for records in self.records.values()})
        n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        return f"protocol {self.protocol}, n = {n} runs"

    def curves(self, name: str) -> dict[str, list[dict[str, Any]]]:
        """A curve ("test/reliability") of every run that has it, by row label."""
        found = {label: [r["curves"][name] for r in runs if name in r["curves"]] for label, runs in self.records.items()}
        return {label: curves for label, curves in found.items() if curves}


class NothingToShow(Exception):
    """The records there are lack what a figure shows; the message says what."""


@dataclass(frozen=True)
class Drawn:
    """What became of a figure: its files, or the reason why there are none."""

    name: str
    files: tuple[Path, ...] = ()
    skipped: str = ""


def select(names: Sequence[str]) -> list[Figure]:
    """The figures of these names, all without any. Raises UnknownName with the nearest names."""
    for name in names:
        if name not in FIGURES:
            raise unknown("figure", name, FIGURES)
    return [FIGURES[name] for name in names] if names else list(FIGURES.values())


def draw(
    figures: Sequence[Figure],
    suite: Suite,
    results_dir: Path | str,
    out_dir: Path | str,
    protocol: str | None = None,
    seeds: list[int] | None = None,
) -> Iterator[Drawn]:
    """Draw figures as PDF and PNG into <out>/figures, one after the other; those whose records are unchanged stay.

    Without a protocol it is the table's own, or the fallback where only that has records. A figure without records is skipped.
    """
    records, out = Records(results_dir), Path(out_dir) / "figures"
    out.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        if figure.table not in suite.table_names():
            yield Drawn(figure.name, skipped=f"there is no table {figure.table}")
            continue
        table = suite.table(figure.table)
        runs, keys = collect(figure, table, protocol or table.default_protocol, records, seeds)
        if not runs.records and protocol is None and FALLBACK in table.protocols:
            short = collect(figure, table, FALLBACK, records, seeds)
            runs, keys = short if short[0].records else (runs, keys)
        if not runs.records:
            what = f"no records of {', '.join(runs.missing)}" if runs.missing else f"no run of {figure.dataset} is planned"
            yield Drawn(figure.name, skipped=f"{what} (table {table.name}, protocol {runs.protocol})")
            continue
        stem = out / f"{figure.name}-{runs.protocol}"
        files = (stem.with_suffix(".pdf"), stem.with_suffix(".png"))
        stamp, stamped = _stamp(runs, keys, records), out / f".{stem.name}.stamp"
        if not (stamped.exists() and stamped.read_text() == stamp and all(file.exists() for file in files)):
            module, function = figure.draw.split(":")
            try:
                drawn = getattr(importlib.import_module(f"reports.figures.{module}"), function)(runs)
            except NothingToShow as reason:
                yield Drawn(figure.name, skipped=f"{reason} (table {table.name}, protocol {runs.protocol})")
                continue
            importlib.import_module("reports.figures.style").save(drawn, files)
            stamped.write_text(stamp)
        yield Drawn(figure.name, files)


def collect(
    figure: Figure, table: Any, protocol: str, records: Records, seeds: list[int] | None = None
) -> tuple[Runs, list[dict]]:
    """The records of a figure by row label, and their configurations."""
    columns = [column for column in table.columns if column.cell.dataset == figure.dataset]
    found: dict[str, list[dict[str, Any]]] = {}
    missing, used = [], []
    numbers = published.table(figure.paper, None).values() if figure.paper else ()
    marks: dict[str, dict[tuple[str, str], Published]] = {}
    for row in table.rows:
        own = [n for n in numbers if (n.dataset, n.method) == (figure.dataset, row.published or row.label)]
        marks[row.label] = {(n.condition, published.recorded(n.paper, n.metric)): n for n in own}
        configs = table.cell_runs(row, columns[0], protocol, seeds) if columns and row.method else []
        usable = [config for config in configs if isinstance(records.get(config), dict)]
        used += usable
        if usable:
            found[row.label] = [records.get(config) for config in usable]
        elif configs:
            missing.append(row.label)
    return Runs(figure, protocol, found, tuple(missing), marks), used


def _stamp(runs: Runs, configs: list[dict], records: Records) -> str:
    """What a drawn figure depends on: its records, the published numbers, and the code that draws it."""
    code = [path.read_text() for path in sorted(Path(__file__).parent.glob("*.py"))]
    paths = [records.store.path(config) for config in configs]
    files = [(run_key(config), path.stat().st_mtime_ns, path.stat().st_size) for config, path in zip(configs, paths)]
    return hashlib.sha256(json.dumps([repr(runs.figure), repr(runs.published), code, files]).encode()).hexdigest()
