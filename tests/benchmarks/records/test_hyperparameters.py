"""Every hyper-parameter of every part, without loading torch; what is missing or not known is named."""

import copy
import dataclasses
import subprocess
import sys

import pytest

from benchmarks.records import hyperparameters
from benchmarks.records.hyperparameters import PARTS, context_pools, describe, known, load_parts, look, resolve, sources
from fvi_core.plugins import module_digest
from fvi_core.registry import CONTEXTS, DIVERGENCES, REGISTRIES, UnknownPart, later, nested
from fvi_core.spelling import UnfitValue, check_limits

PARTS_OF_A_RUN = {
    "network": {"name": "mlp", "hidden": [50]},
    "family": {"name": "ensemble", "base": {"name": "dropout"}},
    "prior": {"name": "gaussian_process", "kernel": {"name": "matern12"}},
    "divergence": {"name": "gaussian_kl", "jitter": 1},
    "context": {
        "name": "mixture",
        "parts": ({"name": "images", "points": 3, "pool": "kmnist"}, {"name": "training_batch"}),
    },
    "likelihood": {"name": "gaussian"},
    "training": {
        "epochs": 3,
        "batch_size": 2,
        "optimiser": {"name": "sgd"},
        "early_stopping": {"patience": 4},
        "clip": 2,
    },
}


def test_every_default_is_said_in_nested_parts_too():
    found = resolve(PARTS_OF_A_RUN)
    assert list(found) == list(PARTS)
    assert found["family"] == {
        "name": "ensemble",
        "base": {"name": "dropout", "rate": 0.1, "masks": "input"},
        "size": 5,
        "joint": False,
    }
    assert found["prior"]["kernel"] == {"name": "matern12", "ard": True} and found["prior"]["fit_steps"] == 500
    assert [part["name"] for part in found["context"]["parts"]] == ["images", "training_batch"]
    assert found["context"]["parts"][1] == {"name": "training_batch", "points": None}
    assert found["weight"] == {"scaling": "elbo", "factor": 1.0}
    assert found["training"]["early_stopping"] == {"patience": 4, "every": 1} and found["training"]["augment"] is None
    assert found["training"]["schedule"] == {"name": "constant"} and found["training"]["optimiser"]["momentum"] == 0.0
    assert resolve(found) == found and context_pools(found["context"]) == {"kmnist"}


def test_one_spelling_of_a_number_and_of_a_sequence():
    found = resolve(PARTS_OF_A_RUN)
    for value in (found["divergence"]["jitter"], found["training"]["clip"]):
        assert type(value) is float
    assert type(found["training"]["epochs"]) is int and type(found["context"]["parts"]) is list


def test_equal_parts_are_resolved_once_and_numbers_of_other_types_apart(monkeypatch):
    seen, resolved = [], hyperparameters._resolved
    monkeypatch.setattr(hyperparameters, "_SEEN", {})
    monkeypatch.setattr(hyperparameters, "_resolved", lambda *spec: seen.append(spec) or resolved(*spec))
    first = resolve(PARTS_OF_A_RUN)
    count = len(seen)
    again = resolve(copy.deepcopy(PARTS_OF_A_RUN))
    assert again == first and len(seen) == count
    again["training"]["epochs"] += 1  # each result is one's own
    assert resolve(PARTS_OF_A_RUN) == first
    training = PARTS_OF_A_RUN["training"]
    assert resolve(PARTS_OF_A_RUN | {"training": training | {"clip": 2.0}}) == first and len(seen) > count
    for wrong in ({"clip": True}, {"epochs": 3.0}):
        for _ in range(2):
            with pytest.raises(UnfitValue, match=next(iter(wrong))):
                resolve(PARTS_OF_A_RUN | {"training": training | wrong})


