"""Text around a table: heading, caption, notes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np

from benchmarks.records.published import Quotation
from benchmarks.tables.notes import KINDS, Note
from reports import mean_ranks
from reports.aggregate import CellResult, TableResult
from reports.agreement import RULE as AGREEMENT
from reports.agreement import Verdict, rank_agreement, sign_agreement
from reports.choice import WHOLE, Choice
from reports.labels import name
from reports.significance import MOST, RULE

MIXED, QUOTED = " (mixed)", "†"
RUNS = "Runs"
FVI = " fVI"
ONE_RUN = "(one run): ours − published, in the unit of the column; without a test, as one run has no error."
HUGE = 100  # a difference of so many errors is huge
EACH = 8  # most columns whose numbers are listed singly
SMALL_ERRORS = (
    f"~ with {HUGE} and more, or ∞: our runs differ hardly or not at all, so the number tells how small their error "
    "is, and not how far ours is from the published one."
)
NO_VERDICTS = (
    "No verdicts: these runs test that everything works, and their numbers mean nothing beside published ones."
)
COSTS_ALONE = "Difference: ours / published, of other machines and so without verdicts."
AMONG_ALL = "Bold is decided among all rows of the table, also those that are not shown."


def heading(result: TableResult) -> str:
    """Return the table's title and source."""
    table = result.table
    return table.title.rstrip(".") + (f" ({table.paper}, table {table.number})" if table.number else "")


def notes(result: TableResult) -> dict[str, list[Note]]:
    """Return the table's notes by kind, the last on the runs that count: files, infinite values, warnings. Notes whose
    bold words name rows or columns that are all left out go with them."""
    on_runs = (Note(words, RUNS) for words in (*result.files, *_infinite(result), *result.warnings))
    shown = ([row.label for row in result.table.rows], [column.label for column in result.table.columns])
    own = [
        note
        for note in result.table.notes_on(result.protocol)
        if not any(_on_hidden_alone(note, *labels) for labels in zip(result.hidden, shown))
    ]
    found = [*own, *on_runs]
    listed = {kind: [note for note in found if note.kind == kind] for kind in (*KINDS, RUNS)}
    return {kind: each for kind, each in listed.items() if each}


def _on_hidden_alone(note: Note, hidden: Collection[str], shown: Collection[str]) -> bool:
    """Whether the bold words of a note name labels, and none that is shown."""
    head = re.match(r"\*\*(.*?)\*\*", note.text)
    if head is None or not hidden:
        return False
    labels = sorted({*hidden, *shown}, key=len, reverse=True)  # "Sparse GP" before "GP"
    named = re.findall(rf"(?<!\w)(?:{'|'.join(map(re.escape, labels))})(?!\w)", head[1], re.IGNORECASE)
    return bool(named) and not {each.lower() for each in named} & {label.lower() for label in shown}


def _infinite(result: TableResult) -> list[str]:
    """Name the rows with infinite values, and at how many points the label has probability 0."""
    sentences = []
    for row in result.cells:
        places = [j for j, cell in enumerate(row) if cell.impossible]
        if not places:
            continue
        counts = [_from_to(row[j].impossible) for j in places]
        where = ", ".join(f"{column}: {count}" for column, count in zip(column_names(result, places), counts))
        if len(places) > EACH:
            where = f"{len(places)} columns: {_from_to([count for j in places for count in row[j].impossible])}"
        sentences.append(
            f"{row[0].row.label}: ∞, since labels have probability 0 (points in each such run, {where}); "
            "docs/predictions.md says what to do."
        )
    return sentences


def _from_to(counts: Sequence[int]) -> str:
    return " to ".join(dict.fromkeys((str(min(counts)), str(max(counts)))))


def caption(result: TableResult, choice: Choice = WHOLE) -> list[str]:
    """Return the caption: protocol and its reductions, n, the rule of bold, units of comparison, counts."""
    cells = [cell for cell in result.flat if cell.values]
    reduction = result.table.reduction(result.protocol)
    sentences = [f"Protocol {result.protocol}{': ' + reduction if reduction else ''}."]
    usual = usual_n(result)
    others = [cell for cell in cells if not cell.n == cell.expected == usual]
    counted = f"n = {usual}" if usual else ""
    counted += " in every cell" if not others else (", otherwise " if usual else "n ") + "in brackets (found/expected)"
    shown = f"Mean ± standard error (ddof = 1) over n runs; {counted}."
    sentences.append(shown if cells else "No run of this protocol yet.")
    if any(cell.apart is not None for cell in result.flat):
        sentences += [RULE, _without_bold(result), AMONG_ALL if choice.rows else ""]
    sentences += [_shared(result), *_mixed_machines(result)]
    known = [cell for cell in result.flat if cell.published]
    if known:
        sentences += _compared(result, known, choice)
    sentences.append(result.hours.sentence)
    return [sentence for sentence in sentences if sentence]


