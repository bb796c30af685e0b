"""Configurations, their one spelling and the keys made from it."""

import copy

import pytest

from benchmarks.config import InvalidConfig, canonical_json, run_key, stack_key, stack_limit, validate_config
from tests.benchmarks import fakes


def changed(path, value):
    """A configuration that differs in one place from that of the fakes."""
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


def test_a_key_is_16_hexadecimal_digits_and_is_the_same_in_every_version():
    assert run_key({"a": 1}) == "015abd7f5cc57a2d"
    assert len(run_key(fakes.config())) == 16


CHANGES = [
    (("method",), "MFVI"), (("protocol",), "paper"), (("dataset", "name"), "boston"), (("dataset", "version"), "2"),
    (("parts", "weight", "factor"), 0.5), (("evaluation", "samples"), 2), (("parts", "training", "lr"), 0.1),
]


@pytest.mark.parametrize(("path", "value"), CHANGES, ids=lambda v: str(v))
def test_every_change_is_another_run_and_another_stack(path, value):
    assert run_key(changed(path, value)) != run_key(fakes.config())
    assert stack_key(changed(path, value)) != stack_key(fakes.config())


@pytest.mark.parametrize("path", [("seed",), ("dataset", "split")])
def test_seeds_and_splits_are_other_runs_of_one_stack(path):
    assert run_key(changed(path, 7)) != run_key(fakes.config())
    assert stack_key(changed(path, 7)) == stack_key(fakes.config())


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


def test_exactly_the_keys_of_the_schema():
    validate_config(fakes.config())
    with pytest.raises(InvalidConfig, match=r"configuration: missing \[\], not expected \['colour'\]"):
        validate_config(changed(("colour",), "red"))
    with pytest.raises(InvalidConfig, match=r"configuration\['parts'\]: missing \[\], not expected \['noise'\]"):
        validate_config(changed(("parts", "noise"), {}))
    for name in fakes.config():
        with pytest.raises(InvalidConfig, match=rf"configuration: missing \['{name}'\]"):
            validate_config({k: v for k, v in fakes.config().items() if k != name})
    with pytest.raises(InvalidConfig, match="configuration schema 2: this version reads schema 1"):
        validate_config(changed(("schema",), 2))
