"""What configurations, records and failures hold, key by key: plain JSON, with types for those who read and
write it.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from fvi_core.registry import PartSpec


class DatasetConfig(TypedDict):
    """Which data a run is trained on; ``content``: digests of a user's own files."""

    name: str
    version: str
    scheme: str
    split: int
    content: dict[str, str]


class PosteriorConfig(TypedDict):
    """From how many draws entropies of a posterior are estimated, at how many sets of how many points; ``against``: the
    trainings that it is compared with, by label."""

    draws: int
    sets: int
    points: int
    against: dict[str, list[TrainingConfig]]


class ReferenceConfig(TypedDict):
    """At which evaluation set functions are compared with those of the trainings ``against``, by label, and with the
    exact posterior of the run's own prior."""

    set: str
    exact: bool
    against: dict[str, list[TrainingConfig]]


class EvaluationConfig(TypedDict):
    """What is asked of a trained model: draws, evaluation sets, and digests of a user's own files among them; ``fit``:
    the part that is fitted to its parameters before it predicts; ``evidence``: the set whose log marginal likelihood is
    asked for; ``bound``: that of a sparse process's bound on it."""

    samples: int
    sets: list[str]
    content: dict[str, str]
    posterior: NotRequired[PosteriorConfig]
    reference: NotRequired[ReferenceConfig]
    evidence: NotRequired[str]
    bound: NotRequired[str]
    fit: NotRequired[PartSpec]


class PartsConfig(TypedDict):
    """The parts of a run with every hyper-parameter; which ones a part has, its class says."""

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
    """A training. ``sources``: digests of the code of parts that are no part of this project."""

    schema: int
    method: str
    dataset: DatasetConfig
    protocol: str
    seed: int
    parts: PartsConfig
    sources: dict[str, str]


class RunConfig(TrainingConfig):
    """A run: a training and an evaluation."""

    evaluation: EvaluationConfig


class MetricRow(TypedDict):
    """One number of a run: a metric on an evaluation set under a condition, over ``n`` points."""

    dataset: str
    condition: str
    metric: str
    value: float
    n: int


class Provenance(TypedDict, total=False):
    """Where the numbers of a run come from. Records of older code lack some of it.

    seconds: wall time of the training, a stack's divided by its trainings; busy: seconds of a processor for each of
    them, less than 1 for one thread beside other work.
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
    evaluated: dict[str, Any]
    measured: dict[str, Any]
    migrated: dict[str, Any]


Curves = dict[str, Any]
"""Points of curves by name; what a curve holds is the affair of its figure."""


class Record(TypedDict):
    """One finished run, as its file holds it (without the digest of the file)."""

    schema: int
    metric_versions: dict[str, int]
    key: str
    config: RunConfig
    metrics: list[MetricRow]
    curves: Curves
    provenance: Provenance


class Failure(TypedDict):
    """Why a run is not there. ``guess``: its process ended, nobody knows why; ``death``: and others may try it."""

    key: str
    reason: str
    attempt: int
    time: str
    log: str
    traceback: str
    guess: bool
    death: bool
    config: RunConfig | None
