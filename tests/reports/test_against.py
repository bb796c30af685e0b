"""Captions that contradict a paper are true of the committed records."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datasets
from benchmarks.metrics.distances import growth
from benchmarks.records.provenance import ROOT
from benchmarks.suite import Suite
from reports.figures import FIGURES, Runs, draw, recorded_runs, settings
from reports.figures.parts import by_level, stack
from reports.figures.shifts import ATTACK, LIKELIHOOD
from reports.records import Records


@cache
def known() -> tuple[Suite, Records]:
    return Suite(), Records(ROOT / "results")


def shown(name: str) -> Runs:
    suite, records = known()
    figure = FIGURES[name]
    found = recorded_runs(figure, suite.table(figure.table), None, records)
    assert found.protocol == figure.against_at, "the protocol that is drawn has no such caption any more"
    return found


def values_by_number(runs: Runs, condition: str, metric: str) -> dict[str, dict[int, np.ndarray]]:
    return settings._values(runs, condition, metric)[0]


def mean_by_number(runs: Runs, condition: str, metric: str) -> dict[str, dict[int, float]]:
    found = values_by_number(runs, condition, metric)
    return {label: {n: float(values.mean()) for n, values in each.items()} for label, each in found.items()}


def test_likelihood_of_gfsvi_on_boston_is_best_at_100_steps_and_then_lost() -> None:
    found = mean_by_number(shown("cinquin2024-figure-15"), *("part=validation", "expected_log_likelihood_standardised"))
    best = {label: max(values, key=lambda n: values[n]) for label, values in found.items()}
    assert best["GFSVI"] == 100 < best["TFSVI"]
    assert found["GFSVI"][3000] < found["GFSVI"][100] - 50


def test_laplace_is_more_uncertain_than_the_exact_process_on_the_sine() -> None:
    runs = shown("cinquin2024-figure-5")
    points = np.array(runs.first("GP (RBF)")["train/points"]["x"])
    curves = {label: found[0] for label, found in runs.curves("grid/grid").items()}
    grown = {name: growth(np.array(c["x"]), np.array(c["std"]), points) for name, c in curves.items()}
    for place in ("std_at_data", "std_far"):
        assert grown["Laplace"][place] > grown["GP (RBF)"][place]


def test_no_number_of_inducing_points_is_told_from_one() -> None:
    runs = shown("rudner2021-figure-8")
    for condition, metric in (
        ("", "ece_10"), ("ood=mnist", "predictive_entropy"), ("ood=mnist;score=predictive_entropy", "ood_auroc"),
    ):  # fmt: skip
        (values,) = values_by_number(runs, condition, metric).values()
        assert max(values) == 32 and min(map(len, values.values())) >= 2
        errors = {n: each.std(ddof=1) / len(each) ** 0.5 for n, each in values.items()}
        for n, each in values.items():
            assert abs(each.mean() - values[1].mean()) < 2 * np.hypot(errors[n], errors[1]) or n == 1, (metric, n)


def test_mc_dropout_gains_least_under_attack() -> None:
    runs = shown("dirichlet2022-figure-7-cifar10")

    def gain(label: str) -> np.ndarray:
        both = [by_level(runs.records[each], LIKELIHOOD, ATTACK)[1].mean(0)[1:] for each in (label, f"{label} fVI")]
        return both[1] - both[0]

    others = [label for label in runs.records if f"{label} fVI" in runs.records and label != "MC Dropout"]
    assert "Ensemble" in others and all((gain("MC Dropout") < gain(label)).all() for label in others)


@pytest.mark.parametrize(
    ("dataset", "side", "norms"),
    [("boston", 1, (13, 63)), ("energy", -1, (8, 6.6)), ("wine", 1, (11, 129)), ("yacht", 0, (6, 6.4))],
)
def test_the_prior_is_more_certain_on_data_where_these_are_nearer_to_0(
    dataset: str, side: int, norms: tuple[float, float]
) -> None:
    name = f"pequignot2020-figure-4-{dataset}"
    suite, records = known()
    runs = recorded_runs(FIGURES[name], suite.table(FIGURES[name].table), None, records)
    assert (runs.protocol == FIGURES[name].against_at) == (side < 1)
    curves = {part: runs.curves(f"{part}/epistemic_entropy")["Prior"] for part in ("train", "ood-uniform")}
    middle = {part: stack(found, "value").mean(0)[2] for part, found in curves.items()}
    gap = middle["ood-uniform"] - middle["train"]
    assert abs(gap) < 0.02 if side == 0 else gap * side > 0.05
    x = datasets.load(dataset, 0, scheme="pequignot2020-1").train.x.astype(float)
    low, high = x.min(0), x.max(0)
    uniform = ((high - low) ** 2 / 12 + ((high + low) / 2) ** 2).sum()
    assert ((x**2).sum(1).mean(), uniform) == (pytest.approx(norms[0], rel=0.01), pytest.approx(norms[1], rel=0.01))


def test_captions_say_so(tmp_path: Path) -> None:
    suite, records = known()
    drawn: Any = draw([FIGURES["cinquin2024-figure-15"]], suite, records, tmp_path, forms=(".txt",))
    assert FIGURES["cinquin2024-figure-15"].against in next(drawn).files[0].read_text(encoding="utf-8")
