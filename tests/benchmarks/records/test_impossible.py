"""Records whose SHA-256 is right and whose content is impossible: refused by every reader and named by status."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import files
from benchmarks.metrics.registry import METRICS
from benchmarks.records.config import InvalidConfig, check_form
from benchmarks.records.form import InvalidRecord, RecordError, parse, serialise
from benchmarks.records.frame import frame
from benchmarks.records.store import Store
from benchmarks.state.checkpoints import SUFFIX, Checkpoints
from benchmarks.state.failures import Failures
from benchmarks.state.kept import parameters_path, predictions_path
from benchmarks.tables.external import recorded
from tests.benchmarks import fakes
from tests.benchmarks.records.test_store import signed

POINTS = 539  # of the test set of digits


def row(metric: str = "accuracy", value: float = 0.5, n: int = POINTS, condition: str = "", **more) -> dict:
    return {"dataset": "digits", "condition": condition, "metric": metric, "value": value, "n": n, **more}


def config(seed: int) -> dict:
    """A run on the present version of digits."""
    found = fakes.config(seed)
    return {**found, "dataset": {**found["dataset"], "version": "1"}}


def made(rows: list[dict], **more) -> dict:
    return Store("").make({**config(0), **more}, rows, {"roc": {"x": [0.0]}}, {"commit": "c"})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def refused(store: Store, path: Path) -> str:
    """Return the message with which every reader refuses a record."""
    readers = [
        lambda: store.read(path),
        lambda: store.read(path, curves=False),
        lambda: store.columns(path),
        lambda: parse(path.read_bytes(), path, (), store.rows),
    ]
    found = []
    for reader in readers:
        with pytest.raises(RecordError) as caught:
            reader()
        found.append(str(caught.value))
    assert len(set(found)) == 1 and str(path) in found[0]
    assert list(store.problems().values()) == found[:1]
    assert frame(store)[1] == found[:1] and recorded(store, ()) == []
    with pytest.raises(RecordError):
        store.status(config(0))
    return found[0]


def test_the_numbers_of_points_are_those_of_the_data():
    import datasets

    assert datasets.describe("digits").n_test == POINTS


@pytest.mark.parametrize(
    "rows, message",
    [
        ([row(value=1.7)], "accuracy is 1.7, expected a value from 0 to 1"),
        ([row(value=-0.1)], "accuracy is -0.1"),
        ([row("ece", 2.0)], "ece is 2.0"),
        ([row("nll", -0.2)], "nll is -0.2, expected a value from 0 to inf"),
        ([row("log_likelihood", 0.2)], "log_likelihood is 0.2"),
        ([row("brier", 2.5)], "brier is 2.5, expected a value from 0 to 2"),
        ([row("rmse", -1.0)], "rmse is -1.0"),
        ([row("ood_auroc", 1.1, 720, "ood=photos")], r"ood_auroc \(ood=photos\) is 1.1"),
        ([row(n=0)], "a metric row has n 0"),
        ([row("nll", n=2**63, condition="shift=a")], "a metric row has n 9223372036854775808"),
        ([row(n=7)], "its test set has 7 points, that of data set digits has 539"),
        ([row(n=3600)], "its test set has 3600 points"),
        ([row(), row("nll", n=7)], "its test set has 7 points"),
        ([row(), row(value=0.6)], "accuracy of digits occurs twice"),
        ([row(dataset="mnist")], "its rows belong to data set mnist, its run to digits"),
        ([row(), row(dataset="mnist")], "its rows belong to data set digits, mnist, its run to digits"),
    ],
)
def test_values_that_no_run_can_have_are_refused_by_every_reader(store, rows, message):
    path = written(store, made(rows))
    with pytest.raises(RecordError, match=message):
        store.read(path)
    assert message.replace("\\", "") in refused(store, path)


def test_the_same_is_refused_after_a_good_record_of_the_same_rows(store):
    good = store.write(Store("").make(config(1), [row()], {}, {}))
    assert store.columns(good)[2][0] == 0.5
    bad = written(store, made([row(value=1.7)]))
    with pytest.raises(RecordError, match=r"accuracy is 1\.7"):
        store.columns(bad)


def test_rounding_errors_and_metrics_of_plugins_are_accepted(store):
    path = written(store, made([row("ood_aupr", 1 + 2e-16, 720, "ood=a"), row(), row("of_a_plugin", -7.0)]))
    assert len(store.read(path)["metrics"]) == 3 and store.problems() == {}


def written(store: Store, record: dict) -> Path:
    """Write a record that no code of this project would write."""
    path = store.path(record["config"])
    files.write(path, serialise(record))
    return path


def test_what_would_be_refused_is_not_written(store):
    for rows, message in (
        ([row(value=1.7)], r"accuracy is 1\.7"),
        ([row(), row()], "occurs twice"),
        ([row(n=7)], "7 points"),
    ):
        with pytest.raises(InvalidRecord, match=message):
            store.write(made(rows))
    with pytest.raises(InvalidRecord, match="samples"):
        store.write(made([row()], evaluation={"samples": 0, "sets": ["test"], "content": {}}))
    assert not store.root.exists()


def respelt(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(signed(text.replace(old, new, 1)))


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('"value": 0.5', '"value": 0.9, "value": 0.5', "'value' occurs twice"),
        ('"seed": 0', '"seed": 1,\n"seed": 0', "'seed' occurs twice"),
        ('"curves": {', '"curves": {},\n"curves": {', "not a record of this project"),
        ('"metrics": [', '"metrics": [],\n"metrics": [', "not a record"),
        ('"provenance": {', '"provenance": {},\n"provenance": {', "'provenance' occurs twice"),
        ('"commit": "c"', '"commit": "d", "commit": "c"', "'commit' occurs twice"),
        ("[\n" + json.dumps(row()) + "\n]", "[]", "metrics: expected rows, found none"),
    ],
)
def test_keys_that_are_there_twice_and_empty_metrics_are_refused(store, old, new, message):
    path = written(store, made([row()]))
    respelt(path, old, new)
    with pytest.raises(RecordError, match=message):
        store.read(path, curves=False)
    with pytest.raises(RecordError, match=message):
        store.read(path)
    with pytest.raises(RecordError, match=message):
        store.status(config(0))
    assert len(store.problems()) == 1


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('"commit": "c"', '"commit": 5', "provenance['commit'] is 5"),
        ('"commit": "c"', '"dirty": 0', "provenance['dirty'] is 0"),
        ('"commit": "c"', '"seconds": "long"', "provenance['seconds'] is 'long'"),
        ('"commit": "c"', f'"stack": {10**400}', "provenance['stack'] is 10000"),
        ('"commit": "c"', '"commit": "\\ud800"', "surrogates not allowed"),
        ('"condition": ""', '"condition": "\\ud800"', "surrogates not allowed"),
    ],
)
def test_what_would_stop_the_export_of_all_records_is_refused(store, old, new, message):
    """A frame of all records has columns of one type, and goes to files of UTF-8 and of 64 bits."""
    path = written(store, made([row()]))
    respelt(path, old, new)
    assert message in refused(store, path)


@pytest.mark.parametrize("section", [None, "dataset", "evaluation", "parts"])
def test_a_configuration_that_lacks_an_entry_is_refused_and_ends_no_command_in_a_traceback(store, section):
    whole = config(0)
    check_form(whole)
    for name in whole if section is None else whole[section]:
        lacking = json.loads(json.dumps(whole))
        del (lacking if section is None else lacking[section])[name]
        with pytest.raises(InvalidConfig, match=f"missing \\['{name}'\\]"):
            check_form(lacking)
    lacking = {**whole, "sources": {"predictions": "0" * 64}}
    if section is None:
        del lacking["protocol"]
    else:
        lacking[section] = {k: v for k, v in whole[section].items() if k not in ("scheme", "sets", "fit")}
    path = written(store, Store("").make(lacking, [row()], {}, {}))
    assert recorded(store, ()) == [] and len(frame(store)[1]) == len(store.problems()) == 1
    with pytest.raises(RecordError, match="missing"):
        store.read(path)


@pytest.mark.parametrize(
    "where, value",
    [
        (("seed",), "0"), (("seed",), True), (("sources",), []), (("sources",), {"a": 1}), (("method",), None),
        (("dataset", "name"), 3), (("dataset", "split"), 0.5), (("dataset", "content"), None),
        (("evaluation", "samples"), 0), (("evaluation", "sets"), [1]), (("evaluation", "posterior"), {}),
        (("parts", "network"), None), (("parts", "network"), "mlp"), (("parts", "family"), {"size": 2}),
        (("schema",), 3), (("seed",), 2**63), (("dataset", "split"), -(10**400)),
    ],
)  # fmt: skip
def test_a_configuration_with_an_entry_of_another_type_is_refused(where, value):
    broken = json.loads(json.dumps(config(0)))
    *outer, last = where
    (broken[outer[0]] if outer else broken)[last] = value
    with pytest.raises(InvalidConfig, match="configuration"):
        check_form(broken)


def test_of_two_files_with_one_key_both_are_looked_at(store):
    path = written(store, made([row()]))
    for folder in ("aaa", "zzz"):
        copy = path.parent.with_name(folder) / path.name
        copy.parent.mkdir()
        copy.write_bytes(path.read_bytes())
    assert store.paths() == {path.stem: path}
    problems = store.problems()
    assert [Path(name).parent.name for name in problems] == ["aaa", "zzz"]
    message = "is in the wrong folder, expected digits/map, where another file has its name: delete one of them"
    assert all(reason.endswith(message) for reason in problems.values()), "moved there it would replace the record"
    assert sorted(type(found) is dict for found in store.records()) == [False, False, True]
    table, left = frame(store)
    assert len(table) == 1 and len(left) == 2


def test_an_infinite_value_is_written_as_text_and_read_as_a_number(store):
    rows = [row("nll", math.inf), row("log_likelihood", -math.inf), row("zero_probability", 3.0), row()]
    with pytest.raises(InvalidRecord, match="nll of digits is inf"):
        store.write(made(rows))  # of a run that was trained here it is a fault
    parts = dict.fromkeys(config(0)["parts"])
    record = made(rows, sources={"predictions": "0" * 64}, parts=parts)
    path = store.write(record)
    text = path.read_text()
    assert '"metric": "nll", "value": "inf", "n": 539}' in text and '"value": "-inf"' in text
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert store.read(path) == record and serialise(store.read(path)) == text
    for _ in range(2):
        assert list(store.columns(path)[2]) == [math.inf, -math.inf, 3.0, 0.5]
    assert store.problems() == {}
    table, _ = frame(store)
    assert table["value"].tolist() == [math.inf, -math.inf, 3.0, 0.5]


@pytest.mark.parametrize(
    "rows", [[row("nll", -math.inf)], [row("log_likelihood", math.inf)], [row("accuracy", math.inf)]]
)
def test_only_the_worst_value_of_a_likelihood_is_infinite(store, rows):
    parts = dict.fromkeys(config(0)["parts"])
    path = written(store, made(rows, sources={"predictions": "0" * 64}, parts=parts))
    with pytest.raises(RecordError, match=f"{rows[0]['metric']} is -?inf"):
        store.read(path)


def test_every_metric_says_its_range():
    for metric in METRICS.values():
        low, high = metric.range
        assert low < high and (metric.unit != "fraction" or (low, high) == (0, 1)), metric.name


TRIES = {
    "pipe": os.mkfifo,
    "device": lambda path: os.symlink("/dev/zero", path),
    "large": lambda path: (path.touch(), os.truncate(path, files.MOST + 1)),
}


@pytest.mark.parametrize("kind", TRIES)
def test_what_is_no_regular_file_is_named_and_neither_waited_for_nor_read(store, tmp_path, kind):
    state = tmp_path / "state"
    failures, checkpoints = Failures(state), Checkpoints(state)
    places = [
        predictions_path(state, "0-0"),
        parameters_path(state, "0-0"),
        checkpoints.folder / f"0{SUFFIX}",
        state / "log",
    ]
    for path in (store.path(config(0)), failures.path("0-0"), *places):
        path.parent.mkdir(parents=True, exist_ok=True)
        TRIES[kind](path)
    checkpoints.path("0-0").symlink_to(f"0{SUFFIX}")
    code = f"""
