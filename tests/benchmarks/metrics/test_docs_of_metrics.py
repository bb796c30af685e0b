"""docs/metrics.md lists every metric of the suite, with the unit and direction of the registry."""

from __future__ import annotations

import re

from benchmarks.metrics.registry import METRICS
from benchmarks.records.provenance import ROOT

BETTER = {"higher": "up", "lower": "down", "none": "—"}


def test_every_metric_is_listed_as_it_is_registered() -> None:
    lines = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("| `")]
    found = {name.strip("`"): (unit, better) for name, equation, source, unit, better in rows if equation and source}
    assert len(rows) == len(found)
    assert found == {name: (metric.unit or "—", BETTER[metric.direction]) for name, metric in METRICS.items()}
