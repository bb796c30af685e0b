"""An outsider's files: in every executor, named or installed; changed ones are other runs, absent ones harm nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks import tables
from benchmarks.experiment.misfits import misfits
from benchmarks.metrics import METRICS
from benchmarks.records.config import run_key
from benchmarks.records.store import Store
from benchmarks.suite import Suite
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.work import perform
from benchmarks.tables import Cell, Column, NoRecipe, Recipe, Row, Table
from fvi_core import plugins
from reports.aggregate import aggregate
from reports.records import Records
from reports.tables import text
from tests import outsider
from tests.plugins import forgotten

TIMES = {"training_seconds"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with a user's plug-in, which is forgotten after the test."""
    with forgotten():
        monkeypatch.setenv("FVI_PLUGINS", str(outsider.write(tmp_path)))
        yield tmp_path


@pytest.fixture
def say(say):
    """Run a command of the real suite."""
    return lambda *words: say(*words, suite=Suite())


def metrics(results: Path) -> dict[str, list[str]]:
    """Return the metric rows of every run except times."""
    found = list(Store(results).records())
    return {
        record["key"]: [json.dumps(row) for row in record["metrics"] if row["metric"] not in TIMES] for record in found
    }


def test_named_and_installed_plugins_give_the_same_records_in_every_executor(folder, say):
    command = ("run", "mine", "--protocol", "smoke", "--seeds", "1", "--method", "Wasserstein FVI")
    status, output = say(*command, "--executor", "inprocess")
    assert status == 0 and "2 runs: 2 made now" in output, output
    about = folder / "my_fvi-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-fvi\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[fvi_bench.plugins]\nmy-fvi = mine\n")
    environment = {k: v for k, v in os.environ.items() if k != "FVI_PLUGINS"} | {"PYTHONPATH": str(folder)}
    where = ("--results", str(folder / "there"), "--state", str(folder / "there-state"))
    done = outsider.run(*command, "--executor", "pool", "--workers", "1", *where, environment=environment)
    assert done.returncode == 0 and "2 runs: 2 made now" in done.stdout, done.stderr
    found = metrics(folder / "results")
    assert len(found) == 2 and found == metrics(folder / "there")
    assert all(any('"largest_error"' in row for row in rows) for rows in found.values())


def keys() -> dict[tuple[str, str], str]:
    return {
        (config["method"], config["dataset"]["name"]): run_key(config)
        for config in tables.get("mine").runs("smoke", (0,))
    }


def test_another_formula_and_another_file_are_other_runs(folder):
    with forgotten():
        before = keys()
    plugins.module_digest.cache_clear()
    (folder / "bikes.csv").write_text((folder / "bikes.csv").read_text() + "1,2,3\n")
    with forgotten():
        other = keys()
    changed = {which for which in before if other[which] != before[which]}
    assert changed == {which for which in before if which[1] == "bikes"}
    (folder / "bikes.csv").write_text((folder / "bikes.csv").read_text().removesuffix("1,2,3\n"))
    (folder / "mine.py").write_text((folder / "mine.py").read_text().replace("- 2 * shared", "- shared"))
    plugins.module_digest.cache_clear()
    with forgotten():
        other = keys()
    changed = {which for which in before if other[which] != before[which]}
    assert changed == {which for which in before if which[0] == "Wasserstein FVI" or which[1] == "waves"}


ONLY_A_TABLE = """
from benchmarks import tables

tables.add(tables.simple(
    "two", "Mine and theirs", methods=["MAP", "Wide FSVI"], datasets=["cinquin_1d", "waves"],
    metrics=["rmse", "largest_error"],
    parts={"network": {"name": "mlp", "hidden": [5]}, "likelihood": {"name": "gaussian"},
           "training": {"epochs": 2, "batch_size": 50, "optimiser": {"name": "adam"}}}, seeds=1,
))
"""


def test_what_is_absent_leaves_tables_and_records_whole(folder, say, monkeypatch):
    (folder / "table.py").write_text(ONLY_A_TABLE)
    both = f"{folder / 'mine.py'}{os.pathsep}{folder / 'table.py'}"
    monkeypatch.setenv("FVI_PLUGINS", both)
    with forgotten():
        status, output = say("run", "two", "--executor", "inprocess", "--dataset", "cinquin_1d")
        assert status == 0 and "2 runs: 2 made now" in output, output
    monkeypatch.setenv("FVI_PLUGINS", str(folder / "table.py"))
    with forgotten():
        status, output = say("plan", "two")
        assert status == 0 and "1 run: 1 done" in output, output
        assert "table two, row Wide FSVI: plug-in absent: no method 'Wide FSVI'" in output
        assert "table two, row MAP: plug-in absent: no data set 'waves'" in output
        printed = text(aggregate(tables.get("two"), "paper", Records(folder / "results")))
        assert "— plug-in absent" in printed and "largest_error" in printed and "±" not in printed.splitlines()[0]
        status, output = say("status", "two")
        assert status == 0 and "not counted" not in output
    (folder / "bikes.csv").unlink()
    monkeypatch.setenv("FVI_PLUGINS", both)
    with forgotten():
        status, output = say("status", "mine")
        assert (
            status == 0
            and f"data absent: {folder / 'bikes.csv'}: expected a file of data set bikes, found none" in output
        )


