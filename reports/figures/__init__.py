"""Figures from records alone: a registry of names, redrawn when their records have changed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.errors import UsageError
from benchmarks.records import published, stamp
from benchmarks.records.form import RecordError
from benchmarks.records.published import Published
from benchmarks.suite import Suite
from benchmarks.tables.external import with_external_rows
from reports.aggregate import DIFFERENT, TableResult, aggregate
from reports.figures.catalogue import FIGURES, Figure
from reports.figures.looks import assign
from reports.figures.options import Options
from reports.origins import different_note, runs_of
from reports.records import MALFORMED, Recorded, Records, plain
from reports.stamp import code

__all__ = [
    "FIGURES",
    "Drawn",
    "Figure",
    "NothingToShow",
    "Runs",
    "collect",
    "counted",
    "draw",
    "recorded_runs",
    "standing",
    "with_runs",
]


FORMS = (".pdf", ".png")  # also written: .svg; .csv with the drawn numbers; .txt with the caption
COMPUTED = "computed"
"""Stands for the protocol of a figure that needs no records."""
FALLBACK = "short"
"""Protocol whose records are shown, under its name, where the table's default has few."""


@dataclass(frozen=True)
class Runs:
    """Runs of a figure, by row label in the order of the table, and the labels without any.

    read returns the curves of a run. published: the numbers of the figure's paper by row label, then by (condition,
    metric as in records). problems: files that do not count, with reasons. cells: the figure's rows of the whole table.
    files: a note on substitute data files.
    """

    figure: Figure
    protocol: str
    records: dict[str, list[Recorded]]
    missing: tuple[str, ...]
    read: Callable[[Recorded], Mapping[str, Any]] = field(repr=False)
    published: dict[str, dict[tuple[str, str], Published]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    cells: Callable[[], TableResult] | None = field(default=None, repr=False)
    files: str = ""

    def about(self, errors: str = "") -> str:
        """Return protocol, n and the meaning of error bands ("bands: SE"); for a computed figure, that word."""
        counts = [len(records) for records in self.records.values()]
        return counted(self.protocol, counts, errors) if counts else self.protocol

    def curves(self, name: str, most: int | None = None) -> dict[str, list[dict[str, Any]]]:
        """Return a curve ("test/reliability") of the first runs of every row that have it, as many as most or all, by
        row label; only this curve is held in memory.

        Raises NothingToShow where no run has it.
        """
        every = {label: map(self.read, runs) for label, runs in self.records.items()}
        named = {label: (curves[name] for curves in of_row if name in curves) for label, of_row in every.items()}
        first = {label: list(islice(curves, most)) for label, curves in named.items()}
        if not any(first.values()):
            raise NothingToShow(f"the records hold no curve {name}")
        return {label: curves for label, curves in first.items() if curves}

    def first(self, label: str | None = None) -> Mapping[str, Any]:
        """Return all curves of the first run of a row (default: the first row)."""
        return self.read(self.records[label or next(iter(self.records))][0])


def counted(protocol: str, counts: Collection[int], errors: str = "") -> str:
    """Return protocol, number of runs, and the meaning of error bands, which single runs do not have."""
    least, most = min(counts), max(counts)
    if most == 1:
        return f"protocol {protocol}, n = 1 run"
    n = f"{most}" if least == most else f"{least} to {most}"
    return f"protocol {protocol}, n = {n} runs" + f"; {errors}" * bool(errors)


class NothingToShow(Exception):
    """Error: the records lack the content of a figure; the message names it."""


@dataclass(frozen=True)
class Drawn:
    """Result of drawing a figure: its files, or why there are none; and files that do not count."""

    name: str
    files: tuple[Path, ...] = ()
    skipped: str = ""
    problems: tuple[str, ...] = ()


def draw(
    figures: Sequence[Figure],
    suite: Suite,
    records: Records,
    out_dir: Path | str,
    protocol: str | None = None,
    seeds: list[int] | None = None,
    forms: Sequence[str] = FORMS,
    options: Options = Options(),
) -> Iterator[Drawn]:
    """Draw figures into <out>/figures in every form, also of external predictions; those with unchanged records stay.

    A figure without a table is computed; for the others see :func:`recorded_runs`. A figure without records, or with
    invalid ones, is skipped. Raises UnknownName for unknown rows or columns, UsageError for columns of a figure without
    panels.
    """
    out = Path(out_dir) / "figures"
    out.mkdir(parents=True, exist_ok=True)
    digests = records.digests  # before any record is read, so that no stamp is newer than its figure
    for figure, table, runs in with_runs(figures, suite, records, protocol, seeds, options):
        if runs:
            yield _draw(figure, table, runs, digests, out, forms, options)
        else:
            yield Drawn(figure.name, skipped=f"there is no table {figure.table}")


def with_runs(
    figures: Sequence[Figure],
    suite: Suite,
    records: Records,
    protocol: str | None = None,
    seeds: list[int] | None = None,
    options: Options = Options(),
) -> Iterator[tuple[Figure, Any, Runs | None]]:
    """Return every figure with its whole table, and its runs of the rows chosen: None where the suite lacks the table.
    A computed figure has no table.

    Raises UnknownName for unknown rows or columns.
    """
    names = sorted({figure.table for figure in figures} & set(suite.table_names()))
    tables = {table.name: table for table in with_external_rows(list(map(suite.extended, names)), suite, records.store)}
    options.check_rows(tables.values())
    for figure in figures:
        if not figure.table:
            yield figure, None, Runs(figure, COMPUTED, {}, (), records.curves)
            continue
        if figure.table not in tables:
            yield figure, None, None
            continue
        table = tables[figure.table]
        chosen = replace(table, rows=options.rows_of(table))
        yield figure, table, recorded_runs(figure, chosen, protocol, records, seeds)


def standing(figure: Figure, runs: Runs | None) -> str:
    """Return a line on a figure: its protocol, the number of runs, and how many of its rows have records."""
    if runs is None:
        about = f"there is no table {figure.table}"
    elif not figure.table:
        about = runs.about()
    else:
        about = runs.about() if runs.records else f"protocol {runs.protocol}"
        about += f", {len(runs.records)} of {len(runs.records) + len(runs.missing)} rows"
        about += ": none of " * bool(runs.missing) + "; ".join(runs.missing)
    return f"{figure.name:<42} {about}"


def recorded_runs(
    figure: Figure, table: Any, protocol: str | None, records: Records, seeds: list[int] | None = None
) -> Runs:
    """Return the runs of a figure. Without a protocol, uses the fallback where the table's default covers less than
    half of its rows, and a user's own files where there are no others."""
    fallback = [FALLBACK] if protocol is None and FALLBACK in table.protocols else []
    tried: list[Runs] = []
    for known in (records, records.of_other_files()):
        names = dict.fromkeys([protocol or table.default_protocol, *fallback])
        found = [collect(figure, table, name, known, seeds) for name in names]
        tried += found
        shown = found[-1] if 2 * len(found[0].records) < len(found[-1].records) else found[0]
        if shown.records:
            problems = (problem for runs in tried for problem in runs.problems)
            return replace(shown, problems=tuple(dict.fromkeys(problems)), files=" ".join(known.files))
    return tried[0]


def collect(figure: Figure, table: Any, protocol: str, records: Records, seeds: list[int] | None = None) -> Runs:
    """Return the runs of a figure by row label, of its data set or all, without rows whose runs differ in data."""
    table = replace(table, rows=tuple(row for row in table.rows if not figure.rows or row.label in figure.rows))
    datasets = [name for name in table.datasets if figure.dataset in ("", name)]
    found: dict[str, list[Recorded]] = {}
    missing: list[str] = []
    problems: list[str] = []
    numbers = published.table(figure.paper, None).values() if figure.paper else ()
    marks: dict[str, dict[tuple[str, str], Published]] = {}
    for row in table.rows if datasets else ():
        own = [n for n in numbers if (n.dataset, n.method) == (figure.dataset, row.published or row.label)]
        marks[row.label] = {(n.condition, published.recorded(n.paper, n.metric)): n for n in own}
        for dataset in datasets:
            runs = runs_of(table, row, dataset, protocol, records, seeds)
            problems += map(str, runs.broken)
            if runs.different:
                problems.append(different_note(row, dataset, runs.different))
                missing.append(f"{row.label} ({DIFFERENT})")
            elif runs.recorded:
                found.setdefault(row.label, []).extend(run.record for run in runs.recorded)
            elif runs.expected:
                missing.append(row.label)
    missing = [label for label in dict.fromkeys(missing) if label not in found]
    reasons = tuple(dict.fromkeys(problems))

    def cells() -> TableResult:
        return aggregate(table, protocol, records, seeds)

    return Runs(figure, protocol, found, tuple(missing), records.curves, marks, reasons, cells)


def _draw(
    figure: Figure,
    table: Any,
    runs: Runs,
    digests: Mapping[str, str],
    out: Path,
    forms: Sequence[str],
    options: Options,
) -> Drawn:
    where = f"(table {table.name}, protocol {runs.protocol})" if table else ""
    if table and not runs.records:
        what = f"no records of {'; '.join(runs.missing)}" if runs.missing else f"no run of {figure.dataset} is planned"
        return Drawn(figure.name, skipped=f"{what} {where}", problems=runs.problems)
    stem = out / f"{figure.name}-{runs.protocol}"
    files = tuple(stem.with_suffix(form) for form in forms)
    labels = [row.label for row in table.rows] if table else []  # all rows of the table share the looks
    stamped, depends = out / f".{stem.name}.stamp", _stamp(runs, labels, digests, options)
    if not (stamp.read(stamped, depends) and all(file.exists() for file in files)):
        module, _, call = figure.draw.partition(":")
        function, *words = call.split()
        style = importlib.import_module("reports.figures.style")
        drawing = getattr(importlib.import_module(f"reports.figures.{module}"), function)
        assign(labels)
        try:
            with style.using(options), threadpool_limits(1):  # sums in one order, whatever the number of cores
                drawn = drawing(runs, *words)
                if options.columns and not style.panelled():
                    raise UsageError(f"--column: figure {figure.name} has no columns to choose from")
                for note in filter(None, (*figure.remarks(runs.protocol), runs.files)):
                    drawn.set_label(f"{style.caption(drawn)}\n{note}")
                style.save(drawn, files)
        except NothingToShow as reason:
            return Drawn(figure.name, skipped=f"{reason} {where}".strip(), problems=runs.problems)
        except UsageError:
            raise
        except (RecordError, *MALFORMED) as error:  # only metrics of a record are checked before
            problem = f"Not drawn: {figure.name}: {type(error).__name__}: {plain(str(error))}"
            what = f"its records cannot be drawn {where}"
            return Drawn(figure.name, skipped=what, problems=(*runs.problems, problem))
        finally:
            style.plt.close("all")
            assign(())
        stamp.write(stamped, depends, True)
    return Drawn(figure.name, files, problems=runs.problems)


def _stamp(runs: Runs, labels: Sequence[str], digests: Mapping[str, str], options: Options) -> str:
    """Return the digest of the code, and of the figure's records, rows and published numbers."""
    content = {label: [(run.file, digests[run.file]) for run in row] for label, row in runs.records.items()}
    about = [runs.figure, options, runs.published, runs.missing, runs.files, labels]
    return stamp.digest([code(), *map(repr, about), content])
