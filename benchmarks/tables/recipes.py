"""Recipes: what a table's row changes in its method, and the configurations of the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import datasets
from benchmarks.records.config import SCHEMA, fixed, training_keys
from benchmarks.records.hyperparameters import USUAL, context_pools, resolve, sources
from benchmarks.shapes import PosteriorConfig, ReferenceConfig, RunConfig, TrainingConfig
from fvi_core import methods

Parts = dict[str, Any]


@dataclass(frozen=True)
class EntropyRequest:
    """Settings of entropy estimates of a posterior: number of draws, at ``sets`` sets of ``points`` uniform inputs.

    ``against``: configurations of the runs to compare with, by label; ``siblings``: also compare with the other
    replicates, under the label q.
    """

    draws: int = 1000
    sets: int = 100
    points: int = 200
    against: Mapping[str, Sequence[RunConfig]] = field(default_factory=dict)
    siblings: bool = False

    def of(self, run: RunConfig, siblings: Sequence[RunConfig]) -> PosteriorConfig:
        """Return the evaluation's entry of one of the runs of a recipe."""
        others = [each for each in siblings if each != run] if self.siblings else []
        against = {**self.against, **({"q": others} if others else {})}
        return {"draws": self.draws, "sets": self.sets, "points": self.points, "against": _trainings(against)}


@dataclass(frozen=True)
class ReferenceRequest:
    """Functions to compare with at an evaluation set.

    ``against``: runs by label; those with the run's split count, but not the run itself. ``exact``: the exact posterior
    of the run's own prior and noise.
    """

    set: str = "test"
    exact: bool = False
    against: Mapping[str, Sequence[RunConfig]] = field(default_factory=dict)

    def of(self, run: RunConfig) -> ReferenceConfig | None:
        """Return the evaluation's entry of one of the runs of a recipe; None for a run that has no other to compare
        with."""
        (own,) = _trainings({"": [run]})[""]
        others = {
            label: [each for each in runs if each["dataset"]["split"] == own["dataset"]["split"] and each != own]
            for label, runs in _trainings(self.against).items()
        }
        against = {label: runs for label, runs in others.items() if runs}
        return {"set": self.set, "exact": self.exact, "against": against} if self.exact or against else None


def _trainings(runs: Mapping[str, Sequence[RunConfig]]) -> dict[str, list[TrainingConfig]]:
    """Return the runs without their evaluations."""
    trainings: Any = {
        label: [{name: value for name, value in each.items() if name != "evaluation"} for each in own]
        for label, own in runs.items()
    }
    return trainings


@dataclass(frozen=True)
class Recipe:
    """Recipe of one method on one data set under one protocol.

    ``parts`` are merged into the method's: a dict with another "name" replaces, anything else updates. ``replicates``
    are (split, seed) pairs; ``scheme``: the data set's split scheme; ``sets``: the evaluation sets, where corrupted or
    attacked ones may be limited to some test images ("cifar10_c-3-of-1000"). Optional evaluations: ``posterior``:
    entropies; ``reference``: distances from other functions; ``evidence``: the log marginal likelihood of the set of
    this name; ``bound``: a sparse process's bound on it.
    """

    parts: Parts
    replicates: tuple[tuple[int, int], ...]
    scheme: str = ""
    samples: int = 100
    sets: tuple[str, ...] = ("test",)
    posterior: EntropyRequest | None = None
    reference: ReferenceRequest | None = None
    evidence: str = ""
    bound: str = ""

    def with_parts(self, changes: Parts) -> Recipe:
        """Return the recipe with changed parts, whose names may be dotted."""
        return replace(self, parts=layered(self.parts, changes))

    def keeping(self, own: Parts) -> Recipe:
        """Return the recipe with a method's own likelihood and training; where the recipe has the same part, it sets
        what the method leaves open."""
        return replace(self, parts=self.parts | {kind: _kept(kind, part, self.parts) for kind, part in own.items()})


