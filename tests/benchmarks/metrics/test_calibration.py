"""Calibration errors by hand, at the edges of bins, and against torchmetrics."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

from benchmarks.metrics import curves
from fvi_core.metrics import calibration

pairs = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


def example(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(4, 0.3), n)
    return p, rng.integers(0, 4, n)


@pytest.mark.parametrize("bins", [10, 15])
def test_ece_against_torchmetrics_away_from_edges(bins):
    p, y = example()
    assert (p.max(-1) < 1).all()
    expected = multiclass_calibration_error(torch.from_numpy(p), torch.from_numpy(y), 4, n_bins=bins).item()
    assert calibration.ece(p.max(-1), p.argmax(-1) == y, bins) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("bins", [10, 15])
def test_ece_by_a_loop_over_bins(bins):
    p, y = example(400)
    confidence, correct = p.max(-1), p.argmax(-1) == y
    total = 0.0
    for b in range(bins):
        inside = (confidence > b / bins) & (confidence <= (b + 1) / bins)
        if inside.any():
            total += inside.mean() * abs(correct[inside].mean() - confidence[inside].mean())
    assert calibration.ece(confidence, correct, bins) == pytest.approx(total, abs=1e-12)


def test_bins_are_open_on_the_left_and_hold_both_ends():
    confidence = np.array([0.0, 0.05, 0.1, 0.1000001, 0.5, 0.9999, 1.0, 1.0 + 2e-16])
    assert calibration.equal_width(confidence, 10).tolist() == [0, 0, 0, 1, 4, 9, 9, 9]


def test_confidence_of_exactly_one_counts():
    assert calibration.ece(np.ones(4), np.array([True, True, True, False])) == pytest.approx(0.25)
    assert calibration.ece(np.zeros(4), np.array([True, False, False, False])) == pytest.approx(0.25)


def test_ece_of_a_tiny_case_by_hand():
    confidence, correct = np.array([0.55, 0.6, 0.95, 1.0]), np.array([False, True, True, True])
    # bins (.5, .6] with |.5 - .575| and (.9, 1] with |1 - .975|, two of four points each
    assert calibration.ece(confidence, correct, 10) == pytest.approx(0.5 * 0.075 + 0.5 * 0.025)


def test_ace_of_a_tiny_case_by_hand():
    confidence, correct = np.array([0.9, 0.2, 0.3, 0.8, 0.5]), np.array([True, False, True, False, True])
    # sorted .2 .3 .5 | .8 .9 with right answers 0 1 1 | 0 1
    expected = 0.6 * abs(2 / 3 - 1 / 3) + 0.4 * abs(1 / 2 - 0.85)
    assert calibration.ace(confidence, correct, 2) == pytest.approx(expected)


def test_masses_of_adaptive_bins_differ_by_one_at_most():
    index = calibration.equal_mass(np.random.default_rng(0).random(100), 15)
    count = np.bincount(index, minlength=15)
    assert count.sum() == 100 and count.max() - count.min() <= 1


@given(pairs)
def test_errors_lie_between_zero_and_one_and_ignore_order(values):
    confidence, correct = (np.array(column) for column in zip(*values))
    for error in (calibration.ece, calibration.ace):
        assert 0 <= error(confidence, correct) <= 1
    backwards = calibration.ece(confidence[::-1], correct[::-1])
    assert backwards == pytest.approx(calibration.ece(confidence, correct))


@given(pairs, st.sampled_from([1, 7]))
def test_no_bin_rule_goes_below_the_gap_of_the_means(values, bins):
    confidence, correct = (np.array(column) for column in zip(*values))
    gap = abs(confidence.mean() - correct.mean())
    assert calibration.ece(confidence, correct, bins) >= gap - 1e-12
    assert calibration.ace(confidence, correct, 1) == pytest.approx(gap, abs=1e-12)


def test_the_reliability_curve_gives_the_ece_back():
    p, y = example(500)
    confidence, correct = p.max(-1), p.argmax(-1) == y
    curve = curves.reliability(confidence, correct)
    assert [len(values) for values in curve.values()] == [15, 15, 15]
    assert curve["confidence"][0] is None and curve["count"][0] == 0
    gaps = np.abs(np.array(curve["accuracy"], float) - np.array(curve["confidence"], float))
    ece = np.nansum(gaps * curve["count"]) / 500
    assert ece == pytest.approx(calibration.ece(confidence, correct), abs=1e-4)


def test_classwise_errors_are_those_of_each_class_against_the_others():
    p, y = example(700)
    each = [
        binary_calibration_error(torch.from_numpy(p[:, c]), torch.from_numpy((y == c).astype(int)), n_bins=15).item()
        for c in range(4)
    ]
    assert calibration.classwise_ece(p, y) == pytest.approx(np.mean(each), abs=1e-6)
    by_mass = []
    for c in range(4):
        order = np.argsort(p[:, c], kind="stable")
        parts = np.array_split(order, 15)
        by_mass.append(sum(len(b) / 700 * abs((y[b] == c).mean() - p[b, c].mean()) for b in parts))
    assert calibration.classwise_ace(p, y) == pytest.approx(np.mean(by_mass))


def test_top_label_error_is_that_of_each_predicted_class():
    p, y = example(700)
    total = 0.0
    for c in range(4):
        own = p.argmax(-1) == c
        confidence, right = torch.from_numpy(p[own].max(-1)), torch.from_numpy((y[own] == c).astype(int))
        total += own.mean() * binary_calibration_error(confidence, right, n_bins=15).item()
    assert calibration.top_label_ece(p, y) == pytest.approx(total, abs=1e-6)


def test_errors_of_classes_that_cancel_count_by_the_top_label():
    # Both classes are predicted at .75; one is always right, the other half of the time: .75 together.
    p, y = np.array([[0.75, 0.25]] * 4 + [[0.25, 0.75]] * 4), np.array([0, 0, 0, 0, 1, 1, 0, 0])
    assert calibration.ece(p.max(-1), p.argmax(-1) == y) == 0
    assert calibration.top_label_ece(p, y) == pytest.approx(0.25)


@pytest.mark.parametrize("error", [calibration.classwise_ece, calibration.classwise_ace, calibration.top_label_ece])
def test_labels_that_do_not_belong_to_the_probabilities_are_refused(error):
    p = np.full((3, 2), 0.5)
    for y in (np.array([0, 1, 2]), np.array([0, 1]), np.array([-1, 0, 1])):
        with pytest.raises(ValueError, match=r"^expected probabilities \[N, C\] and labels \[N\] in 0..C-1, found"):
            error(p, y)


def test_a_confidence_that_is_no_number_is_refused():
    """NaN would fall into the last bin, which would count as empty."""
    with pytest.raises(ValueError, match="confidences: expected numbers, found 1 NaN of 3"):
        calibration.ece(np.array([1.0, np.nan, 0.9]), np.array([True, False, False]))


@pytest.mark.parametrize("error", [calibration.ece, calibration.ace])
def test_no_points_have_no_error(error):
    with pytest.raises(ValueError, match="confidences: expected numbers, found 0 NaN of 0"):
        error(np.array([]), np.array([], bool))


@given(st.lists(st.tuples(st.sampled_from([0.5, 0.75, 1.0]), st.booleans()), min_size=1, max_size=40), st.randoms())
def test_the_order_of_points_of_one_confidence_does_not_matter(values, random):
    other = list(values)
    random.shuffle(other)
    first, second = (calibration.ace(*map(np.array, zip(*each)), bins=4) for each in (values, other))
    assert first == pytest.approx(second, abs=1e-12)


def test_bins_that_cut_a_tie_share_its_accuracy():
    # Two bins of two points each, all of confidence 1, one wrong: each bin has the accuracy 3/4.
    for wrong in range(4):
        correct = np.arange(4) != wrong
        assert calibration.ace(np.ones(4), correct, bins=2) == pytest.approx(1 / 4)
    assert calibration.ace(np.array([0.9, 1, 1, 1]), np.array([True, False, True, True]), bins=2) == pytest.approx(
        (abs((1 + 2 / 3) - 1.9) + abs(4 / 3 - 2)) / 4
    )
