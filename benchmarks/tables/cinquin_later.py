"""Rows of cinquin2024's tables 1, 6 and 4 with settings of the authors' later code that the paper does not mention."""

from __future__ import annotations

from benchmarks.tables.cinquin import METHODS, varied
from benchmarks.tables.cinquin import recipe as chosen
from benchmarks.tables.cinquin_candidates import CANDIDATES, LATER, MARGIN, SMALL, candidate
from benchmarks.tables.spec import Parts, Recipe, Row, merge

_ENDS = "rate and end"
_LATER: Parts = merge(LATER, {"training": {"epochs": 10_000}})
READINGS: dict[str, tuple[str, Parts]] = {
    **{f"{label}, {_ENDS}": (label, _LATER) for label in ("FVI", "TFSVI", "MFVI", "Laplace", "GWI", "VIP")},
    "GFSVI, wider box": ("GFSVI", {"context": {"margin": MARGIN}}),
    "GWI, one length-scale": ("GWI", {"family": {"kernel": {"ard": False}}}),
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


_NOTES = (
    "Kernel, prior variance and activation are those that were chosen for table 1, or those of its first candidate "
    "where none was chosen yet; nothing is chosen by these numbers.",
    "Rate and end: learning rate 0.001, the upper end of the range in the code of the authors' next paper, and "
    "training until the whole objective on the validation subset, looked at every 100 steps, has not fallen for 1,000, "
    "as there, at most 10,000 steps. In table 1 FVI and TFSVI have 0.005, every 20, patience 200, TFSVI at most 2,000; "
    "the others end by the validation log-likelihood.",
    "On the first fold of yacht FVI has the same objective after 1,100 steps at 0.001 as after 240 at 0.005.",
    "Wider box: measurement points on the box of the training inputs with half its width more on each side, as in that "
    "code; table 1 has the box. One length-scale: in GWI's kernel, where table 1 has one for each input.",
)

TABLES = varied(
    "later",
    "Rows with settings of the authors' later code",
    tuple(Row(label, method, METHODS[method]) for label, (method, _) in READINGS.items()),
    SMALL,
    recipe,
    _NOTES,
)
