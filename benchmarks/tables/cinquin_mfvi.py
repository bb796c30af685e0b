"""Settings that decide the numbers of MFVI in cinquin2024's tables 1, 6 and 4: its start and its end."""

from __future__ import annotations

from benchmarks.tables.cinquin import varied
from benchmarks.tables.cinquin_candidates import SMALL, candidate
from benchmarks.tables.recipes import Parts, Recipe, merge
from benchmarks.tables.spec import Row

_WIDE: Parts = {"family": {"log_var_init": [-2.0, -2.0]}}
_LONG: Parts = {"training": {"epochs": 3000, "early_stopping": None}}
READINGS: dict[str, Parts] = {
    "early stopping": {},
    "3,000 steps": _LONG,
    "wide start, early stopping": _WIDE,
    "wide start, 3,000 steps": merge(_WIDE, _LONG),
}


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the first candidate of table 1, with another start or end."""
    first = candidate("MFVI", "variance 1", dataset, protocol)
    if first is None or row.variant not in READINGS:
        return None
    read = first.with_parts(READINGS[row.variant])
    return read.with_parts({"training": {"epochs": first.parts["training"]["epochs"]}}) if protocol == "smoke" else read


TABLES = varied(
    "mfvi",
    "MFVI by where its training starts and ends",
    tuple(Row(f"MFVI, {label}", "MFVI", "MFVI", label) for label in READINGS),
    SMALL,
    recipe,
)
