"""Check for missing data before the first run, so that each data set is reported once and no run fails for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from benchmarks.records.config import canonical_json
from benchmarks.records.hyperparameters import context_pools
from benchmarks.shapes import RunConfig
from benchmarks.sweep.plan import TO_TRAIN, Plan
from datasets import BadData, UnknownDataset, UnknownSplit
from datasets.needs import Lack, get, lacking


@dataclass
class Missing:
    """Missing data. runs: the data sets that a run waits for, by its key; lacks: missing files, by data set."""

    runs: dict[str, list[str]] = field(default_factory=dict)
    lacks: dict[str, Lack] = field(default_factory=dict)

    @property
    def notes(self) -> dict[str, str]:
        """Return the note of each waiting run."""
        return {key: ", ".join(names) for key, names in self.runs.items()}


def look(plan: Plan, fetch: bool = False, say: Callable[[str], None] = print) -> Missing:
    """Find the data missing for the runs left to train; with ``fetch``, try to download them first."""
    found = _look(plan)
    if fetch and found.lacks:
        reasons = {name: left.reason for name, lack in found.lacks.items() if (left := get(lack, say))}
        found = _look(plan)
        found.lacks = {name: replace(lack, reason=reasons.get(name, "")) for name, lack in found.lacks.items()}
    return found


def _look(plan: Plan) -> Missing:
    found, known = Missing(), {}
    for run in plan.select(*TO_TRAIN):
        needs = _needs(run.config)
        place = canonical_json(needs)
        if place not in known:
            known[place] = _lacking(*needs)
        for lack in known[place]:
            before = found.lacks.get(lack.dataset, lack)
            files = tuple(dict.fromkeys((*before.files, *lack.files)))
            found.lacks[lack.dataset] = Lack(lack.dataset, files, before.reason or lack.reason)
            names = found.runs.setdefault(run.key, [])
            names += [] if lack.dataset in names else [lack.dataset]
    return found


def _needs(config: RunConfig) -> tuple[str, str, list[str], list[str]]:
    data, pools = config["dataset"], context_pools(config["parts"].get("context"))
    return data["name"], data["scheme"], config["evaluation"]["sets"], sorted(pools)


def _lacking(name: str, scheme: str, sets: list[str], pools: list[str]) -> list[Lack]:
    try:
        return lacking(name, scheme or None, sets, pools)
    except (UnknownDataset, UnknownSplit, BadData):  # the run itself reports this
        return []
