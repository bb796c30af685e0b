"""No recipe changes unseen: keys.txt holds every row's runs, retired.txt a reason for every record of no table."""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import tables
from benchmarks.errors import BenchmarkError
from benchmarks.records.other_files import bare_digest
from benchmarks.records.store import Store
from benchmarks.tables import manifest
from benchmarks.tables.manifest import Digest, Place
from tests.configs import make_config

RESULTS = Path(__file__).parents[3] / "results"
RENEW = "if this is meant: python -m benchmarks keys --write --reason '...'"


@pytest.fixture(scope="module")
def declared():
    return list(tables.declared().values())


@pytest.fixture(scope="module")
def planned(declared):
    return dict(manifest.plans(declared))


@pytest.fixture(scope="module")
def orphans(declared):
    runs = (run for table in declared for protocol in table.protocols for run in table.runs(protocol))
    return manifest.orphans(Store(RESULTS), runs)


def test_no_recipe_has_changed_unseen(planned, orphans):
    retired = manifest.read_retired(RESULTS / manifest.RETIRED)
    new = {record: config for record, config in orphans.items() if record not in retired}
    changes, left = manifest.changes(manifest.read(), planned, new)
    assert not changes and not left, "\n".join([*map(str, changes), *left, RENEW])


def test_every_record_is_of_a_table_or_retired_with_a_reason(orphans):
    retired = manifest.read_retired(RESULTS / manifest.RETIRED)
    assert set(orphans) == set(retired), RENEW
    assert all(reason.strip() for reason in retired.values())


MUTANTS = {
    "digits": ("training", "optimiser", "lr"),
    "rudner2021-1": ("training", "optimiser", "lr"),
    "rudner2022-1": ("training", "epochs"),
    "rudner2022-2": ("training", "epochs"),
    "dirichlet2022-2": ("training", "epochs"),
    "cinquin2024-1": ("training", "optimiser", "lr"),
    "cinquin2024-3": ("training", "epochs"),
    "pequignot2020-5": ("training", "batch_size"),
    "retinopathy": ("training", "optimiser", "lr"),
    "toys": ("training", "epochs"),
}


@pytest.mark.parametrize(("name", "setting"), MUTANTS.items())
def test_a_changed_setting_is_a_change_that_names_the_row(name, setting, planned):
    """One recipe of ten modules each, with one setting of one row doubled."""
    table = tables.get(name)
    row = next(row for row in table.rows if row.method and row.method not in ("HMC", "GP"))

    def changed(other, dataset, protocol):
        recipe = table.recipe(other, dataset, protocol)
        if recipe is None or other.label != row.label:
            return recipe
        value = make_config(table_method(other), dataset, protocol, recipe, 0, 0)["parts"]
        parts: dict = {}
        inner = parts
        for step in setting[:-1]:
            value, inner[step] = value[step], {}
            inner = inner[step]
        inner[setting[-1]] = 2 * value[setting[-1]]
        return recipe.with_parts(parts)

    def table_method(other):
        return other.method

    now = dict(manifest.plans([replace(table, recipe=changed)]))
    before = manifest.manifest((place, runs) for place, runs in planned.items() if place.table == name)
    changes, left = manifest.changes(before, now, {})
    assert changes and not left
    assert {change.place.row for change in changes} == {row.label}
    assert all(row.label in str(change) and name in str(change) for change in changes)


def test_a_change_says_which_setting_and_how_many_records_it_orphans():
    table = tables.get("digits")
    row = table.rows[0]
    recipe = table.recipe(row, "digits", "paper")
    then = [make_config("MAP", "digits", "paper", recipe, 0, seed) for seed in range(2)]
    faster = recipe.with_parts({"training": {"optimiser": {"name": "adam", "lr": 0.03}}})
    now = [make_config("MAP", "digits", "paper", faster, 0, seed) for seed in range(2)]
    place = Place("digits", "paper", "MAP", "digits")
    before = manifest.manifest([(place, then)])
    (change,), left = manifest.changes(before, {place: now}, {"digits/map/1": then[0], "digits/map/2": then[1]})
    assert not left and change.orphans == ["digits/map/1", "digits/map/2"]
    assert str(change) == (
        "digits (paper), row 'MAP', digits: training.optimiser.lr: 0.003 before, 0.03 now; 2 records orphaned"
    )
    (change,), _ = manifest.changes(before, {place: now[:1]}, {})
    assert str(change) == "digits (paper), row 'MAP', digits: 2 runs before, 1 now, of another configuration"
    (change,), left = manifest.changes(before, {}, {"digits/map/1": then[0]})
    assert str(change).endswith("digits: gone, 2 runs") and left == ["digits/map/1"]
    (change,), _ = manifest.changes({}, {place: now}, {})
    assert str(change).endswith("digits: new, 2 runs")


