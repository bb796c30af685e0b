"""Hyper-parameters are chosen by validation scores alone, and only where every candidate has been tried on every
fold."""

import dataclasses
import json

import pytest

from benchmarks import tables
from benchmarks.commands import selection
from benchmarks.errors import UnknownName
from benchmarks.records.config import run_key
from benchmarks.records.store import Store
from benchmarks.state.failures import Failures
from benchmarks.tables import Cell, Column, Recipe, Row, Table, choices, cinquin_candidates, spec
from tests.configs import words_of

METRIC, OWN = "log_posterior_predictive", "expected_log_likelihood"
VALIDATION, TEST = "part=validation", ""
ROWS = tuple(Row(f"{method}, {v}", None, method, v) for method in ("MAP", "MFVI") for v in ("small", "large"))
COLUMNS = tuple(Column(Cell(d, VALIDATION, METRIC), d) for d in ("cinquin_1d", "pequignot_1d"))


def recipe(row, dataset, protocol):
    parts = {"network": {"name": "mlp", "hidden": [3]}, "likelihood": {"name": "gaussian"},
             "training": {"epochs": 1, "batch_size": 5, "optimiser": {"name": "adam"}}}  # fmt: skip
    factor = {"weight": {"factor": 0.1 if row.variant == "small" else 1.0}}
    return Recipe(parts | factor, ((0, 0), (1, 1)), sets=("test", "validation"))


TABLE = Table("mine-selection", "candidates", ROWS, COLUMNS, recipe)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    get = tables.get
    monkeypatch.setattr(tables, "get", lambda name: TABLE if name == "mine-selection" else get(name))
    monkeypatch.setattr(choices, "FOLDER", tmp_path / "selected")
    forget()
    yield tmp_path / "results", tmp_path / "selected", tmp_path / "state"
    forget()


def forget():
    """Have choices, and the configurations made with them, read and made again."""
    choices.choices.cache_clear()
    spec.planned.cache_clear()


def record(results, row, column, scores, test=0.0):
    """Records of the folds that have a score; the score on the test subset is another."""
    store = Store(results)
    for config, score in zip(TABLE.cell_runs(row, column), scores, strict=False):
        metrics = [
            {"dataset": column.cell.dataset, "condition": c, "metric": METRIC, "value": v, "n": 1000}
            for c, v in ((VALIDATION, score), (TEST, test))
        ]
        store.write(store.make(config, metrics, {}, {"seconds": 1.0}))


def test_the_best_mean_validation_score_is_chosen_whatever_the_test_scores(folders):
    record(folders[0], ROWS[0], COLUMNS[0], [-1.0, -2.0], test=9.0)
    record(folders[0], ROWS[1], COLUMNS[0], [-0.5, -2.0], test=-9.0)
    found = selection.select("mine", folders[0], folders[2])
    assert found["MAP"] == {"cinquin_1d": {"scores": {"small": -1.5, "large": -1.25}, "chosen": "large"}}


def test_of_an_error_the_lowest_is_chosen(folders, monkeypatch):
    monkeypatch.setitem(globals(), "METRIC", "rmse")
    table = dataclasses.replace(TABLE, columns=(Column(Cell("cinquin_1d", VALIDATION, METRIC), "cinquin_1d"),))
    monkeypatch.setattr(tables, "get", lambda name: table)
    for row, score in zip(ROWS[:2], (1.0, 2.0), strict=True):
        record(folders[0], row, table.columns[0], [score, score])
    assert selection.select("mine", folders[0], folders[2])["MAP"]["cinquin_1d"]["chosen"] == "small"


def test_nothing_is_chosen_while_a_candidate_or_a_fold_is_missing(folders):
    record(folders[0], ROWS[0], COLUMNS[0], [-1.0, -2.0])
    assert selection.select("mine", folders[0], folders[2]) == {}
    record(folders[0], ROWS[1], COLUMNS[0], [-0.5])
    assert selection.select("mine", folders[0], folders[2]) == {}
    record(folders[0], ROWS[1], COLUMNS[0], [-0.5, -9.0])
    assert selection.select("mine", folders[0], folders[2])["MAP"]["cinquin_1d"]["chosen"] == "small"
    assert selection.select("mine", folders[0] / "none", folders[2]) == {}


