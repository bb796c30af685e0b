"""A part fitted after training by one evaluation: it shares the training, and its temperature is of held-out images."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

import datasets
from benchmarks import tables
from benchmarks.experiment import parameters
from benchmarks.experiment.execute import evaluate_kept, execute
from benchmarks.experiment.measure import measure_run
from benchmarks.experiment.misfits import misfits
from benchmarks.records import predictions
from benchmarks.records.config import InvalidConfig, by_training, method_of, run_key, training_key, validate_config
from benchmarks.records.store import Store
from benchmarks.state import kept
from benchmarks.suite import Suite
from benchmarks.sweep import begin
from benchmarks.sweep.begin import with_rows
from tests.benchmarks.experiment.test_execute import CURVE, MOONS, config, numbers

DIGITS = {"dataset": "digits", "scheme": "validation", "sets": ("test", "validation", "ood-photos")}
NAME = "MAP (temperature)"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """MAP, and MAP with a temperature, in one sweep: their outcomes and the state."""
    state = tmp_path_factory.mktemp("state")
    cases = [config("MAP", **DIGITS, epochs=20), config(NAME, **DIGITS, epochs=20)]
    return execute(cases, state=state), state


def test_both_are_one_training(pair):
    (plain, scaled), state = pair
    assert training_key(plain.config) == training_key(scaled.config) and run_key(plain.config) != run_key(scaled.config)
    assert len(by_training([plain.config, scaled.config])) == 1
    assert [method_of(o.config) for o in (plain, scaled)] == ["MAP", NAME]
    assert plain.provenance["seconds"] == scaled.provenance["seconds"]
    assert not any(name.startswith("fit/") for name in parameters.load(state, training_key(plain.config)).parameters)


def test_the_temperature_is_that_of_scipy_on_the_held_out_images(pair):
    (plain, scaled), state = pair
    temperature = numbers(scaled)["temperature", ""][0]
    assert ("temperature", "") not in numbers(plain)
    raw, divided = (predictions.load(kept.predictions_path(state, run_key(o.config))) for o in (plain, scaled))
    held = raw["validation"]
    logits = held.logits[0].astype(float)

    def loss(log_temperature):
        log = log_softmax(logits / np.exp(log_temperature), -1)
        return -np.take_along_axis(log, held.labels[:, None], -1).mean()

    best = minimize_scalar(loss, bounds=(-3, 3), method="bounded").x
    assert temperature == pytest.approx(np.exp(best), rel=5e-3) and abs(temperature - 1) > 0.02
    for name in DIGITS["sets"]:
        np.testing.assert_allclose(divided[name].logits * temperature, raw[name].logits, rtol=0.01, atol=0.01)
    before, after = numbers(plain), numbers(scaled)
    assert before["accuracy", ""] == after["accuracy", ""]
    assert after["nll", "part=validation"] < before["nll", "part=validation"]


def test_an_evaluation_alone_and_a_measurement_give_the_same(pair, tmp_path):
    (_, scaled), state = pair
    again = evaluate_kept(scaled.config, state)
    assert numbers(again) == numbers(scaled) and again.curves == scaled.curves
    store = Store(tmp_path)
    store.write(store.make(scaled.config, scaled.metrics, scaled.curves, scaled.provenance))
    assert measure_run(scaled.config, store, state) == "unchanged"
    rows = [row for row in store.get(scaled.config)["metrics"] if row["metric"] == "temperature"]
    assert len(rows) == 1


def test_without_held_out_data_the_row_fails_and_its_base_does_not(tmp_path):
    plain, scaled = execute([config("MAP", dataset=MOONS), config(NAME, dataset=MOONS)], state=tmp_path)
    assert plain.status == "done" and scaled.status == "failed"
    assert scaled.reason.startswith("fit 'temperature': expected validation data")


def test_regressions_are_named_as_misfits_before_anything_is_trained():
    (message,) = misfits([config(NAME, dataset=CURVE), config("MAP", dataset=CURVE)])
    assert message.startswith(f"does not fit: {NAME} on {CURVE}") and "divides the logits of classes" in message


def test_a_row_may_be_added_to_any_table_of_classes_and_chosen_by_name():
    for name in ("digits", "fashion_mnist", "rudner2022-1"):
        if name not in tables.names():
            continue
        (table,) = with_rows(name, NAME.lower(), Suite())
        configs = table.runs()
        scaled, plain = begin.only(configs, [NAME], []), begin.only(configs, ["MAP"], [])
        assert scaled and {training_key(c) for c in scaled} == {training_key(c) for c in plain}
        assert all(c["evaluation"]["fit"]["held_out"] for c in scaled) and all(
            "fit" not in c["evaluation"] for c in plain
        )
        assert not {run_key(c) for c in tables.get(name).runs()} - {run_key(c) for c in configs}


def test_rows_of_the_table_share_their_trainings():
    table = tables.get("digits-temperature")
    keys = [[training_key(c) for c in table.cell_runs(row, table.columns[0])] for row in table.rows]
    assert keys[::2] == keys[1::2] and len({key for each in keys for key in each}) == 4 * 5
    assert all({"msp", "energy", "ood_auroc", "nll"} <= metrics for metrics in table.metrics_of_runs().values())
    assert datasets.load("digits", 0, scheme="validation").validation is not None


def test_a_configuration_says_every_hyper_parameter_of_it():
    case = dict(config(NAME, **DIGITS))
    validate_config(case)
    case["evaluation"] = case["evaluation"] | {"fit": {"name": "temperature"}}
    with pytest.raises(InvalidConfig, match=r"configuration\['evaluation'\]\['fit'\]: expected every hyper-parameter"):
        validate_config(case)
