"""Forms of a table and their files: text for the terminal, Markdown (made here), LaTeX."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from benchmarks.files import write
from reports.aggregate import TableResult
from reports.captions import caption, heading, notes
from reports.choice import WHOLE, Choice
from reports.latex import PACKAGES, latex
from reports.layout import blocks
from reports.marks import bold, escaped, grid
from reports.terminal import WIDTH, text

MARKDOWN_COLUMNS = 10
WRAPPER = r"""\documentclass{{article}}
\usepackage[T1]{{fontenc}}
\usepackage[utf8]{{inputenc}}
\usepackage{{mathptmx}}
\usepackage{{{packages}}}
\usepackage[a4paper,margin=2cm]{{geometry}}
\begin{{document}}
\input{{{name}}}
\end{{document}}
"""


@dataclass(frozen=True)
class RenderedTable:
    """Text for the terminal, files by form, number of cells with values, and problems."""

    text: str
    files: dict[str, Path]
    counts: str
    problems: tuple[str, ...] = ()


def render_table(result: TableResult, out_dir: Path | str, choice: Choice = WHOLE, width: int = WIDTH) -> RenderedTable:
    """Write the chosen part of a table as Markdown, LaTeX and LaTeX that compiles alone.

    Files: <out>/<table>-<protocol>.md, .tex (to \\input) and -standalone.tex.
    """
    result = choice.of(result)
    out = Path(out_dir)
    name = f"{result.table.name}-{result.protocol}"
    paths = {
        "Markdown": out / f"{name}.md",
        "LaTeX": out / f"{name}.tex",
        "LaTeX alone": out / f"{name}-standalone.tex",
    }
    write(paths["Markdown"], markdown(result, choice))
    write(paths["LaTeX"], latex(result, choice))
    write(paths["LaTeX alone"], WRAPPER.format(name=f"{name}.tex", packages=",".join(PACKAGES)))
    filled = sum(bool(cell.values) for cell in result.flat)
    counts = f"{filled} of {len(result.flat)} cells, protocol {result.protocol}"
    counts += f", not counted: {len(result.problems)}" if result.problems else ""
    return RenderedTable(text(result, choice, width), paths, counts, tuple(result.problems))


def markdown(result: TableResult, choice: Choice = WHOLE) -> str:
    """Return the table in Markdown: one table per block, then the caption and the notes."""
    parts = [f"## {marked(heading(result))}"]
    for block in blocks(result, lambda column: 1, MARKDOWN_COLUMNS, choice):
        rows = []
        for line in block.lines:
            texts = [f"**{marked(str(cell))}**" if cell.bold else marked(str(cell)) for cell in line.cells]
            rows.append([marked(line.label) if line.kind == "value" else f"*{line.label}*", *texts])
        parts.append(grid(map(marked, [block.title, *block.header]), rows, "---:", first="---").rstrip())
    parts += [marked(" ".join(caption(result, choice)))] if choice.notes else []
    for kind, listed in notes(result).items() if choice.notes else ():
        parts += [
            f"### {kind}",
            "\n".join("\n\n  ".join(map(_noted, (f"- {each.text}", *each.more))) for each in listed),
        ]
    parts += ["\n".join(f"- {marked(each)}" for each in result.problems)] if result.problems else []
    return "\n\n".join(parts) + "\n"


def _noted(words: str) -> str:
    return bold(escaped(words), r"**\1**")


def marked(words: str) -> str:
    """Escape text for one line of Markdown."""
    return re.sub(r"([\\`*_<>\[\]|])", r"\\\1", " ".join(words.split()))
