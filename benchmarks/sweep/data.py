"""Check for missing data before the first run, so that each data set is reported once and no run fails for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from benchmarks.records.hyperparameters import context_pools
from benchmarks.sweep import hints
from benchmarks.sweep.plan import TO_TRAIN, Plan
from datasets import BadData, UnknownDataset, UnknownSplit
from datasets.fetch import OFFLINE_VARIABLE
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

    def lines(self, tried: bool) -> list[str]:
        """Name every data set that runs wait for, the reason, and the command that fetches it.

        tried: a download failed.
        """
        waiting, lines = Counter(name for names in self.runs.values() for name in names), []
        for name, lack in self.lacks.items():
            files = f"{len(lack.files)} file{'s' * (len(lack.files) != 1)} of {lack.megabytes:.3g} MB"
            why = f"could not be fetched ({lack.reason})" if tried else "not fetched yet"
            runs = "1 run waits" if waiting[name] == 1 else f"{waiting[name]} runs wait"
            lines.append(f"{runs} for data set {name}: {f'{files}, {why}' if lack.files else lack.reason}")
        if names := [name for name, lack in self.lacks.items() if lack.files]:
            before = "" if tried else f"the sweep tries to fetch them, unless {OFFLINE_VARIABLE} is set; "
            command = hints.module("datasets", "fetch", *names)
            lines.append(f"{before}to fetch them, where there is a network: {command}")
        return lines


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
        data, pools = run.config["dataset"], context_pools(run.config["parts"].get("context"))
        needs = data["name"], data["scheme"] or None, tuple(run.config["evaluation"]["sets"]), tuple(sorted(pools))
        if needs not in known:
            try:
                known[needs] = lacking(*needs)
            except (UnknownDataset, UnknownSplit, BadData):  # the run itself reports this
                known[needs] = []
        for lack in known[needs]:
            before = found.lacks.get(lack.dataset, lack)
            files = tuple(dict.fromkeys((*before.files, *lack.files)))
            found.lacks[lack.dataset] = Lack(lack.dataset, files, before.reason or lack.reason)
        if known[needs]:
            found.runs[run.key] = list(dict.fromkeys(lack.dataset for lack in known[needs]))
    return found