from pathlib import Path
from benchmarks.commands.inspection import failure_text
from benchmarks.experiment import parameters
from benchmarks.records import predictions
from benchmarks.records.store import Store
from benchmarks.state.checkpoints import Checkpoints, progress
from benchmarks.state.failures import Failures
state = Path({str(state)!r})
(reason,) = Store({str(store.root)!r}).problems().values()
print(reason)
print(Failures(state).get("0-0")["reason"])
print(failure_text(Failures(state).get("0-0") | {{"log": str(state / "log"), "config": None}}).count("\\n"))
if {kind != "large"}:
    try:
        predictions.load({str(places[0])!r})
    except predictions.PredictionsError as error:
        print(error)
    print(parameters.load(state, "0-0"))
    print(Checkpoints(state).find({{"0": ""}}, {{}}), progress(state, "0-0"))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=Path.cwd())
    assert ended.returncode == 0, ended.stderr
    problem, failed, log, *others = ended.stdout.splitlines()
    assert "cannot be read" in problem and ("not a regular file" if kind != "large" else "expected at most") in problem
    assert failed == "unknown: its failure file cannot be read" and int(log) <= 3
    assert kind == "large" or sum("not a regular file" in line for line in others) == 3, others
    assert kind == "large" or others[-1] == "None None"


