"""Mistakes in a table of one's own are refused before anything is trained, with table, row and what was expected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tables
from benchmarks.errors import as_messages
from benchmarks.experiment.misfits import misfits, triples
from benchmarks.records import published
from benchmarks.sweep.begin import lacking
from benchmarks.tables.simple import simple
from benchmarks.tables.spec import InvalidRecipe
from fvi_core import methods
from reports.aggregate import aggregate
from reports.records import Records
from tests.plugins import forgotten

PARTS = {"network": {"name": "mlp", "hidden": [4]}, "likelihood": {"name": "gaussian"}}


def own(training: dict[str, Any] | None = None, **changes: Any) -> tables.Table:
    parts = PARTS | {
        "training": {"epochs": 2, "batch_size": 9, "optimiser": {"name": "adam", "lr": 0.01}} | (training or {})
    }
    given = {"methods": ["MAP"], "datasets": ["boston"], "metrics": ["rmse"], "parts": parts, **changes}
    return simple("mine", "Mine", **given)


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"optimiser": {"name": "adam", "lr": -0.1}}, "training.optimiser.lr: expected 0 or more, found -0.1"),
        ({"batch_size": 0}, "training.batch_size: expected 1 or more, found 0"),
        ({"epoch": 3}, "training: training 'gradient' has no hyper-parameter 'epoch'; did you mean 'epochs'?"),
    ],
)
def test_a_setting_beyond_its_limits_is_one_message_with_table_and_row(training, message, capsys) -> None:
    with pytest.raises(InvalidRecipe, match="table mine, row MAP on boston"):
        own(training).runs()
    with pytest.raises(SystemExit), as_messages():
        own(training).runs()
    assert capsys.readouterr().err.startswith(f"error: table mine, row MAP on boston: {message}")


def test_settings_of_a_method_that_the_table_does_not_have_are_refused() -> None:
    assert own(own={"MAP": {"training.epochs": 3}}).runs()[0]["parts"]["training"]["epochs"] == 3
    with pytest.raises(ValueError, match="table mine: own: expected methods of this table, found 'MPA'.*'MAP'"):
        own(own={"MPA": {"training.epochs": 3}})


def test_the_likelihood_follows_the_task_unless_it_is_named() -> None:
    optimiser = {"name": "adam", "lr": 0.01}
    plain = {"network": PARTS["network"], "training": {"epochs": 2, "batch_size": 9, "optimiser": optimiser}}
    made = own(parts=plain, datasets=["boston", "digits"], metrics=["nll"]).runs()
    found = {config["dataset"]["name"]: config["parts"]["likelihood"]["name"] for config in made}
    assert found == {"boston": "gaussian", "digits": "categorical"}
    named = own(parts=plain | {"likelihood": {"name": "robust_max"}}, datasets=["digits"], metrics=["nll"]).runs()
    assert named[0]["parts"]["likelihood"]["name"] == "robust_max"


def test_smoke_fits_a_kernel_by_few_steps() -> None:
    table = own(methods=["GFSVI", "GWI"])
    steps = {
        protocol: [
            run["parts"]["prior" if run["method"] == "GFSVI" else "family"]["fit_steps"] for run in table.runs(protocol)
        ]
        for protocol in ("smoke", "paper")
    }
    assert steps["smoke"] == [5] * 4 and min(steps["paper"]) > 5


@pytest.mark.parametrize("named", [{}, {"name": "gradient"}])
def test_parts_of_a_method_without_a_name_are_those_of_the_table(named, monkeypatch) -> None:
    monkeypatch.setattr(methods, "_ROWS", dict(methods.catalogue()))
    brought = {"training": {**named, "samples": 7, "batch_size": 8}, "likelihood": {"init_std": 0.2}}
    methods.add(methods.Method("Mine", "", "", {"name": "mean_field"}, **brought))
    for table in (own(methods=["Mine"]), own(methods=["MAP"]).also("Mine")):
        parts = table.runs()[-1]["parts"]
        training, likelihood = parts["training"], parts["likelihood"]
        assert (training["name"], training["samples"], training["batch_size"]) == ("gradient", 7, 8)
        assert (training["epochs"], training["optimiser"]["lr"]) == (2, 0.01), "the table sets what is left open"
        assert (likelihood["name"], likelihood["init_std"]) == ("gaussian", 0.2)


def test_protocol_smoke_fits_the_kernel_of_an_added_row_in_few_steps() -> None:
    table = own().also("GFSVI").also("GWI").also("MFVI")
    found = {protocol: {run["method"]: run["parts"] for run in table.runs(protocol)} for protocol in ("paper", "smoke")}
    for method, kind in (("GFSVI", "prior"), ("GWI", "family")):
        steps = [found[protocol][method][kind]["fit_steps"] for protocol in ("paper", "smoke")]
        assert steps[0] >= 100 and steps[1] == 5
    assert found["smoke"]["MFVI"]["prior"] == found["paper"]["MFVI"]["prior"]


def test_a_misspelt_metric_is_named_before_anything_is_trained() -> None:
    messages = ["table mine, column rmsee: plug-in absent: no metric 'rmsee'; did you mean 'rmse' or 'mse' or 'msp'?"]
    assert lacking([own(metrics=["rmse", "rmsee"])], None) == messages
    assert lacking([own(metrics=["rmse"])], None) == []
    assert lacking([own(metrics=["qqqq"])], None)[0].endswith("no metric 'qqqq'")


def test_a_condition_without_its_evaluation_set_is_named() -> None:
    given: dict[str, Any] = {"datasets": ["digits"], "metrics": [("ood_auroc", "ood=photos")]}
    with pytest.raises(ValueError, match="metrics: .'ood_auroc', 'ood=photos'. has a condition, .* add the evaluation"):
        own(**given)
    assert own(**given, sets=("test", "ood-photos")).columns


def test_parts_that_need_validation_data_do_not_fit_a_set_without() -> None:
    training = {"epochs": 2, "batch_size": 9, "optimiser": {"name": "adam"}}
    laplace = {"parts": {"network": PARTS["network"], "training": training}, "methods": ["Laplace"]}
    stopped = {"parts": {"network": PARTS["network"], "training": training | {"early_stopping": {"patience": 2}}}}
    cases = (
        (laplace | {"own": {"Laplace": {"fit.precision": "validation"}}}, "fit: expected validation data"),
        (stopped, "early stopping: expected validation data"),
    )
    for given, message in cases:
        (found,) = misfits(own(datasets=["digits"], metrics=["nll"], **given).runs())
        assert found.startswith("does not fit: ") and f"ValueError: {message}" in found
    assert misfits(own(datasets=["digits"], metrics=["nll"], **laplace).runs()) == []


def test_divergences_of_weights_fit_without_a_context() -> None:
    found = set(triples(False, {"divergence": "weight_kl", "family": "mean_field"}))
    assert ("mean_field", "weight_kl", "gaussian_weights") in found
    assert ("mean_field", "weight_kl", "dirichlet") not in found


def test_the_likelihood_and_training_of_a_plug_ins_method_come_before_those_of_all_methods() -> None:
    known = {"name": "gaussian", "init_std": 0.2, "learned": False}
    with forgotten():
        mine = replace(methods.get("MFVI"), name="Known noise", aliases=(), likelihood=known, training={"samples": 10})
        methods.add(mine)
        parts = PARTS | {"likelihood": {"name": "gaussian", "init_std": 0.3, "min_std": 0.1}}
        parts |= {"training": {"epochs": 3, "samples": 2, "batch_size": 9, "optimiser": {"name": "adam", "lr": 0.01}}}
        given = {"methods": ["MFVI", "Known noise"], "parts": parts, "seeds": 1}
        shared, found = (run["parts"] for run in own(**given).runs())
        _, changed = (run["parts"] for run in own(**given, own={"Known noise": {"likelihood.init_std": 0.4}}).runs())
    assert (shared["likelihood"]["init_std"], shared["training"]["samples"]) == (0.3, 2)
    assert found["likelihood"] == known | {"min_std": 0.1}
    assert (found["training"]["samples"], found["training"]["epochs"]) == (10, 3)
    assert changed["likelihood"] == known | {"min_std": 0.1, "init_std": 0.4}


def test_numbers_of_a_paper_stand_beside_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "_OWN", {})
    file = tmp_path / "some2020.csv"
    file.write_text(",".join(published.COLUMNS) + "\n1,boston,,MAP,rmse,3.1,0.2,5,\n")
    table = own(methods=["MAP", "MFVI"], published=file)
    found = aggregate(table, "smoke", Records(tmp_path)).cells
    assert [cell.published and cell.published.mean for (cell,) in found] == [3.1, None]
    file = file.rename(tmp_path / "other2020.csv")
    with pytest.raises(
        ValueError, match=r"other2020\.csv: no cell .* 'boston, , MAP, rmse' .*; did you mean 'boston, , MAP, r2"
    ):
        own(metrics=["r2"], published=file)
    assert own().paper is None and own().rows[0].published is None
