"""Options of drawing: size, title, font, rows and panels."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.errors import UsageError, unknown

PAGE, COLUMN = 6.9, 3.4  # text width and column width of a two-column page, in inches
WIDTHS = {"column": COLUMN, "text": PAGE}
FORMS = ("pdf", "png", "svg")
LEAST, MOST = 0.5, 60.0  # smallest and largest size, in inches
OFF = "off"


@dataclass(frozen=True)
class Options:
    """Options for all figures of one call; None or empty leaves the figure's default.

    width, height: inches. title: replacement, or empty for none (the caption file still has it). rows: labels or
    methods. columns: names of panels. font, font_size: of all text, the size in points.
    """

    width: float | None = None
    height: float | None = None
    title: str | None = None
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    font: str | None = None
    font_size: float | None = None

    def rows_of(self, table: Any) -> tuple[Any, ...]:
        """Return the chosen rows of a table, by label, method or unique beginning of a label."""
        found = [label for name in self.rows for label in _rows(table, name)]
        return tuple(row for row in table.rows if not self.rows or row.label in found)

    def check_rows(self, tables: Collection[Any]) -> None:
        """Raise UnknownName, with the nearest names, for a row that no table has."""
        known = {name for table in tables for row in table.rows for name in (row.label, row.method) if name}
        for name in self.rows:
            if not any(_rows(table, name) for table in tables):
                raise unknown("row", name, sorted(known), "python -m reports table NAME prints a table's rows")

    def panels(self, names: Sequence[str]) -> list[str]:
        """Return the chosen panels, by name or unique beginning, in the figure's order. Raises UnknownName."""
        found = {name: _meant(name, names) for name in self.columns}
        for name, meant in found.items():
            if not meant:
                raise unknown("column", name, names)
        return [name for name in names if not self.columns or name in found.values()]


def _meant(name: str, names: Sequence[str]) -> str:
    """Return the name itself or the only one that begins with it; empty without one."""
    begin = [each for each in names if each.startswith(name)]
    return name if name in names else begin[0] if len(begin) == 1 else ""


def _rows(table: Any, name: str) -> list[str]:
    """Return labels of the rows with this label or method, else of the only one whose label begins so."""
    meant = _meant(name, [row.label for row in table.rows])
    return [row.label for row in table.rows if name in (row.label, row.method)] or [meant] * bool(meant)


def size(text: str | None) -> tuple[float | None, float | None]:
    """Parse a size in inches: "column", "text", "3.4" or "3.4x2.5" (without a height: None).

    Raises UsageError.
    """
    if text is None:
        return None, None
    width, *height = [text.lower()] if text.lower() in WIDTHS else text.lower().split("x")
    numbers = [f"{WIDTHS.get(width, width)}", *height]
    if len(numbers) > 2 or not all(re.fullmatch(r"\d*\.?\d+|\d+\.", number) for number in numbers):
        found = unknown("size", text, WIDTHS) if text.isalpha() else f"found {text!r}"
        raise UsageError(f"--size: expected WIDTHxHEIGHT in inches (3.4x2.5), a width, column or text: {found}")
    inches = [float(number) for number in numbers]
    if not all(LEAST <= each <= MOST for each in inches):
        raise UsageError(f"--size: expected {LEAST:g} to {MOST:g} inches, found {text!r}")
    return inches[0], inches[1] if len(inches) > 1 else None


def forms(names: Sequence[str]) -> tuple[str, ...]:
    """Return suffixes of the formats without repeats; default PDF and PNG. Raises UnknownName."""
    for name in names:
        if name.lower().lstrip(".") not in FORMS:
            raise unknown("format", name, FORMS)
    return tuple(dict.fromkeys(f".{name.lower().lstrip('.')}" for name in names)) or (".pdf", ".png")


def font(name: str | None) -> str | None:
    """Check a font family: an installed one, "serif", "sans-serif" or "monospace". Raises UnknownName."""
    if name is None:
        return None
    from matplotlib.font_manager import get_font_names

    known = {found.lower(): found for found in (*get_font_names(), "serif", "sans-serif", "monospace")}
    if name.lower() not in known:
        raise unknown("font", name, sorted(known.values()))
    return known[name.lower()]
