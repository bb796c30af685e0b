"""Kept measurements: what is written is read, a slower commit is marked, and the document shows the files."""

import json
import subprocess
from dataclasses import replace

import pytest

from tools.cost import __main__ as command
from tools.cost import against, kept
from tools.cost.timing import Measurement

CPU = "Some CPU (family 1, model 2)"
ABOUT = {"cpu": CPU, "cores": 2, "commit": "0123456789abcdef", "dirty": False, "load": 0.1, "versions": {"torch": "2"}}
STEP = Measurement("hyvi", "step", 1, "ms", 10.0, 8.0, {"step": (10.0, 8.0)}, 9.0)
TIMES = Measurement("stacked", "a / b", 1, "x", 3.0, 3.0, {}, 3.0, at_least=True)


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "FOLDER", tmp_path / "kept")
    monkeypatch.setattr(kept, "DOCUMENT", tmp_path / "speed.md")
    (tmp_path / "speed.md").write_text(
        "# Speed\n\n<!-- compared: begin -->\n<!-- compared: end -->\n\n<!-- measured: begin -->\nold\n"
        "<!-- measured: end -->\nlast\n"
    )
    return tmp_path


def test_benchmarks_are_replaced_one_by_one_and_read_by_processor():
    kept.keep(ABOUT, 7, [STEP, TIMES])
    later = ABOUT | {"commit": "f" * 40}
    kept.keep(later, 7, [replace(STEP, process=4.0)])
    found = kept.read(CPU)
    assert found["hyvi", "step"] == kept.Earlier(10.0, 4.0, "f" * 40)
    assert found["stacked", "a / b"].commit == "0123456789abcdef"
    assert kept.read("another CPU") == {}


@pytest.mark.parametrize("dirty", [True, None])
def test_numbers_of_no_commit_are_not_kept(dirty):
    with pytest.raises(ValueError, match="expected the code of a commit"):
        kept.keep(ABOUT | {"dirty": dirty}, 7, [STEP])
    assert not kept.FOLDER.exists()


@pytest.mark.parametrize("text", ["{", "[1]"])
def test_a_damaged_file_is_named(text):
    kept.FOLDER.mkdir()
    kept.path(CPU).write_text(text)
    with pytest.raises(ValueError, match=r"some-cpu-family-1-model-2\.json.*restore it with git"):
        kept.read(CPU)


@pytest.mark.parametrize(
    ("measured", "process", "worse"),
    [(STEP, 9.0, False), (STEP, 9.3, True), (STEP, 4.0, False), (TIMES, 2.5, True), (TIMES, 2.7, False)],
)
def test_a_slower_commit_is_marked(measured, process, worse):
    earlier = kept.Earlier(measured.wall, measured.process, "0123456789abcdef")
    said = kept.change(replace(measured, process=process), earlier)
    assert "0123456789 " not in said and "at 0123456789," in said
    assert f"x {process / measured.process:.2f}" in said and said.endswith("WORSE") == worse
    assert kept.change(measured, None) == ""


def test_the_document_shows_both_kinds_of_files(places):
    kept.keep(ABOUT, 7, [STEP])
    against.keep("c" * 40, ABOUT, 5, [against.Compared(STEP, (20.0, 16.0))])
    command.renew_document()
    command.renew_document()  # the same again
    text = (places / "speed.md").read_text()
    assert "old" not in text and text.startswith("# Speed\n") and text.endswith("last\n")
    assert text.count("| hyvi | step | 1 | 10 ms | 8 ms | <= 9 ms | no (process: yes) | 0123456789 |") == 1
    assert text.count("| hyvi | step | 1 | 20 (16) ms | 10 (8) ms | 0.50 | <= 9 ms | no (process: yes) |") == 1
    assert "Before: commit cccccccccc; after: 0123456789" in text and "medians of 5 turns" in text


def test_a_document_without_markers_is_refused():
    with pytest.raises(ValueError, match="measured: begin"):
        kept.insert("text", "measured", [])


def test_committed_numbers_are_those_of_the_committed_document(monkeypatch):
    monkeypatch.undo()
    text = kept.DOCUMENT.read_text()
    renewed = kept.insert(kept.insert(text, "measured", kept.measured()), "compared", against.compared_block())
    assert renewed == text


def test_two_trees_are_measured_in_turns_and_compared_by_medians(monkeypatch):
    monkeypatch.setattr(against, "extract", lambda commit, folder: folder)
    turns, asked = iter([10, 1, 30, 2, 20, 9]), []

    def measure(tree, name):
        asked.append(tree == against.provenance.ROOT)
        spent = float(next(turns))
        only_here = [replace(STEP, name="new")] if asked[-1] else []
        return [replace(STEP, benchmark=name, wall=2 * spent, process=spent), *only_here]

    monkeypatch.setattr(against, "measure", measure)
    (found,) = against.compare("abc", ["hyvi"], 3)
    assert asked == [False, True] * 3
    assert found.before == (40.0, 20.0) and (found.after.wall, found.after.process) == (4.0, 2.0)
    assert found.factor == 0.1


def test_the_code_of_a_commit_has_the_benchmarks_of_this_checkout(tmp_path, monkeypatch):
    root = tmp_path / "root"
    (root / "tools" / "cost").mkdir(parents=True)
    place = root / "tools" / "cost" / "__main__.py"
    place.write_text("old")
    (root / "code.py").write_text("old")
    for arguments in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    (root / "code.py").write_text("new")
    place.write_text(
        "import json, sys, pathlib\n"
        "text = pathlib.Path('code.py').read_text()\n"
        "if sys.argv[1] == 'bad': sys.exit('no such thing')\n"
        f"found = {json.dumps(vars(STEP) | {'met': True})!r}\n"
        "m = json.loads(found) | {'name': text, 'benchmark': sys.argv[1]}\n"
        "out = pathlib.Path(sys.argv[sys.argv.index('--output') + 1])\n"
        "(out / 'cost.json').write_text(json.dumps({'measurements': [m]}))\n"
    )
    monkeypatch.setattr(against.provenance, "ROOT", root)
    tree = against.extract("HEAD", tmp_path / "other")
    (found,) = against.measure(tree, "hyvi")
    assert (found.name, found.benchmark, found.process) == ("old", "hyvi", 8.0)
    with pytest.raises(RuntimeError, match="no such thing"):
        against.measure(tree, "bad")
    with pytest.raises(ValueError, match="--against nowhere"):
        against.extract("nowhere", tmp_path / "third")


def test_a_wrong_commit_is_an_error_of_the_command(monkeypatch, capsys):
    monkeypatch.setattr(command, "BENCHMARKS", {"fake": lambda repeats: [STEP]})
    assert command.main(["fake", "--against", "no-such-commit"]) == 2
    assert "no-such-commit" in capsys.readouterr().err


def test_the_command_keeps_prints_and_compares(places, monkeypatch, capsys):
    monkeypatch.setattr(command, "BENCHMARKS", {"hyvi": lambda repeats: [STEP]})
    monkeypatch.setattr(command, "machine", lambda: ABOUT | {"waiting_threads": "passive"})
    assert command.main(["--keep", "--output", str(places)]) == 0
    assert "| hyvi | step |" in (places / "speed.md").read_text()
    capsys.readouterr()
    monkeypatch.setattr(command, "BENCHMARKS", {"hyvi": lambda repeats: [replace(STEP, process=16.0)]})
    assert command.main(["--output", str(places)]) == 0
    assert "10 ms at 0123456789, now x 2.00 WORSE" in capsys.readouterr().out