WRONG = {
    "an unknown part": ({"family": {"name": "pointe"}}, "family: family 'pointe' is not known; did you mean 'point'"),
    "an unknown kind": ({"familly": {"name": "point"}}, "did you mean 'family'"),
    "an unknown hyper-parameter": ({"likelihood": {"name": "gaussian", "std": 1}}, "has no hyper-parameter 'std'"),
    "an unknown one of a nested part": (
        {"family": {"name": "ensemble", "base": {"name": "dropout", "rat": 1}}},
        r"family.base: family 'dropout' has no .* 'rate'"),
    "a missing one": ({"network": {"name": "mlp"}}, r"network 'mlp' needs the hyper-parameter 'hidden' \\(list"),
    "no name": ({"network": {"hidden": [3]}}, "network: a 'name' is needed, found only"),
    "a part that has to be there": ({"network": None}, "network: expected a dict of hyper-parameters, found None"),
    "no JSON": ({"likelihood": {"name": "gaussian", "init_std": object()}}, "likelihood.init_std: expected a number"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named(what):
    change, message = WRONG[what]
    with pytest.raises(UnknownPart, match=message.replace("\\\\", "\\")):
        resolve(PARTS_OF_A_RUN | change)


@pytest.mark.parametrize(("change", "message"), [
    ({"family": {"name": "dropout", "rate": 1.0}}, "family.rate: expected 0 or more and below 1, found 1.0"),
    ({"divergence": {"name": "gaussian_kl", "covariance": "ful"}},
     "divergence.covariance 'ful' is not known; did you mean 'full'"),
    ({"family": {"name": "ensemble", "base": {"name": "dropout", "rate": "0.1"}}},
     "family.base.rate: expected float, found '0.1'"),
    ({"family": {"name": "dropout", "rate": [0.5]}}, r"family.rate: expected float, found \[0.5\]"),
    ({"context": {"name": "random_pixel", "points": None}}, "context.points: expected int, found None"),
    ({"network": {"name": "mlp", "hidden": 3}}, r"network.hidden: expected list\[int\], found 3"),
    ({"likelihood": {"name": "gaussian", "learned": "no"}}, "likelihood.learned: expected bool, found 'no'"),
    ({"likelihood": {"name": "gaussian", "learned": 0}}, "likelihood.learned: expected bool, found 0"),
    ({"training": {"epochs": True}}, "training.epochs: expected int, found True"),
    ({"training": PARTS_OF_A_RUN["training"] | {"early_stopping": {"patience": 3.0}}},
     "training.early_stopping.patience: expected int, found 3.0"),
    ({"prior": {"name": "gaussian_weights", "variance": float("inf")}}, "prior.variance: expected finite numbers"),
])  # fmt: skip
def test_a_value_beyond_the_limits_of_its_part_is_refused_before_any_training(change, message):
    with pytest.raises(ValueError, match=message):
        resolve(PARTS_OF_A_RUN | change)


def test_what_was_looked_up_before_is_what_the_classes_say():
    hyperparameters.known.cache_clear()
    assert known() == look()
    for kind, registry in REGISTRIES.items():
        own = {name for name, cls in registry.classes.items() if cls.__module__.startswith("fvi_core.")}
        assert own == set(known()[kind])


def test_a_second_look_loads_no_torch():
    known()
    code = "import sys; from benchmarks import tables; tables.get('uci').runs(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A divergence and a context of a plug-in."""

    @dataclasses.dataclass(frozen=True)
    class Mine:
        base: dict = nested(CONTEXTS, {"name": "training_batch"})
        width: "float" = 2

    (tmp_path / "mine.py").write_text("# what makes it\n")
    module = type(sys)("mine_of_a_test")
    module.__file__ = str(tmp_path / "mine.py")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    Mine.__module__ = module.__name__
    monkeypatch.setitem(DIVERGENCES.classes, "mine", Mine)
    return tmp_path / "mine.py"


def test_parts_of_plugins_are_resolved_and_named_by_their_source(plugin):
    found = resolve(PARTS_OF_A_RUN | {"divergence": {"name": "mine"}})
    assert found["divergence"] == {"name": "mine", "base": {"name": "training_batch", "points": None}, "width": 2.0}
    before = sources(found, "digits")
    assert list(before) == ["divergence mine"] and sources(resolve(PARTS_OF_A_RUN), "digits") == {}
    plugin.write_text("# what makes it, times 1,000\n")
    module_digest.cache_clear()  # another process
    assert sources(found, "digits") != before


def test_a_hyperparameter_that_came_later_stands_only_where_it_is_not_its_default(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Grown:
        width: float = 2.0
        margin: float = later(1.0)

    Grown.__module__ = "grown_of_a_test"
    monkeypatch.setitem(DIVERGENCES.classes, "grown", Grown)

    def found(**hyper):
        return resolve(PARTS_OF_A_RUN | {"divergence": {"name": "grown", **hyper}})["divergence"]

    assert found() == found(margin=1) == {"name": "grown", "width": 2.0}
    assert found(margin=3) == {"name": "grown", "width": 2.0, "margin": 3.0}
    assert DIVERGENCES.build(found()).margin == 1.0 and describe(Grown)["margin"]["later"] is True


def test_a_part_without_defaults_says_so():
    @dataclasses.dataclass
    class Plain:
        points: int
        names: tuple = dataclasses.field(default_factory=lambda: ("a",))

    assert describe(Plain) == {"points": {"type": "int"}, "names": {"type": "tuple", "default": ("a",)}}


BEYOND = {"least": -1e-9, "above": 0.0, "most": 1e-9, "below": 0.0}
LIMITED = {
    f"{kind} {part} {name}": (kind, part, name)
    for kind, parts in known().items() if kind in REGISTRIES
    for part, entries in parts.items()
    for name, entry in entries.items() if entry.get("limits")
}  # fmt: skip


@pytest.mark.parametrize("what", LIMITED)
def test_a_default_is_within_its_limits_and_what_lies_beyond_is_refused(what):
    load_parts()
    kind, part, name = LIMITED[what]
    entries = known()[kind][part]
    limits, default = entries[name]["limits"], entries[name].get("default")
    if default is not None:
        check_limits(name, default, entries[name]["type"], **limits)

    def placed(key, value):
        return [value] if entries[key]["type"].startswith(("list", "tuple")) else value

    others = {"name": part} | {key: placed(key, 1) for key, entry in entries.items() if "default" not in entry}
    beyond = [placed(name, end + BEYOND[side]) for side, end in limits.items() if side != "among"]
    for wrong in beyond or ["nonsense"]:
        with pytest.raises(ValueError, match=f"{name}( '|: expected)"):
            REGISTRIES[kind].build(others | {name: wrong})
