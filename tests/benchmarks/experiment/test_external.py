"""Predictions made elsewhere: the same numbers as of a run of one's own, and everything that is wrong is named."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reports.cli
from benchmarks import tables
from benchmarks.commands import cli
from benchmarks.errors import UsageError
from benchmarks.experiment.external import Refused, score, write_sets
from benchmarks.records import provenance
from benchmarks.records.store import Store
from benchmarks.suite import Suite
from benchmarks.sweep import verify
from benchmarks.tables.external import config, recorded, template, with_rows_of
from datasets import DataNotFound
from fvi_core import methods
from reports.aggregate import aggregate
from reports.records import Records

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = (ROOT / "docs" / "predictions.md").read_text()
EXAMPLES = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", DOCUMENT, re.DOTALL))
TABLES = {"forest.py": "digits", "linear.py": "uci"}


def request_file(name: str, folder: Path) -> Path:
    """Return the first file of a table's evaluation sets."""
    first = tables.get(name).datasets[0]
    only = iter(write_sets(tables.get(name), "paper", folder, lambda one: one["dataset"]["name"] == first))
    return next(only)[0]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return request_file("digits", tmp_path_factory.mktemp("request"))


def answer(digits: Path, path: Path, change=lambda arrays: None, **more) -> Path:
    """Write predictions computed from the first pixels, as logits of three draws, after a change."""
    with np.load(digits) as given:
        sets = [key.rpartition("/")[0] for key in given.files if key.endswith("/fingerprint")]
        arrays = {"dataset": given["dataset"], "split": given["split"], "seed": given["seeds"][0]}
        for name in sets:
            x = given[f"{name}/x"].reshape(len(given[f"{name}/x"]), -1)[:, 10 : 10 + int(given["outputs"])]
            arrays |= {
                f"{name}/logits": np.stack([x, 2 * x, 3 * x]),
                f"{name}/fingerprint": given[f"{name}/fingerprint"],
            }
    change(arrays)
    np.savez(path, **arrays, **more)
    return path


def scored(file: Path, folder: Path, method: str = "Mine", table: str = "digits") -> Path:
    store = Store(folder / "results")
    return score(tables.get(table), "paper", method, file, store, methods.catalogue())


def test_a_row_is_added_beside_the_others(digits: Path, tmp_path: Path) -> None:
    path = scored(answer(digits, tmp_path / "mine.npz"), tmp_path)
    store = Store(tmp_path / "results")
    record = store.read(path)
    assert record["provenance"]["versions"] == provenance.versions()
    with np.load(digits) as given:
        labels = tables.get("digits")
    (config,) = recorded(store, methods.catalogue())
    table = with_rows_of(labels, [config])
    assert [row.label for row in table.rows][-1] == "Mine (predictions brought)" and len(labels.rows) + 1 == len(
        table.rows
    )
    result = aggregate(table, "paper", Records(store.root))
    cell = result.cells[-1][0]
    wanted = cell.column.cell_of(cell.row)
    (value,) = [
        r["value"] for r in record["metrics"] if (r["condition"], r["metric"]) == (wanted.condition, wanted.metric)
    ]
    assert cell.n == 1 and cell.expected == 5 and cell.mean == pytest.approx(value * cell.column.scale)
    assert (
        given and record["config"]["evaluation"]["samples"] == 3 and set(record["config"]["parts"].values()) == {None}
    )
    with pytest.raises(UsageError, match="among 0"):
        verify.sample(store, 1, 1e9, 0)


def test_probabilities_and_their_logarithms_are_the_same(digits: Path, tmp_path: Path) -> None:
    def softmax(arrays: dict) -> None:
        for key in [key for key in arrays if key.endswith("/logits")]:
            e = np.exp(arrays.pop(key)[0] / 4)
            arrays[key.replace("logits", "probabilities")] = e / e.sum(-1, keepdims=True)

    def logarithms(arrays: dict) -> None:
        for key in [key for key in arrays if key.endswith("/logits")]:
            arrays[key] = arrays[key][0] / 4

    one = scored(answer(digits, tmp_path / "a.npz", softmax), tmp_path, "A")
    other = scored(answer(digits, tmp_path / "b.npz", logarithms), tmp_path, "B")
    found = [[(r["condition"], r["metric"], round(r["value"], 2)) for r in Store(tmp_path).read(p)["metrics"]
              if r["metric"] in ("accuracy", "nll", "brier")] for p in (one, other)]  # fmt: skip
    assert found[0] == found[1] and len(found[0]) >= 3


def test_from_the_command_line_to_the_printed_table(tmp_path: Path, call) -> None:
    def run(build, *words: str) -> str:
        where = ["--results", f"{tmp_path}/results"] if words[0] != "sets" else []
        status, output, errors = call(build(Suite()), *words, *where)
        assert status == 0, errors
        return output

    (given,) = run(cli.build, "sets", "digits", "--out", str(tmp_path), "--seeds", "1").split()
    file = answer(Path(given), tmp_path / "mine.npz")
    assert "-m reports table digits" in run(cli.build, "score", "digits", str(file), "--method", "Mine")
    out = ["--out", str(tmp_path / "out"), "--state", str(tmp_path / "state")]
    table = run(reports.cli.build, "table", "digits", *out)
    assert re.search(r"^Mine \(predictions brought\) .*\(1/5\)", table, re.MULTILINE)
    run(reports.cli.build, "figures", "digits-points", "digits-roc", "--row", "Mine", "--out", str(tmp_path))
    for figure in ("points", "roc"):
        assert "Mine (predictions brought)" in (tmp_path / f"figures/digits-{figure}-paper.csv").read_text()
    output = run(cli.build, "explain", "digits", "Mine", "NLL")
    assert "n = 1), 5 runs planned" in output and "sources: predictions=" in output and "network: " not in output
    again = "benchmarks score digits --protocol paper --method Mine FILE.npz --results"
    assert again in output and "benchmarks run" not in output


