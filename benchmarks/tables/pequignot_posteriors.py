"""pequignot2020, experiment 1: tables 1, 2 and 4, posteriors under fixed noise beside Hamiltonian Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.tables import pequignot
from benchmarks.tables.pequignot import ENSEMBLE, PAPER, SMALL
from benchmarks.tables.spec import (
    LEFT_OUT,
    Cell,
    Column,
    EntropyRequest,
    Parts,
    Recipe,
    Row,
    Table,
    make_configs,
    merge,
)

SCHEME = "pequignot2020-1"
NOISE = {"boston": 2.5, "concrete": 4.5, "energy": 1.4, "wine": 0.5, "yacht": 1.4}
"""Standard deviations of the noise in standardised targets (App. C)."""
SPLIT = {"concrete": 1}
"""Split of SCHEME that the authors' code had when the tables were made: random_state 1 for concrete (IVISpaces until 21
October 2020, cortax/BayesianNN 6bd1aa0), 42 for the other sets, which is split 0.
"""
REFERENCE = Row("HMC", "HMC", "HMC")
COMPARED = (Row("NN-HyVI", "NN-HyVI", "NN-HyVI"), Row("FuNN-HyVI", "FuNN-HyVI", "FuNN-HyVI"))
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


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return the settings of section 4.1 and appendices C and E; where paper and scripts differ, the scripts (see the
    table's notes).
    """
    return _on_split(row, dataset, protocol, SPLIT.get(dataset, 0))


def _on_split(row: Row, dataset: str, protocol: str, split: int) -> Recipe:
    smoke = protocol == "smoke"
    noise = {"name": "gaussian", "init_std": NOISE[dataset], "learned": False}
    posterior = EntropyRequest(draws=10, sets=2, points=8) if smoke else EntropyRequest()
    samples = 10 if smoke else 1000
    if row.made_by == "HMC":
        network = {"name": "mlp", "hidden": [50], "activation": "relu"}
        own: Parts = {"network": network, "likelihood": noise, "training": {"name": "hmc"}}
        return Recipe(merge(own, _CHAINS[protocol]), ((split, 0),), SCHEME, samples=samples, posterior=posterior)
    parts = pequignot.settings(row, dataset, protocol)
    if row.made_by != "Deep Ensemble":
        parts = merge(parts, {"likelihood": noise})
    if row.made_by in WITH_KL:
        hmc = make_configs("HMC", dataset, protocol, _on_split(REFERENCE, dataset, protocol, split))
        posterior = replace(posterior, against={"HMC": hmc}, siblings=True)
    replicates = tuple((split, seed) for seed in range(2 if smoke else 3))
    return Recipe(parts, replicates, SCHEME, samples=samples, posterior=posterior)


NOTES = (
    "Split: random_state 1 for concrete and 42 for the other sets, as in the authors' code until 21 October 2020, "
    "six days before the paper; from then on it has 42 for concrete too. Table pequignot2020-2-split has that one.",
    "Noise: standard deviation fixed, in standardised targets: boston 2.5, concrete 4.5, energy 1.4, wine 0.5, "
    "yacht 1.4 (App. C). It is larger than the targets vary in four of the five, so predictions are the prior's in "
    "large part.",
    "Prior: variance 0.5 for HMC, standard deviation 0.5 for all others, as in the authors' scripts; so KL to and "
    "from HMC compares posteriors under different priors, in the paper too.",
    "HMC: 100 chains side by side, each from the network's initial weights by 1,000 steps of Adam, unit mass, 60 "
    "trajectories of 100 leapfrog steps on average to find the step and 150 more, of which every 15th is kept: 1,000 "
    "draws. On wine, whose noise is the smallest, they are not enough (R-hat 1.29): nearest neighbours come from one "
    "chain. The paper has one chain of 60,000 to 230,000 trajectories, by set, of 100 to 250 steps, from one mode "
    "found by up to 5,000 steps from N(0, 1). R-hat and effective sample sizes are in the provenance of its records.",
    "Patience: learning rates fall after 30 epochs without improvement, as the paper says (60 for MFVI). With the "
    "10 of a script NN-HyVI ends sooner, and its entropy of parameters is far below the published one (boston, first "
    "seed: 1,361, of a run without record, in place of 1,522; published 1,564).",
    "Entropies and KL from 1,000 draws, nearest neighbours (k = 1), draws that repeat another left out (the "
    "authors keep them); predictor space: mean over 100 sets of 200 uniform inputs in the box of the training inputs, "
    "distances divided by sqrt(200), which subtracts 100 ln 200 from the entropy: equation 7 prints 1/2 ln 200, the "
    "numbers of table 1 follow the scripts. UCI_HMC.py, the script while concrete had split 1, returns the last of "
    "its 100 sets and not their mean.",
    "Errors: the paper says standard errors; the authors' scripts collect standard deviations of the three runs "
    "and do not divide them. They are taken as standard errors, and the caption counts both: in the geometric mean "
    "over 63 cells of these tables (all sets but concrete) the published error is 0.57 of the standard deviation of "
    "our three runs, where a standard error is 0.58 of it.",
    "FuNN-HyVI on energy: 223 ± 34 is printed for its entropy of parameters, and the authors' own summary of February "
    "2021 has 334 ± 52; no setting was found that differs here. Nor for KL(q, q) in predictor space, where network, "
    "initialisation, schedule, batches, inputs and estimator were compared with the code, and each of our runs has "
    "random numbers of its own.",
    "KL from nearest neighbours among 1,000 points in hundreds of dimensions is far from the divergence itself, and "
    "may be negative: it compares samples by one rule.",
    "MFVI, FuNN-MFVI, MC Dropout and Ensemble are not in the paper's tables of experiment 1. Mean-field means start "
    "at 0, those of MFVI in the authors' script at N(0, 0.1²). The Ensemble's log posterior predictive is that of a "
    "Gaussian of its members without noise, as in experiment 2. MC Dropout draws no network parameters, so it has no "
    "entropy of them; the Ensemble's entropies are of its five networks.",
)
_CALLED = (
    "Predictor space: the columns of the authors' table are what their function FunKL(s, t) returns, which hands "
    "its arguments to the estimator exchanged: FunKL(q, HMC), printed as KL(-,HMC), estimates KL(HMC to q). Each "
    "column is compared with what it estimates. In parameter space the arguments are not exchanged.",
)
REDUCTIONS = {
    "short": "a tenth of the paper's epochs, 20 chains",
    "smoke": "2 epochs, 2 seeds, 2 chains of 5 draws after 2 trajectories, 10 draws, 2 sets of 8 inputs: a test of "
    "the way, not "
    "of the methods",
}