def test_a_table_whose_every_row_is_absent_is_no_empty_success(folder, say, monkeypatch):
    (folder / "table.py").write_text(ONLY_A_TABLE.replace('"MAP", "Wide FSVI"', '"MAPP"'))
    monkeypatch.setenv("FVI_PLUGINS", str(folder / "table.py"))
    with forgotten():
        for options in ((), ("--seeds", "1")):
            status, output = say("run", "two", *options)
            assert status == 2 and "no run is left" in output, output
            assert "no method 'MAPP'; did you mean 'MAP'" in output, output


def test_a_process_that_is_given_a_group_knows_the_metrics_that_it_asks_for(folder, say, monkeypatch):
    (folder / "table.py").write_text(ONLY_A_TABLE)
    monkeypatch.setenv("FVI_PLUGINS", str(folder / "table.py"))
    with forgotten():
        assert say("run", "two", "--executor", "inprocess")[0] == 0
    monkeypatch.setenv("FVI_PLUGINS", f"{folder / 'mine.py'}{os.pathsep}{folder / 'table.py'}")
    results, state = folder / "results", folder / "state"
    with forgotten():
        table = tables.get("two")
        configs = [
            config for config in table.runs() if (config["method"], config["dataset"]["name"]) == ("MAP", "cinquin_1d")
        ]
        plan = make_plan(configs, results, state, Suite(), metrics=table.metrics_of_runs(None))
        assert [(run.status, run.note) for run in plan.runs] == [("stale", "its record lacks largest_error")]
        (group,) = plan.groups
    with forgotten():  # as a worker, which has looked up nothing yet
        (outcome,) = perform(group, lambda fraction, message="": None)
    assert outcome.status == "done"
    assert any(row["metric"] == "largest_error" for row in Store(results).get(configs[0])["metrics"])


def test_names_that_are_taken_are_refused(folder):
    tables.names()
    with pytest.raises(ValueError, match="two tables are named 'digits'"):
        tables.add(tables.get("digits"))
    with pytest.raises(ValueError, match="two tables are named 'mine'"):
        tables.add(tables.get("mine"))
    from benchmarks.metrics import Metric, add

    with pytest.raises(ValueError, match="two metrics are named 'largest_error'"):
        add(METRICS["largest_error"], lambda predictions: 1.0)
    with pytest.raises(ValueError, match="'none': expected a function of predictions, of or ood, found none"):
        add(Metric("none", "lower", "", ""))


def test_a_metric_that_fails_is_named_and_one_of_other_sources_has_its_reference():
    import numpy as np

    from benchmarks.metrics import Metric, SetInfo, add, evaluate
    from benchmarks.records.predictions import RegressionPredictions

    sets = [SetInfo("test", "id"), SetInfo("far", "ood", "ood=far")]
    samples = np.random.RandomState(0).normal(size=(3, 5))
    predictions = {
        "test": RegressionPredictions(samples, 1.0, np.zeros(5)),
        "far": RegressionPredictions(samples + 2, 1.0, None),
    }
    with forgotten():
        add(
            Metric("shift_of_mean", "none", "", "mean f far - mean f test"),
            ood=lambda far, test: far.samples.mean() - test.samples.mean(),
        )
        rows, _ = evaluate("regression", "mine", sets, predictions)
        (row,) = [row for row in rows if row["metric"] == "shift_of_mean"]
        assert row["condition"] == "ood=far" and row["value"] == pytest.approx(2) and row["n"] == 5
        add(Metric("largest", "lower", "", "max |y - E f|"), lambda p: abs(p.given_targets - p.samples.mean(0)).max())
        curves = {
            "curve": RegressionPredictions(samples, 1.0, None),
            "plane": RegressionPredictions(samples, 1.0, None),
        }
        own = [SetInfo("curve", "spectrum", "inputs=curve"), SetInfo("plane", "grid", "inputs=plane")]
        inputs = {"plane": np.zeros((5, 1))}
        rows, _ = evaluate("regression", "mine", [*sets, *own], predictions | curves, inputs)
        assert [row["condition"] for row in rows if row["metric"] == "largest"] == [""]
        for faulty, message in (
            (lambda p: 1 / 0, "ZeroDivisionError"),
            (lambda p: float("nan"), "expected a finite number"),
        ):
            with forgotten():
                add(Metric("faulty", "none", "", ""), faulty)
                with pytest.raises(
                    ValueError, match=f"metric 'faulty' on evaluation set 'test': {message}.*; correct the plug-in"
                ):
                    evaluate("regression", "mine", sets, predictions)