def with_quick_fits(recipe: Recipe, method: str) -> Recipe:
    """Return the recipe for protocol smoke with at most 5 steps to fit a kernel, for a method of a user's choice."""
    row = methods.get(method)
    kinds = ("family", "prior")
    parts: Any = resolve(merge({kind: getattr(row, kind) for kind in kinds}, recipe.parts), kinds)
    many = [kind for kind in kinds if ((parts[kind] or {}).get("fit_steps") or 0) > 5]
    return recipe.with_parts({f"{kind}.fit_steps": 5 for kind in many})


def _kept(kind: str, part: Parts, parts: Parts) -> Parts:
    """Return a method's own part, completed from the recipe's of the same name; without a name it is the recipe's."""
    present = {"name": USUAL.get(kind), **parts.get(kind, {})}
    return merge(present, part) if part.get("name", present["name"]) == present["name"] else part


def seeds(count: int) -> tuple[tuple[int, int], ...]:
    """Return the replicates of so many seeds on the first split."""
    return tuple((0, seed) for seed in range(count))


def folds(count: int) -> tuple[tuple[int, int], ...]:
    """Return the replicates of so many splits, each with a seed of its own."""
    return tuple((i, i) for i in range(count))


def make_configs(method: str, dataset: str, protocol: str, recipe: Recipe) -> list[RunConfig]:
    """Return the full configurations of a recipe's runs.

    A recipe that names the method's own likelihood or training changes their hyper-parameters; one without a name sets
    what they leave open.
    """
    entry = methods.get(method)
    row = methods.get(entry.trained_as) if entry.trained_as else entry
    known = datasets.describe(dataset, recipe.scheme or None)
    own = {
        kind: merge(part, changes)
        if (changes := recipe.parts.get(kind, {})).get("name", "") == part.get("name")
        else _kept(kind, part, recipe.parts)
        for kind, part in row.own_parts().items()
    }
    parts = resolve(merge({name: getattr(row, name) for name in methods.PARTS}, recipe.parts) | own)
    shared: Any = {
        "method": row.name,
        "protocol": protocol,
        "parts": parts,
        "sources": sources(parts, dataset),
        "schema": SCHEMA,
    }
    data = {
        "name": dataset,
        "version": known.version,
        "scheme": known.scheme,
        "content": datasets.training_content(dataset, known.scheme, context_pools(parts["context"])),
    }
    content = datasets.evaluation_content(dataset, known.scheme, recipe.sets)
    evaluation: Any = {"samples": recipe.samples, "sets": list(recipe.sets), "content": content}
    if entry.trained_as:
        evaluation["fit"] = resolve({"fit": entry.fit}, ("fit",))["fit"]
    numbers = {name: value for name in ("evidence", "bound") if (value := getattr(recipe, name))}
    same = fixed(evaluation | numbers)
    runs: Any = [
        {**shared, "dataset": {**data, "split": split}, "seed": seed, "evaluation": same}
        for split, seed in recipe.replicates
    ]
    configs = []
    keys = training_keys({**shared, "dataset": data, "seed": 0})
    for run, replicate in zip(runs, recipe.replicates, strict=True):
        compared: Any = {} if recipe.posterior is None else {"posterior": recipe.posterior.of(run, runs)}
        if recipe.reference is not None and (other := recipe.reference.of(run)):
            compared["reference"] = other
        own = {"evaluation": evaluation | compared | numbers} if compared else {}
        configs.append(fixed(run | own, training_key=keys(*replicate)))
    return configs


def merge(base: Parts, changes: Parts) -> Parts:
    """``base`` with ``changes`` applied key by key; a dict that names another part replaces the one it meets.

    The result shares what is unchanged with both, so parts are only ever replaced, not changed in place.
    """
    merged = {**base, **changes}
    for key, value in changes.items():
        old = base.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and value.get("name", old.get("name")) == old.get("name"):
            merged[key] = merge(old, value)
    return merged


def layered(*layers: Mapping[str, Any]) -> Parts:
    """Return layers of settings as one, later ones over earlier; names may be dotted, as "training.optimiser.lr"."""
    parts: Parts = {}
    for layer in layers:
        nested: Parts = {}
        for path, value in layer.items():
            *above, last = path.split(".")
            place = nested
            for name in above:
                place[name] = place = dict(place.get(name, {}))
            place[last] = value
        parts = merge(parts, nested)
    return parts
