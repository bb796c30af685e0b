"""Settings of pequignot2020, each with its place in the paper or in the authors' code (yannpequignot/IVISpaces)."""

from __future__ import annotations

from typing import Any

import pytest

import datasets
from benchmarks import tables
from benchmarks.records import published
from benchmarks.records.config import run_key, training_key
from benchmarks.tables.pequignot import LARGE, SMALL
from benchmarks.tables.recipes import merge
from tests import configs
from tests.configs import words_of

EXPERIMENT_1 = ("1", "2", "4")


def runs(table: str, label: str, dataset: str, protocol: str = "paper") -> list[Any]:
    return configs.runs(f"pequignot2020-{table}", label, dataset, protocol)


def parts(table: str, label: str, dataset: str) -> Any:
    return runs(table, label, dataset)[0]["parts"]


@pytest.mark.parametrize("dataset", SMALL)
def test_experiment_1_has_the_split_of_the_authors_code(dataset: str) -> None:
    # Experiments/*/__init__.py (cortax/BayesianNN 6bd1aa0): seed 1 for concrete, 42 for the others; split 0 is 42.
    split = 1 if dataset == "concrete" else 0
    for number in (*EXPERIMENT_1, "figure-4"):
        table = tables.get(f"pequignot2020-{number}")
        for row in table.rows:
            found = runs(number, row.label, dataset)
            assert {run["dataset"]["split"] for run in found} == {split}, (number, row.label)
    assert {run["dataset"]["split"] for run in runs("7", "HMC", dataset)} == {split}


@pytest.mark.parametrize("protocol", ["paper", "short", "smoke"])
@pytest.mark.parametrize("dataset", ["concrete", "yacht"])
def test_posteriors_are_compared_with_hmc_on_their_own_split(dataset: str, protocol: str) -> None:
    hmc, *more = runs("1", "HMC", dataset, protocol)
    assert [each["seed"] for each in (hmc, *more)] == ([0, 1] if protocol == "smoke" else [0, 1, 2])
    for label in ("NN-HyVI", "FuNN-HyVI", "MFVI"):
        for run in runs("4", label, dataset, protocol):
            (against,) = run["evaluation"]["posterior"]["against"]["HMC"]
            assert training_key({**hmc, **against}) == training_key(hmc)
            assert len(run["evaluation"]["posterior"]["against"]["q"]) == (1 if protocol == "smoke" else 2)


def test_the_other_split_of_concrete_changes_nothing_but_the_split() -> None:
    for label, count in (("HMC", 1), ("NN-HyVI", 3), ("FuNN-HyVI", 3)):
        others = runs("2-split", label, "concrete")
        for theirs, other in zip(runs("2", label, "concrete")[:count], others, strict=True):
            assert (theirs["dataset"]["split"], other["dataset"]["split"]) == (1, 0)
            assert (theirs["parts"], theirs["seed"]) == (other["parts"], other["seed"])
            assert run_key(theirs) != run_key(other)


def test_longer_chains_have_as_many_draws_and_stand_beside_the_same_posteriors() -> None:
    """Table 6: 60,000 to 230,000 iterations, of which 4,000 to 40,000 are burnt; App. C: 1,000 draws."""
    (hmc, *_), (longer,) = runs("1", "HMC", "wine"), runs("1-chains", "HMC", "wine")
    draws = {"family": {"size": 100}, "training": {"samples": 10, "thinning": 15}}
    assert merge(longer["parts"], draws) == hmc["parts"] and longer["dataset"] == hmc["dataset"]
    training = longer["parts"]["training"]
    assert longer["parts"]["family"]["size"] * training["samples"] == longer["evaluation"]["samples"] == 1000
    assert 50_000 <= 1000 * training["thinning"] <= 200_000
    for each, warming in ((longer, 400), (hmc, 60)):  # rounds of as many trajectories as lie between draws
        assert each["parts"]["training"]["warmup"] * each["parts"]["training"]["thinning"] == warming
    assert "a warm-up of 400," in words_of(tables.get("pequignot2020-1-chains"), "paper")
    for label in ("NN-HyVI", "FuNN-HyVI"):
        for own, beside in zip(runs("4", label, "wine"), runs("4-chains", label, "wine"), strict=True):
            (against,) = beside["evaluation"]["posterior"]["against"]["HMC"]
            assert training_key({**longer, **against}) == training_key(longer)
            assert training_key(own) == training_key(beside) and run_key(own) != run_key(beside)


