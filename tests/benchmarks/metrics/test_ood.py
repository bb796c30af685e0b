"""OOD detection against scikit-learn, torchmetrics and scans over all thresholds."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score
from torchmetrics.functional.classification import binary_auroc

from benchmarks.metrics import curves
from benchmarks.metrics.detection import threshold_accuracy
from fvi_core.metrics import ood

scores = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=25).map(np.array)


def example(ties: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    id, other = rng.normal(size=300), rng.normal(0.8, 1.5, size=200)
    return (id.round(1), other.round(1)) if ties else (id, other)


def labelled(id: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.r_[np.zeros(len(id), int), np.ones(len(other), int)], np.r_[id, other]


@pytest.mark.parametrize("ties", [False, True])
def test_areas_against_sklearn_and_torchmetrics(ties):
    id, other = example(ties)
    y, s = labelled(id, other)
    area = ood.Detection.of(id, other).auroc()
    assert area == pytest.approx(roc_auc_score(y, s), abs=1e-12)
    squashed = torch.from_numpy(s).sigmoid()
    assert area == pytest.approx(binary_auroc(squashed, torch.from_numpy(y)).item(), abs=1e-5)
    assert ood.aupr(id, other) == pytest.approx(average_precision_score(y, s), abs=1e-12)


@given(scores, scores)
def test_auroc_by_pairs_and_under_a_change_of_sign(id, other):
    won = (other[:, None] > id).mean() + 0.5 * (other[:, None] == id).mean()
    area = ood.Detection.of(id, other).auroc()
    assert area == pytest.approx(won, abs=1e-12)
    assert ood.Detection.of(-id, -other).auroc() == pytest.approx(1 - area, abs=1e-12)


@given(scores, scores)
def test_aupr_by_a_scan_over_thresholds(id, other):
    area, recall = 0.0, 0.0
    for threshold in sorted(set(id) | set(other), reverse=True):
        hits, alarms = (other >= threshold).sum(), (id >= threshold).sum()
        area += (hits / len(other) - recall) * hits / (hits + alarms)
        recall = hits / len(other)
    assert ood.aupr(id, other) == pytest.approx(area, abs=1e-12)


@given(scores, scores)
def test_fpr95_by_a_scan_over_thresholds(id, other):
    enough = [t for t in sorted(set(id) | set(other)) if (other >= t).mean() >= 0.95]
    assert ood.Detection.of(id, other).fpr95() == pytest.approx((id >= enough[-1]).mean())


@pytest.mark.parametrize("curve", [ood.Detection.of, ood.aupr])
@pytest.mark.parametrize("wrong", [np.array([1.0, np.nan]), np.array([])])
def test_scores_that_are_no_numbers_are_no_perfect_detection(curve, wrong):
    right = np.array([0.0, np.inf])
    with pytest.raises(ValueError, match=r"^OOD scores: expected numbers, found \d NaN among"):
        curve(right, wrong)
    with pytest.raises(ValueError, match=r"^ID scores: expected numbers"):
        curve(wrong, right)


def test_fpr95_by_hand():
    id, other = np.arange(20.0), np.arange(20.0) + 10
    # 19 of 20 OOD scores are 11 or more: so are 9 of 20 ID scores
    assert ood.Detection.of(id, other).fpr95() == pytest.approx(9 / 20)
    assert ood.Detection.of(np.zeros(3), np.ones(2)).fpr95() == 0
    assert ood.Detection.of(np.ones(3), np.ones(2)).fpr95() == 1


def gini(labels: np.ndarray) -> float:
    return len(labels) * 2 * labels.mean() * (1 - labels.mean()) if len(labels) else 0.0


def log_loss(labels: np.ndarray) -> float:
    shares = np.array([labels.mean(), 1 - labels.mean()]) if len(labels) else np.ones(1)
    return -len(labels) * float(sum(share * np.log(share) for share in shares if share > 0))


@pytest.mark.parametrize(("criterion", "loss"), [("gini", gini), ("log_loss", log_loss)])
@given(id=scores, other=scores)
def test_ood_accuracy_by_a_scan_over_thresholds(criterion, loss, id, other):
    n = min(len(id), len(other))
    y, s = labelled(id[:n], other[:n])
    impurity, accuracies = [], []
    for threshold in sorted(set(s)):
        sides = y[s < threshold], y[s >= threshold]
        impurity.append(sum(map(loss, sides)))
        accuracies.append(sum(max(side.sum(), (1 - side).sum()) for side in sides) / (2 * n))
    best = [a for a, i in zip(accuracies, impurity) if i <= min(impurity) + 1e-9]
    found = threshold_accuracy(id, other, criterion)
    assert any(found == pytest.approx(a) for a in best)
    assert 0.5 <= found <= max(accuracies) + 1e-12


def test_ood_accuracy_uses_as_many_ood_as_id_points_from_the_front():
    id = np.array([0.0, 1.0, 2.0, 3.0])
    assert threshold_accuracy(id, np.array([5.0, 6.0, 7.0, 8.0, 0.0, 0.0])) == 1
    assert threshold_accuracy(id, np.array([5.0, 6.0])) == 1
    assert threshold_accuracy(id, np.array([5.0, 6.0, 0.0, 1.0])) == 0.75


def test_the_criterion_decides_where_two_thresholds_compete():
    """From 2 on, leaves are 1:4 and 7:4, from 3 on 6:8 and 2:0: Gini's impurities are 6.69 and 6.86, log-losses 9.71
    and 9.56.
    """
    id, other = np.array([1.0, 2, 2, 2, 2, 2, 3, 3]), np.array([0.0, 1, 1, 1, 2, 2, 2, 2])
    assert threshold_accuracy(id, other) == 11 / 16
    assert threshold_accuracy(id, other, "log_loss") == 10 / 16


def test_ood_accuracy_sees_differences_of_any_size():
    assert threshold_accuracy(np.array([1e-12, 2e-12]), np.array([3e-12, 4e-12])) == 1


@pytest.mark.parametrize("ties", [False, True])
def test_the_roc_curve_has_the_area_of_the_metric(ties):
    id, other = example(ties)
    detection = ood.Detection.of(id, other)
    curve = curves.roc({"score": detection})
    assert curve["fpr"] == [round(0.01 * i, 2) for i in range(101)]
    assert np.trapezoid(curve["score"], curve["fpr"]) == pytest.approx(detection.auroc(), abs=5e-3)
    assert curve["score"][0] == pytest.approx((other > id.max()).mean()) and curve["score"][-1] == 1


def test_entropy_histogram_counts_every_point():
    edge = np.log(10)
    id, other = np.array([0.0, 0.0, -1e-17]), np.array([edge + 1e-15, edge, edge / 2])
    curve = curves.entropy_histogram(id, other, 10)
    assert len(curve["edges"]) == 31 and curve["edges"][-1] == pytest.approx(edge, rel=1e-4)
    assert curve["id"] == [3] + 29 * [0]
    assert curve["ood"][-1] == 2 and sum(curve["ood"]) == 3
