"""Configurations, their one spelling and the keys made from it."""

import copy
import json
import pickle
import re

import pytest

from benchmarks.records.config import (
    Config,
    InvalidConfig,
    by_training,
    canonical_json,
    digest,
    run_key,
    stack_key,
    stack_limit,
    training_key,
    validate_config,
)
from benchmarks.records.hyperparameters import resolve
from tests.benchmarks import fakes


def changed(path, value):
    """Return a configuration of the fakes with one value changed."""
    config = copy.deepcopy(fakes.config())
    inner = config
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return config


def test_the_spelling_does_not_depend_on_the_order_of_keys():
    config = fakes.config()
    backwards = dict(reversed(config.items()))
    assert canonical_json(backwards) == canonical_json(config) and run_key(backwards) == run_key(config)
    assert canonical_json({"b": [1, 2.5], "a": None}) == '{"a":null,"b":[1,2.5]}'


def test_a_key_is_that_of_the_training_and_of_the_evaluation_and_is_the_same_in_every_version():
    assert digest({"a": 1}) == "015abd7f5cc57a2d" and digest({"a": 1}, 8) == "015abd7f"
    assert run_key({"a": 1, "evaluation": {"a": 1}}) == "015abd7f5cc57a2d-015abd7f"
    assert training_key({"a": 1, "evaluation": {}}) == "015abd7f5cc57a2d"
    assert re.fullmatch("[0-9a-f]{16}-[0-9a-f]{8}", run_key(fakes.config()))


CHANGES = [
    (("method",), "MFVI"),
    (("protocol",), "paper"),
    (("dataset", "name"), "boston"),
    (("dataset", "version"), "2"),
    (("dataset", "content"), {"digits/train": "ab"}),
    (("sources",), {"divergence mine": "ab"}),
    (("parts", "weight", "factor"), 0.5),
    (("parts", "training", "lr"), 0.1),
]


@pytest.mark.parametrize(("path", "value"), CHANGES, ids=lambda v: str(v))
def test_every_change_is_another_training_and_another_stack(path, value):
    before, after = fakes.config(), changed(path, value)
    assert run_key(after).partition("-")[0] == training_key(after) != training_key(before)
    assert stack_key(after) != stack_key(before)


@pytest.mark.parametrize("path", [("seed",), ("dataset", "split")])
def test_seeds_and_splits_are_other_trainings_of_one_stack(path):
    assert training_key(changed(path, 7)) != training_key(fakes.config())
    assert stack_key(changed(path, 7)) == stack_key(fakes.config())


ASKED = [
    (("evaluation", "samples"), 2),
    (("evaluation", "sets"), ["test", "ood"]),
    (("evaluation", "content"), {"x": "ab"}),
]


@pytest.mark.parametrize(("path", "value"), ASKED, ids=lambda v: str(v))
def test_another_evaluation_is_another_run_of_the_same_training(path, value):
    before, after = fakes.config(), changed(path, value)
    assert run_key(after) != run_key(before)
    assert (training_key(after), stack_key(after)) == (training_key(before), stack_key(before))
    assert by_training([before, after]) == {training_key(before): [before, after]}


def test_a_configuration_is_fixed_and_survives_a_pipe_with_its_keys():
    config = Config(fakes.config())
    for change in (lambda: config.update(seed=3), lambda: config.pop("seed"), lambda: config.__setitem__("seed", 3)):
        with pytest.raises(TypeError, match="configuration is read-only"):
            change()
    again = pickle.loads(pickle.dumps(config))
    assert type(again) is Config and again == config == fakes.config()
    assert run_key(again) == run_key(config) == run_key(dict(config)) and json.loads(json.dumps(config)) == config


def test_a_number_that_is_none_has_no_spelling():
    with pytest.raises(ValueError, match="not JSON compliant"):
        run_key(changed(("parts", "weight", "factor"), float("nan")))


def test_only_light_runs_are_stacked():
    small = {"dataset": {"name": "digits", "scheme": ""}, "parts": {
        "network": {"name": "mlp", "hidden": [50, 50]}, "family": {"name": "point"}, "divergence": None}}  # fmt: skip
    assert stack_limit(small) == 10

    def limit(**parts):
        return stack_limit(small | {"parts": small["parts"] | parts})

    assert limit(network={"name": "cnn"}) == 1
    assert limit(divergence={"name": "nearest_neighbour_kl"}) == 1
    # 64 x 500 + 500 x 500 weights, of which three fit into a million; members of an ensemble count each
    assert limit(network={"name": "mlp", "hidden": [500, 500]}) == 3
    assert limit(network={"name": "mlp", "hidden": [500, 500]}, family={"name": "ensemble", "size": 5}) == 1


def complete(**changes):
    """Return a configuration with every field."""
    parts = fakes.config()["parts"] | {
        "network": {"name": "mlp", "hidden": [3]},
        "training": {"epochs": 1, "batch_size": 2, "optimiser": {"name": "adam"}},
    }
    return {**fakes.config(), "parts": resolve(parts), **changes}  # fmt: skip


def test_exactly_the_keys_of_the_schema_and_every_hyperparameter():
    validate_config(complete())
    with pytest.raises(InvalidConfig, match=r"configuration: missing \[\], not expected \['colour'\]"):
        validate_config(complete(colour="red"))
    for name in fakes.config():
        with pytest.raises(InvalidConfig, match=rf"configuration: missing \['{name}'\]"):
            validate_config({k: v for k, v in complete().items() if k != name})
    with pytest.raises(InvalidConfig, match="schema 1: this version reads schema 2"):
        validate_config(complete(schema=1))
    with pytest.raises(InvalidConfig, match=r"\['evaluation'\]: expected a dict .* found 3"):
        validate_config(complete(evaluation=3))
    parts = complete()["parts"]
    with pytest.raises(InvalidConfig, match=r"\['parts'\]: missing \[\], not expected \['noise'\]"):
        validate_config(complete(parts={**parts, "noise": {}}))
    short = {**parts, "weight": {"scaling": "elbo"}}
    with pytest.raises(InvalidConfig, match=r"\['weight'\]: expected every hyper-parameter, .*factor.*found"):
        validate_config(complete(parts=short))
