"""Contents of configurations, records and failures, key by key: plain JSON, with types."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from fvi_core.registry import PartSpec


class DatasetConfig(TypedDict):
    """Data of a run's training; ``content``: digests of a user's own files."""

    name: str
    version: str
    scheme: str
    split: int
    content: dict[str, str]


class PosteriorConfig(TypedDict):
    """Settings of entropy estimates: number of draws, of input sets, of points in each; ``against``: trainings to
    compare with, by label."""

    draws: int
    sets: int
    points: int
    against: dict[str, list[TrainingConfig]]


class ReferenceConfig(TypedDict):
    """Evaluation set at which functions are compared with those of the trainings ``against``, by label, and with the
    exact posterior of the run's own prior."""

    set: str
    exact: bool
    against: dict[str, list[TrainingConfig]]


class EvaluationConfig(TypedDict):
    """Evaluation of a trained model: draws, evaluation sets, and digests of a user's own files; ``fit``: the part
    fitted to its parameters before prediction; ``evidence``: the set whose log marginal likelihood is computed;
    ``bound``: the set of a sparse process's bound on it."""

    samples: int
    sets: list[str]
    content: dict[str, str]
    posterior: NotRequired[PosteriorConfig]
    reference: NotRequired[ReferenceConfig]
    evidence: NotRequired[str]
    bound: NotRequired[str]
    fit: NotRequired[PartSpec]


class PartsConfig(TypedDict):
    """Parts of a run with every hyper-parameter that their classes declare."""

    network: PartSpec
    family: PartSpec
    divergence: PartSpec | None
    prior: PartSpec | None
    context: PartSpec | None
    weight: PartSpec
    fit: PartSpec | None
    likelihood: PartSpec
    training: PartSpec


class TrainingConfig(TypedDict):
    """Configuration of a training. ``sources``: digests of the code of plug-in parts."""

    schema: int
    method: str
    dataset: DatasetConfig
    protocol: str
    seed: int
    parts: PartsConfig
    sources: dict[str, str]


class RunConfig(TrainingConfig):
    """Configuration of a run: a training and an evaluation."""

    evaluation: EvaluationConfig


class MetricRow(TypedDict):
    """Number of a run: a metric on an evaluation set under a condition, over ``n`` points."""

    dataset: str
    condition: str
    metric: str
    value: float
    n: int


class Provenance(TypedDict, total=False):
    """Provenance of a run's numbers. Records of older code lack some entries.

    seconds: wall time of the training, a stack's divided by its trainings; busy: processor seconds per wall second,
    less than 1 for one thread beside other work.
    """

    commit: str
    dirty: bool
    versions: dict[str, str]
    device: str
    platform: str
    cpu: str
    threads: int
    precision: str
    seconds: float
    busy: float
    fit_seconds: float
    evaluate_seconds: float
    stack: int
    started: str
    finished: str
    epochs: int
    resumed: int
    fingerprint: str
    training_fingerprint: str
    data: dict[str, str]
    sources: dict[str, str]
    noise_std: float
    diagnostics: dict[str, float]
    warnings: list[str]
    peak_memory_bytes: int
    gpu_bytes: int
    graph: bool
    evaluated: dict[str, Any]
    measured: dict[str, Any]
    migrated: dict[str, Any]


Curves = dict[str, Any]
"""Points of curves by name; their content depends on the figure."""


class Record(TypedDict):
    """Finished run, as its file holds it (without the digest of the file)."""

    schema: int
    metric_versions: dict[str, int]
    key: str
    config: RunConfig
    metrics: list[MetricRow]
    curves: Curves
    provenance: Provenance


class Failure(TypedDict):
    """Reason why a run failed. ``guess``: its process ended for unknown reasons; ``death``: others may retry."""

    key: str
    reason: str
    attempt: int
    time: str
    log: str
    traceback: str
    guess: bool
    death: bool
    config: RunConfig | None