def test_a_candidate_of_which_a_run_failed_cannot_be_chosen_and_the_file_says_why(folders):
    results, chosen, state = folders
    record(results, ROWS[0], COLUMNS[0], [-9.0, -9.0])
    record(results, ROWS[1], COLUMNS[0], [-0.5])
    failed = TABLE.cell_runs(ROWS[1], COLUMNS[0])[1]
    Failures(state).write(failed, run_key(failed), "its process ended", guess=True)
    assert selection.select("mine", results, state) == {}, "it may succeed another time"
    Failures(state).write(failed, run_key(failed), "not positive definite")
    summary = selection.write("mine", results, state)
    assert "MAP, cinquin_1d: small (-9.000)" in summary
    assert "MAP, cinquin_1d: large cannot be chosen, 1 of 2 runs: not positive definite" in summary
    written = json.loads((chosen / "mine-paper.json").read_text())["MAP"]["cinquin_1d"]
    assert written["failed"] == {"large": "1 of 2 runs: not positive definite"} and written["chosen"] == "small"
    forget()
    elsewhere = selection.select("mine", results, state / "of another machine")
    assert elsewhere["MAP"]["cinquin_1d"] == written, "the file knows of it"
    assert selection.select("mine", results / "none", state)["MAP"]["cinquin_1d"] == written, "without records it stays"
    record(results, ROWS[1], COLUMNS[0], [-0.5, -0.5])
    assert selection.select("mine", results, state)["MAP"]["cinquin_1d"]["chosen"] == "large", "a record says otherwise"


def test_choices_are_written_to_a_file_and_read_from_it(folders):
    for row, score in zip(ROWS, (1.0, 2.0, 4.0, 3.0), strict=True):
        record(folders[0], row, COLUMNS[0], [score, score])
    assert choices.chosen("mine", "paper", "MAP", "cinquin_1d") is None
    forget()
    summary = selection.write("mine", folders[0], folders[2])
    assert "MAP, cinquin_1d: large (2.000)\nMFVI, cinquin_1d: small (4.000)\n" in summary
    assert [p.name for p in folders[1].iterdir()] == ["mine-paper.json"]
    written = json.loads((folders[1] / "mine-paper.json").read_text())
    assert written["MFVI"]["cinquin_1d"] == {"scores": {"small": 4.0, "large": 3.0}, "chosen": "small"}
    assert choices.chosen("mine", "paper", "MFVI", "cinquin_1d") == "small"
    assert (
        choices.chosen("mine", "paper", "MFVI", "pequignot_1d") is None
        and choices.chosen("mine", "paper", "FSVI", "boston") is None
    )


def test_the_table_of_cinquin2024_uses_the_candidates_that_were_chosen(folders):
    table, candidates = tables.get("cinquin2024-1"), tables.get("cinquin2024-1-selection")
    gfsvi = next(row for row in table.rows if row.method == "GFSVI")
    boston = next(column for column in table.columns if column.cell.dataset == "boston")
    assert table.cell_runs(gfsvi, boston, "short") == []
    folders[1].mkdir()
    (folders[1] / "cinquin2024-1-short.json").write_text(json.dumps({"GFSVI": {"boston": {"chosen": "matern52"}}}))
    forget()
    runs = table.cell_runs(gfsvi, boston, "short")
    row = next(row for row in candidates.rows if (row.method, row.variant) == ("GFSVI", "matern52"))
    column = next(column for column in candidates.columns if column.cell.dataset == "boston")
    assert runs and runs == candidates.cell_runs(row, column, "short")
    assert {run["parts"]["prior"]["kernel"]["name"] for run in runs} == {"matern52"}
    assert all(column.cell.condition == VALIDATION for column in candidates.columns)


