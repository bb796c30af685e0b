"""Figures from records alone: a registry of names, and what draws them when their records have changed."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.config import run_key
from benchmarks.errors import unknown
from benchmarks.suite import Suite
from reports.records import Records


@dataclass(frozen=True)
class Figure:
    """One figure: the runs of a table on one data set, and "module:function" that draws them.

    paper and number say which published figure it follows.
    """

    name: str
    title: str
    table: str
    dataset: str
    draw: str
    paper: str | None = None
    number: str | None = None


@dataclass(frozen=True)
class Runs:
    """The records that a figure shows, by row label and in the order of the table, and the labels that have none."""

    figure: Figure
    protocol: str
    records: dict[str, list[dict[str, Any]]]
    missing: tuple[str, ...]

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


@dataclass(frozen=True)
class Drawn:
    """What became of a figure: its files, or the reason why there are none."""

    name: str
    files: tuple[Path, ...] = ()
    skipped: str = ""


DIGITS = [
    ("reliability", "Reliability on digits"),
    ("roc", "Photographs against digits, by predictive entropy"),
    ("entropy", "Predictive entropy: digits and photographs"),
    ("retention", "Accuracy on the most certain digits"),
    ("rotation", "Rotated digits"),
]
FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in [
        *(Figure(f"digits-{name}", title, "digits", "digits", f"digits:{name}") for name, title in DIGITS),
        Figure(
            "pequignot2020-figure-1", "y = cos(4(x + 0.2)): mean and 1, 2, 3 standard deviations",
            "toys", "pequignot_1d", "toys:shades", "pequignot2020", "1",
        ),
        Figure(
            "cinquin2024-figure-1", "y = sin(2πx): mean, samples and 2 standard deviations",
            "toys", "cinquin_1d", "toys:samples", "cinquin2024", "1",
        ),
        Figure(
            "rudner2021-figure-1", "Snelson: mean, samples and 2 standard deviations",
            "toys", "snelson", "toys:samples", "rudner2021", "1",
        ),
        Figure("rudner2021-figure-4", "Two moons", "toys", "two_moons_rudner", "toys:moons", "rudner2021", "4"),
        Figure("dirichlet2022-figure-3", "Two moons", "toys", "two_moons_dirichlet", "toys:moons", "dirichlet2022", "3"),
        Figure("cinquin2024-figure-9", "Two moons", "toys", "two_moons_cinquin", "toys:moons", "cinquin2024", "9"),
    ]
}  # fmt: skip


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

    protocol is the table's default unless given. A figure without records is skipped.
    """
    records, out = Records(results_dir), Path(out_dir) / "figures"
    out.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        if figure.table not in suite.table_names():
            yield Drawn(figure.name, skipped=f"there is no table {figure.table}")
            continue
        table = suite.table(figure.table)
        runs, keys = collect(figure, table, protocol or table.default_protocol, records, seeds)
        if not runs.records:
            what = f"no records of {', '.join(runs.missing)}" if runs.missing else f"no run of {figure.dataset} is planned"
            yield Drawn(figure.name, skipped=f"{what} (table {table.name}, protocol {runs.protocol})")
            continue
        stem = out / f"{figure.name}-{runs.protocol}"
        files = (stem.with_suffix(".pdf"), stem.with_suffix(".png"))
        stamp, stamped = _stamp(figure, keys, records), out / f".{stem.name}.stamp"
        if not (stamped.exists() and stamped.read_text() == stamp and all(file.exists() for file in files)):
            module, function = figure.draw.split(":")
            drawn = getattr(importlib.import_module(f"reports.figures.{module}"), function)(runs)
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
    for row in table.rows:
        configs = table.cell_runs(row, columns[0], protocol, seeds) if columns and row.method else []
        usable = [config for config in configs if isinstance(records.get(config), dict)]
        used += usable
        if usable:
            found[row.label] = [records.get(config) for config in usable]
        elif configs:
            missing.append(row.label)
    return Runs(figure, protocol, found, tuple(missing)), used


def _stamp(figure: Figure, configs: list[dict], records: Records) -> str:
    """What a drawn figure depends on: its records and the code that draws it."""
    code = [path.read_text() for path in sorted(Path(__file__).parent.glob("*.py"))]
    paths = [records.store.path(config) for config in configs]
    files = [(run_key(config), path.stat().st_mtime_ns, path.stat().st_size) for config, path in zip(configs, paths)]
    return hashlib.sha256(json.dumps([repr(figure), code, files]).encode()).hexdigest()
