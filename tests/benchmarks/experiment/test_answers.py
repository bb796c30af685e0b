"""Files of predictions made elsewhere: measured as they were brought, in float64; what is no such file is named."""

from __future__ import annotations

import dataclasses
import math
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp

from benchmarks import tables
from benchmarks.errors import UsageError
from benchmarks.experiment import answers
from benchmarks.experiment.answers import Answer, Refused, looks_like, predictions
from benchmarks.experiment.prediction import set_info
from benchmarks.metrics import evaluate
from benchmarks.records.store import Store
from benchmarks.tables.external import recorded, with_rows_of
from datasets import Arrays, Split, npy
from fvi_core import methods
from reports import tables as rendered
from reports.aggregate import aggregate
from reports.latex import latex
from reports.records import Records
from tests.benchmarks.experiment.test_external import answer, request_file, scored

rng = np.random.default_rng(0)
N, C, S = 30, 5, 4
LABELS = np.arange(N) % C


def split_of(task: str) -> Split:
    x, y = np.zeros((N, 2), np.float32), LABELS if task == "classification" else np.linspace(-1, 1, N)
    box = np.zeros(2, np.float32)
    return Split("toy", "1", 0, "", task, C if task == "classification" else 1, Arrays(x, y), Arrays(x, y), box, box)


def brought(folder: Path, task: str = "classification", y_mean: float = 0.0, y_std: float = 1.0, **arrays) -> object:
    """The predictions of a file of the test set."""
    split = dataclasses.replace(split_of(task), y_mean=y_mean, y_std=y_std)
    test = split.evaluation("test")
    named = {f"test/{name}" if name != "noise_std" else name: array for name, array in arrays.items()}
    np.savez(folder / "mine.npz", **{"test/fingerprint": test.fingerprint, **named})
    return predictions(Answer(folder / "mine.npz"), test, split)


def values(folder: Path, task: str = "classification", **arrays) -> dict[str, float]:
    found = brought(folder, task, **arrays)
    with np.errstate(all="raise", under="ignore"):
        rows, _ = evaluate(task, "toy", [set_info(split_of(task).evaluation("test"))], {"test": found})
    assert all(not math.isnan(row["value"]) for row in rows)
    return {row["metric"]: row["value"] for row in rows}


def log_softmax(logits: np.ndarray) -> np.ndarray:
    return logits - logsumexp(logits, -1, keepdims=True)


def test_joint_log_likelihoods_and_normalised_ones_are_one_model(tmp_path):
    """The gaps of naive Bayes: 1e5 nats, with differences of 1 between classes."""
    joint = -1e5 * rng.uniform(1, 4, (N, 1)) + rng.normal(size=(N, C)) * rng.choice([1.0, 3e4], (N, 1))
    true = log_softmax(joint)
    expected = -true[np.arange(N), LABELS].mean()
    assert expected > 1000
    for logits in (joint, true, joint + 3000.0):
        found = values(tmp_path, logits=logits)
        assert found["nll"] == pytest.approx(expected, rel=1e-9)
        assert found["accuracy"] == (true.argmax(-1) == LABELS).mean()
        assert found["predictive_entropy"] == pytest.approx(-(np.exp(true) * true).sum(-1).mean(), rel=1e-6)


def test_small_probabilities_are_measured_as_they_are(tmp_path):
    p = np.full((N, C), 1e-30)
    p[np.arange(N), (LABELS + 1) % C] = 1.0
    assert values(tmp_path, probabilities=p)["nll"] == pytest.approx(-np.log(1e-30))
    assert "zero_probability" not in values(tmp_path, probabilities=p)
    single = values(tmp_path, probabilities=np.full((N, C), 1 / C, np.float16))
    assert single["nll"] == pytest.approx(np.log(C), rel=1e-3)


def test_a_label_of_probability_zero_is_an_infinite_nll_with_their_count(tmp_path):
    p = np.eye(C)[LABELS]
    p[:7] = np.roll(p[:7], 1, -1)
    found = values(tmp_path, probabilities=p)
    assert found["nll"] == math.inf and found["log_likelihood"] == found["expected_log_likelihood"] == -math.inf
    assert found["zero_probability"] == 7 and found["accuracy"] == pytest.approx(23 / 30)
    assert found["smoothed_log_likelihood"] == pytest.approx(
        (7 * np.log(1e-4 / C) + 23 * np.log(1 - 1e-4 + 1e-4 / C)) / 30
    )
    assert found["predictive_entropy"] == found["expected_entropy"] == 0
    with np.errstate(divide="ignore"):
        assert values(tmp_path, logits=np.log(p)) == found