def _compared(result: TableResult, known: list[CellResult], choice: Choice) -> list[str]:
    """Return the sentences on published numbers."""
    sentences = []
    if choice.difference and all(cell.is_cost for cell in known):
        sentences.append(COSTS_ALONE)
    elif choice.difference and result.trial:
        sentences += ["Difference: (ours − published) in combined standard errors.", NO_VERDICTS]
    elif choice.difference:
        sentences += [AGREEMENT, _one_run(known), _small_errors(known), counts(known)]
        sentences += [_without_errors(known), _runs_needed(known)]
        sentences.append(_rank_agreement(result))
        sentences.append(_sign_agreement(result))
        sentences.append(mean_ranks.sentence(result))
    if choice.published or choice.difference:
        sentences.append(_published_runs(known))
    if choice.published:
        sentences += _quoted(known)
    if choice.difference and not result.trial:
        sentences.append(_if_deviations(result, known))
    return sentences


def counts(known: list[CellResult]) -> str:
    """Count the published cells with records, and their verdicts."""
    found = Counter(cell.status for cell in known)
    partial = sum(0 < cell.n < cell.expected for cell in known)
    partly = f" ({partial} of them partial)" if partial else ""
    return (
        f"{_published_cells(known)}: {len(known) - found['missing']} with records{partly}, "
        f"{found['reproduced']} reproduced, {found['differs']} differ, {found['uninformative']} uninformative."
    )


def _one_run(known: Iterable[CellResult]) -> str:
    """Explain the difference of a cell of one run, where one is shown."""
    shown = any(cell.n == 1 and not cell.is_cost and cell.apart_by for cell in known)
    return ONE_RUN if shown else ""


def _small_errors(known: Iterable[CellResult]) -> str:
    """Explain huge or infinite differences where our errors stand for both."""
    found = [cell.comparison for cell in known if cell.comparison]
    return SMALL_ERRORS if any(each.assumed and abs(each.t) >= HUGE for each in found) else ""


def _published_cells(known: list[CellResult]) -> str:
    """Count published cells; where rows share published numbers, also the comparisons."""
    distinct = len({cell.published.key for cell in known if cell.published})
    cells = f"{distinct} published cells"
    return cells if distinct == len(known) else f"{len(known)} comparisons with {cells}"


def _without_errors(known: Iterable[CellResult]) -> str:
    """Count the cells without a verdict for lack of a published error."""
    count = sum(cell.outcome is Verdict.UNDECIDED and not cell.splits_missing for cell in known)
    if not count:
        return ""
    cells = "One cell has" if count == 1 else f"{count} cells have"
    return f"{cells} no verdict, as no error is published and the verdict depends on how much their runs scatter."


def _runs_needed(known: Iterable[CellResult]) -> str:
    """Say how many runs the uninformative cells would need."""
    wide = [cell.comparison.widest for cell in known if cell.comparison and cell.outcome is Verdict.UNINFORMATIVE]
    needed = [each.needed for each in wide if each.needed is not None]
    if not wide:
        return ""
    never = len(wide) - len(needed)
    parts = []
    if needed:
        parts.append(f"{_from_to(needed)} runs would make {len(needed)} of the uninformative cells informative")
    if never:
        what = ("other" if needed else "uninformative cell") + "s" * (never > 1)
        parts.append(f"not even {MOST:,} runs would make {never} {what} informative")
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _rank_agreement(result: TableResult) -> str:
    """Say whether rows are in the published order: column by column for few columns, else on average."""
    correlations: dict[int, float] = {}
    for j in range(len(result.table.columns)):
        cells = [row[j] for row in result.cells]
        both = [(cell.mean, cell.published.mean) for cell in cells if cell.published and cell.complete]
        agreement = rank_agreement(*zip(*both)) if both else None
        if agreement is not None:
            correlations[j] = agreement
    if not correlations:
        return ""
    mean = f"{np.mean(list(correlations.values())):.2f}"
    words = f"{mean} in {len(correlations)} columns, on average"
    if len(correlations) <= EACH:
        named = zip(correlations.values(), column_names(result, list(correlations)))
        words = ", ".join(f"{value:.2f} ({column})" for value, column in named)
        words += f"; on average {mean}" if len(correlations) > 1 else ""
    return f"Order of the rows, ours and published: Spearman's correlation {words}.".replace(" -", " −")