def test_what_screens_patients_has_every_metric_that_its_table_shows(tmp_path: Path) -> None:
    try:
        file = request_file("retina-mnist", tmp_path)
    except DataNotFound as error:
        pytest.skip(str(error).splitlines()[0])
    record = Store(tmp_path / "results").read(
        scored(answer(file, tmp_path / "mine.npz"), tmp_path, table="retina-mnist")
    )
    found = {(row["condition"], row["metric"]) for row in record["metrics"]}
    shown = [column.cell for column in tables.get("retina-mnist").columns]
    assert {(cell.condition, cell.metric) for cell in shown} - {("", "training_seconds")} <= found
    assert "test/screening_roc" in record["curves"]


FAULTS = {
    "no NaN": lambda a: a["test/logits"].__setitem__((0, 0, 0), np.nan),
    "expected one of logits, probabilities": lambda a: a.pop("test/logits"),
    "found logits and probabilities": lambda a: a.__setitem__("test/probabilities", a["test/logits"]),
    "sums from": lambda a: a.__setitem__("test/probabilities", a.pop("test/logits") * 0 + 0.2),
    "of sizes": lambda a: a.__setitem__("test/logits", a["test/logits"][:, 1:]),
    "expected the fingerprint": lambda a: a.__setitem__("test/fingerprint", "0" * 64),
    "nothing is known of 'tset/logits'": lambda a: a.__setitem__("tset/logits", a["test/logits"]),
    "expected the array 'split'": lambda a: a.pop("split"),
    "unknown data set of table digits 'Digits'": lambda a: a.__setitem__("dataset", "Digits"),
    "split 0, seed 77": lambda a: a.__setitem__("seed", 77),
    "set 'ood-photos': expected 3 samples": lambda a: a.__setitem__("ood-photos/logits", a["ood-photos/logits"][:1]),
    "expected numbers": lambda a: a.__setitem__("test/logits", np.array(["a"])),
}


@pytest.mark.parametrize("message", FAULTS)
def test_what_is_wrong_is_named_and_nothing_is_written(digits: Path, tmp_path: Path, message: str) -> None:
    file = answer(digits, tmp_path / "mine.npz", FAULTS[message])
    with pytest.raises(Refused) as refused:
        scored(file, tmp_path)
    assert str(refused.value).startswith(f"{file}: ") and message in str(refused.value)
    assert not (tmp_path / "results").exists()


def test_its_record_cannot_be_trained_again(digits: Path, tmp_path: Path, call) -> None:
    record = scored(answer(digits, tmp_path / "mine.npz"), tmp_path)
    status, _, errors = call(cli.build(Suite()), "again", record.stem, "--results", str(record.parents[2]))
    assert status == 2 and record.exists()
    assert f"error: {record.stem}: " in errors and f"delete {record}" in errors


def test_a_second_file_does_not_replace_the_first(digits: Path, tmp_path: Path) -> None:
    path = scored(answer(digits, tmp_path / "mine.npz"), tmp_path)
    assert scored(tmp_path / "mine.npz", tmp_path) == path
    with pytest.raises(Refused, match=re.escape(f"delete {path}")):
        scored(answer(digits, tmp_path / "mine.npz", lambda a: a["test/logits"].__imul__(2)), tmp_path)
    with pytest.raises(UsageError, match="has that name"):
        scored(tmp_path / "mine.npz", tmp_path, "MC Dropout")
    with pytest.raises(UsageError, match="in the folder of method 'MC Dropout', mc-dropout"):
        scored(tmp_path / "mine.npz", tmp_path, "mc dropout")


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_document_work(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "jax" in EXAMPLES[example] and importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")
    run_example(example, EXAMPLES[example], tmp_path)


def test_the_gaussian_example_is_right_in_numpy(tmp_path: Path) -> None:
    record = run_example("linear.py", EXAMPLES["linear.py"].replace("jax.numpy", "numpy"), tmp_path)
    values = {row["metric"]: row["value"] for row in record["metrics"] if not row["condition"]}
    assert 2 < values["rmse"] < 8 and -4.5 < values["log_posterior_predictive"] < -2


def run_example(name: str, text: str, folder: Path):
    """Run an example of the document; return the record of its predictions."""
    given = request_file(TABLES[name], folder / "request")
    (folder / name).write_text(text)
    subprocess.run([sys.executable, name, given, "mine.npz"], cwd=folder, check=True)
    store = Store(folder / "results")
    table = Suite().table(TABLES[name])
    return store.read(score(table, "paper", "Mine", folder / "mine.npz", store, methods.catalogue()))


@pytest.mark.parametrize("table", ["pequignot2020-1", "toys-distances", "cinquin2024-7"])
def test_its_evaluation_needs_nothing_but_predictions(table: str) -> None:
    found = tables.get(table)
    compared = [
        one
        for dataset in found.datasets
        for one in template(found, dataset, "smoke")
        if {"posterior", "reference"} & set(one["evaluation"])
    ]
    assert compared
    for one in compared:
        assert set(config(one, "Mine", "0" * 64, 7)["evaluation"]) == {"samples", "sets", "content"}