def test_a_mean_over_draws_is_finite_where_one_draw_gives_zero(tmp_path):
    draws = np.stack([np.eye(C)[LABELS], np.eye(C)[(LABELS + 1) % C]])
    found = values(tmp_path, probabilities=draws)
    assert found["nll"] == pytest.approx(np.log(2)) and "zero_probability" not in found
    assert found["expected_log_likelihood"] == -math.inf


PROBABILITIES = np.random.default_rng(1).dirichlet(np.ones(C), N)
SQUARE = np.random.default_rng(2).dirichlet(np.ones(N), N)
LIKE = {
    "probabilities": PROBABILITIES,
    "per cents": 100 * PROBABILITIES,
    "log-probabilities": np.log(PROBABILITIES),
    "negative log-probabilities": -np.log(PROBABILITIES),
    "logarithms of probabilities to the base 2": np.log2(PROBABILITIES),
    "logarithms of probabilities to the base 10": np.log10(PROBABILITIES),
    "numbers from 0 to 1": 1 / (1 + np.exp(-10 * PROBABILITIES)),
    "probabilities times 255": np.rint(255 * PROBABILITIES),
    "probabilities times 50": np.random.default_rng(3).multinomial(50, PROBABILITIES).astype(float),
    "probabilities with classes before points": SQUARE.T,
    "per cents with classes before points": 100 * SQUARE.T,
    "": np.random.default_rng(4).normal(size=(N, C)),
}


@pytest.mark.parametrize("name", LIKE)
def test_what_numbers_look_like(name):
    assert looks_like(LIKE[name][None])[0] == name


@pytest.mark.parametrize("name", [name for name in LIKE if "before" not in name])
def test_what_goes_under_another_name_is_refused_with_the_right_one(tmp_path, name):
    given = LIKE[name]
    if name in ("", "log-probabilities"):
        brought(tmp_path, logits=given)
    else:
        with pytest.raises(Refused, match=rf"mine.npz: set 'test': logits: expected logits, found {name[:13]}"):
            brought(tmp_path, logits=given)
    if name == "probabilities":
        brought(tmp_path, probabilities=given)
    else:
        hint = f"these are {name[:13]}" if name not in ("", "numbers from 0 to 1") else "name logits '<set>/logits'"
        with pytest.raises(Refused, match=rf"set 'test': probabilities: expected none below 0.*{hint}"):
            brought(tmp_path, probabilities=given)


@pytest.mark.parametrize("logits", [np.zeros((N, C)), np.ones((N, C)) * 7, np.eye(C)[LABELS] + 3 * LABELS[:, None]])
def test_logits_that_are_logits_are_taken(tmp_path, logits):
    if logits.std() == 0 and logits.max() > 0:
        with pytest.raises(Refused, match="subtract its largest value from each row if they are logits"):
            brought(tmp_path, logits=logits)
        logits = logits - logits.max(-1, keepdims=True)
    brought(tmp_path, logits=logits)


@pytest.mark.parametrize("form", ["logits", "probabilities"])
def test_exchanged_axes_are_named(tmp_path, form):
    with pytest.raises(Refused, match=r"found the shape \(1, 5, 30\): are its axes exchanged\?"):
        brought(tmp_path, **{form: PROBABILITIES.T})


@pytest.mark.parametrize(
    "logits, message",
    [
        (np.full((N, C), -np.inf), "a class above -inf at every point, found 30 points without one"),
        (np.where(np.eye(N, C, dtype=bool), np.inf, 0.0), r"none of \+inf, found 5 points"),
        (np.full((N, C), -1e200), r"finite numbers up to 1e\+100 in size, found -1e\+200 \(150 such\)"),
        (np.full((N, C), "a"), "test/logits: expected numbers, found 150 values of <U1"),
        (np.zeros((N, C), complex), "expected numbers"),
    ],
)
def test_logits_that_say_nothing_are_refused(tmp_path, logits, message):
    with pytest.raises(Refused, match=message):
        brought(tmp_path, logits=logits)


def file_of(folder: Path, **arrays) -> Answer:
    np.savez(folder / "a.npz", **arrays)
    return Answer(folder / "a.npz")


@pytest.mark.parametrize(
    "value", [3, [3], [[3]], 3.0, np.float32([[3]]), np.uint8(3)], ids=["0d", "1d", "2d", "float", "float 2d", "byte"]
)
def test_one_whole_number_is_taken_in_every_shape(tmp_path, value):
    assert file_of(tmp_path, seed=value).whole("seed") == 3


@pytest.mark.parametrize(
    "value, found",
    [
        ([0, 1], r"2 values of int64 in the shape \(2,\)"), (np.nan, "nan"), (np.inf, "inf"), (0.5, "0.5"),
        ("zero", "'zero'"), ("3", "'3'"), (True, "True"), (3j, "3j"), ([], "0 values"), (b"3", "b'3'"),
    ],
)  # fmt: skip
def test_what_is_no_whole_number_is_named(tmp_path, value, found):
    with pytest.raises(Refused, match=f"a.npz: seed: expected one whole number, found {found}"):
        file_of(tmp_path, seed=value).whole("seed")


