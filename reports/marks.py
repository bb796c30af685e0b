"""Markdown: tables, anchors of headings, and text whose marks stay text."""

from __future__ import annotations

import re
from collections.abc import Iterable


def anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def grid(header: Iterable[str], rows: Iterable[Iterable[str]], side: str = "---", first: str = "") -> str:
    """Return a Markdown table of cells that are Markdown already; side, first: rule of all columns, and of the first
    one where it differs."""
    header = tuple(header)
    lines = [header, [first or side, *[side] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def bold(words: str, strong: str) -> str:
    """Return text that is escaped already, with what stands between two pairs of asterisks in bold."""
    return re.sub(r"(?:\\?\*){2}(\S.*?)(?:\\?\*){2}", strong, words)


def escaped(words: str) -> str:
    """Escape text for a cell of Markdown; text between backquotes stays code."""
    parts = " ".join(words.split()).split("`")
    if len(parts) % 2 == 0:
        parts = ["\\`".join(parts)]
    marked = [
        part if i % 2 else re.sub(r"([\\*<>\[\]]|(?<!\w)_|_(?!\w))", r"\\\1", part) for i, part in enumerate(parts)
    ]
    return "`".join(marked).replace("|", "\\|")
