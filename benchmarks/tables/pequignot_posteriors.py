"""pequignot2020, experiment 1: tables 1, 2 and 4, posteriors under fixed noise beside Hamiltonian Monte Carlo. And
figures 2 to 5: epistemic uncertainty on training, test and uniform inputs, experiments 1 and 2."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.tables import pequignot
from benchmarks.tables.pequignot import ENSEMBLE, PAPER, SMALL
from benchmarks.tables.recipes import EntropyRequest, Parts, Recipe, layered, make_configs
from benchmarks.tables.spec import Cell, Column, Make, Row, Table, changed, column

SCHEME = "pequignot2020-1"
NOISE = {"boston": 2.5, "concrete": 4.5, "energy": 1.4, "wine": 0.5, "yacht": 1.4}
"""Standard deviations of the noise in standardised targets (App. C)."""
SPLIT = {"concrete": 1}
"""Split of SCHEME that the authors' code had when the tables were made: random_state 1 for concrete (IVISpaces until 21
October 2020, cortax/BayesianNN 6bd1aa0), 42 for the other sets, which is split 0.
"""
BETWEEN = "patience 20"
REFERENCE = Row("HMC", "HMC", "HMC")
COMPARED = (Row("NN-HyVI", "NN-HyVI", "NN-HyVI"), Row("FuNN-HyVI", "FuNN-HyVI", "FuNN-HyVI"))
BY_PATIENCE = (*COMPARED, *(replace(row, label=f"{row.label}, {BETWEEN}", variant=BETWEEN) for row in COMPARED))
MEAN_FIELD = (Row("MFVI", None, "MFVI"), Row("FuNN-MFVI", None, "FuNN-MFVI"))
ALONE = (Row("MC Dropout", None, "MC Dropout"), replace(ENSEMBLE, published=None))
WITH_KL = {row.made_by for row in (*COMPARED, *MEAN_FIELD)}
_CHAINS: dict[str, Parts] = {
    "paper": {},
    "short": {"family": {"size": 20}},
    "smoke": {
        "family": {"size": 2},
        "training": {"samples": 5, "thinning": 1, "warmup": 2, "leapfrogs": 2, "map_steps": 5},
    },
}
LONGER: dict[str, Parts] = _CHAINS | {
    "paper": {"family": {"size": 10}, "training": {"samples": 100, "thinning": 100}},
}
"""Chains whose draws are as far apart as the paper's: of 50,000 to 200,000 trajectories after burning (table 6), 1,000
draws are used."""
_SETS_BY_LONGER = ("wine", "yacht")
SOONER: dict[str, Parts] = {
    "": {"training.schedule.patience": 10},
    BETWEEN: {"training.schedule.patience": 20},
}
"""Epochs without improvement in place of the paper's 30, by a row's variant: of the authors' script of experiment 1,
and ours between the two."""


def recipe(row: Row, dataset: str, protocol: str, chains: dict[str, Parts] = _CHAINS) -> Recipe:
    """Return the settings of section 4.1 and appendices C and E; where paper and scripts differ, the scripts (see the
    table's notes).
    """
    return _on_split(row, dataset, protocol, SPLIT.get(dataset, 0), chains)


_sooner_recipe = changed(recipe, SOONER)


def _one_hmc(make: Make) -> Make:
    """Return the recipes of ``make`` with one run of HMC, the one that others are compared with."""

    def with_one_run(row: Row, dataset: str, protocol: str) -> Recipe | None:
        base = make(row, dataset, protocol)
        return replace(base, replicates=base.replicates[:1]) if base and row.made_by == "HMC" else base

    return with_one_run


def _on_split(row: Row, dataset: str, protocol: str, split: int, chains: dict[str, Parts] = _CHAINS) -> Recipe:
    smoke = protocol == "smoke"
    replicates = tuple((split, seed) for seed in range(2 if smoke else 3))
    noise = {"name": "gaussian", "init_std": NOISE[dataset], "learned": False}
    posterior = EntropyRequest(draws=10, sets=2, points=8) if smoke else EntropyRequest()
    samples = 10 if smoke else 1000
    if row.made_by == "HMC":
        network = {"name": "mlp", "hidden": [50], "activation": "relu"}
        own: Parts = {"network": network, "likelihood": noise, "training": {"name": "hmc"}}
        return Recipe(layered(own, chains[protocol]), replicates, SCHEME, samples=samples, posterior=posterior)
    parts = pequignot.settings(row, dataset, protocol)
    if row.made_by != "Deep Ensemble":
        parts = layered(parts, {"likelihood": noise})
    if row.made_by in WITH_KL:
        hmc = make_configs("HMC", dataset, protocol, _on_split(REFERENCE, dataset, protocol, split, chains))[:1]
        posterior = replace(posterior, against={"HMC": hmc}, siblings=True)
    return Recipe(parts, replicates, SCHEME, samples=samples, posterior=posterior)


REDUCTIONS = {
    "short": "a tenth of the paper's epochs, 20 chains",
    "smoke": "2 epochs, 2 seeds, 2 chains of 5 draws after 2 trajectories, 10 draws, 2 sets of 8 inputs: a test of "
    "the way, not of the methods",
}


SPACES = {"parameter": "KL", "predictor": "FunKL"}
PAIRS = {"q->HMC": "(q, HMC)", "HMC->q": "(HMC, q)", "q->q": "(q, q)"}
ESTIMATED = {"q->HMC": "HMC->q", "HMC->q": "q->HMC", "q->q": "q->q"}
"""Pair whose KL FunKL estimates, by the pair of its arguments (UCI_HMC.py and UCI_Exp1.py of IVISpaces)."""


def _divergences(sets: tuple[str, ...], pairs: Iterable[str]) -> tuple[Column, ...]:
    """Return columns of table 4, labelled as in the authors' code."""
    return tuple(
        Column(
            Cell(d, f"space={space};pair={pair if space == 'parameter' else ESTIMATED[pair]}", "knn_kl"),
            f"{d} {space} {of}{PAIRS[pair]}",
            Cell(d, f"space={space};pair={pair}", "knn_kl"),
            digits=0,
        )
        for space, of in SPACES.items()
        for pair in pairs
        for d in sets
    )


def _entropies(sets: tuple[str, ...]) -> tuple[Column, ...]:
    return tuple(column(d, "entropy", f"{d} {space}", f"space={space}", digits=0) for space in SPACES for d in sets)


def _errors(sets: tuple[str, ...]) -> tuple[Column, ...]:
    return tuple(
        Column(Cell(d, "", metric), d, Cell(d, "experiment=1", metric))
        for metric in ("rmse", "log_posterior_predictive")
        for d in sets
    )


_EVERY = (REFERENCE, *COMPARED, *MEAN_FIELD, *ALONE)

INPUTS = ("test", "train", "ood-uniform")
_CONDITIONS = {"": "test", "inputs=train": "train", "ood=uniform": "uniform"}
PRIOR = Row("Prior", None, "MFVI", "prior")
_AT_PRIOR = {"family": {"mean_init": 0.0, "log_var_init": [math.log(0.25)] * 2}, "training": {"epochs": 0}}
"""Mean-field weights fixed at the prior."""
_SPLITS = 3


def _first_experiment(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return the trainings of tables 1, 2 and 4; the prior is drawn from mean-field weights without training."""
    base = recipe(row, dataset, protocol)
    if row.variant == PRIOR.variant:
        base = base.with_parts(_AT_PRIOR)
    return replace(base, sets=INPUTS, posterior=None)


def _second_experiment(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the trainings of table 5 on the first splits."""
    base = pequignot.recipe(row, dataset, protocol)
    return base and replace(base, sets=INPUTS, replicates=base.replicates[:_SPLITS])


def _figure(
    number: str,
    title: str,
    rows: tuple[Row, ...],
    make: Make,
) -> Table:
    columns = tuple(
        Column(Cell(dataset, condition, "epistemic_entropy"), f"{dataset} {label}")
        for dataset in SMALL
        for condition, label in _CONDITIONS.items()
    )
    return Table(f"{PAPER}-figure-{number}", title, rows, columns, make, reductions=pequignot.REDUCTIONS)


_ENTROPIES = Table(
    f"{PAPER}-1",
    "Entropy of posteriors, experiment 1",
    _EVERY,
    _entropies(SMALL),
    recipe,
    paper=PAPER,
    number="1",
    reductions=REDUCTIONS,
    deviations=True,
)
_ERRORS, _DIVERGENCES = (
    replace(_ENTROPIES, name=f"{PAPER}-{number}", number=number, title=title, rows=rows, columns=columns)
    for number, title, rows, columns in (
        ("2", "RMSE and log posterior predictive, experiment 1", _EVERY, _errors(SMALL)),
        (
            "4",
            "KL from and to HMC and among runs, experiment 1",
            (*COMPARED, *MEAN_FIELD),
            _divergences(SMALL, PAIRS),
        ),
    )
)
_LONG: dict[str, Any] = {"protocols": ("paper", "smoke"), "reductions": {"smoke": REDUCTIONS["smoke"]}}
TABLES = (
    _ENTROPIES,
    _ERRORS,
    _DIVERGENCES,
    _ERRORS.beside(
        "split",
        "Concrete of experiment 1 on the split of random_state 42",
        rows=(REFERENCE, *COMPARED),
        columns=_errors(("concrete",)),
        recipe=_one_hmc(lambda row, dataset, protocol: _on_split(row, dataset, protocol, 0)),
    ),
    _ENTROPIES.beside(
        "chains",
        "Entropy of the posterior by longer chains, experiment 1",
        rows=(REFERENCE,),
        columns=_entropies(_SETS_BY_LONGER),
        recipe=_one_hmc(partial(recipe, chains=LONGER)),
        **_LONG,
    ),
    _DIVERGENCES.beside(
        "chains",
        "KL from and to longer chains of HMC, experiment 1",
        rows=COMPARED,
        columns=_divergences(_SETS_BY_LONGER, ("q->HMC", "HMC->q")),
        recipe=partial(recipe, chains=LONGER),
        **_LONG,
    ),
    _ENTROPIES.beside(
        "patience",
        "Entropy of posteriors by the patience of a script, experiment 1",
        rows=BY_PATIENCE,
        recipe=_sooner_recipe,
        **_LONG,
    ),
    _DIVERGENCES.beside(
        "patience",
        "KL from and to HMC and among runs by the patience of a script, experiment 1",
        rows=BY_PATIENCE,
        recipe=_sooner_recipe,
        **_LONG,
    ),
    _figure(
        "4",
        "Epistemic uncertainty on train, test and uniform inputs, experiment 1 (figures 2 and 4)",
        (REFERENCE, *COMPARED, PRIOR),
        _first_experiment,
    ),
    _figure(
        "5",
        "Epistemic uncertainty on train, test and uniform inputs, experiment 2 (figures 3 and 5)",
        pequignot.ROWS[:6],
        _second_experiment,
    ),
)