def test_the_patience_of_a_script_is_all_that_its_tables_change() -> None:
    for number in ("1", "4"):
        for label, patience in (("NN-HyVI", 10), ("FuNN-HyVI", 10), ("FuNN-HyVI", 20)):
            beside = runs(f"{number}-patience", label if patience == 10 else f"{label}, patience 20", "energy")
            for own, sooner in zip(runs(number, label, "energy"), beside, strict=True):
                assert sooner["parts"]["training"]["schedule"]["patience"] == patience
                assert merge(sooner["parts"], {"training": {"schedule": {"patience": 30}}}) == own["parts"]
                assert (own["dataset"], own["seed"]) == (sooner["dataset"], sooner["seed"])


def test_table_4_compares_what_the_authors_code_estimates() -> None:
    # FunKL(s, t) calls kl_nne(t_, s_) in UCI_HMC.py and UCI_Exp1.py; in parameter space kl_nne is called as labelled.
    estimated = {"q->HMC": "HMC->q", "HMC->q": "q->HMC", "q->q": "q->q"}
    columns = tables.get("pequignot2020-4").columns
    assert len(columns) == 30
    for column in columns:
        assert column.published is not None
        space, pair = (each.split("=")[1] for each in column.published.condition.split(";"))
        expected = pair if space == "parameter" else estimated[pair]
        assert column.cell.condition == f"space={space};pair={expected}"
        name = {"parameter": "KL", "predictor": "FunKL"}[space]
        assert column.label == f"{column.cell.dataset} {space} {name}({pair.replace('->', ', ')})"


def test_the_printed_directions_of_predictor_space_are_as_in_the_paper() -> None:
    # Table 4, predictor space, concrete: NN-HyVI KL(-,HMC) 5.8, KL(HMC,-) 260.2; FuNN-HyVI 301.0, -32.0.
    cells = published.table("pequignot2020", "4")
    means = {
        (method, pair): cells["concrete", f"space=predictor;pair={pair}", method, "knn_kl"].mean
        for method in ("NN-HyVI", "FuNN-HyVI")
        for pair in ("q->HMC", "HMC->q")
    }
    assert list(means.values()) == [5.8, 260.2, 301.0, -32.0]


@pytest.mark.parametrize("number", EXPERIMENT_1)
def test_errors_of_experiment_1_may_be_deviations(number: str) -> None:
    # np.std and df.std of three runs in UCI_HMC.py and UCI_Exp1.py, "standard error" in section 4.4.
    assert tables.get(f"pequignot2020-{number}").deviations


@pytest.mark.parametrize("label", ["NN-HyVI", "FuNN-HyVI", "FuNN-MFVI", "MFVI"])
@pytest.mark.parametrize("dataset", [*SMALL, *LARGE])
def test_variational_rows_are_trained_as_section_4_3_says(label: str, dataset: str) -> None:
    found = parts("5", label, dataset)
    training = found["training"]
    assert (training["optimiser"]["name"], training["optimiser"]["lr"]) == ("adam", 0.005)
    # "a patience of 30 epochs"; App. E: MFVI twice that.
    schedule = {"name": "plateau", "factor": 0.7, "patience": 60 if label == "MFVI" else 30, "min_lr": 1e-4}
    assert schedule.items() <= training["schedule"].items()
    assert (training["epochs"], training["samples"]) == (2000, 100)
    assert training["batch_size"] == (500 if dataset in LARGE else 50)
    assert found["network"]["hidden"] == [100 if dataset in LARGE else 50]
    assert found["prior"]["variance"] == 0.25  # sigma_prior=.5 times a standard normal, in every script
    if label.endswith("HyVI"):
        assert (found["family"]["latent"], found["family"]["hidden"]) == (5, [20, 40])
    if label != "MFVI":
        assert found["divergence"]["samples"] == 500
    if label.startswith("FuNN"):
        assert (found["context"]["points"], found["context"]["margin"]) == (200, 0.0)


