"""Configuration of a run: plain JSON with every hyper-parameter, and the keys derived from it.

A run is a training and an evaluation. The training has a key (``training_key``) of everything that determines the
parameters: method, data set, protocol, seed, parts with all their defaults, the sources of plug-in parts. The
evaluation (evaluation sets, draws) has another. A run's key joins the two, so that one training may serve several runs.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from itertools import pairwise
from typing import Any, NoReturn, TypeVar, get_origin, get_type_hints, is_typeddict

from benchmarks.records.hyperparameters import PARTS
from benchmarks.records.hyperparameters import resolve as resolve_parts
from benchmarks.shapes import DatasetConfig, EvaluationConfig, RunConfig
from fvi_core.methods import fitted_name

CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
C = TypeVar("C", bound=Mapping)
T = TypeVar("T")
SCHEMA = 2
MARKS = 999_000_001, 999_000_002
"""Placeholders for split and seed in the text that many runs share, which is then made once."""
LARGE = 2**63
"""Whole numbers of records are smaller, as other programs need them."""
MOST, WEIGHTS = 10, 1_000_000  # most runs, and most weights of all their networks, in one stack
COMPARISONS = ("posterior", "reference")
OPTIONAL = (*COMPARISONS, "evidence", "bound", "fit")
"""Optional entries of an evaluation: comparisons with other trainings, the sets of a log marginal likelihood and of a
bound on it, and a part fitted to the trained parameters by this evaluation alone."""
FORMS: dict[str, dict[str, type]] = {
    where: {
        name: dict if is_typeddict(kind) else get_origin(kind) or kind for name, kind in get_type_hints(form).items()
    }
    for where, form in (("", RunConfig), ("['dataset']", DatasetConfig), ("['evaluation']", EvaluationConfig))
}
"""Type of every entry of a configuration, of its data set and of its evaluation, as JSON has it."""
EXTERNAL = "predictions"
"""Entry with the digest of a file of external predictions."""
ALWAYS = ("network", "family", "likelihood", "weight", "training")
"""Parts that every training has."""


class InvalidConfig(ValueError):
    """Raised for a run configuration with a missing key, an unknown key, or a missing hyper-parameter."""


class Config(dict):
    """Read-only configuration, so that its keys are computed once."""

    def __reduce__(self) -> tuple:
        return Config, (dict(self),)

    def _fixed(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a run's configuration is read-only; make another from dict(config)")

    __setitem__ = __delitem__ = __ior__ = update = pop = popitem = setdefault = clear = _fixed


def fixed(values: Any, **keys: str) -> Any:
    """Return a configuration, or a part of it, as a read-only one; keys: those known already."""
    config = Config(values)
    vars(config).update(keys)
    return config


def canonical_json(config: Any) -> str:
    """Return the one spelling of a configuration: sorted keys, no spaces, no NaN."""
    return CANONICAL.encode(config)


def digest(config: Any, digits: int = 16) -> str:
    """Return the first hexadecimal digits of the SHA-256 of a configuration, or of a part of it."""
    return _sha(canonical_json(config), digits)


def _sha(text: str, digits: int = 16) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def once(key: Callable[[C], T]) -> Callable[[C], T]:
    """Cache a function of a configuration in every :class:`Config`."""

    @wraps(key)
    def cached(config: C) -> T:
        cache = vars(config) if isinstance(config, Config) else {}
        if key.__name__ not in cache:
            cache[key.__name__] = key(config)
        return cache[key.__name__]

    return cached


@once
def run_key(config: RunConfig) -> str:
    """Return the name of a run: 16 digits of its training, a hyphen, 8 digits of its evaluation."""
    return f"{training_key(config)}-{evaluation_key(config.get('evaluation'))}"


@once
def evaluation_key(evaluation: Any) -> str:
    """Return the 8 hexadecimal digits that name an evaluation."""
    return digest(evaluation, 8)


@once
def training_key(config: RunConfig) -> str:
    """Return the 16 hexadecimal digits that name a training: the hash of the configuration without its evaluation."""
    return digest({name: value for name, value in config.items() if name != "evaluation"})


def training_keys(config: Mapping[str, Any]) -> Callable[[int, int], str]:
    """Return the function that gives the training key of a configuration with another split and seed."""

    def training(split: int, seed: int) -> str:
        own = {name: value for name, value in config.items() if name != "evaluation"}
        return canonical_json({**own, "dataset": {**config["dataset"], "split": split}, "seed": seed})

    pieces = re.split("|".join(map(str, MARKS)), training(*MARKS))
    if len(pieces) != len(MARKS) + 1:  # something else is spelled like a mark
        return lambda split, seed: _sha(training(split, seed))
    before, between, after = pieces
    return lambda split, seed: _sha(f"{before}{split}{between}{seed}{after}")


@once
def stack_key(config: RunConfig) -> str:
    """Return the key shared by trainings that differ in seed and split only."""
    shared = {name: value for name, value in config.items() if name not in ("seed", "evaluation")}
    shared["dataset"] = {name: value for name, value in config["dataset"].items() if name != "split"}
    return digest(shared)


@once
def kind_key(config: RunConfig) -> str:
    """Return the key shared by runs that differ in seed and split only, and so cost the same."""
    evaluation: Any = config.get("evaluation")
    for name in COMPARISONS:
        if comparison := (evaluation or {}).get(name):
            # Comparisons with other runs do not change the cost.
            counts = {label: len(runs) for label, runs in comparison["against"].items()}
            evaluation = {**evaluation, name: {**comparison, "against": counts}}
    return f"{stack_key(config)}-{digest(evaluation, 8)}"


def differences(own: RunConfig, other: RunConfig) -> list[tuple[str, str, str]]:
    """Return the settings in which two configurations differ: name ("training.optimiser.lr"), own value, other's value.

    Seeds, splits, comparisons with other runs, and the user's own files are left out.
    """
    ours, theirs = _settings(own), _settings(other)
    absent = "—"
    return [
        (key, ours.get(key, absent), theirs.get(key, absent))
        for key in dict.fromkeys((*ours, *theirs))
        if ours.get(key, absent) != theirs.get(key, absent)
    ]


@once
def _settings(config: RunConfig) -> dict[str, str]:
    data: Any = {name: config["dataset"].get(name) for name in ("version", "scheme")}
    wanted: Any = {name: config["evaluation"].get(name) for name in ("samples", "sets", "evidence", "bound", "fit")}
    present = {name: value for name, value in wanted.items() if value is not None}
    return _flat(config["parts"]) | _flat(data, ".dataset") | _flat(present, ".evaluation")


def _flat(value: Any, at: str = "") -> dict[str, str]:
    if isinstance(value, dict) and value:
        return {key: text for name, part in value.items() for key, text in _flat(part, f"{at}.{name}").items()}
    return {at.removeprefix("."): value if isinstance(value, str) else json.dumps(value)}


def method_of(config: RunConfig) -> str:
    """Return the catalogue's name of a run's method, with the part that is fitted after training."""
    fit = config["evaluation"].get("fit")
    return config["method"] if fit is None else fitted_name(config["method"], fit)


def by_training(configs: Iterable[RunConfig]) -> dict[str, list[RunConfig]]:
    """Return runs by the training that they share."""
    runs: dict[str, list[RunConfig]] = {}
    for config in configs:
        runs.setdefault(training_key(config), []).append(config)
    return runs


def is_large(config: RunConfig) -> bool:
    """Return whether a single run fills a core, since its steps are long compared with the overhead around them."""
    parts = config["parts"]
    return (parts["divergence"] or {}).get("name") == "nearest_neighbour_kl" or parts["network"]["name"] != "mlp"


def stack_limit(config: RunConfig) -> int:
    """Return how many trainings of one stack key train together: one if large, else as many as fit the caches."""
    import datasets  # here, since keys alone do not need it

    if is_large(config):
        return 1
    parts, data = config["parts"], config["dataset"]
    try:
        shape = datasets.describe(data["name"], data["scheme"] or None).shape
    except (datasets.UnknownDataset, datasets.UnknownSplit):  # the run itself reports this, and fails alone
        return 1
    sizes = [math.prod(shape), *parts["network"]["hidden"]]
    weights = sum(a * b for a, b in pairwise(sizes)) * parts["family"].get("size", 1)
    return max(1, min(MOST, WEIGHTS // max(1, weights)))


def is_external(config: RunConfig) -> bool:
    """Return whether a run consists of external predictions."""
    return EXTERNAL in config["sources"]


def check_form(config: Any) -> None:
    """Raise :class:`InvalidConfig` unless a configuration from a file has every entry, each of its type.

    Names and hyper-parameters of parts are not checked: they may belong to code that is not here.
    """
    _check_keys(config)
    evaluation, parts = config["evaluation"], config["parts"]
    for (where, kinds), values in zip(FORMS.items(), (config, config["dataset"], evaluation)):
        for name, value in values.items():
            right = isinstance(value, kinds[name]) and not isinstance(value, bool)
            if not right or (type(value) is int and abs(value) >= LARGE):
                raise InvalidConfig(
                    f"configuration{where}['{name}']: expected {kinds[name].__name__}, found {value!r:.80}"
                )
    for values in (config["sources"], config["dataset"]["content"], evaluation["content"]):
        if not all(type(value) is str for value in values.values()):
            raise InvalidConfig(f"configuration: expected digests of files, found {values!r:.80}")
    if evaluation["samples"] < 1 or not all(type(name) is str for name in evaluation["sets"]):
        raise InvalidConfig(
            f"configuration['evaluation']: expected samples and names of sets, found {evaluation!r:.80}"
        )
    for name in COMPARISONS:
        if name in evaluation and not isinstance(evaluation[name].get("against"), dict):
            raise InvalidConfig(f"configuration['evaluation']['{name}']: expected trainings by label, found none")
    external = is_external(config)
    for name, part in parts.items():
        named = isinstance(part, dict) and (name == "weight" or type(part.get("name")) is str)
        if not ((part is None and (external or name not in ALWAYS)) or (named and not external)):
            raise InvalidConfig(f"configuration['parts']['{name}']: expected a part by its name, found {part!r:.80}")


def validate_config(config: RunConfig) -> None:
    """Raise :class:`InvalidConfig` unless the configuration has this schema and every hyper-parameter."""
    _check_keys(config)
    given: Mapping[str, Any] = config["parts"]
    _same_parts("parts", given, resolve_parts(given))
    if fit := config["evaluation"].get("fit"):
        _same_parts("evaluation", {"fit": fit}, {"fit": resolve_parts({"fit": fit}, ("fit",))["fit"]})


def _same_parts(where: str, found: Mapping[str, Any], resolved: Mapping[str, Any]) -> None:
    for name, part in resolved.items():
        if canonical_json(part) != canonical_json(found[name]):
            raise InvalidConfig(
                f"configuration['{where}']['{name}']: expected every hyper-parameter, {canonical_json(part)}, "
                f"found {canonical_json(found[name])}"
            )


def _check_keys(config: Any) -> None:
    run, data, evaluation = map(tuple, FORMS.values())
    _same_keys("configuration", config, run)
    if config["schema"] != SCHEMA:
        raise InvalidConfig(f"configuration schema {config['schema']!r}: this version reads schema {SCHEMA}")
    _same_keys("configuration['dataset']", config["dataset"], data)
    needed = tuple(name for name in evaluation if name not in OPTIONAL)
    _same_keys("configuration['evaluation']", config["evaluation"], needed, OPTIONAL)
    _same_keys("configuration['parts']", config["parts"], PARTS)


def _same_keys(where: str, found: Any, expected: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
    if not isinstance(found, dict):
        raise InvalidConfig(f"{where}: expected a dict of {sorted(expected)}, found {found!r}")
    if len(found) == len(expected) and all(map(found.__contains__, expected)):
        return
    missing, extra = set(expected) - set(found), set(found) - {*expected, *optional}
    if missing or extra:
        raise InvalidConfig(
            f"{where}: missing {sorted(missing)}, not expected {sorted(extra)}; it has {sorted(expected)}"
        )
