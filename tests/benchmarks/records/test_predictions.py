"""Stored predictions: rounded once, whole or absent on disk, and clear about what is wrong."""

import io
import os

import numpy as np
import pytest

from benchmarks import metrics
from benchmarks.records import predictions
from benchmarks.records.predictions import ClassificationPredictions, PredictionsError, RegressionPredictions


@pytest.fixture
def run() -> dict[str, predictions.Predictions]:
    rng = np.random.default_rng(0)
    return {
        "test": ClassificationPredictions(rng.normal(size=(3, 20, 4)), rng.integers(0, 4, 20)),
        "photos": ClassificationPredictions(rng.normal(size=(3, 5, 4))),
        "curve": RegressionPredictions(rng.normal(size=(6, 7)), 0.1, None, 2.0, 3.0, np.zeros(7), np.ones(7)),
        "ensemble": RegressionPredictions(rng.normal(size=(6, 7)), np.full(6, 0.2), rng.normal(size=7)),
    }


def test_a_file_gives_back_the_same_values(run, tmp_path):
    path = tmp_path / "new" / "folder" / "run.npz"
    predictions.save(path, run)
    loaded = predictions.load(path)
    assert loaded.keys() == run.keys()
    for name, expected in run.items():
        assert type(loaded[name]) is type(expected)
        for field, value in vars(expected).items():
            found = getattr(loaded[name], field)
            if value is None:
                assert found is None
            else:
                assert np.asarray(found).dtype == np.asarray(value).dtype
                np.testing.assert_array_equal(found, value)
    assert [p.name for p in path.parent.iterdir()] == ["run.npz"]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_metrics_now_equal_metrics_from_the_file(run, tmp_path, task):
    name = {"classification": "test", "regression": "ensemble"}[task]
    sets = [metrics.SetInfo(name, "id")]
    predictions.save(tmp_path / "run.npz", run)
    now = metrics.evaluate(task, "digits", sets, run)
    assert now == metrics.evaluate(task, "digits", sets, predictions.load(tmp_path / "run.npz"))


def test_logits_are_kept_as_float16_and_huge_ones_do_not_overflow():
    kept = ClassificationPredictions(np.array([[[1e9, -np.inf, 0.1]]]), np.array([1]))
    assert kept.logits.dtype == np.float16
    assert kept.logits.tolist() == [[[60000.0, -60000.0, float(np.float16(0.1))]]]
    rows, _ = metrics.evaluate("classification", "d", [metrics.SetInfo("a", "id")], {"a": kept})
    values = {row["metric"]: row["value"] for row in rows}
    assert values["nll"] == 120000
    assert all(np.isfinite(value) for value in values.values())


def test_a_failed_write_leaves_the_old_file_and_nothing_else(run, tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    predictions.save(path, {"test": run["test"]})
    before = path.read_bytes()

    def full_disk(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match=r"cannot be written: No space left.*run\.npz"):
        predictions.save(path, run)
    assert os.listdir(tmp_path) == ["run.npz"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["truncated", "empty", "text", "flipped", "one array"])
def test_a_damaged_file_is_named(run, tmp_path, damage):
    path = tmp_path / "run.npz"
    predictions.save(path, run)
    content = path.read_bytes()
    middle = len(content) // 4
    flipped = content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
    array = io.BytesIO()
    np.save(array, np.zeros(3))
    path.write_bytes(
        {
            "truncated": content[:-40],
            "empty": b"",
            "text": b"accuracy 0.97",
            "flipped": flipped,
            "one array": array.getvalue(),
        }[damage]
    )
    with pytest.raises(PredictionsError, match=r"run\.npz: not a readable npz.*delete it and run again"):
        predictions.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent.npz"):
        predictions.load(tmp_path / "absent.npz")


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({}, "schema: expected 1, found None"),
        ({"schema": np.asarray(2)}, "schema: expected 1, found 2"),
        ({"schema": np.asarray(1), "test/logits": np.zeros((1, 2, 3))}, "test/logits: expected float16"),
        (
            {"schema": np.asarray(1), "test/logits": np.zeros((2, 3), np.float16)},
            r"logits: expected \[samples, points, classes\]",
        ),
        ({"schema": np.asarray(1), "test/labels": np.zeros(2, np.int64)}, "labels"),
        ({"schema": np.asarray(1), "test/samples": np.zeros((2, 3), np.float32)}, "noise_std"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "run.npz", **arrays)
    with pytest.raises(PredictionsError, match=message) as error:
        predictions.load(tmp_path / "run.npz")
    assert "run.npz" in str(error.value)


@pytest.mark.parametrize(
    "logits, labels, message",
    [
        (np.full((1, 2, 3), np.nan), None, "logits: expected no NaN, found 6 NaN"),
        (np.zeros((1, 0, 3)), None, "logits"),
        (np.zeros((1, 2, 3)), np.array([0, 1, 2]), r"labels: expected shape \(2,\)"),
        (np.zeros((1, 2, 3)), np.array([0.0, 1.0]), "labels: expected integers"),
        (np.zeros((1, 2, 3)), np.array([0, 3]), r"labels: expected values in 0\.\.2, found 0\.\.3"),
        (np.zeros((1, 2, 3)), np.array([-1, 0]), r"labels: expected values in 0\.\.2, found -1\.\.0"),
    ],
)
def test_bad_classification_input_is_refused(logits, labels, message):
    with pytest.raises(PredictionsError, match=message):
        ClassificationPredictions(logits, labels)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"samples": np.zeros(3)}, r"samples: expected \[samples, points\]"),
        ({"samples": np.array([[np.inf, 0, 0]])}, "samples: expected finite values, found 1"),
        ({"samples": np.array([[1e60, 0, 0]])}, "samples: expected finite values, found 1"),
        ({"noise_std": 0.0}, "noise_std: expected positive"),
        ({"noise_std": np.ones(4)}, r"noise_std: expected shape \(2,\)"),
        ({"y_std": 0.0}, "y_std: expected a positive"),
        ({"targets": np.zeros(2)}, r"targets: expected shape \(3,\), found \(2,\)"),
        ({"targets": np.full(3, np.nan)}, "targets: expected finite"),
        ({"mean": np.zeros(3)}, "mean, variance: expected both or neither"),
        ({"mean": np.zeros(3), "variance": -np.ones(3)}, "variance: expected no negative"),
        ({"mean": np.zeros(3), "variance": np.ones(3), "noise_std": np.ones(2)}, "noise_std: expected shape"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_bad_regression_input_is_refused(change, message):
    good = {"samples": np.zeros((2, 3)), "noise_std": 0.1, "targets": np.zeros(3)}
    RegressionPredictions(**good)
    with pytest.raises(PredictionsError, match=message):
        RegressionPredictions(**good | change)
