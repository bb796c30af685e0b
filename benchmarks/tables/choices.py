"""Hyper-parameters chosen on validation subsets, from the files of ``python -m benchmarks select``."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "selected"


def path_of(table: str, protocol: str) -> Path:
    """Return the file of the choices of a table's protocol."""
    return FOLDER / f"{table}-{protocol}.json"


@cache
def choices(table: str, protocol: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Method -> data set -> {"chosen", "scores"}; empty where nothing has been selected."""
    path = path_of(table, protocol)
    return json.loads(path.read_text()) if path.exists() else {}


def chosen(table: str, protocol: str, method: str, dataset: str) -> str | None:
    """Return the selected candidate's label, or None."""
    return choices(table, protocol).get(method, {}).get(dataset, {}).get("chosen")
