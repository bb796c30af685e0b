"""Commits named by records but missing from the repository's history; ``lost_commits.csv`` lists them."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "lost_commits.csv"


@cache
def listed() -> dict[str, str]:
    """Return, by lost commit, the commit of the history that brought its code and later changes."""
    with FILE.open(encoding="utf-8", newline="") as stream:
        return {row["commit"]: row["code"] for row in csv.DictReader(stream)}


def remark(commit: str) -> str:
    """Return the remark that follows a record's commit; empty if the history has the commit."""
    instead = listed().get(commit)
    return f" (not in this history; its code came with {instead[:7]})" if instead else ""