@pytest.mark.parametrize("label", ["MFVI", "FuNN-MFVI"])
def test_mean_field_weights_start_as_in_the_scripts_before_22_october_2020(label: str) -> None:
    # UCI_splits.py and UCI_splits_large.py: std_init=0., sigma=0.001.
    family = parts("5", label, "yacht")["family"]
    assert family["mean_init"] == 0.0
    assert family["log_var_init"] == pytest.approx([2 * -6.907755278982137] * 2)


def test_the_reading_of_mfvi_changes_its_patience_alone() -> None:
    # UCI_splits_large.py: patience=10, and 2*patience for MFVI.
    for dataset in ("kin8nm", "power"):
        ours, script = parts("5", "MFVI", dataset), parts("5-readings", "MFVI, patience 20", dataset)
        schedule = {**ours["training"]["schedule"], "patience": 20}
        assert script == {**ours, "training": {**ours["training"], "schedule": schedule}}
    assert runs("5-readings", "MFVI, patience 20", "yacht") == []


@pytest.mark.parametrize("dataset", [*SMALL, *LARGE])
def test_baselines_are_trained_as_the_scripts_do(dataset: str) -> None:
    large = dataset in LARGE
    ensemble, dropout = parts("5", "Ensemble", dataset), parts("5", "MC Dropout", dataset)
    # ensemble_bootstrap: 5 networks, MSELoss, SGD .01 with momentum .9; App. E: 3K epochs, 500 for large sets.
    assert ensemble["family"]["size"] == 5
    assert (ensemble["likelihood"]["name"], ensemble["likelihood"]["error"]) == ("residual_gaussian", "mean_square")
    assert ensemble["training"]["epochs"] == (500 if large else 3000)
    assert ensemble["training"]["batch_size"] == (500 if large else 50)
    optimiser = ensemble["training"]["optimiser"]
    assert (optimiser["name"], optimiser["lr"], optimiser["momentum"]) == ("sgd", 0.01, 0.9)
    # Mc_dropout: batch_size=len(x_train), 2,000 epochs, Adam 1e-3, probability .05.
    assert dropout["family"]["rate"] == 0.05
    assert dropout["training"]["epochs"] == 2000 and dropout["training"]["optimiser"]["lr"] == 1e-3
    known = datasets.describe(dataset, "pequignot2020")
    assert dropout["training"]["batch_size"] == known.n_train
    decay = 0.1 / (known.n_train + known.n_test) ** 0.5 / known.n_train
    assert dropout["training"]["optimiser"]["weight_decay"] == pytest.approx(decay)


@pytest.mark.parametrize(
    ("dataset", "noise"), [("boston", 2.5), ("concrete", 4.5), ("energy", 1.4), ("wine", 0.5), ("yacht", 1.4)]
)
def test_noise_and_priors_of_experiment_1(dataset: str, noise: float) -> None:
    # App. C; HMC's logmvn01pdf takes .5 for a variance (a2c5bc4), the others' sigma_prior=.5 is a deviation.
    for label, variance in (("HMC", 0.5), ("NN-HyVI", 0.25), ("FuNN-HyVI", 0.25), ("MFVI", 0.25)):
        found = parts("1", label, dataset)
        assert found["likelihood"]["init_std"] == noise and not found["likelihood"]["learned"]
        assert found["prior"]["variance"] == variance
        assert found["network"]["hidden"] == [50] and found["network"]["activation"] == "relu"
    assert len(runs("1", "NN-HyVI", dataset)) == 3  # section 4.2: "we ran three times"


@pytest.mark.parametrize(("dataset", "splits"), [("yacht", 10), ("power", 5)])
def test_experiment_2_has_ten_splits_and_five_of_large_sets(dataset: str, splits: int) -> None:
    found = runs("5", "MFVI", dataset)
    assert [run["dataset"]["split"] for run in found] == list(range(splits))
    assert all(run["evaluation"]["samples"] == 1000 for run in found)