def _table(
    number: str,
    title: str,
    rows: tuple[Row, ...],
    columns: tuple[Column, ...],
    notes: tuple[str, ...] = NOTES,
    reading: str = "",
    make: Callable[[Row, str, str], Recipe] = recipe,
) -> Table:
    return Table(
        f"{PAPER}-{number}{reading}",
        title,
        rows,
        columns,
        make,
        paper=PAPER,
        number=number,
        notes=dict.fromkeys(("short", "smoke"), notes) | {"paper": (*notes, LEFT_OUT)},
        reductions=REDUCTIONS,
        deviations=True,
    )


SPACES = {"parameter": "KL", "predictor": "FunKL"}
PAIRS = {"q->HMC": "(q, HMC)", "HMC->q": "(HMC, q)", "q->q": "(q, q)"}
ESTIMATED = {"q->HMC": "HMC->q", "HMC->q": "q->HMC", "q->q": "q->q"}
"""Pair whose KL FunKL estimates, by the pair of its arguments (UCI_HMC.py and UCI_Exp1.py of IVISpaces)."""


def _divergence(dataset: str, space: str, pair: str) -> Column:
    """Return a column of table 4, labelled as in the authors' code."""
    estimated = pair if space == "parameter" else ESTIMATED[pair]
    return Column(
        Cell(dataset, f"space={space};pair={estimated}", "knn_kl"),
        f"{dataset} {space} {SPACES[space]}{PAIRS[pair]}",
        Cell(dataset, f"space={space};pair={pair}", "knn_kl"),
        digits=0,
    )


def _errors(sets: tuple[str, ...]) -> tuple[Column, ...]:
    return tuple(
        Column(Cell(d, "", metric), d, Cell(d, "experiment=1", metric))
        for metric in ("rmse", "log_posterior_predictive")
        for d in sets
    )


_ENTROPIES = tuple(
    Column(Cell(d, f"space={space}", "entropy"), f"{d} {space}", Cell(d, f"space={space}", "entropy"), digits=0)
    for space in SPACES
    for d in SMALL
)
_DIVERGENCES = tuple(_divergence(d, space, pair) for space in SPACES for pair in PAIRS for d in SMALL)
_EVERY = (REFERENCE, *COMPARED, *MEAN_FIELD, *ALONE)
TABLES = (
    _table("1", "Entropy of posteriors, experiment 1", _EVERY, _ENTROPIES),
    _table("2", "RMSE and log posterior predictive, experiment 1", _EVERY, _errors(SMALL)),
    _table(
        "4",
        "KL from and to HMC and among runs, experiment 1",
        (*COMPARED, *MEAN_FIELD),
        _DIVERGENCES,
        (*_CALLED, *NOTES),
    ),
    _table(
        "2",
        "Concrete of experiment 1 on the split of random_state 42",
        (REFERENCE, *COMPARED),
        _errors(("concrete",)),
        (
            "The settings of table 2 on the split that the authors' code has since 21 October 2020. Published is table "
            "2, whose concrete is of random_state 1. On this split the authors' summary of February 2021 has an RMSE "
            "of 6.96 (HMC), 6.06 ± 0.18 (NN-HyVI) and 5.19 ± 0.21 (FuNN-HyVI).",
        ),
        "-split",
        lambda row, dataset, protocol: _on_split(row, dataset, protocol, 0),
    ),
)
