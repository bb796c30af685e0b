"""Records as one table."""

from __future__ import annotations

import re

import pandas
import pytest

from benchmarks import interface, tables
from benchmarks.commands.upkeep import EXPORT
from benchmarks.errors import UsageError
from benchmarks.records.frame import COLUMNS, frame
from tests.benchmarks import fakes


def write(store, path):
    return interface.records(store.root, path, suite=fakes.SUITE)


@pytest.fixture
def store(tmp_path):
    made = fakes.store(tmp_path / "results")
    for seed in range(3):
        made.write(
            made.make(
                fakes.config(seed),
                [fakes.metric(seed / 7)],
                {},
                {"commit": "c", "dirty": False, "cpu": "p", "seconds": 1.5},
            )
        )
    return made


@pytest.mark.parametrize("name", ["records.csv", "records.parquet"])
def test_every_metric_of_every_record_is_a_row_with_its_exact_value(store, tmp_path, name):
    assert len(write(store, tmp_path / name)) == 3
    read = pandas.read_csv(tmp_path / name) if name.endswith("csv") else pandas.read_parquet(tmp_path / name)
    assert dict(zip(read["seed"], read["value"], strict=True)) == {seed: seed / 7 for seed in range(3)}
    assert (
        set(read["key"]) == set(store.paths()) and set(read["metric"]) == {"accuracy"} and set(read["commit"]) == {"c"}
    )
    assert (read["trained_on"] == "digits").all() and list(read["split"]) == list(read["seed"])


def test_what_cannot_be_trusted_is_left_out_and_named(store):
    path = store.path(fakes.config(1))
    path.write_text(path.read_text().replace('"n": 10', '"n": 11'))
    table, (problem,) = frame(store)
    assert len(table) == 2 and str(path) in problem


def test_another_ending_is_refused_and_nothing_written(store, tmp_path):
    with pytest.raises(UsageError, match=r"records.xls: expected a file that ends in .csv or .parquet, found '.xls'"):
        write(store, tmp_path / "records.xls")
    assert not (tmp_path / "records.xls").exists()


def test_columns_are_those_that_help_names(store, tmp_path):
    assert list(frame(store)[0].columns) == list(COLUMNS)
    assert all(f"\n  {name} " in EXPORT for name in COLUMNS)
    protocols = {protocol for name in tables.names() for protocol in tables.get(name).protocols}
    assert protocols <= set(re.findall(r"\w+", COLUMNS["protocol"]))
    write(fakes.store(tmp_path / "nothing"), tmp_path / "empty.csv")
    assert (tmp_path / "empty.csv").read_text() == ",".join(COLUMNS) + "\n"


def test_rows_follow_the_records_and_their_order(store):
    made = store.make(
        fakes.config(3), [fakes.metric(0.5) | {"metric": name, "n": n} for name, n in (("nll", 7), ("ece", 8))], {}, {}
    )
    store.write(made)
    table = frame(store)[0]
    assert list(dict.fromkeys(table["key"])) == list(store.paths())
    last = table[table["key"] == made["key"]]
    assert list(zip(last["metric"], last["n"], last["seed"], strict=True)) == [("nll", 7, 3), ("ece", 8, 3)]
    assert last["commit"].isna().all() and len(table) == 5
