"""Reader of pages that needs no browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

LINES = {"i": "published", "b": "difference"}  # elements of a cell below its value


class Page(HTMLParser):
    """Links, identifiers and the lines of the cells of a page; scripts counts elements of that name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.cells: dict[tuple[str, int, int], dict[str, str]] = {}
        self.scripts = self.images = 0
        self._sheet = ""
        self._cell: dict[str, str] | None = None
        self._line = ""
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.links += [attributes[name] for name in ("href", "src", "data-details") if name in attributes]
        self.names |= {attributes["id"]} if "id" in attributes else set()
        self.scripts += tag == "script"
        self.images += tag == "img"
        if "sheet" in attributes.get("class", "").split():
            self._sheet = attributes["data-protocol"]
        if "data-cell" in attributes:
            i, j = map(int, attributes["data-cell"].split("/"))
            self._cell = self.cells[self._sheet, i, j] = {"value": ""}
            self._line, self._open = "value", ["value"]
        if self._cell is not None and tag in LINES:
            self._line = LINES[tag]
            self._open.append(self._line)
            self._cell[self._line] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "button":
            self._cell = None
        if self._cell is not None and tag in LINES and self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._cell is not None and self._open and self._open[-1] == self._line:
            self._cell[self._line] += data


def details(path: Path) -> Any:
    """Return the content of a script of details."""
    packed = re.fullmatch(r'Page\.received\("([A-Za-z0-9+/=]+)"\);\n', path.read_text())
    assert packed
    return json.loads(gzip.decompress(base64.b64decode(packed[1])))
