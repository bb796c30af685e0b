"""Tables for the terminal, within its width.

Title, table, one sentence, the count of verdicts, at most three footnotes; the Markdown form has the rest.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

from fvi_core.telling import plural
from reports.aggregate import TableResult
from reports.captions import COSTS_ALONE, MIXED, NO_VERDICTS, QUOTED, counts, heading, label, usual_n
from reports.choice import WHOLE, Choice
from reports.labels import MARKS
from reports.layout import Block, Line, ShownColumn, blocks

WIDTH, NARROWEST, WIDEST = 120, 80, 200
FOOTNOTES, LONGEST = 3, 2  # most footnotes, and most lines of each
SHARE = 0.4  # largest share of the width for names of rows
FLOOR = 9  # narrowest broken header in characters, unless its column is narrower
ARROWS = {mark.strip() for mark in MARKS.values()} - {""}
SIGNS = {
    "difference": "difference: (ours − published) in combined standard errors, and what a t-test says of it",
    "~": "~: no error is published, ours stands for it",
    "(one run)": "(one run): ours − published, since one run has no error",
    QUOTED: f"{QUOTED}: quoted by the paper from another one",
    MIXED.strip(): "mixed: runs of several processors, whose costs are not compared",
}
INFINITE = "∞, since labels have probability 0; the Markdown form has their number."


def width() -> int:
    """Return the terminal's width in characters, or $COLUMNS; the default where there is no terminal."""
    return min(max(shutil.get_terminal_size((WIDTH, 24)).columns, NARROWEST), WIDEST)


def text(result: TableResult, choice: Choice = WHOLE, width: int = WIDTH) -> str:
    """Return the table in plain text; * marks cells printed in bold elsewhere."""
    parts = ["\n".join(wrapped(heading(result), width))]
    parts += ["\n".join(_rows(block, width)) for block in _blocks(result, choice, width)]
    if choice.notes:
        shown = "\n".join(parts[1:])
        parts.append("\n".join(line for words in _below(result, shown, choice) for line in _brief(words, width)))
    if result.problems:
        parts.append("\n".join(line for problem in result.problems for line in wrapped(problem, width)))
    return "\n\n".join(parts) + "\n"


def wrapped(words: str, width: int = WIDTH) -> list[str]:
    """Wrap words in lines of at most width characters; longer words are broken."""
    return textwrap.wrap(words, width, break_on_hyphens=False)


def filled(parts: Sequence[str], width: int) -> list[str]:
    """Join parts in lines of at most width characters, broken between parts only."""
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) < width:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines


def _below(result: TableResult, shown: str, choice: Choice) -> list[str]:
    """Return the lines below the table: a sentence, verdicts, footnotes on its cells."""
    values, usual = any(cell.values for cell in result.flat), usual_n(result)
    bold = "; *: the best, or not told apart from it" if any(cell.bold for cell in result.flat) else ""
    n = plural(usual, "run") if usual else "runs"
    others = any(cell.values and not cell.n == cell.expected == usual for cell in result.flat)
    n += " (found/expected in brackets)" * others
    means = f"mean ± standard error over {n}{bold}" if values else "no number yet"
    reduced = ", a reduced one" if result.table.reduction(result.protocol) else ""
    sentences = [f"Protocol {result.protocol}{reduced}: {means}."]
    known = [cell for cell in result.flat if cell.published]
    costs = all(cell.is_cost for cell in known)
    if known and choice.difference:
        sentences.append(COSTS_ALONE if costs else NO_VERDICTS if result.trial else counts(known))
    warnings = (
        [f"{result.warnings[0]} Further notes: {len(result.warnings) - 1}."] if result.warnings[1:] else result.warnings
    )
    notes = [
        *[INFINITE] * any(cell.impossible for cell in result.flat),
        *result.files,
        *warnings,
        *(f"{about}." for sign, about in SIGNS.items() if sign in shown and not (costs and sign == "difference")),
    ]
    return sentences + notes[:FOOTNOTES]


def _brief(words: str, width: int) -> list[str]:
    lines = wrapped(words, width)
    return lines if len(lines) <= LONGEST else [*lines[: LONGEST - 1], f"{lines[LONGEST - 1][: width - 4]} ..."]


def _blocks(result: TableResult, choice: Choice, width: int) -> list[Block]:
    """Return the table in one block with one-line headers if it fits, else in as few as broken headers allow."""
    columns = range(len(result.table.columns))
    names = [label(result, j) + MARKS[1] for j in columns] if choice.across else [r[0].row.label for r in result.cells]
    room = width - min(max(map(len, [*names, "  difference"])), int(SHARE * width))
    plain = blocks(result, lambda column: column.width + 2, room, choice)
    return plain if len(plain) == 1 else blocks(result, _size, room, choice)


def _size(column: ShownColumn) -> int:
    cells = max(len(str(cell)) + 1 for row in column.rows for cell in row.values())
    return 2 + max(cells, max(map(len, _broken(column.header, cells))))


def _broken(header: str, cells: int) -> list[str]:
    """Break a header into lines as wide as its cells, or as its longest word; the arrow stays with the last word."""
    words = header.split()
    if words[-1] in ARROWS and len(words) > 1:
        words[-2:] = [" ".join(words[-2:])]
    return filled(words, max(cells, FLOOR))


def _rows(block: Block, width: int) -> list[str]:
    """The lines of a block."""
    texts = [[f"{cell}{'*' * cell.bold}" for cell in line.cells] for line in block.lines]
    cells = [max(map(len, column)) for column in zip(*texts)]
    names = max(len(_indented(line)) for line in block.lines)
    whole = names + sum(max(len(head), each) + 2 for head, each in zip(block.header, cells)) <= width
    heads = [[head] if whole else _broken(head, each) for head, each in zip(block.header, cells)]
    widths = [max(each, *map(len, head)) for head, each in zip(heads, cells)]
    first = min(names, width - sum(widths) - 2 * len(widths))
    deep = max(map(len, heads), default=0)
    rows = wrapped(block.title, width)
    for k in range(deep):  # headers end at the same line
        rows.append(_row("", [head[k - deep] if k >= deep - len(head) else "" for head in heads], widths, first))
    rows.append("─" * (first + sum(widths) + 2 * len(widths)))
    for line, shown in zip(block.lines, texts):
        *above, last = textwrap.wrap(_indented(line), first, subsequent_indent="  ") or [""]
        rows += above
        rows.append(_row(last, shown, widths, first))
    return rows


def _indented(line: Line) -> str:
    return line.label if line.kind == "value" else f"  {line.label}"


def _row(name: str, cells: Sequence[str], widths: Sequence[int], first: int) -> str:
    return "  ".join([name.ljust(first), *(cell.rjust(width) for cell, width in zip(cells, widths))]).rstrip()
