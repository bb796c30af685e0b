"""Effects of a claim's comparisons in standard errors: by printed numbers, and by records."""

from __future__ import annotations

import math

from reports.findings.verdicts import Finding

LARGEST = 300.0  # standard errors at the ends of an axis
Effects = list[tuple[float, int]]
"""Effects in standard errors, above 0 the claimed way, each with the outcome of its comparison."""


def effects(finding: Finding) -> tuple[Effects, Effects]:
    """Return the effects of a claim by the printed numbers, and by our records; none without errors."""
    printed: Effects = []
    for each in finding.tested:
        found, outcome = each.comparison.published(), each.comparison.printed_outcome()
        if found and outcome is not None and found[1] is not None:
            printed.append((in_errors(found[0], found[1]), outcome))
    ours = [
        (in_errors(each.paired.gap, each.paired.error), each.outcome)
        for each in finding.counted
        if each.paired and each.outcome is not None
    ]
    return printed, ours


def in_errors(effect: float, error: float) -> float:
    """Return an effect over its standard error; infinite where that is 0."""
    return effect / error if error else math.copysign(math.inf, effect) if effect else 0.0


def bounded(effect: float) -> float:
    """Return an effect in standard errors, at most LARGEST in either way."""
    return min(max(effect, -LARGEST), LARGEST)
