"""A table's three forms: terminal text, Markdown, and LaTeX (booktabs)."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from reports.aggregate import TableResult
from reports.layout import Block, Line, blocks, caption, heading

WIDTH = 120
MARKDOWN_COLUMNS = 10
LATEX_WIDTH = 116
LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{c: "\\" + c for c in "&%$#_{}"},
    "±": r"$\pm$", "²": r"$^2$", "−": r"$-$", "—": "---", "–": "--",
    "→": r"$\to$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "°": r"$^\circ$",
    "†": r"$^\dagger$", "<": r"$<$", ">": r"$>$", "|": r"$|$",
}  # fmt: skip
WRAPPER = r"""\documentclass{{article}}
\usepackage[T1]{{fontenc}}
\usepackage[utf8]{{inputenc}}
\usepackage{{booktabs}}
\usepackage[margin=2cm]{{geometry}}
\begin{{document}}
\input{{{name}}}
\end{{document}}
"""


@dataclass(frozen=True)
class RenderedTable:
    """A table for the terminal, its files by form, how many of its cells have values, and what is not counted."""

    text: str
    files: dict[str, Path]
    counts: str
    problems: tuple[str, ...] = ()


def render_table(result: TableResult, out_dir: Path | str) -> RenderedTable:
    """Write a table as Markdown, LaTeX and LaTeX that compiles alone.

    Files: <out>/<table>-<protocol>.md, .tex (to \\input) and -standalone.tex.
    """
    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    name = f"{result.table.name}-{result.protocol}"
    files = {
        "Markdown": out / f"{name}.md",
        "LaTeX": out / f"{name}.tex",
        "LaTeX alone": out / f"{name}-standalone.tex",
    }
    files["Markdown"].write_text(markdown(result), encoding="utf-8")
    files["LaTeX"].write_text(latex(result), encoding="utf-8")
    files["LaTeX alone"].write_text(WRAPPER.format(name=f"{name}.tex"), encoding="utf-8")
    filled = sum(bool(cell.values) for cell in result.flat)
    counts = f"{filled} of {len(result.flat)} cells, protocol {result.protocol}"
    counts += f", not counted: {len(result.problems)}" if result.problems else ""
    return RenderedTable(text(result), files, counts, tuple(result.problems))


def text(result: TableResult) -> str:
    """The table in plain text of at most 120 columns; * marks what the other forms print in bold."""
    label_width = _label_width(result)
    parts = ["\n".join(wrapped(heading(result)))]
    for block in blocks(result, lambda column: column.width + 2, WIDTH - label_width):
        widths = [
            max(len(head), *(len(line.texts[j]) + line.bold[j] for line in block.lines))
            for j, head in enumerate(block.header)
        ]
        rule = "─" * (label_width + sum(widths) + 2 * len(widths))
        rows = [block.title] if block.title else []
        rows += [_text_row("", block.header, [False] * len(widths), widths, label_width), rule]
        rows += [_text_row(_indented(line), line.texts, line.bold, widths, label_width) for line in block.lines]
        parts.append("\n".join(rows))
    parts.append("\n".join(wrapped(" ".join(caption(result)).replace("Bold:", "*:"))))
    parts += ["\n".join(wrapped(f"Note: {note}")) for note in notes(result)]
    parts += ["\n".join(line for problem in result.problems for line in wrapped(problem))] if result.problems else []
    return "\n\n".join(parts) + "\n"


def markdown(result: TableResult) -> str:
    """The table in Markdown: one table per block, then the caption and the notes."""
    parts = [f"## {heading(result)}"]
    for block in blocks(result, lambda column: 1, MARKDOWN_COLUMNS):
        rows = [[block.title, *block.header], ["---", *["---:"] * len(block.header)]]
        for line in block.lines:
            texts = [f"**{cell}**" if mark else cell for cell, mark in zip(line.texts, line.bold)]
            rows.append([line.label, *texts] if line.kind == "value" else [f"*{line.label}*", *texts])
        parts.append("\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows))
    parts.append(" ".join(caption(result)))
    for listed in (notes(result), [marked(problem) for problem in result.problems]):
        parts += ["\n".join(f"- {each}" for each in listed)] if listed else []
    return "\n\n".join(parts) + "\n"


def latex(result: TableResult) -> str:
    """The table as LaTeX to \\input (needs booktabs): one float per block; caption, notes, problems on the first."""
    words = " ".join(escape(sentence) for sentence in [heading(result) + ".", *caption(result), *notes(result)])
    floats = []
    for number, block in enumerate(blocks(result, lambda column: column.width + 2, LATEX_WIDTH - _label_width(result))):
        head = words if number == 0 else f"{escape(heading(result))}, continued."
        label = f"tab:{result.table.name}" + (f"-{number + 1}" if number else "")
        floats.append(_float(block, head, label, [] if number else result.problems))
    return "\n".join(floats)


def notes(result: TableResult) -> list[str]:
    """What the table, and what the trainings of its runs, say about its protocol's results beside the numbers."""
    return [*dict(result.table.notes).get(result.protocol, ()), *result.warnings]


def escape(words: str) -> str:
    """Text for LaTeX: special characters, mathematical signs, Greek letters; ? for what pdflatex cannot set."""
    return "".join(LATEX.get(character) or _letter(character) for character in words)


def marked(words: str) -> str:
    """Text for Markdown: what it would take for a mark is printed as it is."""
    return re.sub(r"([\\`*_<>\[\]|])", r"\\\1", words)


def wrapped(words: str, width: int = WIDTH) -> list[str]:
    """Lines of at most width characters, broken between words."""
    return textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False)


def _letter(character: str) -> str:
    if character < "\u0180":  # Latin, which the font encoding covers
        return character
    kind, _, letter = unicodedata.name(character, "").rpartition(" ")
    return f"$\\{letter.lower()}$" if kind == "GREEK SMALL LETTER" else "?"


def _float(block: Block, head: str, label: str, problems: list[str]) -> str:
    lines = [r"\begin{table}[htbp]", r"\centering\footnotesize\setlength{\tabcolsep}{4pt}"]
    lines += [rf"\caption{{{head}}}", rf"\label{{{label}}}"]
    lines += [rf"\begin{{tabular}}{{l{'r' * len(block.header)}}}", r"\toprule"]
    if block.title:
        lines.append(rf"\multicolumn{{{len(block.header) + 1}}}{{l}}{{{escape(block.title)}}} \\")
    lines += [" & ".join(map(escape, ["", *block.header])) + r" \\", r"\midrule"]
    for line in block.lines:
        if line.kind == "value" and line is not block.lines[0] and len({each.kind for each in block.lines}) > 1:
            lines.append(r"\addlinespace")
        cells = [rf"\textbf{{{escape(cell)}}}" if mark else escape(cell) for cell, mark in zip(line.texts, line.bold)]
        name = escape(line.label) if line.kind == "value" else rf"\quad\textit{{{line.label}}}"
        lines.append(" & ".join([name, *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", *(rf"\par\smallskip {escape(problem)}" for problem in problems)]
    return "\n".join([*lines, r"\end{table}", ""])


def _label_width(result: TableResult) -> int:
    return max([len(row[0].row.label) for row in result.cells] + [len("  difference")])


def _indented(line: Line) -> str:
    return line.label if line.kind == "value" else f"  {line.label}"


def _text_row(label: str, cells: list[str], bold: list[bool], widths: list[int], label_width: int) -> str:
    texts = [(cell + "*" * mark).rjust(width) for cell, mark, width in zip(cells, bold, widths)]
    return "  ".join([label.ljust(label_width), *texts]).rstrip()
