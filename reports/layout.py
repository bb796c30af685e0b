"""A table as blocks of short strings: what the terminal, Markdown and LaTeX forms have in common."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from benchmarks.records.published import Published
from reports import mean_ranks
from reports.aggregate import NOT_PLANNED, CellResult, Counts, TableResult
from reports.agreement import RULE as AGREEMENT
from reports.agreement import rank_agreement
from reports.labels import MARKS, direction, title
from reports.significance import RULE

MISSING, MIXED = "—", " (mixed)"
QUOTED = "†"


@dataclass(frozen=True)
class Line:
    """One printed line of a row: kind is value, published or difference; only the first carries the row's label."""

    label: str
    kind: str
    texts: list[str]
    bold: list[bool]


@dataclass(frozen=True)
class Block:
    """Columns that are printed side by side, under a title (empty where each column names its own metric)."""

    title: str
    header: list[str]
    lines: list[Line]


@dataclass(frozen=True)
class Column:
    """One column as strings: header, and for every row the texts of its lines by kind."""

    metric: str
    label: str
    rows: list[dict[str, str]]
    bold: list[bool]

    @property
    def header(self) -> str:
        """The label with an arrow to the metric's better side."""
        return self.label + MARKS[direction(self.metric)]

    @property
    def width(self) -> int:
        """The longest text of the column, with room for the mark of bold."""
        return max(len(self.header), *(len(text) + 1 for row in self.rows for text in row.values()))


def blocks(result: TableResult, size: Callable[[Column], int], capacity: int) -> list[Block]:
    """The table in blocks of at most that capacity: one if it fits, else metric by metric, then column by column."""
    columns = columns_of(result)
    groups = [columns]
    if sum(map(size, columns)) > capacity or not _told_apart(columns):
        groups = []
        for _, same in groupby(columns, key=lambda column: column.metric):
            part = list(same)
            if groups and sum(map(size, groups[-1] + part)) <= capacity and _told_apart(groups[-1] + part):
                groups[-1] += part
            else:
                groups += _filled(part, size, capacity)
    labels = [row[0].row.label for row in result.cells]
    return [block for block in (_block(group, labels) for group in groups) if block.lines]


def columns_of(result: TableResult) -> list[Column]:
    """Every column as strings, in the order of the table."""
    return [_column(result, j) for j in range(len(result.table.columns))]


def heading(result: TableResult) -> str:
    """The table's title and source."""
    table = result.table
    return table.title.rstrip(".") + (f" ({table.paper}, table {table.number})" if table.number else "")


def caption(result: TableResult) -> list[str]:
    """What a reader has to know: protocol and its reductions, n, the rule of bold, units of comparison, counts."""
    cells = [cell for cell in result.flat if cell.values]
    reduction = result.table.reduction(result.protocol)
    sentences = [f"Protocol {result.protocol}{': ' + reduction if reduction else ''}."]
    usual = usual_n(result)
    others = [cell for cell in cells if not cell.n == cell.expected == usual]
    counted = f"n = {usual}" if usual else ""
    counted += " in every cell" if not others else (", otherwise " if usual else "n ") + "in brackets (found/expected)"
    shown = f"Mean ± standard error (ddof = 1) over n runs; {counted}."
    sentences.append(shown if cells else "No run of this protocol yet.")
    if any(cell.bold for cell in cells):
        sentences.append(RULE)
    sentences += _mixed_machines(result)
    known = [cell for cell in result.flat if cell.published]
    if known:
        counts = Counts.of(known)
        sentences.append(AGREEMENT)
        partly = f" ({counts.partial} of them partial)" if counts.partial else ""
        sentences.append(
            f"{len(known)} published cells: {counts.recorded} with records{partly}, "
            f"{counts.reproduced} reproduced, {counts.differing} differ, {counts.uninformative} uninformative."
        )
        sentences.append(_runs_needed(known))
        sentences.append(_rank_agreement(result))
        sentences.append(mean_ranks.sentence(result))
        sentences.append(_published_runs(known))
        sentences += _quoted(known)
        sentences.append(_if_deviations(result, known))
    return [sentence for sentence in sentences if sentence]


def _runs_needed(known: Iterable[CellResult]) -> str:
    """How many runs the uninformative cells would want."""
    found = [cell.comparison for cell in known if cell.agreement == "uninformative" and cell.comparison]
    needed = sorted(each.needed for each in found if each.needed is not None)
    if not found:
        return ""
    never = len(found) - len(needed)
    told = []
    if needed:
        counts = " to ".join(dict.fromkeys((str(needed[0]), str(needed[-1]))))
        told.append(f"{counts} runs would make {len(needed)} of the uninformative cells informative")
    if never:
        what = "others" if needed else "uninformative cells"
        told.append(
            f"no number of runs would make {never} {what} informative, the published error alone being too wide"
        )
    sentence = "; ".join(told)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _rank_agreement(result: TableResult) -> str:
    """Whether rows are in the published order, column by column."""
    found = []
    for j in range(len(result.table.columns)):
        cells = [row[j] for row in result.cells]
        both = [(cell.mean, cell.published.mean) for cell in cells if cell.published and cell.values]
        agreement = rank_agreement(*zip(*both)) if both else None
        if agreement is not None:
            found.append(agreement)
    if not found:
        return ""
    columns = "one column" if len(found) == 1 else f"{len(found)} columns, on average"
    return f"Order of the rows, ours and published: Spearman's correlation {np.mean(found):.2f} in {columns}.".replace(
        " -", " −"
    )


