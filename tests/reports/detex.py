"""Reader of LaTeX tables: the text that a table shows."""

from __future__ import annotations

import re

PLAIN = {
    r"$\pm$\,": "± ", r"$\pm$": "±", r"$^\dagger$": "†", r"$\sim$ ": "~", r"\,": " ", "$-$": "−",
    r"$^\circ$": "°", r"$\times10^": "e",
    r"\quad": "", r"\%": "%", r"\_": "_", r"\&": "&",
}  # fmt: skip
NUMBER = re.compile(r"r@\{(?:\\extracolsep\{0pt\})?\}l(@\{\\,\}r@\{\}l)?")  # a mean, and an error


def cells_of(tex: str) -> list[list[str]]:
    """Return the rows of every tabular without its head: label, then each column as text, numbers as in other forms."""
    rows = []
    for form, body in re.findall(r"\\begin\{tabular\*?\}(.*)\n(?:.*\n)*?\\midrule\n((?:.*\n)*?)\\bottomrule", tex):
        sizes = [4 if error else 2 for error in NUMBER.findall(form)]
        for line in body.splitlines():
            if line.endswith(r"\\"):
                label, *parts = re.split(r"(?<!\\)&", line.removesuffix(r"\\"))
                rows.append([_plain(label), *_columns(parts, sizes)])
    return rows


def words_of(tex: str) -> str:
    """Return LaTeX as one line without its permitted word breaks."""
    return " ".join(tex.replace(r"\allowbreak{}", "").split()).replace("\\_", "_")


def marks_of(tex: str) -> dict[str, str]:
    """Return the meanings of the marks in the first float."""
    return dict(re.findall(r"\\tnote\{([a-z0-9])\} ([^;.\\]+)[;.]", tex))


def _columns(parts: list[str], sizes: list[int]) -> list[str]:
    """The text of every column of so many places."""
    columns = []
    for size in sizes:
        text, taken = "", 0
        while taken < size:
            part = parts.pop(0).strip()
            several = re.match(r"\\multicolumn\{(\d)\}", part)
            text += " " * (taken == 2 and "pm" in part) + part
            taken += int(several[1]) if several else 1
        assert taken == size
        columns.append(_plain(text))
    assert not parts
    return columns


def _plain(cell: str) -> str:
    cell = re.sub(r"\\multicolumn\{\d\}\{(?:c|@\{\}l)\}", "", cell)
    cell = re.sub(r"\\(?:textit|textbf)\{([^}]*)\}", r"\1", cell)
    cell = re.sub(r"\\tnote\{([^}]*)\}", r"\1", cell)
    for spelt, plain in PLAIN.items():
        cell = cell.replace(spelt, plain)
    return " ".join(cell.replace("{", "").replace("}", "").split())
