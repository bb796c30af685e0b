"""Predictions of one run on its evaluation sets, the source of all metrics and figure curves.

Values are rounded to their stored precision when the object is made, so metrics computed right after training equal
metrics computed later from the file. Arrays are read-only copies.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from benchmarks import files

SCHEMA = 1
LOGIT_LIMIT = 6e4  # largest stored logit: float16 ends at 65504


class PredictionsError(ValueError):
    """Error: predictions with a wrong shape, type or value, or a file without predictions."""


@dataclass(frozen=True, eq=False)
class ClassificationPredictions:
    """Function samples of a classifier: logits [S, N, C], stored as float16; labels [N], None for OOD sets.

    Logits beyond +-6e4 (infinite ones too) are set to that limit. ``exact``: logits stay unchanged in float64, for
    immediate measurement without storage; -inf is then a probability of 0. Raises PredictionsError on NaN, on a wrong
    shape and on labels outside 0..C-1.
    """

    logits: np.ndarray
    labels: np.ndarray | None = None
    exact: InitVar[bool] = False

    def __post_init__(self, exact: bool) -> None:
        logits = np.asarray(self.logits)
        _require(logits.ndim == 3 and logits.size > 0, "logits", "[samples, points, classes]", logits.shape)
        _require(not np.isnan(logits).any(), "logits", "no NaN", f"{np.isnan(logits).sum()} NaN")
        if exact:
            largest = logits.max(-1)
            _require((largest < np.inf).all(), "logits", "none of +inf", f"{(largest == np.inf).sum()} points with one")
            none = (largest == -np.inf).sum()
            _require(none == 0, "logits", "a class above -inf at every point", f"{none} points without one")
            _set(self, "logits", np.array(logits, np.float64))
        else:
            _set(self, "logits", np.clip(logits, -LOGIT_LIMIT, LOGIT_LIMIT).astype(np.float16))
        if self.labels is None:
            return
        labels, (_, n, c) = np.asarray(self.labels), logits.shape
        _require(labels.shape == (n,), "labels", f"shape {(n,)}, one per point of the logits", labels.shape)
        _require(np.issubdtype(labels.dtype, np.integer), "labels", "integers", labels.dtype)
        _require(
            labels.min() >= 0 and labels.max() < c, "labels", f"values in 0..{c - 1}", f"{labels.min()}..{labels.max()}"
        )
        _set(self, "labels", labels.astype(np.int64))

    @property
    def given_labels(self) -> np.ndarray:
        """Return the labels. Raises PredictionsError where there are none."""
        if self.labels is None:
            raise PredictionsError("labels: expected one per point of the logits, found none")
        return self.labels


@dataclass(frozen=True, eq=False)
class RegressionPredictions:
    """Function samples of a regressor, in standardised units (y_original = y * y_std + y_mean).

    samples [S, N] float32, or [S, N, D] for vector targets (then all other arrays end in D too); noise_std > 0, one
    number or one per sample [S] (members of an ensemble); targets [N] or None; mean, variance [N]: the latent function
    where it is Gaussian. ``exact``: samples stay in float64. Raises PredictionsError on values that are not finite,
    wrong shapes, and a mean without its variance.
    """

    samples: np.ndarray
    noise_std: float | np.ndarray
    targets: np.ndarray | None
    y_mean: float = 0.0
    y_std: float = 1.0
    mean: np.ndarray | None = None
    variance: np.ndarray | None = None
    exact: InitVar[bool] = False

    def __post_init__(self, exact: bool) -> None:
        samples = np.asarray(self.samples)
        shape = "[samples, points] or [samples, points, numbers of a target]"
        _require(samples.ndim in (2, 3) and samples.size > 0, "samples", shape, samples.shape)
        s, *point = samples.shape
        _set(self, "samples", _finite("samples", samples, samples.shape, np.float64 if exact else np.float32))
        gaussian = self.mean is not None
        _require(gaussian == (self.variance is not None), "mean, variance", "both or neither", "one of them")
        noise = np.asarray(self.noise_std)
        noise = _finite("noise_std", noise, () if gaussian or noise.ndim == 0 else (s,))
        _set(self, "noise_std", noise)
        _require((noise > 0).all(), "noise_std", "positive values", noise.min())
        for name in ("y_mean", "y_std"):
            _set(self, name, float(_finite(name, getattr(self, name), ())))
        _require(self.y_std > 0, "y_std", "a positive value", self.y_std)
        for name in ("targets", "mean", "variance"):
            if getattr(self, name) is not None:
                _set(self, name, _finite(name, getattr(self, name), tuple(point)))
        _require(self.variance is None or (self.variance >= 0).all(), "variance", "no negative values", "some")

    @property
    def given_targets(self) -> np.ndarray:
        """Return the targets. Raises PredictionsError where there are none."""
        if self.targets is None:
            raise PredictionsError("targets: expected one per point of the samples, found none")
        return self.targets


Predictions = ClassificationPredictions | RegressionPredictions


def drawn(predictions: Predictions) -> np.ndarray:
    """Return the function samples: logits ``[S, N, C]`` or values ``[S, N]`` or ``[S, N, Q]``."""
    return predictions.logits if isinstance(predictions, ClassificationPredictions) else predictions.samples


_DTYPES = {"logits": np.float16, "labels": np.int64, "samples": np.float32}


def save(path: Path | str, predictions: dict[str, Predictions]) -> None:
    """Write the predictions of one run, by name of evaluation set, to one npz file: whole, or not there.

    Raises OSError, which names the file.
    """
    path = Path(path)
    arrays = {"schema": np.asarray(SCHEMA)}
    for name, prediction in predictions.items():
        for field in fields(prediction):
            value = getattr(prediction, field.name)
            if value is not None:
                arrays[f"{name}/{field.name}"] = np.asarray(value)
    try:
        with files.replacing(path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # taken for the option allow_pickle too
    except OSError as error:
        raise OSError(error.errno, f"predictions cannot be written: {error.strerror}", str(path)) from error


def load(path: Path | str) -> dict[str, Predictions]:
    """Read a file written by `save`. Raises FileNotFoundError, or PredictionsError on a damaged or another file."""
    path = Path(path)
    try:
        with open(path, "rb", opener=files.regular) as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # numpy and zipfile raise many types for damage
        raise PredictionsError(
            f"{path}: not a readable npz file, perhaps truncated ({error}); delete it and run again"
        ) from error
    try:
        return _unpack(arrays)
    except Exception as error:
        raise PredictionsError(f"{path}: {error}; delete it and run again") from error


def _unpack(arrays: dict[str, np.ndarray]) -> dict[str, Predictions]:
    schema = arrays.pop("schema", None)
    _require(schema is not None and schema.shape == () and schema == SCHEMA, "schema", SCHEMA, schema)
    groups: dict[str, dict[str, Any]] = {}
    for key, array in arrays.items():
        name, _, field = key.rpartition("/")
        dtype = np.dtype(_DTYPES.get(field, np.float64))
        _require(array.dtype == dtype, key, dtype, array.dtype)
        groups.setdefault(name, {})[field] = array
    for group in groups.values():
        if "samples" in group:
            group.setdefault("targets", None)
    return {
        name: (ClassificationPredictions if "logits" in group else RegressionPredictions)(**group)
        for name, group in groups.items()
    }


def _finite(name: str, value: ArrayLike, shape: tuple[int, ...], dtype: type = np.float64) -> np.ndarray:
    array: np.ndarray = np.array(value, dtype=dtype)  # a copy, never the caller's array
    _require(array.shape == shape, name, f"shape {shape}", array.shape)
    _require(np.isfinite(array).all(), name, "finite values", f"{(~np.isfinite(array)).sum()} that are not")
    return array


def _require(condition: bool | np.bool_, name: str, expected: object, found: object) -> None:
    if not condition:
        raise PredictionsError(f"{name}: expected {expected}, found {found}")


def _set(instance: object, name: str, value: object) -> None:
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    object.__setattr__(instance, name, value)
