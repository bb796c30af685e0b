"""A table as LaTeX: booktabs, numbers aligned at their points, a caption of one sentence, notes by threeparttable."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from benchmarks.tables.notes import Note
from fvi_core.printing import in_ascii
from fvi_core.telling import plural
from reports.aggregate import TableResult
from reports.agreement import RULE as AGREEMENT
from reports.captions import QUOTED, caption, heading, label, notes, usual_n
from reports.choice import WHOLE, Choice
from reports.entries import VERDICTS, Format, entry, note
from reports.labels import MARKS
from reports.layout import Block, Line, ShownColumn, blocks
from reports.marks import bold
from reports.significance import RULE
from reports.tex import escape, flowing, lines, wide

PACKAGES = ("booktabs", "threeparttable")
# Measured in digits of \footnotesize in Computer Modern, which is wider than most fonts: 4.25 of TeX's points.
POINTS = 28.45  # TeX's points in a centimetre
PER_CM = POINTS / 4.25
GAP, INDENT = 1.9, 2.4
LONGEST_LABEL, SHARE, LONGEST_WORD = 38, 0.34, 18  # the first also as a share of the page
# Heights in points: of rules and space, and of lines of captions, of a table and of notes; characters in a centimetre.
RULES, CAPTION, LINE, BETWEEN, NOTE = 40.0, 12.2, 9.6, 3.2, 8.3
CAPTION_PER_CM, NOTES_PER_CM = 5.6, 8.2
FRAME = RULES + 3 * CAPTION + LINE  # height around the lines of a table
NARROW = 0.75  # share of the page: narrower tables get this width, so that notes are not a thin column
SIDES = {mark: f" ({side} is better)" for mark, side in ((MARKS[1], "higher"), (MARKS[-1], "lower"))}


@dataclass(frozen=True)
class Piece:
    """Content of one float: a block of the table or some of its lines, and its place among the parts."""

    block: Block
    part: int = 1
    parts: int = 1


def latex(result: TableResult, choice: Choice = WHOLE, own: Sequence[str] | None = None) -> str:
    """Return the table as LaTeX to include (needs PACKAGES): a float for each part that fits on a page, notes below the
    last.

    Methods go down or across the page as the choice says, else as takes fewer floats. own: in place of its notes.
    """
    ways = (False, True) if choice.across is None else (choice.across,)
    pieces = min((_pieces(result, replace(choice, across=way)) for way in ways), key=len)
    below, marks = general(result, choice, own), _marks(pieces)
    fits = _whole_height(pieces[-1], _sentence(result, pieces[-1]), below, choice.page[0]) <= choice.page[1] * POINTS
    floats = []
    for number, piece in enumerate(pieces):
        name = place(result, number)
        under = below if fits and number == len(pieces) - 1 else []
        floats.append(_float(piece, _sentence(result, piece), name, under, marks, choice.page[0]))
    return "\n".join(floats if fits else [*floats, _paragraphs(place(result), below)])


def general(result: TableResult, choice: Choice = WHOLE, own: Sequence[str] | None = None) -> list[str]:
    """Return the notes of a table as LaTeX: the caption of the other forms, its notes, its problems."""
    problems = [flowing(problem) for problem in result.problems]
    if not choice.notes:
        return problems
    own = listed(notes(result)) if own is None else own
    sentences = [each for each in caption(result, choice) if choice.rules or each not in (RULE, AGREEMENT)]
    quoted = [sentence for sentence in sentences if sentence.startswith(QUOTED)]
    plain = " ".join(sentence for sentence in sentences if sentence not in quoted)
    return [*map(flowing, (plain, *quoted)), *own, *problems]


def listed(notes: Mapping[str, Sequence[Note]], more: bool = False) -> list[str]:
    """Return notes as LaTeX, a paragraph for every kind; more: with their longer paragraphs."""
    return [
        rf"\textit{{{kind}.}} "
        + " ".join(
            bold(flowing(words), r"\\textbf{\1}")
            for note in each
            for words in (note.text, *note.more)[: None if more else 1]
        )
        for kind, each in notes.items()
        if each
    ]


def _sentence(result: TableResult, piece: Piece) -> str:
    usual = usual_n(result)
    shown = ": mean ± standard error" + (f" over {plural(usual, 'run')}" if usual else "")
    shown = shown if any(cell.values for cell in result.flat) else ": no number yet"
    title = f", {piece.block.title}" if piece.block.title else ""
    for mark, side in SIDES.items():
        title = title.replace(mark, side)
    part = f", part {piece.part} of {piece.parts}" if piece.parts > 1 else ""
    return f"{heading(result)}{title}{shown}, protocol {result.protocol}{part}."


def place(result: TableResult, number: int = 0) -> str:
    """Return the label of one of the floats of a table."""
    name = re.sub(r"[^\w.-]", "-", in_ascii(result.table.name).replace("_", "-"))
    protocol = "" if result.protocol == "paper" else f"-{result.protocol}"
    return f"tab:{name}{protocol}" + (f"-{number + 1}" if number else "")


def _pieces(result: TableResult, choice: Choice) -> list[Piece]:
    """Split a table into parts that fit on a page each."""
    if choice.across:
        names = [label(result, j) + MARKS[1] for j in range(len(result.table.columns))]
    else:
        names = [row[0].row.label for row in result.cells]
    room = choice.page[0] * PER_CM - _label_width(names, choice.page[0])
    pieces = []
    for block in blocks(result, lambda column: _size(column) + GAP, room, choice):
        rows = _rows(block.lines)
        parts = math.ceil(_height(block.lines, choice.page[0]) / (choice.page[1] * POINTS - FRAME))
        for k in range(parts):
            some = rows[k * len(rows) // parts : (k + 1) * len(rows) // parts]
            pieces.append(Piece(replace(block, lines=list(chain(*some))), k + 1, parts))
    return pieces or [Piece(Block("", [], []))]


def _size(column: ShownColumn) -> float:
    return max(Format([shown for row in column.rows for shown in row.values()]).width, _words_width(column.header))


def _rows(lined: Sequence[Line]) -> list[list[Line]]:
    """Group lines by row."""
    rows: list[list[Line]] = []
    for line in lined:
        if line.kind == "value":
            rows.append([])
        rows[-1].append(line)
    return rows


def _label_width(names: Sequence[str], width: float) -> float:
    return min(max([INDENT + wide("difference"), *map(wide, names)]), _longest(width)) + GAP


def _longest(width: float) -> float:
    """Return the width above which a label is broken."""
    return min(LONGEST_LABEL, SHARE * width * PER_CM)


def _words_width(header: str) -> float:
    return min(max(map(wide, header.split()), default=0.0), LONGEST_WORD)


def _height(lined: Sequence[Line], width: float) -> float:
    rows = _rows(lined)
    label_lines = sum(len(lines(row[0].label, _longest(width))) - 1 for row in rows)
    return LINE * (len(lined) + label_lines) + BETWEEN * len(rows)


def _whole_height(piece: Piece, sentence: str, below: Sequence[str], width: float) -> float:
    """Return the height of a float whose caption and notes are as wide as its table."""
    formats = _formats(piece.block)
    table = max(NARROW * width, _natural(piece.block, formats, width) / PER_CM)
    stack = max((len(_head_lines(h, f)) for h, f in zip(piece.block.header, formats)), default=1)
    notes_lines = 2 + sum(math.ceil(len(each) / (NOTES_PER_CM * table)) for each in below)
    caption_height = CAPTION * math.ceil(len(sentence) / (CAPTION_PER_CM * table))
    return RULES + caption_height + LINE * stack + _height(piece.block.lines, width) + NOTE * notes_lines


def _formats(block: Block) -> list[Format]:
    return [Format([line.cells[j] for line in block.lines]) for j in range(len(block.header))]


def _natural(block: Block, formats: Sequence[Format], width: float) -> float:
    """Return the natural width of a block, in digits."""
    label_width = _label_width([line.label for line in block.lines], width)
    return label_width + sum(max(f.width, _words_width(h)) + GAP for f, h in zip(formats, block.header))


def _marks(pieces: Sequence[Piece]) -> dict[str, str]:
    """The sign of every mark of a table: letters of verdicts, and numbers of the reasons why a cell has no number."""
    shown = {cell.mark for piece in pieces for line in piece.block.lines for cell in line.cells}
    reasons = sorted(shown - set(VERDICTS) - {""})
    return {kind: letter for kind, (letter, _) in VERDICTS.items()} | {r: str(k + 1) for k, r in enumerate(reasons)}


def _float(piece: Piece, sentence: str, name: str, below: list[str], marks: dict[str, str], width: float) -> str:
    block, formats = piece.block, _formats(piece.block)
    stretched = _natural(block, formats, width) < NARROW * width * PER_CM
    number = r"@{\extracolsep{\fill}}r@{\extracolsep{0pt}}l" if stretched else "r@{}l"
    specs = [number + r"@{\,}r@{}l" * each.two for each in formats]
    kind, size = ("tabular*", rf"{{{NARROW}\linewidth}}") if stretched else ("tabular", "")
    source = [r"\begin{table}[htbp]", r"\centering\footnotesize\setlength{\tabcolsep}{4pt}"]
    source += [r"\begin{threeparttable}", rf"\caption{{{escape(sentence)}}}", rf"\label{{{name}}}"]
    source += [rf"\begin{{{kind}}}{size}{{l{''.join(specs)}}}", r"\toprule"]
    heads = [_head(header, each) for header, each in zip(block.header, formats)]
    source += [" & ".join(["", *heads]) + r" \\", r"\midrule"]
    several = len({line.kind for line in block.lines}) > 1
    for i, line in enumerate(block.lines):
        if line.kind == "value" and i and several:
            source.append(r"\addlinespace[3pt]")
        entries = [entry(shown, each.two, marks) for shown, each in zip(line.cells, formats)]
        source.append(" & ".join([_name(line, width), *entries]) + r" \\")
    source += [r"\bottomrule", rf"\end{{{kind}}}"]
    used = {note(shown) for line in block.lines for shown in line.cells}
    keys = [
        rf"\tnote{{{sign}}} {escape(VERDICTS[mark][1] if mark in VERDICTS else mark)}"
        for mark, sign in marks.items()
        if mark in used
    ]
    noted = [*(["; ".join(keys) + "."] if keys else []), *below]
    if noted:
        source += [r"\begin{tablenotes}[flushleft]\scriptsize\sloppy", *(rf"\item {note}" for note in noted)]
        source += [r"\end{tablenotes}"]
    return "\n".join([*source, r"\end{threeparttable}", r"\end{table}", ""])


def _head(header: str, column: Format) -> str:
    """Return the head of a column, in lines no wider than its numbers where words allow it."""
    shown = _stacked(_head_lines(header, column), "c")
    return rf"\multicolumn{{{4 if column.two else 2}}}{{c}}{{{shown}}}"


def _head_lines(header: str, column: Format) -> list[str]:
    return lines(header, max(column.width, _words_width(header)))


def _name(line: Line, width: float) -> str:
    if line.kind != "value":
        return rf"\quad\textit{{{line.label}}}"
    return _stacked(lines(line.label, _longest(width)), "l")


def _stacked(parts: Sequence[str], side: str) -> str:
    stacked = r"\\".join(map(escape, parts))
    return stacked if len(parts) < 2 else rf"\shortstack[{side}]{{{stacked}}}"


def _paragraphs(name: str, words: Sequence[str]) -> str:
    """Return notes too long for the page of their table, as text that may span pages."""
    paragraphs = "\n\n".join(rf"\noindent {each}" for each in words)
    return rf"{{\scriptsize\sloppy\noindent\textbf{{Notes to table~\ref{{{name}}}.}}" + f"\n\n{paragraphs}\\par}}\n"
