"""Notes of tables, from the Markdown files beside the modules of tables.

A file has the name of a module, whose values its notes may hold: "{EPOCHS:,} epochs". A heading of level two names
tables (with * and [..]) and protocols, "## uci, pequignot2020-*: paper, short", more of them after a semicolon; one of
level three the kind of the notes below. Paragraphs that are indented below a note are longer, and folded away.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

KINDS = ("Protocol", "Differs from the paper", "Not known", "Data", "Cost")
LONGEST = 40  # words of a note


@dataclass(frozen=True)
class Note:
    """One fact that a reader needs beside the numbers; ``more``: longer paragraphs about it."""

    text: str
    kind: str = KINDS[0]
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scope:
    """Tables, as patterns of their names, and protocols that notes belong to."""

    tables: tuple[str, ...]
    protocols: tuple[str, ...]

    def holds(self, table: str, protocol: str) -> bool:
        """Return whether a table's protocol is one of them."""
        return protocol in self.protocols and any(fnmatchcase(table, pattern) for pattern in self.tables)


def of(table: str, protocol: str) -> tuple[Note, ...]:
    """Return the notes on a table's results of a protocol, by kind."""
    notes = [note for scopes, note in written() if any(scope.holds(table, protocol) for scope in scopes)]
    return tuple(sorted(notes, key=lambda note: KINDS.index(note.kind)))


@cache
def written() -> list[tuple[tuple[Scope, ...], Note]]:
    """Return all notes with their scopes. One with an empty paragraph is left out: what it would tell is not so."""
    files = sorted(Path(__file__).parent.glob("*.md"))
    return [each for file in files for each in _read(file) if "" not in each[1].more]


def _read(file: Path) -> list[tuple[tuple[Scope, ...], Note]]:
    values = vars(importlib.import_module(f"benchmarks.tables.{file.stem}"))
    notes: list[tuple[tuple[Scope, ...], Note]] = []
    scopes: tuple[Scope, ...] = ()
    kind = ""
    for part in re.split(r"\n\n|\n(?=- )", file.read_text(encoding="utf-8")):
        words = " ".join(part.format_map(values).split())
        if part.startswith("## "):
            scopes = tuple(Scope(*map(_listed, each.split(":"))) for each in words[3:].split(";"))
        elif part.startswith("### "):
            kind = words[4:]
        elif part.startswith("- "):
            notes.append((scopes, Note(words[2:], kind)))
        elif part.startswith("  "):
            last = notes[-1][1]
            notes[-1] = scopes, Note(last.text, kind, (*last.more, words))
    return notes


def _listed(words: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in words.split(","))
