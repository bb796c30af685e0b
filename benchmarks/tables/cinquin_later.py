"""Rows of cinquin2024's tables 1, 6 and 4 with settings of the authors' later code that the paper does not mention, and
from the initial weights of the library that it names."""

from __future__ import annotations

from benchmarks.tables.cinquin import METHODS, varied
from benchmarks.tables.cinquin import recipe as chosen
from benchmarks.tables.cinquin_candidates import CANDIDATES, LATER, MARGIN, SMALL, candidate
from benchmarks.tables.recipes import Parts, Recipe, merge
from benchmarks.tables.spec import Row

_ENDS = "rate and end"
_LATER: Parts = merge(LATER, {"training": {"epochs": 10_000}})
READINGS: dict[str, tuple[str, Parts]] = {
    **{f"{label}, {_ENDS}": (label, _LATER) for label in ("FVI", "TFSVI", "MFVI", "Laplace", "GWI", "VIP")},
    "FVI, all eigenvalues": ("FVI", {"divergence": {"share": 1.0}}),
    "GFSVI, wider box": ("GFSVI", {"context": {"margin": MARGIN}}),
    "GWI, one length-scale": ("GWI", {"family": {"kernel": {"ard": False}}}),
    **{f"{label}, Haiku": (label, {"network": {"init": "haiku"}}) for label in ("MFVI", "Laplace", "GWI", "VIP")},
}
"""Readings by label: the label in table 1, and the changed parts."""


def recipe(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the row of table 1 (its first candidate where none is chosen yet), with the reading's changes."""
    if row.label not in READINGS:
        return None
    first = next(iter(CANDIDATES[protocol].get(row.made_by, ())), None)
    found = chosen(row, dataset, protocol) or candidate(row.made_by, first, dataset, protocol)
    changes = READINGS[row.label][1]
    return found if found is None or (protocol == "smoke" and changes is _LATER) else found.with_parts(changes)


TABLES = varied(
    "later",
    "Rows with settings of the authors' later code",
    tuple(Row(label, method, METHODS[method]) for label, (method, _) in READINGS.items()),
    SMALL,
    recipe,
)