@pytest.mark.parametrize(
    "value",
    ["digits", ["digits"], [["digits"]], b"digits", np.array(list("digits")), np.frombuffer(b"digits", "S1"),
     np.frombuffer(b"digits", np.uint8), np.frombuffer(b"digits\0\0", np.int8)[None], np.array("digits", "S20")],
)  # fmt: skip
def test_one_text_is_taken_in_every_spelling(tmp_path, value):
    assert file_of(tmp_path, dataset=value).word("dataset") == "digits"


@pytest.mark.parametrize("value", [3, 0.5, ["a", "bc"], [["a", "b"], ["c", "d"]]])
def test_what_is_no_text_is_named(tmp_path, value):
    with pytest.raises(Refused, match="dataset: expected one text, found"):
        file_of(tmp_path, dataset=value).word("dataset")


Y = np.linspace(-1, 1, N)


def test_noise_and_variance_at_the_ends_of_what_numbers_hold(tmp_path):
    found = values(tmp_path, "regression", mean=Y, variance=np.full(N, 1e80), noise_std=1.0)
    assert found["log_posterior_predictive"] == pytest.approx(-0.5 * np.log(2 * np.pi * 1e80))
    for arrays, message in (
        ({"samples": np.zeros((S, N)), "noise_std": 1e-200}, "noise_std: expected positive values from 1e-100 to 1e"),
        ({"mean": Y, "variance": np.full(N, 1e-9), "noise_std": 0.0}, "noise_std: expected positive values"),
        ({"samples": np.zeros((S, N)), "variance": np.ones(N), "noise_std": 1.0}, "found it beside samples: leave one"),
        ({"samples": np.zeros((S, N)), "noise_std": np.nan}, "noise_std: expected positive values .* found nan"),
        ({"samples": np.zeros((S, N)), "noise_std": "a"}, "noise_std: expected numbers, found 'a'"),
        ({"mean": Y, "variance": np.full(N, 1e200), "noise_std": 1.0}, "variance: expected finite numbers up to 1e"),
        ({"mean": Y, "variance": np.full(N, "a"), "noise_std": 1.0}, "test/variance: expected numbers"),
        ({"mean": Y, "variance": np.full(N, np.inf), "noise_std": 1.0}, "variance: expected finite"),
        ({"samples": np.full((S, N), np.inf), "noise_std": 1.0}, r"samples: expected finite .* found inf \(120 such\)"),
        ({"samples": np.zeros((N, S)), "noise_std": 1.0}, "are its axes exchanged"),
    ):
        with pytest.raises(Refused, match=message):
            brought(tmp_path, "regression", **arrays)


def test_draws_of_a_gaussian_function_have_its_moments(tmp_path):
    variance = np.linspace(4, 25, N)
    samples = brought(tmp_path, "regression", mean=Y, variance=variance, noise_std=1.0).samples
    assert samples.mean(0) == pytest.approx(Y, abs=4 * 5 / np.sqrt(answers.DRAWS))
    assert (samples.var(0, ddof=1) / variance).mean() == pytest.approx(1, abs=0.1)


def test_one_point_whose_probabilities_sum_to_more_is_refused(tmp_path):
    p = np.full((N, C), 1 / C)
    p[7] *= 1.01
    with pytest.raises(Refused, match="a sum of 1 at every point, found .* sums from 1 to 1.01"):
        brought(tmp_path, probabilities=p)


def test_numbers_that_fit_the_targets_only_in_another_reading_are_refused(tmp_path):
    square = np.tile(Y, (N, 1)) + np.linspace(-0.1, 0.1, N)[:, None]

    def read(**arrays):
        return brought(tmp_path, "regression", 22.0, 9.0, noise_std=0.5, **arrays)

    for arrays in ({"samples": square * 9 + 22}, {"mean": Y * 9 + 22, "variance": np.ones(N)}):
        with pytest.raises(Refused, match="found original units: subtract y_mean and divide by y_std"):
            read(**arrays)
    with pytest.raises(Refused, match="found points before samples: exchange the axes"):
        read(samples=square.T)
    for arrays in ({"samples": square}, {"mean": Y, "variance": np.ones(N)}, {"samples": np.full((S, N), 1e6)}):
        read(**arrays)


def test_samples_are_measured_in_float64(tmp_path):
    offset = 1e9  # float32 has steps of 64 there
    samples = offset + np.array([[0.0], [1.0]]) * np.ones(N)
    found = brought(tmp_path, "regression", samples=samples, noise_std=1.0)
    assert found.samples.dtype == np.float64 and found.samples.std(0)[0] == 0.5


