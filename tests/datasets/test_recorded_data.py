"""Data of committed records: every split and evaluation set of tables, toys and digits is still the recorded one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cache

import pytest

import datasets
from benchmarks.records.provenance import ROOT
from benchmarks.records.store import Store
from datasets import image_schemes
from datasets.fundus.sources import NAMES

SMALL = [name for name in datasets.names() if name not in (*image_schemes.SCHEMES, *NAMES)]
"""The others have images, which take minutes to turn or corrupt; test_contract.py has the fingerprint of a split."""
Found = dict[tuple[str, int], dict[str, set[str]]]
"""By scheme and split: fingerprints of the split, under the empty name, and of its evaluation sets."""


@cache
def recorded() -> dict[str, Found]:
    known = [(name, scheme) for name in SMALL for scheme in datasets.describe(name).schemes]
    versions = {of: datasets.describe(*of).version for of in known}
    found: dict[str, Found] = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    for record in Store(ROOT / "results").records(curves=False):
        data, about = record["config"]["dataset"], record["provenance"]
        if versions.get((data["name"], data["scheme"])) == data["version"]:
            own = found[data["name"]][data["scheme"], data["split"]]
            for name, fingerprint in ({"": about["fingerprint"]} | about.get("data", {})).items():
                own[name].add(fingerprint)
    return found


@pytest.mark.parametrize("name", SMALL)
def test_data_are_those_of_the_records(name: str, load_or_skip: Callable) -> None:
    for (scheme, number), sets in recorded()[name].items():
        split = load_or_skip(name, number, scheme)
        now = {each: {split.evaluation(each).fingerprint if each else split.fingerprint} for each in sets}
        assert now == sets, f"scheme {scheme!r}, split {number}"