CURVES = {"grid/mean": {"x": [0, 1], "of": [{"a": 1}, {"b": "é: \\"}]}, "test/pit": {"x": [0.5]}}


@pytest.mark.parametrize(
    ("old", "new", "twice"),
    [
        ('"x": [0, 1]', '"x": [0, 1], "x": [0, 2]', "x"),
        ('"x": [0, 1]', '"x": [0, 1], "\\u0078": [0, 2]', "x"),
        ('"x": [0, 1]', '"x":[0, 1], "x" :[0, 2]', "x"),
        ('{"a": 1}', '{"a": 1, "a": 2}', "a"),
        ('"test/pit": {', '"grid/mean": {},\n"test/pit": {', "grid/mean"),
        ('"test/pit": {', '"config": {},\n"test/pit": {', "config"),
    ],
)
def test_keys_that_are_twice_in_curves_are_refused_also_by_status(store, old, new, twice):
    path = written(store, Store("").make(config(0), [row()], CURVES, {}))
    assert store.read(path)["curves"] == CURVES and store.read(path, curves=False) and store.problems() == {}
    respelt(path, old, new)
    (problem,) = store.problems().values()
    assert f"{twice!r} occurs twice" in problem or (twice == "config" and "not a record" in problem)
    with pytest.raises(RecordError, match="not a record"):
        store.read(path, curves=False)


def test_keys_that_several_objects_of_curves_share_are_not_twice(store):
    curves = {"a": {"of": [{"x": 1}, {"x": 2}], "in": {"x": 1}, "x": 3}, "b": {"x": 1}}
    path = written(store, Store("").make(config(0), [row()], curves, {}))
    assert store.problems() == {} and store.read(path)["curves"] == curves
