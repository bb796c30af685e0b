"""Command keys: what it says of a changed recipe, and what it writes."""

import shutil
from pathlib import Path

import pytest

from benchmarks.commands import cli
from benchmarks.suite import Suite
from benchmarks.tables import manifest

RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture
def folder(tmp_path):
    """A results folder with a retired record and one of a table, and a copy of the manifest."""
    retired = next(iter(manifest.read_retired(RESULTS / manifest.RETIRED)))
    kept = min((RESULTS / "digits" / "map").glob("*.json"))
    for path in (RESULTS / f"{retired}.json", kept):
        (tmp_path / path.relative_to(RESULTS)).parent.mkdir(parents=True)
        shutil.copy(path, tmp_path / path.relative_to(RESULTS))
    shutil.copy(manifest.FILE, tmp_path / "keys.txt")
    return tmp_path, retired


@pytest.fixture
def keys(folder, call):
    """``keys(*words)``: run the command of that name; return its exit status and all that it prints."""

    def keys(*words):
        where = ["--results", str(folder[0]), "--file", str(folder[0] / "keys.txt")]
        status, output, errors = call(cli.build(Suite()), "keys", *where, *words)
        return status, output + errors

    return keys


def test_an_orphan_is_named_and_retired_with_its_reason_alone(keys, folder):
    status, output = keys()
    assert status == 1 and f"{folder[1]}: of no table, and no row has changed" in output and "--reason" in output
    status, output = keys("--write")
    assert status == 2 and "1 records would belong to no table: say why they are retired, with --reason" in output
    assert not (folder[0] / "retired.txt").exists()
    status, output = keys("--write", "--reason", "given up")
    assert status == 0 and "1 records retired, 0 no longer" in output
    assert manifest.read_retired(folder[0] / "retired.txt") == {folder[1]: "given up"}
    status, output = keys()
    assert status == 0 and output.startswith("nothing has changed: ") and "1 retired records" in output


def test_a_changed_row_is_named_and_made_known(keys, folder):
    keys("--write", "--reason", "given up")
    text = (folder[0] / "keys.txt").read_text()
    place, digest = next(iter(manifest.read().items()))
    line = "\t".join((place.row, place.dataset, str(digest.runs), digest.digits))
    (folder[0] / "keys.txt").write_text(text.replace(line, line[:-1] + "x", 1))
    status, output = keys()
    assert status == 1 and f"{place.table} ({place.protocol}), row '{place.row}', {place.dataset}: " in output
    assert keys("--write")[0] == 0 and (folder[0] / "keys.txt").read_text() == text
    assert keys()[0] == 0


def test_a_retired_record_that_is_not_there_is_named_and_leaves_the_list(keys, folder):
    keys("--write", "--reason", "given up")
    manifest.write_retired({folder[1]: "given up", "digits/map/0": "no such"}, folder[0] / "retired.txt")
    status, output = keys()
    assert status == 1 and "digits/map/0: retired, but not there or of a table again" in output
    assert keys("--write")[0] == 0
    assert manifest.read_retired(folder[0] / "retired.txt") == {folder[1]: "given up"}
