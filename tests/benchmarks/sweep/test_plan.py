"""Plans: statuses, groups, and what users type."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.errors import UnknownName, UsageError
from benchmarks.records.config import run_key
from benchmarks.records.form import NewerRecord
from benchmarks.state.claims import Claims
from benchmarks.state.failures import Failures
from benchmarks.sweep import begin
from benchmarks.sweep import plan as planning
from tests.benchmarks import fakes


def done(results, config):
    store = fakes.store(results)
    return store.write(store.make(config, [fakes.metric(0.5)], {}, {}))


def test_every_status_is_counted(folders, monkeypatch):
    results, state = folders
    configs = [fakes.config(seed) for seed in range(8)]
    done(results, configs[5])
    monkeypatch.setattr(fakes.METRICS["accuracy"], "version", 2)
    for config in configs[:2]:
        done(results, config)
    Failures(state).write(configs[2], run_key(configs[2]), "it diverged")
    Failures(state).write(configs[2], run_key(configs[2]), "it diverged again")
    Claims(state / "claims").acquire(run_key(configs[3]))
    done(results, configs[4]).write_text("{")
    plan = planning.make_plan([*configs, configs[0]], results, state, fakes.SUITE)
    assert [run.status for run in plan.runs] == [
        "done",
        "done",
        "failed",
        "running",
        "missing",
        "stale",
        "missing",
        "missing",
    ]
    assert plan.counts == {"done": 2, "running": 1, "queued": 0, "failed": 1, "stale": 1, "missing": 3}
    assert plan.runs[2].note == "it diverged again" and plan.runs[2].attempts == 2
    assert "process" in plan.runs[3].note
    (problem,) = plan.problems
    assert run_key(configs[4]) in problem and "delete it" in problem
    todo = [key for group in plan.groups for key in group.keys]
    assert todo == [run_key(configs[i]) for i in (2, 4, 5, 6, 7)]


def test_a_newer_record_is_not_planned_over(folders):
    results, state = folders
    path = done(results, fakes.config())
    path.write_text(path.read_text().replace('"schema": 2,\n"metric_', '"schema": 9,\n"metric_'))
    with pytest.raises(NewerRecord, match="update the code"):
        planning.make_plan([fakes.config()], results, state, fakes.SUITE)
    assert planning.make_plan([fakes.config()], results, state, fakes.SUITE, strict=False).problems


def test_runs_are_stacked_up_to_the_limit(folders):
    configs = [fakes.config(seed, method=m, stack=3) for m in ("MAP", "GP") for seed in range(4)]
    groups = planning.make_plan(configs, *folders, fakes.SUITE).groups
    assert [(group.configs[0]["method"], [c["seed"] for c in group.configs]) for group in groups] == [
        ("MAP", [0, 1, 2]),
        ("MAP", [3]),
        ("GP", [0, 1, 2]),
        ("GP", [3]),
    ]


def test_long_groups_come_first(folders):
    configs = [fakes.config(method=m, epochs=e) for m, e in (("a", 5), ("b", 50), ("c", 5), ("d", 500))]
    configs.append(fakes.config(method="five draws", epochs=20, samples=5))
    configs[-1]["parts"]["family"] = {"name": "mean_field"}  # a point would evaluate one network at each step
    configs.append(fakes.config(method="chains", samples=10, warmup=5, thinning=2, leapfrogs=50))
    groups = planning.make_plan(configs, *folders, fakes.SUITE).groups
    assert [group.configs[0]["method"] for group in groups] == ["chains", "d", "five draws", "b", "a", "c"]


def test_a_table_is_expanded_in_its_protocol(folders):
    assert len(begin.choose(["fake", "fake-slow"], suite=fakes.SUITE).configs) == 5 + 12
    chosen = begin.choose("fake", "paper", [3, 7], suite=fakes.SUITE)
    assert [config["seed"] for config in chosen.configs] == [3]
    with pytest.raises(UnknownName, match="did you mean 'paper'"):
        begin.choose("fake", "papr", suite=fakes.SUITE)


def test_only_some_methods_and_data_sets():
    configs = [fakes.config(method=m, dataset=d) for m in ("MAP", "GP") for d in ("digits", "boston")]
    chosen = begin.only(configs, ["GP"], ["boston"])
    assert [(c["method"], c["dataset"]["name"]) for c in chosen] == [("GP", "boston")]
    assert begin.only(configs, [], []) == configs
    with pytest.raises(UnknownName, match="unknown data set .* did you mean 'boston'"):
        begin.only(configs, [], ["Bostn"])


def test_the_label_of_a_row_chooses_its_runs_alone_and_the_name_of_a_method_those_of_all_its_rows():
    table = "cinquin2024-1-later"
    one, all_of_it = (begin.choose(table, methods=name).configs for name in ("FVI, all eigenvalues", "FBNN"))
    assert len(one) == 25 and {config["parts"]["divergence"]["share"] for config in one} == {1.0}
    assert len(all_of_it) == 50 and all(config in all_of_it for config in one)
    with pytest.raises(UnknownName, match="unknown method or row of this table 'FVI, all': .*'FVI, all eigenvalues'"):
        begin.choose(table, methods="FVI, all")
    with pytest.raises(UnknownName, match=r"of this table 'HMC': .* \(--also 'HMC' adds a row for it\)"):
        begin.choose(table, methods="HMC")


@pytest.mark.parametrize(
    "text, seeds",
    [
        (None, None),
        ("", None),
        ("3", [0, 1, 2]),
        ("0-2", [0, 1, 2]),
        ("0,3", [0, 3]),
        ("2-2", [2]),
        ("4,", [4]),
    ],
)
def test_seeds(text, seeds):
    assert begin.parse_seeds(text) == seeds


@pytest.mark.parametrize(
    "text, message",
    [
        (None, None),
        ("5", None),
        ("3-4", None),
        ("6", "--seeds 6: table fake has 5 replicates at protocol smoke, all 5 are used"),
        ("3-9", "--seeds 3-9: table fake has 5 replicates at protocol smoke, 2 of 7 requested are used"),
        ("7,9", "--seeds 7,9: table fake has 5 replicates at protocol smoke, none of 2 requested are used"),
    ],
)
def test_seeds_that_a_table_does_not_have_are_named(text, message):
    tables = [fakes.get("fake"), fakes.get("fake-none"), fakes.get("fake-slow")]
    assert begin.beyond(tables, None, text) == ([message] if message else [])


@pytest.mark.parametrize("text", ["0", "a", "3-1", "-1", "0-", "0-,5", "1.5", ","])
def test_seeds_that_mean_nothing(text):
    with pytest.raises(UsageError, match="--seeds"):
        begin.parse_seeds(text)


@pytest.mark.parametrize("text", ["1000001", "0-1000000", "3,1000000", "100-1000000", 10**7])
def test_numbers_that_no_table_has_are_refused_before_they_fill_the_memory(text):
    with pytest.raises(UsageError, match=f"--seeds is '{text}', expected numbers below 1,000,000"):
        begin.parse_seeds(text)


def test_a_group_is_plain_data(folders):
    import json

    (group,) = planning.make_plan([fakes.config()], *folders, fakes.SUITE).groups
    assert [run["config"] for run in json.loads(json.dumps(dataclasses.asdict(group)))["runs"]] == [fakes.config()]
