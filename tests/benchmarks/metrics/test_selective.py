"""Selective prediction by brute force and by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.metrics import SetInfo, curves, evaluate
from benchmarks.records.predictions import ClassificationPredictions
from fvi_core.metrics import selective

points = st.lists(st.tuples(st.booleans(), st.integers(0, 9).map(float)), min_size=1, max_size=40)
few = st.lists(st.tuples(st.booleans(), st.integers(0, 3).map(float)), min_size=1, max_size=6)


def in_this_order(correct: list[bool]) -> dict[str, float]:
    n = len(correct)
    risks = [correct[:k].count(False) / k for k in range(1, n + 1)]
    joint = [k / n * risk for k, risk in enumerate(risks, 1)]
    return {"aurc": sum(risks) / n, "augrc": sum(joint) / n, "selective_accuracy_area": 1 - sum(risks) / n}


@given(few)
def test_areas_are_means_over_all_orders_of_ties(values):
    orders = [sorted(order, key=lambda pair: pair[1]) for order in itertools.permutations(values)]
    found = [in_this_order([correct for correct, _ in order]) for order in orders]
    correct, uncertainty = (np.array(column) for column in zip(*values))
    for name in found[0]:
        mean = sum(each[name] for each in found) / len(found)
        assert getattr(selective, name)(correct, uncertainty) == pytest.approx(mean), name
    curves_found = [[[c for c, _ in order][:k].count(True) / k for k in range(1, len(values) + 1)] for order in orders]
    assert selective.retention_curve(correct, uncertainty) == pytest.approx(np.mean(curves_found, axis=0))


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(0, 9))
def test_without_ties_the_numbers_are_those_of_the_order_to_the_last_digit(correct, seed):
    uncertainty = np.random.default_rng(seed).permutation(len(correct)) / 7
    ranked = np.array(correct)[np.argsort(uncertainty)]
    curve = 1 - np.cumsum(~ranked) / np.arange(1, len(correct) + 1)
    assert np.array_equal(selective.retention_curve(np.array(correct), uncertainty), curve)
    assert selective.aurc(np.array(correct), uncertainty) == float((1 - curve).mean())
    assert selective.augrc(np.array(correct), uncertainty) == float(np.cumsum(~ranked).mean() / len(correct))


@given(points, st.randoms())
def test_the_order_of_the_data_does_not_matter(values, random):
    other = list(values)
    random.shuffle(other)
    (correct, uncertainty), (again, of_it) = ([np.array(column) for column in zip(*each)] for each in (values, other))
    for area in (selective.aurc, selective.augrc, selective.selective_accuracy_area):
        assert area(correct, uncertainty) == pytest.approx(area(again, of_it), abs=1e-12)


def test_areas_by_hand():
    correct, uncertainty = np.array([False, True, True, False]), np.array([0.9, 0.1, 0.3, 0.2])
    # in order of uncertainty: right, wrong, right, wrong
    assert selective.retention_curve(correct, uncertainty).tolist() == pytest.approx([1, 1 / 2, 2 / 3, 2 / 4])
    area = selective.selective_accuracy_area(correct, uncertainty)
    assert area == pytest.approx((1 + 1 / 2 + 2 / 3 + 1 / 2) / 4)
    assert selective.aurc(correct, uncertainty) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert selective.augrc(correct, uncertainty) == pytest.approx((0 + 1 + 1 + 2) / 16)


def test_right_and_wrong_may_be_one_and_zero():
    correct, uncertainty = np.array([False, True, True, False]), np.array([0.9, 0.1, 0.2, 0.2])
    for area in (selective.aurc, selective.augrc, selective.selective_accuracy_area):
        assert area(correct.astype(int), uncertainty) == area(correct, uncertainty)


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


def test_points_of_one_uncertainty_share_their_errors():
    curve = selective.retention_curve(np.array([True, False, True, False]), np.array([0.5, 0.5, 0.5, 0.1]))
    assert curve.tolist() == pytest.approx([0, 1 - (1 + 1 / 3) / 2, 1 - (1 + 2 / 3) / 3, 1 / 2])


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


@pytest.mark.parametrize(
    ("correct", "uncertainty", "found"), [([1, 0, 1], [0.1, np.nan, np.nan], "2 NaN of 3"), ([], [], "0 NaN of 0")]
)
@pytest.mark.parametrize("metric", [selective.aurc, selective.augrc, selective.selective_accuracy_area])
def test_an_uncertainty_that_is_no_number_and_no_points_are_refused(metric, correct, uncertainty, found):
    """NaN would be the largest uncertainty, and all of them one tie."""
    with pytest.raises(ValueError, match=f"^uncertainties: expected numbers, found {found}$"):
        metric(np.array(correct, bool), np.array(uncertainty))
