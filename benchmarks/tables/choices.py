"""Hyper-parameters that were chosen on validation subsets: what ``python -m benchmarks select`` has written."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "selected"


@cache
def choices(table: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Method -> data set -> {"chosen", "scores"}; empty where nothing has been selected."""
    path = FOLDER / f"{table}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def chosen(table: str, method: str, dataset: str) -> str | None:
    """The selected candidate's label, or None."""
    return choices(table).get(method, {}).get(dataset, {}).get("chosen")
