"""External predictions: a file read within bounds, with a check of every array."""

from __future__ import annotations

import hashlib
import stat
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.records.predictions import (
    ClassificationPredictions,
    Predictions,
    PredictionsError,
    RegressionPredictions,
)
from datasets import EvaluationSet, Split, npy
from fvi_core.printing import message

DRAWS = 100  # draws from functions given by mean and variance
SUM = 1e-3  # how far from 1 the probabilities of a point may sum
ALIKE = 0.02  # rows whose sums differ by less, relative to their mean, are probabilities in some unit
FEWEST = 10  # fewest points for this conclusion
LIMIT = 1e100  # largest number of a regression in standardised units: its square is finite too
LOGARITHMS = {
    "log-probabilities": 1.0,
    "negative log-probabilities": -1.0,
    "logarithms of probabilities to the base 2": np.log(2),
    "logarithms of probabilities to the base 10": np.log(10),
}
FORMS = {
    "classification": ("logits", "probabilities"),
    "regression": ("samples", "mean"),
}
BESIDE = {"classification": (), "regression": ("variance", "noise_std")}


class Refused(BenchmarkError, ValueError):
    """Error: predictions cannot be scored. The message names file and set, what was expected, and what was found."""


class Answer:
    """An npz file of predictions. digest: SHA-256 of the file; names: names of its arrays, each read on use.

    Raises Refused for other files.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            mode = file.stat().st_mode
            if not stat.S_ISREG(mode):
                raise Refused(f"{file}: expected an npz file, found {'a folder' if stat.S_ISDIR(mode) else 'no file'}")
            with open(file, "rb") as opened:
                self.digest = hashlib.file_digest(opened, "sha256").hexdigest()
            with zipfile.ZipFile(file) as archive:
                self.names = [name.removesuffix(".npy") for name in archive.namelist()]
        except OSError as error:
            raise Refused(f"{file}: cannot be read: {error.strerror or error}") from error
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise Refused(f"{file}: expected an npz file of arrays without objects, found none: {error}") from error
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise Refused(f"{file}: {twice[0]}: expected one array of that name, found several: save the file again")

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> np.ndarray:
        """Return an array. Raises Refused if it is missing, damaged, or holds Python objects, and before unpacking if
        it unpacks to far more than the file holds."""
        if name not in self:
            raise Refused(f"{self.file}: expected the array {name!r}, found none")
        try:
            with zipfile.ZipFile(self.file) as archive:
                return npy.array(archive, name)
        except OSError as error:
            raise Refused(f"{self.file}: cannot be read: {error.strerror or error}") from error
        except Exception as error:  # numpy and zipfile raise many types for damage
            reason = message(error)[:200]
            raise Refused(f"{self.file}: {name}: expected an array of numbers or text, found none: {reason}") from error

    def word(self, name: str) -> str:
        """Return one text: a string, bytes, or an array of one of them or of single characters."""
        array = self[name]
        kind, itemsize = array.dtype.kind, array.dtype.itemsize
        in_a_row = array.size == max(array.shape, default=0)
        if kind in "US" and array.size == 1:
            value = array.item()
        elif in_a_row and itemsize == {"U": 4, "S": 1}.get(kind):  # one character each
            value = "".join(map(_text, array.ravel().tolist()))
        elif in_a_row and itemsize == 1 and kind in "ui":  # some languages write characters as numbers
            value = array.tobytes()
        else:
            raise Refused(f"{self.file}: {name}: expected one text, found {_described(array)}")
        return _text(value).rstrip("\0 ")

    def whole(self, name: str) -> int:
        """Return one whole number, also as an array of one, and as a floating-point number."""
        array = self[name]
        if array.size == 1 and array.dtype.kind in "iuf":
            value = array.item()
            if np.isfinite(value) and value == int(value):
                return int(value)
        raise Refused(f"{self.file}: {name}: expected one whole number, found {_described(array)}")

    def numbers(self, name: str) -> np.ndarray:
        """Return numbers in float64."""
        array = self[name]
        if array.dtype.kind not in "fiu":
            raise Refused(f"{self.file}: {name}: expected numbers, found {_described(array)}")
        return array.astype(np.float64)


def predictions(answer: Answer, evaluation_set: EvaluationSet, split: Split) -> Predictions:
    """Return the predictions of one evaluation set, in the precision of the file. Raises Refused."""
    name, expected = evaluation_set.name, evaluation_set.fingerprint
    where = f"{answer.file}: set {name!r}"
    forms = [form for form in FORMS[split.task] if f"{name}/{form}" in answer]
    if len(forms) != 1:
        raise Refused(
            f"{where}: expected one of {', '.join(FORMS[split.task])} as '{name}/...', "
            f"found {' and '.join(forms) or 'none'}"
        )
    fingerprint = answer.word(f"{name}/fingerprint") if f"{name}/fingerprint" in answer else "none"
    if fingerprint != expected:
        raise Refused(
            f"{where}: expected the fingerprint {expected[:12]}... of the data here, found {fingerprint[:12]}: "
            "predict the inputs of the file of `benchmarks sets` in their order, and copy its fingerprint"
        )
    try:
        return (_classified if split.task == "classification" else _regressed)(forms[0], answer, evaluation_set, split)
    except PredictionsError as error:
        raise Refused(f"{where}: {error}") from error


def _classified(form: str, answer: Answer, evaluation_set: EvaluationSet, split: Split) -> Predictions:
    values = answer.numbers(f"{evaluation_set.name}/{form}")
    values = values[None] if values.ndim == 2 else values
    _shape(
        form, values, (None, len(evaluation_set.x), split.n_outputs), "[points, classes] or [samples, points, classes]"
    )
    if np.isnan(values).any():
        raise PredictionsError(f"{form}: expected no NaN, found {np.isnan(values).sum()} NaN")
    like, remedy = looks_like(values)
    if form == "logits":
        if like and like != "log-probabilities":
            raise PredictionsError(f"logits: expected logits, found {like}: {remedy}")
        _within(form, values[~np.isinf(values)])
        return ClassificationPredictions(values, evaluation_set.y, exact=True)
    sums = values.sum(-1)
    if values.min() < 0 or not abs(sums - 1).max() <= SUM:
        found = f"{values.min():.3g} and sums from {sums.min():.4g} to {sums.max():.4g}"
        raise PredictionsError(
            f"probabilities: expected none below 0, and a sum of 1 at every point, found the smallest {found}: "
            + (
                f"these are {like}; {remedy}"
                if like not in ("", "probabilities", "numbers from 0 to 1")
                else "divide each row by its sum, in float64, if they are rounded, or name logits '<set>/logits'"
            )
        )
    with np.errstate(divide="ignore"):
        return ClassificationPredictions(np.log(values), evaluation_set.y, exact=True)


def looks_like(values: np.ndarray) -> tuple[str, str]:
    """Return what numbers [samples, points, classes] look like, if not logits, and the remedy; else ("", "")."""
    exchanged = (-1, -2) if values.shape[-1] == values.shape[-2] else (-1,)
    for axis in exchanged:
        by = "" if axis == -1 else " with classes before points"
        turn = "exchange the axes" if by else ""
        with np.errstate(over="ignore", invalid="ignore"):
            sums, powers = values.sum(axis), {name: np.exp(k * values).sum(axis) for name, k in LOGARITHMS.items()}
        mean = sums.mean()
        divide = "divide each row by its sum and name them '<set>/probabilities'"
        own = "subtract its largest value from each row if they are logits"
        if values.min() >= 0 and 0 < mean < np.inf:
            if abs(sums - 1).max() <= ALIKE:
                return "probabilities" + by, turn or "name them '<set>/probabilities'"
            if abs(sums - 100).max() <= 100 * ALIKE:
                return "per cents" + by, turn or "divide them by 100 and name them '<set>/probabilities'"
            if abs(sums / mean - 1).max() <= ALIKE and sums.size >= FEWEST:
                return f"probabilities times {mean:.4g}" + by, turn or f"{divide}, or {own}"
        for name, power in powers.items():
            if (values.max() <= 0 or values.min() >= 0) and abs(power - 1).max() <= ALIKE:
                return name + by, turn or "name the natural logarithms of the probabilities '<set>/logits'"
    if values.min() >= 0 and 0 < values.max() <= 1 and sums.size >= FEWEST:
        return "numbers from 0 to 1", f"if they are sigmoids, {divide}, or {own}"
    return "", ""


def _regressed(form: str, answer: Answer, evaluation_set: EvaluationSet, split: Split) -> Predictions:
    target = () if split.n_outputs == 1 else (split.n_outputs,)
    name, points, y = evaluation_set.name, len(evaluation_set.x), evaluation_set.y
    values = _within(form, answer.numbers(f"{name}/{form}"))
    mean: np.ndarray | None = None
    variance: np.ndarray | None = None
    if form == "mean":
        if f"{name}/variance" not in answer:
            raise PredictionsError("variance: expected the function's variance beside its mean, found none")
        variance = answer.numbers(f"{name}/variance")
        _shape("mean", values, (points, *target), "[points]")
        _shape("variance", variance, values.shape, "[points]")
        if not (variance >= 0).all():
            raise PredictionsError("variance: expected no negative values and no NaN, found some")
        mean, variance = values, _within("variance", variance)
        values = values + np.sqrt(variance) * np.random.RandomState(0).standard_normal((DRAWS, *values.shape))
    elif f"{name}/variance" in answer:
        raise PredictionsError("variance: expected it beside a mean alone, found it beside samples: leave one out")
    _shape("samples", values, (None, points, *target), "[samples, points]")
    if y is not None:
        _fits(form, values, y, split)
    noise = _noise(answer, name, len(values) if mean is None else 0, points)
    return RegressionPredictions(values, noise, y, split.y_mean, split.y_std, mean, variance, exact=True)


def _fits(form: str, values: np.ndarray, y: np.ndarray, split: Split) -> None:
    """Raise PredictionsError where another reading of the numbers is far closer to the targets."""
    readings = {"original units: subtract y_mean and divide by y_std": (values - split.y_mean) / split.y_std}
    if form == "samples" and values.shape[0] == values.shape[1]:
        readings["points before samples: exchange the axes"] = values.swapaxes(0, 1)
    error, *others = (np.sqrt(np.mean((each.mean(0) - y) ** 2)) for each in (values, *readings.values()))
    for what, other in zip(readings, others):
        if other < min(error / 2, 1):  # nothing learnt gives 1
            raise PredictionsError(
                f"{form}: expected standardised function values in the order of the points, found {what}"
            )


def _noise(answer: Answer, name: str, draws: int, points: int) -> np.ndarray:
    """Return one number, or one for each of ``draws`` (0: of a Gaussian function, which has none)."""
    own = f"{name}/noise_std"
    if own not in answer and "noise_std" not in answer:
        raise PredictionsError("noise_std: expected the standard deviation of observations, found none")
    noise = answer.numbers(own if own in answer else "noise_std")
    if noise.size != 1 and noise.shape == (draws,) and draws == points:
        raise PredictionsError(
            f"noise_std: expected one number, or one for each draw, found {draws} of them, as many as draws and as "
            "points: give them the shape [draws, 1] if they belong to draws (noise per point is not supported)"
        )
    if noise.size == 1:
        noise = noise.reshape(())
    elif draws and noise.shape in ((draws,), (draws, 1)):
        noise = noise.reshape(draws)
    else:
        each = f", or one for each of {draws} draws" if draws else ""
        raise PredictionsError(
            f"noise_std: expected one number{each}, found the shape {noise.shape}: noise that differs by point has no "
            "place"
        )
    wrong = noise[~((noise >= 1 / LIMIT) & (noise <= LIMIT))]
    if len(wrong):
        raise PredictionsError(
            f"noise_std: expected positive values from {1 / LIMIT:.0e} to {LIMIT:.0e}, standardised, "
            f"found {wrong[0]:.3g}"
        )
    return noise


def _within(name: str, values: np.ndarray) -> np.ndarray:
    """Return finite numbers whose squares are numbers."""
    wrong = values[~(np.abs(values) <= LIMIT)]
    if len(wrong):
        raise PredictionsError(
            f"{name}: expected finite numbers up to {LIMIT:.0e} in size, found {wrong[0]:.3g} ({len(wrong)} such)"
        )
    return values


def _shape(name: str, values: np.ndarray, expected: tuple[int | None, ...], words: str) -> None:
    fits = values.ndim == len(expected) and all(e in (None, f) for e, f in zip(expected, values.shape))
    if not fits or values.size == 0:
        sizes = ", ".join("any" if size is None else str(size) for size in expected)
        known = [size for size in expected if size is not None]
        exchanged = values.ndim == len(expected) and all(size in values.shape for size in known)
        hint = ": are its axes exchanged?" if exchanged and values.size else ""
        raise PredictionsError(f"{name}: expected {words} of sizes ({sizes}), found the shape {values.shape}{hint}")


def _described(array: np.ndarray) -> str:
    if array.size != 1:
        return f"{array.size} values of {array.dtype} in the shape {array.shape}"
    return f"{array.item()!r}"[:80]


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