def test_a_row_more_has_the_settings_of_the_table_and_is_marked(folder, say):
    status, output = say("plan", "digits", "--protocol", "smoke", "--also", "wide fsvi", "--method", "Wide FSVI")
    assert status == 0 and "2 runs: 2 missing" in output
    table = tables.get("digits").also("Wide FSVI")
    assert table.rows[-1].label == "Wide FSVI (not in the paper)" and table.also("FSVI") is table
    runs = [config for config in table.runs("smoke") if config["method"] == "Wide FSVI"]
    assert runs[0]["parts"]["network"]["hidden"] == [50, 50] and runs[0]["parts"]["training"]["epochs"] == 2
    assert "Wide FSVI (not in the paper)" in text(aggregate(table, "smoke", Records(folder / "results")))
    status, output = say("plan", "digits", "--also", "Wide FSV")
    assert status == 2 and "unknown method 'Wide FSV': did you mean 'Wide FSVI'" in output


@pytest.mark.parametrize("name", ["digits", "toys", "uci", "cinquin2024-1", "cinquin2024-2", "rotated-mnist",
                                  "rudner2022-1", "rudner2021-1", "rudner2022-2", "dirichlet2022-11",
                                  "retinopathy"])  # fmt: skip
def test_every_recipe_makes_a_row_of_a_method_that_it_does_not_know(name, folder):
    table = tables.get(name).also("Wide FSVI")
    for protocol in table.protocols:
        assert any(config["method"] == "Wide FSVI" for config in table.runs(protocol)), protocol


def test_a_row_more_keeps_the_likelihood_and_training_that_its_method_names(folder, say, monkeypatch):
    (folder / "noisy.py").write_text(
        "from fvi_core.methods import Method, add\n"
        "add(Method('Noisy MAP', '', '', family={'name': 'point'}, divergence={'name': 'weight_penalty'}, "
        "prior={'name': 'gaussian_weights'}, training={'name': 'gradient', 'clip': 7.0}, "
        "likelihood={'name': 'gaussian', 'init_std': 0.25}))\n"
    )
    monkeypatch.setenv("FVI_PLUGINS", str(folder / "noisy.py"))
    with forgotten():
        runs = [run for run in tables.get("uci").also("Noisy MAP").runs("smoke") if run["method"] == "Noisy MAP"]
        usual = [run for run in tables.get("uci").runs("smoke") if run["method"] == "MAP"]
    assert runs and all(run["parts"]["likelihood"]["init_std"] == 0.25 for run in runs)
    for run, of_table in zip(runs, usual, strict=False):
        assert run["parts"]["training"] == of_table["parts"]["training"] | {"clip": 7.0}


def test_any_table_makes_a_row_more_or_says_that_it_cannot(folder):
    refused = []
    for table in tables.tables().values():
        try:
            assert any(row.method == "Wide FSVI" for row in table.also("Wide FSVI").rows)
        except NoRecipe:
            refused.append(table.name)
    assert "cinquin2024-1-jitter" in refused and "digits" not in refused


def test_a_recipe_that_cannot_says_so(folder, say):
    strict = Table(
        "strict",
        "",
        (Row("MAP", None, "MAP"),),
        (Column(Cell("digits", "", "nll"), "NLL"),),
        lambda row, dataset, protocol: {"MAP": Recipe({}, ((0, 0),))}[row.method],
    )
    with pytest.raises(NoRecipe, match="table strict cannot make a row of 'GP'"):
        strict.also("GP")
    tables.add(strict)
    status, output = say("plan", "strict", "--also", "Wide FSVI")
    assert status == 2 and "table strict cannot make a row of 'Wide FSVI'" in output


