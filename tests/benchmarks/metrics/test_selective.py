"""Selective prediction by brute force and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.metrics import curves, selective

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
