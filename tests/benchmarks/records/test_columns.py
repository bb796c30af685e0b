"""Metric rows as columns: the numbers, and the errors, of reading each record alone, whatever was read before."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.records.form import RecordError
from benchmarks.records.store import Store
from tests.benchmarks import fakes
from tests.benchmarks.records.test_impossible import respelt

ROW = '{"dataset": "digits", "condition": "", "metric": "accuracy", "value": 0.5, "n": 10}'
WORDS = st.text(max_size=8) | st.sampled_from(['"value": 1, "n": ', "}, {", "\n]", '\\"', "σ"])
VALUES = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20)
ROWS = st.lists(
    st.tuples(st.just("digits"), WORDS, WORDS, st.integers(1, 10**6)), min_size=1, max_size=4, unique_by=lambda r: r[:3]
)


def written(store: Store, values: list[float], rows: list[tuple], seed: int) -> Path:
    """Write the record of a run with these rows."""
    names = ("dataset", "condition", "metric", "n")
    metrics = [{**dict(zip(names, row, strict=True)), "value": value} for row, value in zip(rows, values, strict=True)]
    return store.write(store.make(fakes.config(seed), metrics, {"roc": {"x": [0, 1]}}, {"commit": "c"}))


def alone(store: Store, path: Path) -> list[tuple]:
    """Return the rows of a record that the store reads as a whole."""
    return [tuple(row.values()) for row in store.read(path)["metrics"]]


@settings(max_examples=40)
@given(rows=ROWS, data=st.data())
def test_columns_are_the_rows(tmp_path_factory, rows, data):
    folder = tmp_path_factory.mktemp("results")
    store, reader = fakes.store(folder), fakes.store(folder)
    shapes = []
    for seed in range(3):
        values = data.draw(st.lists(VALUES, min_size=len(rows), max_size=len(rows)))
        path = written(store, values, rows, seed)
        record, found, numbers = reader.columns(path)
        assert [(*cell, value, n) for cell, value, n in zip(found.cells, numbers, found.n, strict=True)] == [
            (*row[:3], float(row[3]), row[4]) for row in alone(store, path)
        ]
        whole = store.read(path)
        assert record == whole | {"curves": {}, "metrics": []}
        shapes.append(found)
    assert shapes[0] is shapes[1] is shapes[2], "what they have in common is held once"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.5", "1e999"),
        ("0.5", "1" + "0" * 400),
        ("0.5", "Infinity"),
        ("0.5", '"0.5"'),
        ("0.5", "null"),
        ("0.5", "00.5"),
        ("0.5", ".5"),
        ('"n": 10', '"n": 1.5'),
        ('"accuracy", ', '["accuracy"], '),
        (ROW, "[1, 2]"),
        (ROW, ROW + "]"),
        ('"key": "', '"key": "0'),
    ],
)
def test_what_reading_alone_refuses_is_refused_in_the_same_words(tmp_path, old, new):
    store, reader = fakes.store(tmp_path), fakes.store(tmp_path)
    paths = [store.write(store.make(fakes.config(seed), [fakes.metric(0.5)], {}, {})) for seed in range(3)]
    reader.columns(paths[0])
    for path in paths[1:]:  # the second time, the first is known
        respelt(path, old, new)
        with pytest.raises(RecordError) as expected:
            store.read(path, curves=False)
        with pytest.raises(RecordError) as found:
            reader.columns(path)
        assert str(found.value) == str(expected.value)


@pytest.mark.parametrize(
    "spelling", [ROW.replace(": ", ":"), ROW.replace('"value": 0.5, "n": 10', '"n": 10, "value": 0.5')]
)
def test_rows_that_are_spelt_otherwise_are_read_too(tmp_path, spelling):
    store, reader = fakes.store(tmp_path), fakes.store(tmp_path)
    for seed in range(3):
        path = written(store, [0.5, 0.25], [("digits", "", "accuracy", 10), ("digits", "", "nll", 10)], seed)
        respelt(path, ROW, spelling)
        record, rows, values = reader.columns(path)
        assert record["config"]["seed"] == seed
        assert list(values) == [0.5, 0.25] and rows.n == (10, 10)
        assert rows.cells == (("digits", "", "accuracy"), ("digits", "", "nll"))


def test_a_file_that_is_none_has_no_record(tmp_path):
    with pytest.raises(RecordError, match="there is no such file"):
        fakes.store(tmp_path).columns(tmp_path / "none.json")
