"""Screening for a finding (label 1), where uncertain cases are referred to an expert (Band et al. 2021, RETINA).

Cases are referred in the order of their predictive entropy, the most uncertain first. A referral curve begins with no
case referred and ends with all of them; its area is its plain mean, as in RETINA's code. Two defects of that code are
options only, to reproduce its numbers: balanced joint curves of AUROC and AUPRC computed on the unbalanced sets
(`balanced_curves(..., as_retina=True)`), and plots that subtract the oracle from curves without one (`without_oracle`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fvi_core.metrics.classification import Summary
from fvi_core.metrics.ood import Detection
from fvi_core.metrics.selective import tied_means

from .ties import expected_auprc, expected_auroc, log_choose

NHS = (0.85, 0.80)
"""Sensitivity and specificity that the NHS requires of screening (Widdowson 2016)."""
BUCKETS = 100  # steps of the curves of AUROC and AUPRC
FPR_GRID = np.linspace(0, 1, 51)
_SEED = 0  # for the draws that fill up a balanced set
_ROUNDING = 1e-9

Curves = dict[str, np.ndarray]


@dataclass(frozen=True)
class Cases:
    """Cases of a screening, [N] each. score: p(finding); labels: 0 or 1; uncertainty: predictive entropy; loss: -log
    p(label); correct."""

    score: np.ndarray
    labels: np.ndarray
    uncertainty: np.ndarray
    loss: np.ndarray
    correct: np.ndarray

    @classmethod
    def of(cls, summary: Summary, labels: np.ndarray) -> Cases:
        """Return the cases of a labelled set. Raises ValueError unless there are two classes."""
        if summary.p.shape[-1] != 2:
            raise ValueError(f"screening: expected two classes, found {summary.p.shape[-1]}")
        loss = -np.take_along_axis(summary.log_p, labels[:, None], -1)[:, 0]
        entropy = summary.scores["predictive_entropy"]
        return cls(summary.p[:, 1], labels, entropy, loss, summary.p.argmax(-1) == labels)

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: np.ndarray) -> Cases:
        """Select cases, in this order."""
        return Cases(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def joint(known: Cases, shifted: Cases) -> Cases:
    """Return the cases of both sets."""
    return Cases(*(np.concatenate([getattr(c, name) for c in (known, shifted)]) for name in known.__dataclass_fields__))


def balanced(known: Cases, shifted: Cases) -> Cases:
    """Return both sets, the shifted one repeated to the size of the known one, the last repetition by draws."""
    whole, rest = divmod(len(known), len(shifted))
    filled = np.random.RandomState(_SEED).permutation(len(shifted))[:rest]
    return joint(known, shifted.take(np.concatenate([np.tile(np.arange(len(shifted)), whole), filled])))


def auroc(score: np.ndarray, labels: np.ndarray) -> float | None:
    """P(score of a finding > score of none) + P(equal) / 2; None for labels of one kind."""
    if len(np.unique(labels)) < 2:
        return None
    return Detection.of(score[labels == 0], score[labels == 1]).auroc()


def auprc(score: np.ndarray, labels: np.ndarray) -> float | None:
    """Area under precision against recall by trapezoids, as in RETINA's code; None without a finding."""
    if not labels.any():
        return None
    order = np.argsort(-score, kind="stable")
    last = np.append(np.diff(score[order]) != 0, True)  # last case of each threshold
    findings = np.cumsum(labels[order])[last]
    precision, recall = findings / (np.flatnonzero(last) + 1), findings / findings[-1]
    return float(np.trapezoid(np.append(1, precision), np.append(0, recall)))


AREAS = {"auroc": (auroc, expected_auroc, False), "auprc": (auprc, expected_auprc, True)}
"""Area, its expectation over ties, and whether it is defined for findings alone."""


def balanced_accuracy(cases: Cases) -> float:
    """Mean over the labels that occur of the accuracy on their cases."""
    return float(np.mean([cases.correct[cases.labels == label].mean() for label in np.unique(cases.labels)]))


