"""Tests of the time left: the rest of the estimated costs, corrected by what runs really take. All clocks are fake."""

from __future__ import annotations

import pytest

from benchmarks.sweep.estimate import Estimate
from benchmarks.sweep.forecast import Forecast
from benchmarks.sweep.plan import RunGroup
from tests.benchmarks import fakes


def group(method="MAP", seed=0, runs=1, **training):
    return RunGroup(
        "", "", fakes.SUITE, tuple(fakes.pending(fakes.config(seed + i, method, **training)) for i in range(runs))
    )


def forecast(costs, workers=1):
    """Return a forecast of groups with their estimated costs (None: not known)."""
    known = {each.keys: cost for each, cost in costs if cost is not None}
    return Forecast([each for each, _ in costs], Estimate(groups=known) if known else None, workers)


def test_cheap_runs_that_come_first_do_not_count_as_much_as_long_ones():
    cheap, long = [group("cheap", seed) for seed in range(9)], group("long")
    found = forecast([(each, 1.0) for each in cheap] + [(long, 91.0)])
    assert found.left(0.0) == 100.0 and found.fraction == 0.0
    for i, each in enumerate(cheap):
        found.report(each, 0.0, i)
        found.end(each, True, i + 1.0)
    assert found.left(9.0) == 91.0 and found.fraction == pytest.approx(0.09)


def test_what_runs_take_corrects_those_of_their_kind_and_all_together_the_others():
    slow, same, other = group("slow"), group("slow", 1), group("other")
    found = forecast([(slow, 10.0), (other, 100.0), (same, 10.0)])
    found.report(slow, 0.0, 0.0)
    found.end(slow, True, 30.0)
    assert found.left(30.0) == 3 * 10.0 + 3 * 100.0
    found.report(other, 0.0, 30.0)
    found.report(other, 0.5, 80.0)
    assert found.left(80.0) == 3 * 10.0 + 50.0, "the other is as fast as it was thought"
    found.report(other, 0.5, 130.0)
    assert found.left(130.0) == 3 * 10.0 + 100.0, "and now it is not"


@pytest.mark.parametrize(("cost", "took", "others"), [(10.0, 1000.0, 300.0), (1000.0, 2.0, 100.0 / 3)])
def test_a_kind_far_from_its_estimate_moves_others_by_a_factor_of_three_at_most(cost, took, others):
    far, same, other = group("far"), group("far", 1), group("other")
    found = forecast([(far, cost), (same, cost), (other, 100.0)])
    found.report(far, 0.0, 0.0)
    found.end(far, True, took)
    assert found.left(took) == pytest.approx(took + others)


def test_between_two_reports_the_pace_is_kept_for_one_step():
    found = forecast([(group(), 100.0)])
    for fraction in (0.0, 0.4, 0.5):
        found.report(group(), fraction, 100 * fraction)
    assert found.left(58.0) == pytest.approx(42.0)
    assert found.left(100.0) == pytest.approx(40.0 * 100 / 60), "after a step more it should have reported"


def test_workers_share_what_is_left_but_not_a_single_run():
    found = forecast([(group("a"), 10.0), (group("b"), 10.0), (group("c"), 40.0)], workers=2)
    assert found.left(0.0) == 40.0
    assert forecast([(group("a", seed), 10.0) for seed in range(6)], workers=2).left(0.0) == 30.0


def test_a_run_that_has_begun_is_not_counted_again():
    found = forecast([(group(), 100.0)])
    found.report(group(), 0.0, 5.0)
    assert found.left(45.0) == 60.0 and found.left(500.0) == 0.0


def test_what_a_checkpoint_had_saved_says_nothing_of_the_speed():
    resumed = group()
    found = Forecast([resumed], Estimate(groups={resumed.keys: 40.0}, saved={resumed.keys: 0.6}))
    found.report(resumed, 0.0, 0.0)
    found.report(resumed, 0.6, 2.0)
    assert found.left(2.0) == 38.0 and found.fraction == 0.0, "nothing is made yet, though six tenths are"
    found.report(resumed, 0.7, 20.0)
    assert found.left(20.0) == pytest.approx(60.0), "a quarter of the rest took 20 seconds"
    assert found.fraction == pytest.approx(0.25)


def test_runs_that_others_made_say_nothing_of_the_cost():
    first, second = group(), group(seed=1)
    found = forecast([(first, 10.0), (second, 10.0)])
    found.report(first, 0.0, 0.0)
    found.end(first, False, 1000.0)
    assert found.left(1000.0) == 10.0


def test_a_kind_without_an_estimate_counts_as_the_mean_of_the_others_for_each_run():
    found = forecast([(group("a", runs=2), 20.0), (group("b", runs=3), None)])
    assert found.left(0.0) == 20.0 + 30.0


def test_without_any_estimate_only_what_was_seen_counts():
    first, second = group(), group(seed=1, runs=3)
    found = forecast([(first, None), (second, None)])
    assert found.left(0.0) is None
    found.report(first, 0.0, 0.0)
    found.report(first, 0.5, 0.4)
    assert found.left(0.4) is None, "too little was seen"
    found.end(first, True, 20.0)
    assert found.left(20.0) == 60.0 and found.fraction == 0.25


def test_a_group_that_comes_back_from_another_sweep_is_counted_again():
    one, more = group(), group("other")
    found = forecast([(one, 10.0)])
    found.report(one, 0.0, 0.0)
    found.end(one, False, 1.0)
    assert found.left(1.0) == 0.0
    found.report(one, 0.0, 2.0)
    found.report(more, 0.0, 2.0)
    assert found.left(2.0) == 20.0


def test_what_may_end_early_is_a_bound_until_one_has_ended():
    stopping = {"early_stopping": {"patience": 5, "every": 1}}
    first, second, plain = group("a", **stopping), group("a", 1, **stopping), group("b")
    assert not forecast([(plain, 10.0)]).bounded
    found = forecast([(first, 10.0), (second, 10.0), (plain, 10.0)])
    assert found.bounded
    found.report(first, 0.2, 0.0)
    assert found.bounded, "how far it has come does not say where it will end"
    found.end(first, True, 2.0)
    assert not found.bounded and found.left(2.0) == pytest.approx(0.2 * 10.0 + 10.0 / 3)


def test_training_is_expected_to_end_where_others_ended_and_moves_on_if_it_does_not():
    stopping = group("a", early_stopping={"patience": 5, "every": 1})
    found = Forecast([stopping], Estimate(groups={stopping.keys: 10.0}, ends={stopping.keys: 0.1}))
    assert found.left(0.0) == 10.0 and not found.bounded, "records show how early"
    found.report(stopping, 0.0, 0.0)
    found.report(stopping, 0.05, 20.0)
    assert found.left(20.0) == pytest.approx(20.0), "half of a tenth took 20 seconds"
    assert found.fraction == pytest.approx(0.5)
    found.report(stopping, 0.2, 80.0)
    assert found.left(80.0) == pytest.approx(20.0), "a quarter more than it has come"
    found.report(stopping, 1.0, 400.0)
    assert found.left(400.0) == 0.0


def test_what_another_sweep_makes_is_not_still_to_come():
    first, second, third = group("one"), group("two"), group("three")
    found = forecast([(first, 100.0), (second, 10.0), (third, 10.0)])
    found.report(second, 0.0, 0.0)
    assert found.left(0.0) == 20.0, "groups are claimed in their order"
    found.report(first, 0.0, 0.0)
    assert found.left(0.0) == 120.0, "given up there, it is made here"