def column_names(result: TableResult, places: list[int]) -> list[str]:
    """Return names of columns, with their metrics where labels are ambiguous."""
    columns = [result.table.columns[j] for j in places]
    apart = len({column.label for column in columns}) == len(columns)
    return [column.label + ("" if apart else f", {name(column.cell.metric)}") for column in columns]


def _sign_agreement(result: TableResult) -> str:
    """Say whether function-space inference helps and hurts where it does in the paper: row "X fVI" beside row "X"."""
    by_label = {row[0].row.label: row for row in result.cells if row}
    pairs = [
        (cell, plain)
        for name, row in by_label.items()
        if name.endswith(FVI)
        for cell, plain in zip(row, by_label.get(name.removesuffix(FVI), ()), strict=False)
        if all(one.published and one.values for one in (cell, plain))
    ]
    found = sign_agreement(
        [cell.mean - plain.mean for cell, plain in pairs],
        [one.published.mean - other.published.mean for one, other in pairs if one.published and other.published],
    )
    return (
        "" if found is None else f"Sign of what fVI changes, ours and published: the same in {found[0]} of {found[1]}."
    )


def _if_deviations(result: TableResult, known: Iterable[CellResult]) -> str:
    """Count the reproduced cells if ambiguous published errors were standard deviations."""
    found = [cell.comparison for cell in known if cell.comparison and not cell.splits_missing]
    if not result.table.deviations or not found:
        return ""
    agreeing = sum(replace(each, deviation=True).outcome == "reproduced" for each in found)
    return f"Were the published errors standard deviations over runs: {agreeing} reproduced."


def usual_n(result: TableResult) -> int | None:
    """Return the n of most complete cells, printed once in the caption; None without a complete cell."""
    counts = Counter(cell.n for cell in result.flat if cell.values and cell.n == cell.expected)
    return counts.most_common(1)[0][0] if counts else None


def label(result: TableResult, j: int) -> str:
    return result.table.columns[j].label + (MIXED if len(result.machines(j)) > 1 else "")


def _mixed_machines(result: TableResult) -> list[str]:
    """Return a sentence for the columns of costs that mix processor models."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for j in range(len(result.table.columns)):
        groups.setdefault(tuple(result.machines(j)), []).append(label(result, j))
    return [
        f"{', '.join(dict.fromkeys(labels))}: made on {', '.join(models[:-1])} and {models[-1]}, "
        "so costs are not compared and none is bold."
        for models, labels in groups.items()
        if len(models) > 1
    ]


def _without_bold(result: TableResult) -> str:
    """Count the columns without bold, since no test separates two rows."""
    apart = [result.cells[0][j].apart for j in range(len(result.table.columns))]
    alike, tested = apart.count(False), len(apart) - apart.count(None)
    if alike in (0, tested):
        return "No two rows of a column are told apart, so none is marked." if alike else ""
    return f"In {alike} of {tested} columns no two rows are told apart, so none is marked there."


def _shared(result: TableResult) -> str:
    """Return a sentence for the columns of costs with cells of runs trained side by side."""
    labels = [label(result, j) for j in range(len(result.table.columns)) if any(row[j].shared for row in result.cells)]
    if not labels:
        return ""
    return f"Without an error, in {', '.join(labels)}: runs trained side by side, each with an equal part of one time."


def _quoted(known: Iterable[CellResult]) -> list[str]:
    """Return a sentence for each published row that quotes another paper, with our rows beside it."""
    rows: dict[tuple[str, Quotation], dict[str, None]] = {}
    for cell in known:
        if cell.published and cell.published.quoted:
            rows.setdefault((cell.published.method, cell.published.quoted), {})[cell.row.label] = None
    quoted = sorted(((" and ".join(labels), source) for (_, source), labels in rows.items()), key=itemgetter(0))
    return [f"{QUOTED} {labels}: quoted from {q.source}: {q.evidence}." for labels, q in quoted]


def _published_runs(cells: list[CellResult]) -> str:
    counts = sorted({cell.published.n_runs or 0 for cell in cells if cell.published and not cell.published.quoted})
    if not counts:
        return ""
    named = [str(count) for count in counts if count]
    unsaid = " or not said" if counts[0] == 0 else ""
    return f"Published over {', '.join(named)}{unsaid} runs." if named else "The paper does not say over how many runs."
