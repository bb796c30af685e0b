"""Cost of a run from records of similar runs."""

from __future__ import annotations

import copy

import pytest

from benchmarks.sweep.similar import INPUT, STEP, VALUE, Cost, Recorded, context_points, similar, work
from tests.benchmarks import fakes


def meant(config):
    return {**config, "protocol": "short"}


def of(method, dataset, seed=0, **training):
    """Return a run whose network can be built."""
    made = fakes.config(seed, method, dataset, **training)
    made["parts"]["network"] |= {"hidden": [10, 10]}
    return made


def recorded(config, seconds, evaluation=None, share=1.0):
    return Recorded(config, Cost(seconds, evaluation), share)


def test_the_work_of_a_step_is_its_fixed_cost_and_that_of_its_points_draws_and_network():
    """Digits: 1,258 points in batches of 100 are 13 steps; an MLP of 64 x 10, 10 x 10, 10 x 10 weights."""
    config = of("a", "digits", 0, epochs=4, samples=3, batch_size=100)
    config["parts"]["context"], config["parts"]["family"] = {"points": 20}, {"name": "mean_field"}
    size = 64 * 10 + 10 * 10 + 10 * 10 + VALUE * 30
    passing = 3 * 120 * size
    assert work(config) == (STEP + passing, 13)
    assert work(config, stack=4) == (STEP / 4 + passing, 13), "a stack has one fixed cost"
    config["parts"]["divergence"] = {"name": "spectral_kl", "draws": 6}
    assert work(config) == (STEP + 2 * passing, 13), "a divergence may draw more networks than the likelihood"
    config["parts"]["divergence"] = None
    config["parts"]["family"] = {"name": "ensemble", "base": {"name": "mean_field"}, "size": 5}
    assert work(config) == (STEP + 5 * passing, 13)
    config["parts"]["context"] = {
        "name": "mixture",
        "parts": [{"points": 15}, {"name": "training_batch"}, {"points": 5}],
    }
    assert work(config) == (STEP + 5 * passing, 13), "a mixture has the points of its parts"
    config["parts"]["training"]["dtype"] = "float64"
    assert work(config) == (STEP + 2 * 5 * passing, 13)
    config["parts"]["training"] |= {"dtype": "float32", "precision": "bfloat16"}
    assert work(config) == (STEP + 5 * passing / 2, 13)
    config["parts"]["training"] |= {"precision": "float32"}
    alone = 120 * size
    config["parts"]["family"]["base"] = {"name": "point"}
    assert work(config) == (STEP + 5 * alone, 13), "a point draws one network, whatever its setting says"
    config["parts"]["family"] = {"name": "centroids", "size": 256}
    assert work(config) == (STEP + alone, 13), "what another family calls its size is no number of networks"
    assert work(of("a", "no-such-data")) is None


def test_an_exact_process_has_a_covariance_of_its_batch_in_place_of_a_network():
    config = of("a", "boston", 0, epochs=4)
    config["parts"]["family"] = {"name": "exact_gp"}
    assert work(config) == (STEP + 455 * 455 * (455 + VALUE), 1)


@pytest.mark.parametrize(
    ("context", "points"),
    [
        ({"name": "grid", "low": [-1.0, 0.0], "high": [1.0, 0.5], "step": 0.25}, 9 * 3),
        ({"name": "grid", "low": [-1.0, 0.0], "high": [1.0, 0.5], "step": None, "counts": [4, 5]}, 20),
        ({"name": "training_batch", "points": None}, 0),
        ({"name": "rotated_batch"}, 128),
        ({"name": "mixture", "parts": [{"name": "rotated_batch"}, {"name": "images", "points": 3}]}, 131),
    ],
)
def test_context_points_are_those_besides_the_batch(context, points):
    assert context_points(context, batch=128) == points


