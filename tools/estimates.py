"""Check estimates of a sweep's cost against records: ``python -m tools.estimates``.

The records of each of the kinds with most hours are left out, and their cost is estimated from those of other kinds.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import median

from benchmarks.commands.inspection import columns
from benchmarks.records.config import kind_key, method_of, stack_key
from benchmarks.records.store import Store
from benchmarks.sweep.estimate import Known, low
from benchmarks.sweep.plan import MEANINGLESS
from benchmarks.sweep.similar import Recorded, similar

COUNT = 12


def tried(results: Path = Path("results"), count: int = COUNT) -> list[tuple[Recorded, int, float, float]]:
    """Return the largest kinds: a record, how many there are, their lower quartile and its estimate in seconds."""
    known = Known(Store(results), results / "no-state")
    folders = sorted(results.glob("*/*"))
    every = [one for folder in folders for one in known.records(folder) if one.config["protocol"] != MEANINGLESS]
    kinds: dict[str, list[Recorded]] = defaultdict(list)
    for one in every:
        kinds[stack_key(one.config)].append(one)
    largest = sorted(kinds.values(), key=lambda same: -sum(one.cost.training for one in same))
    found = []
    for same in largest:
        own = {kind_key(one.config) for one in same}
        others = [
            one for one in every if one.config["method"] == same[0].config["method"] and kind_key(one.config) not in own
        ]
        if cost := similar(same[0].config, others):
            found.append((same[0], len(same), low([one.cost.training for one in same]), cost.training))
    return found[:count]


def main(arguments: list[str] | None = None) -> None:
    """Print the largest kinds and how far their estimates are off."""
    parser = argparse.ArgumentParser(prog="python -m tools.estimates", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help=f"how many of the largest kinds ({COUNT})")
    found = tried(count=parser.parse_args(arguments).count)
    rows = [
        (
            method_of(one.config),
            one.config["dataset"]["name"],
            one.config["protocol"],
            str(runs),
            f"{seconds:,.0f}",
            f"{guess:,.0f}",
            f"{max(guess / seconds, seconds / guess):.2f}",
        )
        for one, runs, seconds, guess in found
    ]
    print(columns([("method", "data set", "protocol", "runs", "seconds", "estimate", "factor"), *rows]))
    factors = [max(guess / seconds, seconds / guess) for *_, seconds, guess in found]
    print(f"\n{len(factors)} kinds: median factor {median(factors):.2f}, largest {max(factors):.1f}")


if __name__ == "__main__":
    main()
