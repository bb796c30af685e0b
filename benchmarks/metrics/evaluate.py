"""Evaluation: from predictions to metric rows and figure curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from benchmarks.records.predictions import ClassificationPredictions, Predictions, RegressionPredictions
from benchmarks.shapes import MetricRow
from fvi_core import plugins
from fvi_core.metrics import calibration, classification, selective
from fvi_core.metrics.probabilities import smooth, to_rank
from fvi_core.metrics.regression import epistemic_entropy

from . import curves, dirichlet, registry, regression, screening
from .detection import by_group, detected
from .distances import growth, moments
from .registry import KINDS, LABELLED, metric_rows

Scores = Callable[[np.ndarray], Mapping[str, np.ndarray]]
Result = tuple[list[MetricRow], dict[str, curves.Curve]]
P = TypeVar("P", bound=Predictions)
ZERO_PROBABILITY = "zero_probability"
TURNED = "shift=rotation"  # condition prefix of sets on which some points are followed through the angles


@dataclass(frozen=True)
class SetInfo:
    """Properties of an evaluation set; any object with these attributes will do.

    kind: "id", "shift" (both labelled), "ood", "grid" (inputs of a toy figure: curves, and how deviations grow away
    from the data), or "spectrum" (regression only: the eigenvalues of the functions' covariance, a curve).
    condition: the condition of the set's rows, such as "", "shift=rotation;angle=30", "ood=photos".
    """

    name: str
    kind: str
    condition: str = ""


def evaluate(
    task: str,
    dataset: str,
    sets: Sequence[SetInfo],
    predictions: Mapping[str, Predictions],
    inputs: Mapping[str, np.ndarray] | None = None,
    scores: Scores = lambda values: {},
    screens: bool = False,
    training: np.ndarray | None = None,
) -> Result:
    """Compute metric rows and figure curves (named "<set>/<curve>") of one run.

    predictions: one for each set, by name. inputs: x [N, ...] of each set of kind "grid", by name.
    scores: the likelihood's own uncertainties [N] by name, of logits or samples [S, N, ...]; they precede the others.
    screens: label 1 of two classes is a finding, and uncertain cases are referred to an expert.
    training: training inputs [M, ...], for the growth of uncertainty away from them on a grid.
    OOD sets are compared with the first set of kind "id". Each number of a vector target counts as a point; OOD inputs
    are detected by the sum of variances. Raises ValueError on an unknown task or kind, on missing predictions, labels
    or inputs, and on two sets that would write the same row.
    """
    inputs = inputs or {}
    if task == "classification":
        classified = _checked(ClassificationPredictions, sets, predictions, inputs)
        summaries = {s.name: _summary(classified[s.name]) for s in sets if s.kind != "grid"}
        rows, drawn = _classification(dataset, sets, classified, summaries, inputs, scores)
        if screens:
            screening_rows, screening_curves = _screening(dataset, sets, classified, summaries)
            rows, drawn = rows + screening_rows, drawn | screening_curves
    elif task == "regression":
        regressed = _checked(RegressionPredictions, sets, predictions, inputs)
        rows, drawn = _regression(dataset, sets, regressed, inputs, scores)
    else:
        raise ValueError(f"task: expected one of classification, regression, found {task!r}")
    if training is not None:
        for s in sets:
            if s.kind == "grid":
                entropy = drawn[f"{s.name}/grid"].get("predictive_entropy")
                values = growth(inputs[s.name], moments(predictions[s.name])[1], training, entropy)
                rows += metric_rows(dataset, s.condition, values, registry.points(predictions[s.name]))
    plugins.load()
    reference = _reference(sets) if any(s.kind == "id" for s in sets) else ""  # sets of kind "ood" need one
    rows += registry.own_rows(dataset, sets, predictions, reference)
    cells = set()
    for row in rows:
        if (row["condition"], row["metric"]) in cells:
            raise ValueError(f"evaluation sets share the condition {row['condition']!r}; give each its own")
        cells.add((row["condition"], row["metric"]))
    return rows, drawn


def _summary(predictions: ClassificationPredictions) -> classification.Summary:
    """Return the summary; probabilities and scores of predictions brought from elsewhere (float64) are rounded, so that
    points tie whose probabilities are the same shares of counts in another order of the classes, as a forest's are."""
    summary = classification.summarise(predictions.logits)
    if predictions.logits.dtype != np.float64:
        return summary
    scores = {name: to_rank(score) for name, score in summary.scores.items()}
    return replace(summary, p=to_rank(summary.p), scores=scores)


def _classification(
    dataset: str,
    sets: Sequence[SetInfo],
    predictions: Mapping[str, ClassificationPredictions],
    summaries: Mapping[str, classification.Summary],
    inputs: Mapping[str, np.ndarray],
    scores: Scores,
) -> Result:
    rows, drawn = [], {}
    for s in sets:
        if s.kind == "grid":
            drawn[f"{s.name}/grid"] = curves.classification_grid(inputs[s.name], predictions[s.name])
            continue
        summary = summaries[s.name]
        values = {name: score.mean() for name, score in summary.scores.items()}
        precision = None
        if len(predictions[s.name].logits) > 1:
            precision, information = dirichlet.fitted(summary)
            values["dirichlet_mutual_information"] = information.mean()
        if s.kind in LABELLED:
            values |= _labelled(summary, predictions[s.name].given_labels)
        rows += metric_rows(dataset, s.condition, values, len(summary.p))
        if s.kind == "id":
            confidence, correct = _confidence(summary.p, predictions[s.name].given_labels)
            drawn[f"{s.name}/reliability"] = curves.reliability(confidence, correct)
            drawn[f"{s.name}/retention"] = curves.retention(correct, summary.scores["predictive_entropy"])
        if s.condition.startswith(TURNED):
            labels = predictions[s.name].given_labels
            drawn[f"{s.name}/examples"] = curves.examples(summary.p, precision, labels)
        if s.kind == "ood":
            reference = summaries[_reference(sets)]
            both = (
                {**scores(predictions[name].logits.astype(np.float64)), **summaries[name].scores}
                for name in (_reference(sets), s.name)
            )
            found, drawn[f"{s.name}/roc"] = detected(dataset, s.condition, *both)
            rows += found
            known, unknown = (part.scores["predictive_entropy"] for part in (reference, summary))
            drawn[f"{s.name}/entropy_histogram"] = curves.entropy_histogram(known, unknown, summary.p.shape[-1])
            drawn[f"{s.name}/confidence"] = curves.confidence(summary.p)
    return rows + by_group(dataset, rows), drawn


def _screening(
    dataset: str,
    sets: Sequence[SetInfo],
    predictions: Mapping[str, ClassificationPredictions],
    summaries: Mapping[str, classification.Summary],
) -> Result:
    """Screening metrics of labelled sets, and of shifted ones joint with the test set, if it is among the sets; areas
    need both labels."""
    rows, drawn, known = [], {}, next((s.name for s in sets if s.kind == "id"), None)
    labelled = [s for s in sets if s.kind in LABELLED]
    cases = {s.name: screening.Cases.of(summaries[s.name], predictions[s.name].given_labels) for s in labelled}
    for s in labelled:
        variants = [(s.condition, "", cases[s.name])]
        if s.kind == "shift" and known is not None:
            condition, both = f"joint;{s.condition}", (cases[known], cases[s.name])
            variants.append((condition, "joint_", screening.joint(*both)))
            variants.append((f"{condition};balanced", "balanced_", screening.balanced(*both)))
        for condition, prefix, chosen in variants:
            values = screening.metrics(chosen)
            if "auroc" in values:
                referred = screening.referral_curves(chosen)
                values |= screening.areas(referred)
                drawn[f"{s.name}/{prefix}screening_roc"] = curves.screening_roc(chosen)
                drawn[f"{s.name}/{prefix}referral"] = curves.referral(referred)
            rows += metric_rows(dataset, condition, values, len(chosen))
    return rows, drawn


def _regression(
    dataset: str,
    sets: Sequence[SetInfo],
    predictions: Mapping[str, RegressionPredictions],
    inputs: Mapping[str, np.ndarray],
    scores: Scores,
) -> Result:
    rows, drawn = [], {}
    for s in sets:
        p = predictions[s.name]
        if s.kind == "grid":
            drawn[f"{s.name}/grid"] = curves.regression_grid(inputs[s.name], p)
            continue
        if s.kind == "spectrum":
            drawn[f"{s.name}/eigenvalues"] = curves.eigenvalues(p.samples)
            continue
        values = {}
        if len(p.samples) > 1:
            entropy = epistemic_entropy(p.samples)
            values["epistemic_entropy"] = entropy.mean()
            drawn[f"{s.name}/epistemic_entropy"] = curves.epistemic_entropy(entropy)
        if s.kind in LABELLED:
            pit = regression.Mixture.of(p).pit(p.given_targets.reshape(-1))
            values |= regression.errors(p) | regression.distribution(p, pit)
            if s.kind == "id":
                drawn[f"{s.name}/pit"] = curves.pit(pit)
        if s.kind == "id" and p.samples.ndim == 3:
            drawn[f"{s.name}/squared_errors"] = curves.squared_errors(regression.squared_error(p) * p.y_std**2)
        rows += metric_rows(dataset, s.condition, values, p.samples.shape[1])
        if s.kind == "ood":
            reference = predictions[_reference(sets)]
            both = (
                {
                    **scores(part.samples.astype(np.float64)),
                    "epistemic_variance": regression.variance(part).reshape(part.samples.shape[1], -1).sum(1),
                }
                for part in (reference, p)
            )
            found, drawn[f"{s.name}/roc"] = detected(dataset, s.condition, *both)
            rows += found
    return rows, drawn


def _confidence(p: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return p.max(-1), p.argmax(-1) == labels


def _labelled(summary: classification.Summary, labels: np.ndarray) -> dict[str, float]:
    confidence, correct = _confidence(summary.p, labels)
    uncertainty = summary.scores["predictive_entropy"]
    log_likelihood = classification.log_likelihood(summary.log_p, labels)
    impossible = int(np.isneginf(np.take_along_axis(summary.log_p, labels[:, None], -1)).sum())
    return ({ZERO_PROBABILITY: impossible} if impossible else {}) | {
        "accuracy": classification.accuracy(summary.p, labels),
        "nll": -log_likelihood,
        "log_likelihood": log_likelihood,
        "expected_log_likelihood": classification.log_likelihood(summary.expected_log_p, labels),
        "smoothed_log_likelihood": classification.log_likelihood(np.log(smooth(summary.p)), labels),
        "brier": classification.brier(summary.p, labels),
        "ece": calibration.ece(confidence, correct),
        "ece_10": calibration.ece(confidence, correct, bins=10),
        "ace_15": calibration.ace(confidence, correct),
        "classwise_ece": calibration.classwise_ece(summary.p, labels),
        "classwise_ace": calibration.classwise_ace(summary.p, labels),
        "top_label_ece": calibration.top_label_ece(summary.p, labels),
        "selective_accuracy_area": selective.selective_accuracy_area(correct, uncertainty),
        "aurc": selective.aurc(correct, uncertainty),
        "augrc": selective.augrc(correct, uncertainty),
    }


def _reference(sets: Sequence[SetInfo]) -> str:
    return next(s.name for s in sets if s.kind == "id")


def _checked(
    expected: type[P], sets: Sequence[SetInfo], predictions: Mapping[str, Predictions], inputs: Mapping[str, np.ndarray]
) -> dict[str, P]:
    """Return the predictions of the sets after checking their kind."""
    checked: dict[str, P] = {}
    for s in sets:
        where = f"evaluation set {s.name!r}"
        if s.kind not in KINDS:
            raise ValueError(f"{where}: expected a kind of {', '.join(KINDS)}, found {s.kind!r}")
        prediction = predictions.get(s.name)
        if not isinstance(prediction, expected):
            found = "none" if prediction is None else type(prediction).__name__
            raise ValueError(
                f"{where}: expected {expected.__name__}, found {found}; "
                f"there are predictions for {', '.join(predictions) or 'no set'}"
            )
        answers = prediction.labels if isinstance(prediction, ClassificationPredictions) else prediction.targets
        if s.kind in LABELLED and answers is None:
            raise ValueError(f"{where}: expected labels or targets, as its kind is {s.kind!r}, found none")
        if s.kind == "ood" and not any(other.kind == "id" for other in sets):
            raise ValueError(f"{where}: an OOD set needs a set of kind 'id' to be compared with, found none")
        if s.kind == "grid":
            points, given = registry.points(prediction), len(inputs[s.name]) if s.name in inputs else "no inputs"
            if given != points:
                raise ValueError(f"{where}: expected inputs of {points} points, found {given}")
        checked[s.name] = prediction
    return checked
