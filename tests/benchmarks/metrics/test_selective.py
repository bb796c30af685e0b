"""Selective prediction by brute force and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.metrics import SetInfo, curves, evaluate, selective
from benchmarks.records.predictions import ClassificationPredictions

points = st.lists(st.tuples(st.booleans(), st.integers(0, 9).map(float)), min_size=1, max_size=40)


@given(points)
def test_areas_by_brute_force(values):
    n = len(values)
    ranked = [correct for correct, _ in sorted(values, key=lambda pair: pair[1])]  # ties keep their order
    risks = [ranked[:k].count(False) / k for k in range(1, n + 1)]
    correct, uncertainty = (np.array(column) for column in zip(*values))
    assert selective.aurc(correct, uncertainty) == pytest.approx(sum(risks) / n)
    joint = [k / n * risk for k, risk in enumerate(risks, 1)]
    assert selective.augrc(correct, uncertainty) == pytest.approx(sum(joint) / n)
    assert selective.selective_accuracy_area(correct, uncertainty) == pytest.approx(1 - sum(risks) / n)


def test_areas_by_hand():
    correct, uncertainty = np.array([False, True, True, False]), np.array([0.9, 0.1, 0.3, 0.2])
    # in order of uncertainty: right, wrong, right, wrong
    assert selective.retention_curve(correct, uncertainty).tolist() == pytest.approx([1, 1 / 2, 2 / 3, 2 / 4])
    area = selective.selective_accuracy_area(correct, uncertainty)
    assert area == pytest.approx((1 + 1 / 2 + 2 / 3 + 1 / 2) / 4)
    assert selective.aurc(correct, uncertainty) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert selective.augrc(correct, uncertainty) == pytest.approx((0 + 1 + 1 + 2) / 16)


def test_an_evaluation_ranks_by_predictive_entropy():
    # Each point has two sampled distributions, and the last point is wrong. Predictive entropies are .82, .74, .11 and
    # .72, by which it comes second. By the largest probability (.7, .51, .98, .6) or the expected entropy (.82, .24,
    # .11, .72) it would come third.
    one = [[0.7, 0.15, 0.15], [0.96, 0.03, 0.01], [0.01, 0.98, 0.01], [0.6, 0.39, 0.01]]
    other = [one[0], [0.06, 0.93, 0.01], one[2], one[3]]
    predictions = {"test": ClassificationPredictions(np.log([one, other]), np.array([0, 0, 1, 1]))}
    rows, drawn = evaluate("classification", "d", [SetInfo("test", "id")], predictions)
    found = {row["metric"]: row["value"] for row in rows}
    assert found["aurc"] == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert found["augrc"] == pytest.approx((0 + 1 + 1 + 1) / 16)
    assert found["selective_accuracy_area"] == pytest.approx((1 + 1 / 2 + 2 / 3 + 3 / 4) / 4)
    accuracy = [drawn["test/retention"]["accuracy"][k] for k in (25, 50, 75, 100)]  # of one, two, three and all points
    assert accuracy == pytest.approx([1, 1 / 2, 2 / 3, 3 / 4], abs=1e-5)


def test_ties_keep_the_order_of_the_data():
    curve = selective.retention_curve(np.array([True, False, True]), np.zeros(3))
    assert curve.tolist() == pytest.approx([1, 1 / 2, 2 / 3])


@given(points)
def test_a_perfect_ranking_is_never_worse(values):
    correct, uncertainty = (np.array(column) for column in zip(*values))
    for risk in (selective.aurc, selective.augrc):
        assert 0 <= risk(correct, ~correct) <= risk(correct, uncertainty) + 1e-12 <= 1 + 1e-12
    errors = 1 - correct.mean()
    assert selective.augrc(correct, uncertainty) <= errors + 1e-12


def test_the_retention_curve_of_a_figure_ends_at_the_accuracy():
    rng = np.random.default_rng(0)
    correct, uncertainty = rng.random(540) < 0.8, rng.random(540)
    curve = curves.retention(correct, uncertainty)
    whole = selective.retention_curve(correct, uncertainty)
    assert len(curve["fraction"]) == len(curve["accuracy"]) == 101
    assert curve["accuracy"][-1] == pytest.approx(correct.mean(), rel=1e-4)
    assert curve["accuracy"][0] == whole[0]
    assert curve["accuracy"][50] == pytest.approx(whole[269], rel=1e-4)