def test_the_median_of_the_kinds_most_alike_tells():
    config, rates = of("a", "boston", 0, epochs=100), (4, 1, 5, 2, 3)
    near = [recorded(of("a", "boston", 0, epochs=n), n * rate) for n, rate in zip((50, 90, 110, 120, 130), rates)]
    far = [
        recorded(of("a", "yacht", 0, epochs=100), 9e9),
        recorded(of("b", "boston", 0, epochs=100), 1.0),
    ]
    other = copy.deepcopy(config)
    other["parts"]["network"] |= {"name": "cnn", "hidden": [200, 200]}
    found = similar(config, [*far, recorded(other, 7.0), *near])
    assert found and found.training == pytest.approx(300.0)
    assert similar(config, [far[1]]) is None, "of its method alone"
    twice = [recorded(near[0].config, 3 * near[0].cost.training), near[0]]
    assert similar(config, twice).training == pytest.approx(400.0), "the lower quartile: some ran beside other work"
    five = [recorded(near[0].config, seconds) for seconds in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert similar(config, five).training == pytest.approx(2 * 2.0)


def test_trainings_that_ended_early_tell_of_those_that_do_not_by_their_share():
    whole, early = (of("a", "boston", 0, epochs=100, **rule) for rule in ({}, {"early_stopping": {"patience": 3}}))
    assert similar(whole, [recorded(early, 10.0, share=0.2)]) == Cost(50.0)
    assert similar(early, [recorded(early, 10.0, share=0.2)]) == Cost(10.0, share=0.2)
    longer, shorter = (of("a", "boston", 0, epochs=n, early_stopping={"patience": 3}) for n in (500, 10))
    assert similar(longer, [recorded(early, 10.0, share=0.2)]) == Cost(10.0, share=0.04), "as many epochs as theirs"
    assert similar(shorter, [recorded(early, 10.0, share=0.2)]) == Cost(5.0)


def test_the_lowest_validation_loss_is_expected_after_the_same_sum_of_learning_rates():
    slow, fast = (
        of("a", "boston", 0, epochs=100, early_stopping={"patience": 3}, optimiser={"lr": lr}) for lr in (0.01, 0.03)
    )
    assert similar(slow, [recorded(fast, 10.0, share=0.13)]) == Cost(pytest.approx(10.0 / 13 * 33), share=0.33)


def test_trainings_that_were_not_ended_early_do_not_tell_where_others_end():
    rule = {"early_stopping": {"patience": 3}}
    config, ended, last = (of("a", "boston", 0, epochs=epochs, **rule) for epochs in (100, 99, 98))
    found = similar(config, [recorded(ended, 20.0, share=20 / 99), recorded(last, 98.0)])
    assert (found.training, found.share) == (pytest.approx(20.0), pytest.approx(0.2))
    assert similar(config, [recorded(last, 98.0)]) == Cost(pytest.approx(100.0))


def test_trainings_that_were_not_ended_before_our_last_epoch_tell_that_ours_is_not_either():
    rule = {"early_stopping": {"patience": 3}}
    config, ended, last = (of("a", "boston", 0, epochs=epochs, **rule) for epochs in (98, 99, 100))
    last["parts"]["network"] |= {"activation": "tanh"}
    ended["parts"]["network"] |= {"activation": "tanh", "init": "haiku"}
    found = similar(config, [recorded(ended, 20.0, share=20 / 99), recorded(last, 100.0)])
    assert (found.training, found.share) == (pytest.approx(98.0), 1.0)


def test_a_kind_of_the_same_settings_on_other_data_weighs_more_than_one_that_differs_in_two():
    config, alike, other = of("a", "yacht"), of("a", "boston"), of("a", "yacht")
    other["parts"]["training"] |= {"a": 1, "b": 1}
    same_work = work(alike)[0] / work(config)[0], work(alike)[1] / work(config)[1]
    found = similar(config, [recorded(alike, 7.0), recorded(other, 90.0)])
    assert found.training == pytest.approx(7.0 / same_work[0] / same_work[1])


def test_a_fit_costs_what_the_same_fit_does_and_not_in_proportion_to_training():
    diagonal, full = (of("a", "boston", 0, epochs=100) for _ in range(2))
    full["parts"]["fit"], longer = {"structure": "full"}, of("a", "boston", 0, epochs=200)
    longer["parts"]["fit"] = {"structure": "full"}
    known = [recorded(diagonal, 10.0), Recorded(full, Cost(60.0), fit=50.0)]
    assert similar(longer, known).training == pytest.approx(20.0 + 50.0)


def test_the_lowest_validation_loss_is_expected_at_the_epoch_of_theirs():
    ended, patient = (of("a", "boston", 0, epochs=100, early_stopping={"patience": n}) for n in (3, 13))
    assert similar(patient, [recorded(ended, 10.0, share=0.2)]) == Cost(15.0, share=0.3), "20 - 3 + 13 epochs"
    assert similar(ended, [recorded(patient, 10.0, share=0.2)]) == Cost(5.0, share=0.1)
    untrained = of("a", "boston", 0, epochs=0, early_stopping={"patience": 3})
    assert similar(untrained, [recorded(ended, 10.0, share=0.2)]).training == 0, "the table of priors has such rows"


def test_evaluations_cost_in_proportion_to_their_networks_draws_and_sets_where_data_are_the_same():
    narrow, wide = (meant(of("a", "digits", 0, epochs=1)) for _ in range(2))
    for config, hidden in ((narrow, 10), (wide, 30)):
        config["parts"]["network"] |= {"name": "mlp", "hidden": [hidden, hidden]}
    wide["parts"]["family"] = {"name": "ensemble", "base": {"name": "point"}, "size": 2}
    own, theirs = 64 * 30 + 30 * 30 + 30 * 10 + VALUE * 70, 64 * 10 + 10 * 10 + 10 * 10 + VALUE * 30
    times = (INPUT + 2 * own) / (INPUT + theirs)
    assert similar(wide, [recorded(narrow, 3.0, 1.0)]).evaluation == pytest.approx(times)
    wide["evaluation"] = {**wide["evaluation"], "samples": 10 * narrow["evaluation"]["samples"]}
    assert similar(wide, [recorded(narrow, 3.0, 1.0)]).evaluation == pytest.approx(10 * times)
    compared = {**wide, "evaluation": {**wide["evaluation"], "reference": {"set": "test", "against": {}}}}
    assert similar(compared, [recorded(narrow, 3.0, 1.0)]).evaluation is None, "others are not compared with HMC"
    wide["evaluation"] = {**wide["evaluation"], "sets": ["a", "b", "c"]}
    times *= 10 * 3 / len(narrow["evaluation"]["sets"])
    assert similar(wide, [recorded(narrow, 3.0, 1.0)]).evaluation == pytest.approx(times)
    wide["dataset"] = {**wide["dataset"], "name": "another"}
    assert similar(wide, [recorded(narrow, 3.0, 1.0)]) is None
