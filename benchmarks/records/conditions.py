"""Conditions of metric rows: parts "<name>=<value>" between semicolons."""

from __future__ import annotations

SCORE = "score"


def with_score(condition: str, score: str) -> str:
    """Return the condition of a row that was computed by this uncertainty score."""
    return ";".join(filter(None, (condition, f"{SCORE}={score}")))


def score_of(condition: str) -> str:
    """Return the uncertainty score that a condition names; empty where it names none."""
    return next((value for name, _, value in (p.partition("=") for p in condition.split(";")) if name == SCORE), "")