def test_noise_for_each_draw_and_not_for_each_point(tmp_path):
    draws, noise = np.zeros((S, N)), np.arange(1.0, S + 1)
    for given in (noise, noise[:, None]):
        assert brought(tmp_path, "regression", samples=draws, noise_std=given).noise_std.tolist() == noise.tolist()
    assert brought(tmp_path, "regression", samples=draws, noise_std=[[0.5]]).noise_std == 0.5
    with pytest.raises(Refused, match=r"one for each of 4 draws, found the shape \(30,\): noise that differs by point"):
        brought(tmp_path, "regression", samples=draws, noise_std=np.ones(N))
    square = np.zeros((N, N))
    with pytest.raises(Refused, match="found 30 of them, as many as draws and as points: give them the shape"):
        brought(tmp_path, "regression", samples=square, noise_std=np.ones(N))
    assert len(brought(tmp_path, "regression", samples=square, noise_std=np.ones((N, 1))).noise_std) == N
    with pytest.raises(Refused, match="noise_std: expected one number, found the shape"):
        brought(tmp_path, "regression", mean=Y, variance=np.ones(N), noise_std=np.ones(N))


def test_an_array_that_unpacks_to_far_more_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "LARGE", 1_000_000)
    np.savez_compressed(tmp_path / "bomb.npz", seed=0, logits=np.zeros(2_000_000))
    assert (tmp_path / "bomb.npz").stat().st_size < 100_000
    answer = Answer(tmp_path / "bomb.npz")
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(Refused, match=r"bomb.npz: logits: .* the array logits unpacks from \d+ to 16000128 bytes"):
        answer.numbers("logits")


def test_large_predictions_without_compression_are_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "LARGE", 1_000_000)
    np.savez(tmp_path / "large.npz", logits=np.zeros(200_000))
    assert Answer(tmp_path / "large.npz")["logits"].shape == (200_000,)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_is_no_file_of_arrays_is_named(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("accuracy 0.97")
    np.savez(tmp_path / "twice.npz", a=1)
    with zipfile.ZipFile(tmp_path / "twice.npz", "a") as archive:
        archive.writestr("a.npy", b"")
    for name, message in (
        ("pipe", "expected an npz file, found no file"), (".", "found a folder"), ("none", "No such file"),
        ("text", "without objects, found none"), ("twice.npz", "a: expected one array of that name, found several"),
    ):  # fmt: skip
        with pytest.raises(Refused, match=message):
            Answer(tmp_path / name)
    with pytest.raises(Refused, match="a: expected an array of numbers or text, found none: Python objects"):
        file_of(tmp_path, a=np.array([{}], object))["a"]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return request_file("digits", tmp_path_factory.mktemp("request"))


@pytest.mark.parametrize("name", ["\udcff", "a\nb", " ", "", "x" * 101])
def test_a_name_that_cannot_be_printed_is_refused(digits, tmp_path, name):
    with pytest.raises(UsageError, match=r"--method '.*': expected a name of 1 to 100 printable characters"):
        scored(answer(digits, tmp_path / "mine.npz"), tmp_path, name)
    assert not (tmp_path / "results").exists()


def test_every_form_of_a_table_shows_an_infinite_value_and_its_cause(digits, tmp_path):
    def certain(arrays: dict) -> None:
        for key in [key for key in arrays if key.endswith("/logits")]:
            p = np.zeros(arrays.pop(key)[0].shape)
            p[:, 3] = 1
            arrays[key.replace("logits", "probabilities")] = p

    path = scored(answer(digits, tmp_path / "mine.npz", certain), tmp_path, "Three <b>_x_")
    store = Store(tmp_path / "results")
    found = {(r["condition"], r["metric"]): r["value"] for r in store.read(path)["metrics"]}
    assert found["", "nll"] == math.inf and 0 < found["", "zero_probability"] < 539
    assert found["", "accuracy"] == pytest.approx(1 - found["", "zero_probability"] / 539)
    table = with_rows_of(tables.get("digits"), recorded(store, methods.catalogue()))
    result = aggregate(table, "paper", Records(store.root))
    row = result.cells[-1]
    (cell,) = [c for c in row if (c.column.cell.condition, c.column.cell.metric) == ("", "nll")]
    assert cell.mean == math.inf and math.isnan(cell.stderr) and not cell.bold
    assert cell.impossible == (int(found["", "zero_probability"]),)
    for text in (rendered.text(result), rendered.markdown(result), latex(result)):
        assert "∞" in text or r"\infty" in text
        assert "since labels have probability 0" in " ".join(text.split())
    markdown = rendered.markdown(result)
    assert r"Three \<b\>\_x\_" in markdown and "<b>" not in markdown.replace(r"\<b\>", "")