def test_an_orphan_goes_with_the_row_that_it_is_nearest_to():
    table = tables.get("digits")
    recipe = table.recipe(table.rows[0], "digits", "paper")
    runs = {
        epochs: make_config("MAP", "digits", "paper", recipe.with_parts({"training": {"epochs": epochs}}), 0, 0)
        for epochs in (10, 20)
    }
    slow = recipe.with_parts({"training": {"epochs": 20, "batch_size": 7}})
    orphan = make_config("MAP", "digits", "paper", slow, 0, 0)
    now = {Place("digits", "paper", f"{epochs}", "digits"): [run] for epochs, run in runs.items()}
    changes, left = manifest.changes({}, now, {"digits/map/1": orphan})
    assert not left and {change.place.row: change.orphans for change in changes} == {"10": [], "20": ["digits/map/1"]}


def test_digests_are_of_configurations_without_the_users_own_files():
    table = tables.get("digits")
    (config, *_) = table.row_runs(table.rows[0], "digits", "paper")
    place = Place("digits", "paper", "MAP", "digits")
    own = {**config, "evaluation": {**config["evaluation"], "content": {"digits/test": "0123"}}}
    expected = hashlib.sha256(bare_digest(config).encode()).hexdigest()[:12]
    assert manifest.manifest([(place, [config])]) == manifest.manifest([(place, [own])]) == {place: Digest(1, expected)}
    other = {**config, "seed": config["seed"] + 1}
    assert manifest.manifest([(place, [other])]) != manifest.manifest([(place, [config])])


def test_files_are_read_as_they_were_written(tmp_path):
    found = {
        Place("t", "paper", "A row, with words", "d"): Digest(3, "a" * 12),
        Place("t", "short", "x", "d"): Digest(1, "b"),
    }
    manifest.write(found, tmp_path / "keys.txt")
    assert manifest.read(tmp_path / "keys.txt") == found
    retired = {"d/m/2": "for a reason", "d/m/1": "for a reason", "d/m/3": "another one"}
    manifest.write_retired(retired, tmp_path / "retired.txt")
    assert manifest.read_retired(tmp_path / "retired.txt") == retired
    assert (tmp_path / "retired.txt").read_text() == "[another one]\nd/m/3\n[for a reason]\nd/m/1\nd/m/2\n"
    assert manifest.read_retired(tmp_path / "none.txt") == {}
    manifest.write_retired({}, tmp_path / "retired.txt")
    assert (tmp_path / "retired.txt").read_text() == ""


@pytest.mark.parametrize(
    "text", ["row\td\t1\tabc\n", "[t]\nrow\td\t1\tabc\n", "[t paper]\nrow\td\tone\tabc\n", "[t paper]\nrow\n"]
)
def test_a_line_that_is_none_is_named(tmp_path, text):
    (tmp_path / "keys.txt").write_text(text)
    with pytest.raises(BenchmarkError, match=r"keys\.txt:[12]: expected"):
        manifest.read(tmp_path / "keys.txt")


def test_orphans_are_records_of_no_run_but_those_made_elsewhere(tmp_path):
    store = Store(tmp_path)
    table = tables.get("digits")
    runs = table.row_runs(table.rows[0], "digits", "paper")
    some = Store(RESULTS)
    for config in runs[:2]:
        path = store.path(config)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(some.path(config), path)
    left = store.path(runs[0]).relative_to(tmp_path).with_suffix("").as_posix()
    assert manifest.orphans(store, runs) == {}
    assert list(manifest.orphans(store, runs[1:])) == [left]