def _if_deviations(result: TableResult, known: Iterable[CellResult]) -> str:
    """What would be reproduced if the published errors, of which it is not clear, were standard deviations."""
    found = [cell.comparison for cell in known if cell.comparison]
    if not result.table.deviations or not found:
        return ""
    agreeing = [each for each in (replace(one, deviation=True) for one in found) if each.agrees and each.informative]
    return f"Were the published errors standard deviations over runs: {len(agreeing)} reproduced."


def usual_n(result: TableResult) -> int | None:
    """The n of most complete cells, printed once in the caption; None without a complete cell."""
    counts = Counter(cell.n for cell in result.flat if cell.values and cell.n == cell.expected)
    return counts.most_common(1)[0][0] if counts else None


def pair(mean: float, stderr: float, digits: int) -> str:
    """A mean and its standard error with two significant digits of the error; large ones with an exponent.

    Without an error (nan, or 0) that many decimals.
    """
    places = min(max(1 - math.floor(math.log10(stderr)), 0), 6) if 0 < stderr < math.inf else digits
    parts = [mean] if math.isnan(stderr) else [mean, stderr]
    large = max(map(abs, parts)) >= 1e5
    return " ± ".join(f"{x:.2e}" if large else f"{x:.{places}f}" for x in parts).replace("-", "−")


def _told_apart(columns: list[Column]) -> bool:
    return len({column.label for column in columns}) == len(columns)


def _column(result: TableResult, j: int) -> Column:
    spec, cells = result.table.columns[j], [row[j] for row in result.cells]
    usual = usual_n(result)
    rows: list[dict[str, str]] = []
    for cell in cells:
        count = f" ({cell.n})" if cell.n == cell.expected else f" ({cell.n}/{cell.expected})"
        count = "" if cell.n == cell.expected == usual else count
        value = f"{MISSING} {cell.missing}" if cell.missing else pair(cell.mean, cell.stderr, spec.digits) + count
        texts, across = {"value": value}, result.cells[len(rows)]
        if any(each.published for each in across):
            texts["published"] = _published(cell.published)
        if any(each.agreement for each in across):
            texts["difference"] = _difference(cell)
        rows.append(texts)
    return Column(spec.cell.metric, _label(result, j), rows, [cell.bold for cell in cells])


def _label(result: TableResult, j: int) -> str:
    return result.table.columns[j].label + (MIXED if len(result.machines(j)) > 1 else "")


def _mixed_machines(result: TableResult) -> list[str]:
    """A sentence for the columns of costs that have the same two or more processor models."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for j in range(len(result.table.columns)):
        groups.setdefault(tuple(result.machines(j)), []).append(_label(result, j))
    return [
        f"{', '.join(dict.fromkeys(labels))}: made on {', '.join(models[:-1])} and {models[-1]}, "
        "so costs are not compared and none is bold."
        for models, labels in groups.items()
        if len(models) > 1
    ]


def _published(number: Published | None) -> str:
    return number.printed.replace("-", "−") + QUOTED * bool(number.quoted) if number else MISSING


def _quoted(known: Iterable[CellResult]) -> list[str]:
    """A sentence for each published row that was taken over from another paper."""
    found = {(cell.row.label, cell.published.quoted) for cell in known if cell.published and cell.published.quoted}
    ordered = sorted(found, key=lambda one: (one[0], one[1].source if one[1] else ""))
    return [f"{QUOTED} {label}: quoted from {q.source}: {q.evidence}." for label, q in ordered if q]


def _difference(cell: CellResult) -> str:
    if cell.agreement is None:
        return MISSING
    if cell.comparison is None:
        return "" if cell.relative is None else f"{100 * cell.relative:+.1f} % ".replace("-", "−") + "(one run)"
    t = cell.comparison.t
    size = "0.0" if abs(t) < 0.05 else f"{t:+.1f}".replace("-", "−")
    return f"{'~' if cell.comparison.assumed else ''}{size} {cell.agreement.removeprefix('differs, ')}"


def _filled(columns: list[Column], size: Callable[[Column], int], capacity: int) -> list[list[Column]]:
    parts: list[list[Column]] = [[]]
    for column in columns:
        if parts[-1] and sum(map(size, parts[-1])) + size(column) > capacity:
            parts.append([])
        parts[-1].append(column)
    return parts


def _block(columns: list[Column], labels: list[str]) -> Block:
    metrics = {column.metric for column in columns}
    one = len(metrics) == 1
    lines = []
    for i, label in enumerate(labels):
        if all(column.rows[i] == {"value": f"{MISSING} {NOT_PLANNED}"} for column in columns):
            continue
        for kind in columns[0].rows[i]:
            marks = [kind == "value" and column.bold[i] for column in columns]
            texts = [column.rows[i][kind] for column in columns]
            lines.append(Line(label if kind == "value" else kind, kind, texts, marks))
    return Block(title(metrics.pop()) if one else "", [c.label if one else c.header for c in columns], lines)


def _published_runs(cells: list[CellResult]) -> str:
    counts = sorted({cell.published.n_runs or 0 for cell in cells if cell.published})
    named = [str(count) for count in counts if count]
    unsaid = " or not said" if counts[0] == 0 else ""
    return f"Published over {', '.join(named)}{unsaid} runs." if named else "The paper does not say over how many runs."
