"""What LaTeX of a table shows, read back from it."""

from __future__ import annotations

import re

PLAIN = {
    r"$\pm$\,": "± ", r"$\pm$": "±", r"$^\dagger$": "†", r"$\sim$": "~", r"\,": " ", r"\bfseries ": "",
    r"$^\circ$": "°",
    r"\quad": "", r"\%": "%", r"\_": "_", r"\&": "&",
}  # fmt: skip


def cells_of(tex: str) -> list[list[str]]:
    """The rows of every tabular below its head: label, then each column as text; numbers as other forms print them."""
    rows = []
    for body in re.findall(r"\\midrule\n(.*?)\\bottomrule", tex, re.S):
        for line in body.splitlines():
            if line.endswith(r"\\"):
                label, *parts = re.split(r" &(?: |$)", line.removesuffix(r"\\").rstrip())
                rows.append([_plain(label), *_columns(parts)])
    return rows


def words_of(tex: str) -> str:
    """LaTeX as one line, without the formats of columns and the places where words may be broken."""
    shown = re.sub(r"table-space-text-post=\{.*?\}[],]", "", tex.replace(r"\allowbreak{}", ""))
    return " ".join(shown.split()).replace("\\_", "_")


def marks_of(tex: str) -> dict[str, str]:
    """What the marks of the first float mean."""
    return dict(re.findall(r"\\tnote\{([a-z0-9])\} ([^;.\\]+)[;.]", tex))


def _columns(parts: list[str]) -> list[str]:
    columns, k = [], 0
    while k < len(parts):
        column = parts[k]
        follows = parts[k + 1] if k + 1 < len(parts) else None
        after = follows is not None and re.match(r"\{\$\\pm|\\multicolumn\{1\}|$", follows)
        if after and not column.startswith(r"\multicolumn{2}"):
            column, k = f"{column} {follows}", k + 1
        columns.append(_plain(column))
        k += 1
    return columns


def _plain(cell: str) -> str:
    cell = re.sub(r"\\multicolumn\{\d\}\{[^l]*?[lc]\}", "", cell)
    cell = re.sub(r"\\(?:tnote|textit|textbf|num)\{([^}]*)\}", r"\1", cell)
    for spelt, plain in PLAIN.items():
        cell = cell.replace(spelt, plain)
    return (
        re.sub(r" (?=†)", "", " ".join(cell.replace("{", "").replace("}", "").split()))
        .replace("-", "−")
        .replace("−−−", "---")
    )