def test_a_protocol_chooses_among_its_own_candidates(folders, monkeypatch):
    def only_small(row, dataset, protocol):
        return None if protocol == "short" and row.variant == "large" else recipe(row, dataset, protocol)

    table = dataclasses.replace(TABLE, recipe=only_small)
    monkeypatch.setattr(tables, "get", lambda name: table)
    store = Store(folders[0])
    for config in table.cell_runs(ROWS[0], COLUMNS[0], "short"):
        metric = {"dataset": "cinquin_1d", "condition": VALIDATION, "metric": METRIC, "value": 1.0, "n": 5}
        store.write(store.make(config, [metric], {}, {"seconds": 1.0}))
    assert selection.select("mine", folders[0], folders[2], "short")["MAP"]["cinquin_1d"]["chosen"] == "small"
    assert selection.select("mine", folders[0], folders[2], "paper") == {}
    selection.write("mine", folders[0], folders[2], "short")
    forget()
    assert choices.chosen("mine", "short", "MAP", "cinquin_1d") == "small"
    assert choices.chosen("mine", "paper", "MAP", "cinquin_1d") is None


def test_a_row_that_no_method_makes_yet_has_no_candidate(folders, monkeypatch):
    rows = (Row("FSVI (published alone)", "FSVI"), *ROWS)
    monkeypatch.setattr(tables, "get", lambda name: dataclasses.replace(TABLE, rows=rows))
    for row in ROWS[:2]:
        record(folders[0], row, COLUMNS[0], [-1.0, -2.0])
    assert list(selection.select("mine", folders[0], folders[2])) == ["MAP"]


def test_a_row_is_chosen_by_its_own_metric(folders):
    row = dataclasses.replace(ROWS[0], metrics=((METRIC, OWN),))
    rows = tuple(dataclasses.replace(each, metrics=row.metrics) for each in ROWS[:2])
    store, table = Store(folders[0]), dataclasses.replace(TABLE, rows=rows)
    for each, (shown, own) in zip(rows, ((2.0, 1.0), (1.0, 2.0)), strict=True):
        for config in table.cell_runs(each, COLUMNS[0]):
            values = {METRIC: shown, OWN: own}
            metrics = [
                {"dataset": "cinquin_1d", "condition": VALIDATION, "metric": name, "value": value, "n": 5}
                for name, value in values.items()
            ]
            store.write(store.make(config, metrics, {}, {"seconds": 1.0}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "get", lambda name: table)
        assert selection.select("mine", folders[0], folders[2])["MAP"]["cinquin_1d"]["chosen"] == "large"


def test_processes_are_chosen_by_their_evidence_and_networks_by_the_expected_likelihood():
    table = tables.get("cinquin2024-1-selection")
    metrics = {row.method: table.columns[0].cell_of(row).metric for row in table.rows}
    assert metrics.pop("GP") == metrics.pop("Sparse GP") == "log_marginal_likelihood"
    assert set(metrics.values()) == {"expected_log_likelihood_standardised"}
    for config in table.runs("paper"):
        process = config["method"] in ("GP", "Sparse GP")
        assert config["evaluation"]["sets"] == (["validation"] if process else ["test", "validation"])
        assert config["evaluation"].get("evidence") == ("validation" if process else None)


def test_what_is_compared_on_one_fold_is_trained_on_all_five_by_the_same_runs() -> None:
    selection, table = tables.get("cinquin2024-1-selection"), tables.get("cinquin2024-1")
    for protocol, folds in (("paper", 1), ("short", 5)):
        (row,) = (row for row in selection.rows if row.label == "GFSVI, rbf")
        tried = selection.cell_runs(row, selection.columns[0], protocol)
        every = cinquin_candidates.candidate("GFSVI", "rbf", "boston", protocol)
        assert len(tried) == folds and len(every.replicates) == 5
        assert [(config["dataset"]["split"], config["seed"]) for config in tried] == list(every.replicates[:folds])
    assert "first fold alone" in words_of(table, "paper") and "first fold alone" not in words_of(table, "short")


def test_a_table_without_candidates_is_refused_with_the_names_of_those_that_have_some(tmp_path):
    with pytest.raises(
        UnknownName, match="unknown table with candidates to choose from 'digits': known: cinquin2024-1$"
    ):
        selection.select("digits", tmp_path / "results", tmp_path / "state")