def roc(score: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates at every threshold, from (0, 0) to (1, 1); for labels of both kinds."""
    detection = Detection.of(score[labels == 0], score[labels == 1])
    return detection.fpr, detection.tpr


def sensitivity(score: np.ndarray, labels: np.ndarray, specificity: float = NHS[1]) -> float | None:
    """Largest true positive rate of a threshold with at least this specificity; None for labels of one kind."""
    if len(np.unique(labels)) < 2:
        return None
    false, true = roc(score, labels)
    return float(true[1 - false >= specificity - _ROUNDING].max())


def referral_curves(cases: Cases) -> Curves:
    """Referral curves on the remaining cases, the most uncertain being referred: accuracy and nll [N + 1] with 0, 1,
    ..., N cases referred, auroc and auprc [BUCKETS + 1] with fractions 0, 1/100, ..., 1 referred.

    With all cases referred accuracy and areas are 1 and the loss is 0. An area is undefined where the remaining labels
    are of one kind; it is then 1 where this and all smaller sets of the curve are predicted without an error, else 0.
    Cases of the same uncertainty are referred in any order: every value is the mean over these orders.
    """
    order, count = np.argsort(cases.uncertainty, kind="stable"), np.arange(1, len(cases) + 1)
    correct, loss = (tied_means(values, cases.uncertainty)[order] for values in (cases.correct, cases.loss))
    curves = {
        "accuracy": np.append(1, np.cumsum(correct) / count)[::-1],
        "nll": np.append(0, np.cumsum(loss) / count)[::-1],
    }
    return curves | _areas(cases.take(order))


def _areas(ordered: Cases) -> Curves:
    """Return referral curves of the areas; ``ordered``: cases, most certain first."""
    first, last = (np.searchsorted(ordered.uncertainty, ordered.uncertainty, side) for side in ("left", "right"))
    values = {name: [1.0] for name in AREAS}
    for bucket in range(1, BUCKETS + 1):
        n = bucket * len(ordered) // BUCKETS
        start, end = (first[n - 1], last[n - 1]) if n else (0, 0)
        fixed, tied = ordered.take(np.arange(start)), ordered.take(np.arange(start, end))
        alike = len(np.unique(np.stack([tied.score, tied.labels]), axis=1).T) < 2
        for name, (area, expected, with_findings_alone) in AREAS.items():
            if n in (0, end) or alike:  # the order of ties makes no difference
                remaining = ordered.take(np.arange(n))
                right = len(np.unique(remaining.labels)) < 2 and bool(remaining.correct.all())
                value = 1.0 if right else area(remaining.score, remaining.labels)
            else:
                drawn = fixed.score, fixed.labels, tied.score, tied.labels, n - start
                value = expected(*drawn) + _of_one_kind(fixed, tied, n - start, with_findings_alone)
            values[name].append(0.0 if value is None else value)
    return {name: np.array(curve[::-1]) for name, curve in values.items()}


def _of_one_kind(fixed: Cases, tied: Cases, m: int, with_findings_alone: bool) -> float:
    """Probability that the fixed cases and m of the tied ones are all predicted correctly and have labels of one kind:
    no finding, or unless areas are defined with findings alone, only findings."""
    chance = 0.0
    for label in (0, 1) if not with_findings_alone else (0,):
        if fixed.correct.all() and (fixed.labels == label).all():
            right = int((tied.correct & (tied.labels == label)).sum())
            chance += float(np.exp(log_choose(right, m) - log_choose(len(tied), m)))
    return chance


def with_oracle(name: str, curve: np.ndarray) -> np.ndarray:
    """Return a referral curve where an infallible expert decides on the referred cases."""
    referred = np.linspace(0, 1, len(curve))
    return (1 - referred) * curve + (0 if name == "nll" else referred)


def without_oracle(curve: np.ndarray) -> np.ndarray:
    """(value - referred) / (1 - referred), 1 at the end: removes the oracle from a curve.

    RETINA's plots do this to curves without an oracle too.
    """
    referred = np.linspace(0, 1, len(curve))[:-1]
    return np.append((curve[:-1] - referred) / (1 - referred), 1)


def balanced_curves(known: Cases, shifted: Cases, as_retina: bool = False) -> Curves:
    """Return referral curves of the balanced joint set; `as_retina`: AUROC and AUPRC on the unbalanced one."""
    curves = referral_curves(balanced(known, shifted))
    if as_retina:
        unbalanced = referral_curves(joint(known, shifted))
        curves |= {name: unbalanced[name] for name in ("auroc", "auprc")}
    return curves


def areas(curves: Curves) -> dict[str, float]:
    """Mean of each referral curve, without and with an oracle."""
    plain = {f"referral_{name}_area": curve.mean() for name, curve in curves.items()}
    oracle = {f"referral_{name}_area_oracle": with_oracle(name, curve).mean() for name, curve in curves.items()}
    return plain | oracle


def metrics(cases: Cases) -> dict[str, float]:
    """Metrics that only screenings have; areas only where both labels occur."""
    values: dict[str, float | None] = {
        "balanced_accuracy": balanced_accuracy(cases),
        "auroc": auroc(cases.score, cases.labels),
        "auprc": auprc(cases.score, cases.labels),
        "sensitivity_at_80_specificity": sensitivity(cases.score, cases.labels),
    }
    return {name: value for name, value in values.items() if value is not None}
