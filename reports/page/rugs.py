"""Rug plots: the effects of all comparisons of a claim on one axis, those the claimed way on the right."""

from __future__ import annotations

import math
from collections.abc import Iterable

from reports.findings.comparisons import AGAINST, ERRORS, FOR, OPEN
from reports.findings.effects import LARGEST, bounded, effects
from reports.findings.verdicts import Finding

WIDTH, HEIGHT = 200, 14
CLASSES = {OPEN: "open", AGAINST: "against", FOR: "for"}


def rugs(finding: Finding) -> tuple[str, str]:
    """Return the rugs of a claim, as SVG: by the paper's printed numbers, and by our records; empty without errors."""
    printed, ours = effects(finding)
    return drawn(printed), drawn(ours)


def place(effect: float) -> float:
    """Return the place of an effect in standard errors: the inverse hyperbolic sine, so that small ones stay apart."""
    return WIDTH / 2 + (WIDTH / 2 - 3) * math.asinh(bounded(effect)) / math.asinh(LARGEST)


def drawn(effects: Iterable[tuple[float, int]]) -> str:
    """Return effects as SVG: one tick each, one path for each outcome, above a line at 0 and two at two errors."""
    ticks: dict[int, list[float]] = {outcome: [] for outcome in CLASSES}
    for effect, outcome in effects:
        ticks[outcome].append(place(effect))
    if not any(ticks.values()):
        return ""
    counts = f"{len(ticks[FOR])} the claimed way, {len(ticks[AGAINST])} the other way, {len(ticks[OPEN])} open"
    lines = "".join(f"M{place(at):.0f} 0v{HEIGHT}" for at in (-ERRORS, 0.0, ERRORS))
    paths = "".join(
        f'<path class="{CLASSES[outcome]}" d="{"".join(f"M{at:.1f} 2v{HEIGHT - 4}" for at in sorted(places))}"/>'
        for outcome, places in ticks.items()
        if places
    )
    return (
        f'<svg class="rug" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Effects: {counts}">'
        f'<path d="{lines}"/>{paths}</svg>'
    )
