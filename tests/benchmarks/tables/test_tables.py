"""Every table is declared with what exists: methods, data sets, metrics, published cells; and its runs can be built."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import datasets
from benchmarks import tables
from benchmarks.commands.options import PROTOCOLS
from benchmarks.errors import UnknownName
from benchmarks.experiment.assembly import build_model
from benchmarks.metrics.registry import METRICS
from benchmarks.records import published
from benchmarks.records.config import run_key, validate_config
from benchmarks.records.provenance import ROOT
from benchmarks.tables import Cell, Column, Recipe, Row, Table
from benchmarks.tables.recipes import layered, merge
from benchmarks.tables.spec import OWN
from fvi_core import methods
from fvi_core.optimisers import OPTIMISERS, SCHEDULES
from fvi_core.registry import TRAININGS
from fvi_core.samplers import Sampler
from fvi_core.training import Training
from tests.configs import make_config

NAMES = tables.names()
RUNNABLE = [name for name in NAMES if any(row.method for row in tables.get(name).rows)]


def shape_of(config):
    """Return the parts of a split that build_model reads, without data."""
    found = datasets.describe(config["dataset"]["name"], config["dataset"]["scheme"])
    train = SimpleNamespace(x=np.zeros((1, *found.shape)))
    return SimpleNamespace(name=found.name, train=train, task=found.task, n_outputs=found.n_outputs)


@pytest.mark.parametrize("name", RUNNABLE)
def test_all_runs_of_protocol_smoke_are_valid_and_can_be_built(name):
    runs = tables.get(name).runs("smoke")
    assert runs and len({run_key(config) for config in runs}) == len(runs)
    built = set()
    for config in runs:
        validate_config(config)
        assert run_key(config) == run_key({**config, "evaluation": {**config["evaluation"]}})  # no key but its own
        description = datasets.describe(config["dataset"]["name"], config["dataset"]["scheme"])
        assert 0 <= config["dataset"]["split"] < description.n_splits
        assert config["protocol"] == "smoke" and config["evaluation"]["samples"] > 0 and config["evaluation"]["sets"]
        key = run_key({**config, "seed": 0, "dataset": {**config["dataset"], "split": 0}})
        if key not in built:
            built.add(key)
            model = build_model(config["parts"], shape_of(config))
            training = TRAININGS.build(config["parts"]["training"])
            assert model.weight(100, 10, 5) > 0
            if isinstance(training, Sampler):
                assert training.warmup + training.samples <= 10
                continue
            assert training.epochs <= 10
            SCHEDULES.build(training.schedule)
            if isinstance(training, Training):
                OPTIMISERS.build(training.optimiser)


@pytest.mark.parametrize("name", RUNNABLE)
def test_every_protocol_has_runs_of_its_own_name(name):
    table = tables.get(name)
    for protocol in set(table.protocols) - {"smoke"}:
        runs = table.runs(protocol)
        assert all(config["protocol"] == table.recorded_as(protocol) for config in runs)
        assert {config["method"] for config in runs} <= {row.method for row in table.rows}
        first = table.runs(protocol, seeds=(0,))
        assert len(first) < len(runs) or len(runs) == len(first) == len(table.runs(protocol, seeds=(0, 1)))
        assert table.runs(protocol, seeds=tuple(range(table.replicates(protocol)))) == runs
        assert len(table.runs(protocol, seeds=tuple(range(table.replicates(protocol) - 1)))) < len(runs)
    assert table.runs() == table.runs(table.default_protocol)


@pytest.mark.parametrize("name", NAMES)
def test_rows_columns_and_notes_name_what_exists(name):
    table = tables.get(name)
    assert table.default_protocol in table.protocols and set(table.reductions) <= set(table.protocols)
    assert len(set(table.columns)) == len(table.columns) and len({row.label for row in table.rows}) == len(table.rows)
    for row in table.rows:
        assert row.method is None or methods.get(row.method).name == row.method
    if name in RUNNABLE:
        made = {column.cell.dataset for column in table.columns} & set(datasets.names())
        assert made and all(column.cell.metric in METRICS for column in table.columns)


def test_every_published_table_has_a_table_with_every_cell():
    for paper in published.papers():
        for number in {cell.table for cell in published.load(paper)}:
            table = tables.get(f"{paper}-{number}")
            assert (table.paper, table.number) == (paper, number)
            keys = {column.published_key(row) for column in table.columns for row in table.rows}
            missing = [
                key for key in published.table(paper, number) if key not in keys and not key[3].startswith("mean_rank")
            ]
            assert not missing, f"{table.name} has no cell for {missing[:3]}"


@pytest.mark.parametrize("name", RUNNABLE)
def test_published_cells_named_by_a_table_are_in_the_paper(name):
    table = tables.get(name)
    if table.paper is None:
        pytest.skip("no paper's table")
    cells, rows = published.table(table.paper, table.number), [row for row in table.rows if row.published]
    for row in rows:
        assert any(column.published_key(row) in cells for column in table.columns), (
            f"row {row.label} of {name} has no published cell"
        )
    for part, what in ((0, "data set"), (1, "condition"), (3, "metric")):
        known = {key[part] for key in cells}
        for column in filter(lambda c: c.published, table.columns):
            assert known & {column.published_key(row)[part] for row in rows}, (
                f"{name}: no published cell has the {what} of {column.label}"
            )


def test_a_protocol_may_ask_for_some_of_the_test_images_and_says_so():
    parts = {
        "network": {"name": "resnet18", "width": 2},
        "likelihood": {"name": "categorical"},
        "training": {"epochs": 1, "batch_size": 8, "optimiser": {"name": "sgd"}},
    }

    def recipe(row, dataset, protocol):
        suffix = {"paper": "", "short": "-of-1000"}[protocol]
        sets = ("test", *(f"{name}{suffix}" for name in ("cifar10_c-1", "cifar10_c-2", "fgsm-0.1")))
        return Recipe(parts, ((0, 0),), "dirichlet2022", samples=2, sets=sets)

    columns = (Column(Cell("cifar10", "shift=cifar10_c;severity=1", "accuracy"), "accuracy"),)
    table = Table("some", "Some", (Row("MAP", None, "MAP"),), columns, recipe, ("paper", "short"))
    (every,), (some,) = table.runs("paper"), table.runs("short")
    assert run_key({**every, "protocol": "short"}) != run_key(some)
    assert some["evaluation"]["sets"] == ["test", "cifar10_c-1-of-1000", "cifar10_c-2-of-1000", "fgsm-0.1-of-1000"]
    note = "1,000 of the test images, of each class its share, where they are corrupted or attacked"
    assert (table.reduction("paper"), table.reduction("short")) == ("", note)
    declared = dataclasses.replace(table, reductions={"short": "1 epoch."})
    assert (declared.reduction("paper"), declared.reduction("short")) == ("", f"1 epoch; {note}")


def test_the_short_names_are_there():
    assert {"digits", "uci", "pequignot2020-5", "cinquin2024-1", "toys"} <= set(NAMES)
    part, whole = (
        {run_key(config) for config in tables.get(name).runs("paper")} for name in ("uci", "pequignot2020-5")
    )
    assert part < whole


def test_help_names_the_tables_whose_full_settings_are_called_own():
    own = " and ".join(name for name in tables.names() if OWN in tables.get(name).protocols)
    assert f"; {own} call them own)" in PROTOCOLS
    makefile = (ROOT / "Makefile").read_text()
    assert makefile.partition("PROTOCOL ?= ## ")[2].startswith(f"{PROTOCOLS};")


def test_unknown_tables_and_protocols_name_the_nearest():
    with pytest.raises(UnknownName, match="^no table 'digit'; did you mean 'digits'"):
        tables.get("digit")
    with pytest.raises(UnknownName, match="unknown protocol of table digits 'papers': did you mean 'paper'"):
        tables.get("digits").runs("papers")


PARTS = {
    "network": {"name": "mlp", "hidden": [3]}, "likelihood": {"name": "gaussian"},
    "training": {"epochs": 2, "batch_size": 5, "optimiser": {"name": "adam"}},
}  # fmt: skip


def table(recipe):
    rows = (Row("A", None, "MAP"), Row("B", None, "TFSVI"), Row("C"))
    columns = tuple(Column(Cell("cinquin_1d", "", metric), metric) for metric in ("rmse", "mse"))
    return Table("mine", "Mine", rows, columns, recipe)


def test_runs_are_the_union_of_what_cells_need_each_once():
    made = table(lambda row, dataset, protocol: Recipe({**PARTS, "weight": {"factor": 0.5}}, ((0, 3), (1, 4))))
    runs = made.runs()
    found = [(c["method"], c["dataset"]["split"], c["seed"]) for c in runs]
    assert found == [("MAP", 0, 3), ("MAP", 1, 4), ("FSVI", 0, 3), ("FSVI", 1, 4)]
    assert made.cell_runs(made.rows[0], made.columns[0]) == made.cell_runs(made.rows[0], made.columns[1]) == runs[:2]
    assert made.cell_runs(made.rows[2], made.columns[0]) == []
    assert [c["seed"] for c in made.runs(seeds=(1,))] == [4, 4]
    assert all(c["parts"]["weight"] == {"scaling": "elbo", "factor": 0.5} for c in runs)
    assert table(lambda row, dataset, protocol: None).runs() == []


def test_a_configuration_is_the_row_with_the_changes_of_the_recipe():
    changes = {**PARTS, "context": {"points": 7}, "prior": {"name": "gaussian_functions", "variance": 3}}
    recipe = Recipe(changes, (), samples=9, sets=("test", "grid"))
    config = make_config("TFSVI", "cinquin_1d", "paper", recipe, 2, 5)
    assert (config["method"], config["seed"], config["protocol"]) == ("FSVI", 5, "paper")
    assert config["dataset"] == {"name": "cinquin_1d", "version": "1", "scheme": "", "split": 2, "content": {}}
    assert config["evaluation"] == {"samples": 9, "sets": ["test", "grid"], "content": {}}
    assert config["parts"]["context"] == {"name": "uniform_box", "points": 7, "margin": 0.0, "low": None, "high": None}
    assert config["parts"]["prior"] == {"name": "gaussian_functions", "variance": 3.0, "mean": 0.0}
    assert methods.get("FSVI").divergence.items() <= config["parts"]["divergence"].items()
    assert config["parts"]["training"]["optimiser"]["eps"] == 1e-8 and config["sources"] == {}
    validate_config(config)


def test_merging_changes_nothing_that_it_was_given():
    base, changes = {"a": {"name": "x", "p": 1, "q": 2}, "b": None}, {"a": {"q": [3]}, "b": {"r": 4}}
    assert merge(base, changes) == {"a": {"name": "x", "p": 1, "q": [3]}, "b": {"r": 4}}
    assert merge(base, {"a": {"name": "y"}})["a"] == {"name": "y"}
    assert merge(base, {"a": {"name": "x", "p": 5}})["a"] == {"name": "x", "p": 5, "q": 2}
    assert (base, changes) == ({"a": {"name": "x", "p": 1, "q": 2}, "b": None}, {"a": {"q": [3]}, "b": {"r": 4}})


def test_layers_of_dotted_settings_are_merged_and_none_is_changed():
    first = {"training": {"lr": 1, "name": "sgd"}, "training.epochs": 2, "prior": None, "a.b.c": 1}
    second = {"training.lr": 3, "prior.variance": 4.0, "a.b": {"d": 2}}
    assert layered(first, second) == {
        "training": {"lr": 3, "name": "sgd", "epochs": 2}, "prior": {"variance": 4.0}, "a": {"b": {"c": 1, "d": 2}},
    }  # fmt: skip
    assert layered(first, {"training": {"name": "adam"}})["training"] == {"name": "adam"}
    assert first == {"training": {"lr": 1, "name": "sgd"}, "training.epochs": 2, "prior": None, "a.b.c": 1}


def test_a_row_with_a_metric_of_its_own_asks_for_that_one():
    table = tables.get("pequignot2020-5-readings")
    metrics = table.metrics_of_runs("paper")
    row, mixture, *_ = table.rows
    column = next(c for c in table.columns if c.cell == Cell("yacht", "", "log_posterior_predictive"))
    assert column.cell_of(row).metric == "gaussian_log_predictive" and column.cell_of(mixture) == column.cell
    (first, *_) = table.cell_runs(row, column, "paper")
    assert metrics[run_key(first)] == {"rmse", "log_posterior_predictive", "gaussian_log_predictive"}
    assert run_key(first) == run_key(table.cell_runs(mixture, column, "paper")[0])


def test_a_method_keeps_its_own_training_unless_a_recipe_names_it():
    kept = make_config("HMC", "cinquin_1d", "paper", Recipe(PARTS, ()), 0, 0)["parts"]["training"]
    assert (kept["name"], kept["leapfrogs"]) == ("hmc", 100) and "epochs" not in kept
    changes = {**PARTS, "training": {"name": "hmc", "leapfrogs": 7}}
    changed = make_config("HMC", "cinquin_1d", "paper", Recipe(changes, ()), 0, 0)["parts"]["training"]
    assert changed == {**kept, "leapfrogs": 7}