def test_misfits_are_named_before_training(folder, say, monkeypatch):
    (folder / "wrong.py").write_text(
        "from fvi_core.methods import Method, add\n"
        "add(Method('Point KL', '', '', family={'name': 'point'}, divergence={'name': 'gaussian_kl'}, "
        "prior={'name': 'gaussian_weights'}, context={'name': 'uniform_box', 'points': 4}))\n"
        "add(Method('No prior', '', '', family={'name': 'mean_field'}, divergence={'name': 'weight_kl'}))\n"
        "add(Method('GP with KL', '', '', family={'name': 'exact_gp'}, divergence={'name': 'weight_kl'}, "
        "prior={'name': 'gaussian_weights'}))\n"
        "from dataclasses import dataclass\n"
        "from fvi_core.divergences.gaussian import LinearisedKL\n"
        "from fvi_core.registry import DIVERGENCES\n"
        "@DIVERGENCES.register('squares')\n"
        "@dataclass(frozen=True)\n"
        "class Squares(LinearisedKL):\n"
        "    def kl(self, mean_q, cov_q, mean_p, cov_p):\n"
        "        return (cov_p @ (mean_q - mean_p)[..., None]).sum((-2, -1))\n"
        "add(Method('Precisions', '', '', family={'name': 'mean_field'}, divergence={'name': 'squares'}, "
        "prior={'name': 'gaussian_weights'}, context={'name': 'uniform_box', 'points': 4}))\n"
    )
    monkeypatch.setenv("FVI_PLUGINS", os.pathsep.join(str(folder / name) for name in ("mine.py", "wrong.py")))
    names = ("Point KL", "No prior", "GP with KL", "Precisions", "Wasserstein FVI")
    also = [word for name in names for word in ("--also", name)]
    status, output = say("run", "toys", "--protocol", "smoke", "--dry-run", *also, "--dataset", "cinquin_1d")
    assert status == 1, output
    assert (
        "does not fit: Point KL on cinquin_1d: NotSupported: family 'point' is not a Gaussian over network parameters"
        in output
    )
    assert (
        "does not fit: No prior on cinquin_1d: divergence 'weight_kl' needs a prior or a context, "
        "and the method has none" in output
    )
    assert "does not fit: GP with KL on cinquin_1d: NotSupported: family 'exact_gp' has its own objective" in output
    assert "does not fit: Precisions on cinquin_1d: RuntimeError: expected scalar type Double but found Float" in output
    assert f"({folder / 'wrong.py'}, line 12)" in output and output.count("wrong.py") == 1
    assert output.count("does not fit") == 4


def test_an_error_in_a_module_names_the_network_and_the_line_of_its_forward(folder, say, monkeypatch):
    (folder / "broken.py").write_text(
        "import torch\n"
        "from dataclasses import dataclass\n"
        "from benchmarks import tables\n"
        "from fvi_core.networks import ModuleNetwork\n"
        "from fvi_core.registry import NETWORKS\n"
        "class Broken(torch.nn.Linear):\n"
        "    def forward(self, x):\n"
        "        return self.haed(x)\n"
        "@NETWORKS.register('broken')\n"
        "@dataclass(frozen=True)\n"
        "class Part:\n"
        "    def build(self, shape, outputs):\n"
        "        return ModuleNetwork(lambda: Broken(*shape, outputs), torch.zeros(2, *shape))\n"
        "training = {'epochs': 1, 'batch_size': 9, 'optimiser': {'name': 'adam'}}\n"
        "parts = {'network': {'name': 'broken'}, 'training': training}\n"
        "data = {'datasets': ['cinquin_1d'], 'metrics': ['rmse']}\n"
        "tables.add(tables.simple('broken', '', methods=['MAP'], parts=parts, **data))\n"
    )
    monkeypatch.setenv("FVI_PLUGINS", str(folder / "broken.py"))
    command = ("run", "broken", "--protocol", "smoke", "--seeds", "1")
    reason = "UnfitModule: network 'broken': forward() fails at inputs [2, 1]: AttributeError: 'Broken' object has no "
    reason += f"attribute 'haed' ({folder / 'broken.py'}, line 8)"
    with forgotten():
        assert reason in say(*command, "--dry-run")[1]
        assert reason in say(*command, "--executor", "inprocess")[1]


@pytest.mark.parametrize(
    "name", ["digits", "toys", "uci", "cinquin2024-1", "rudner2022-1", "rudner2022-2", "dirichlet2022-11"]
)
def test_the_methods_of_the_papers_fit(name):
    assert misfits(tables.get(name).runs("smoke")) == []


@pytest.mark.parametrize(("name", "method"), [("digits", "Laplace (full)"), ("cinquin2024-1", "Subnetwork Laplace")])
def test_rows_more_that_are_fitted_after_training_fit(name, method):
    runs = [config for config in tables.get(name).also(method).runs("smoke") if config["method"] == method]
    assert runs and misfits(runs) == []
