"""Archives of predictions and parameters: packed here, taken on a fresh clone; a file without its digest is refused."""

from __future__ import annotations

import hashlib
import shutil
import stat
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks import tables
from benchmarks.experiment.archived import pack
from benchmarks.experiment.execute import execute
from benchmarks.experiment.measure import CHANGED, EVALUATED, UNCHANGED, measure
from benchmarks.records.config import fixed, run_key, training_key
from benchmarks.records.store import Store
from benchmarks.state import kept
from benchmarks.state.archive import DIGESTS, VARIABLE, ArchiveError, digests, fetch, sha256
from benchmarks.suite import Suite
from fvi_core import training as gradients

METHODS = ("MAP", "MFVI")
RUNS = [run for run in tables.get("digits").runs("smoke", [0]) if run["method"] in METHODS]


def further(run, samples=7):
    """Return the configuration of another evaluation of a training."""
    return fixed({**run, "evaluation": {**run["evaluation"], "samples": samples, "sets": ["test", "ood-photos"]}})


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Store, Path, Path]:
    """Records and state of two runs of the digits, and their archive."""
    folder = tmp_path_factory.mktemp("made")
    store, state = Store(folder / "results"), folder / "state"
    for run in RUNS:
        (outcome,) = execute([run], state=state)
        store.write(store.make(run, outcome.metrics, outcome.curves, outcome.provenance))
    pack(store, state, folder / "archives")
    return store, state, folder / "archives" / "digits.zip"


@pytest.fixture
def clone(made, tmp_path, monkeypatch) -> tuple[Store, Path, Path]:
    """The records and the archive in other folders, with an empty state; nothing can be trained there."""
    store, _, archive = made
    shutil.copytree(store.root, tmp_path / "results")
    shutil.copy(archive, tmp_path / "digits.zip")
    monkeypatch.setattr(gradients, "Trainer", None)
    return Store(tmp_path / "results"), tmp_path / "state", tmp_path / "digits.zip"


def taken(state: Path) -> list[str]:
    """Return the files of a state folder, including unfinished ones."""
    return sorted(f"{path.parent.name}/{path.name}" for path in state.rglob("*") if path.is_file())


def rewritten(path: Path, change, compression=zipfile.ZIP_STORED) -> None:
    """Write the archive again with other members (name or ZipInfo to bytes)."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_a_clone_measures_what_it_did_not_train(made, clone, tmp_path):
    (_, state, _), (here, empty, archive) = made, clone
    found = fetch(here, empty, [str(archive)])
    assert (found.taken, found.there, found.problems) == (4, 0, [])
    for name in taken(empty):
        assert (empty / name).read_bytes() == (state / name).read_bytes()
    assert measure(RUNS, here, empty).counts[UNCHANGED] == 2
    runs = [further(run) for run in RUNS]
    assert measure(runs, here, empty).counts[EVALUATED] == 2
    beside = Store(tmp_path / "beside")
    assert measure(runs, beside, state).counts[EVALUATED] == 2, "where it was trained"
    for run in runs:
        assert (
            here.get(run)["metrics"] == beside.get(run)["metrics"]
            and here.get(run)["curves"] == beside.get(run)["curves"]
        )


def test_only_requested_files_are_taken_and_a_stopped_fetch_goes_on(clone):
    store, state, archive = clone
    assert fetch(store, state, [str(archive)], {run_key(further(RUNS[0])), training_key(RUNS[0])}).taken == 1
    assert taken(state) == [f"parameters/{training_key(RUNS[0])}.npz"]
    left = state / "artifacts" / f".{run_key(RUNS[1])}.npz.0123456789abcdef.tmp"
    left.parent.mkdir()
    left.write_bytes(b"of a process that was killed")
    found = fetch(store, state, [str(archive)])
    assert (found.taken, found.there, found.problems) == (3, 1, []) and len(taken(state)) == 4
    assert fetch(store, state, [str(archive.parent)]).there == 4, "a folder of archives"


def test_the_same_files_give_the_same_bytes_and_their_digests_stand_beside_the_records(made, tmp_path):
    store, state, archive = made
    known = digests(store.root)
    assert len(known) == 4 and all(sha256(state / name) == digest for name, digest in known.items())
    again = pack(store, state, tmp_path)
    assert again.written == {tmp_path / "digits.zip": sha256(archive)} and digests(store.root) == known
    assert (tmp_path / "digits.zip").read_bytes() == archive.read_bytes()


def test_only_what_belongs_to_records_is_packed(made, tmp_path):
    store, state, _ = made
    shutil.copytree(state, tmp_path / "state")
    shutil.copytree(store.root, tmp_path / "results")
    (tmp_path / "results" / DIGESTS).unlink()
    here, folder = Store(tmp_path / "results"), tmp_path / "state"
    shutil.copy(
        kept.predictions_path(folder, run_key(RUNS[0])), folder / "artifacts" / ("0" * 16 + "-" + "0" * 8 + ".npz")
    )
    shutil.copy(kept.predictions_path(folder, run_key(RUNS[0])), kept.predictions_path(folder, run_key(RUNS[1])))
    kept.parameters_path(folder, run_key(RUNS[0])).unlink()
    found = pack(here, folder, tmp_path / "out")
    assert found.counts == {"artifacts": 1, "parameters": 1} and found.records == 2 and not found.missing
    (left,) = found.left
    assert run_key(RUNS[1]) in left and "they belong to another training" in left
    shutil.rmtree(folder)
    assert sorted(pack(here, folder, tmp_path / "none").missing) == sorted(map(run_key, RUNS))
    assert not (tmp_path / "none").exists()


def test_a_file_that_has_changed_since_its_digest_is_left_out(made, tmp_path):
    store, state, _ = made
    shutil.copytree(state, tmp_path / "state")
    shutil.copytree(store.root, tmp_path / "results")
    with (tmp_path / "state" / TRAINED).open("ab") as file:
        file.write(b"0")
    found = pack(Store(tmp_path / "results"), tmp_path / "state", tmp_path / "out")
    (left,) = found.left
    assert TRAINED in left and f"not the one of {DIGESTS}" in left and found.counts["parameters"] == 1
    assert digests(tmp_path / "results") == digests(store.root)


def test_an_invalid_record_costs_its_files_alone(made, tmp_path):
    store, state, _ = made
    shutil.copytree(store.root, tmp_path / "results")
    (tmp_path / "results" / DIGESTS).unlink()
    here = Store(tmp_path / "results")
    here.path(RUNS[0]).write_text("{")
    found = pack(here, state, tmp_path / "out")
    (left,) = found.left
    assert str(here.path(RUNS[0])) in left and "not a whole record" in left
    assert found.records == 1 and sorted(digests(here.root)) == [
        f"artifacts/{run_key(RUNS[1])}.npz",
        f"parameters/{training_key(RUNS[1])}.npz",
    ]


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


def unknown(members: dict) -> None:
    for name in list(members):
        members[f"{'../' * 3}{name}"] = members.pop(name)


DAMAGE = {
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-200]), "has a digest in artifacts.sha256 here"),
    "begun": (lambda path: path.write_bytes(path.read_bytes()[:5000]), "found a truncated or other one"),
    "no archive": (lambda path: path.write_text("no"), "expected a whole zip file"),
    "missing": (lambda path: path.unlink(), "there is no such archive"),
    "foreign": (partial(rewritten, change=unknown), "none of its 4 files has a digest"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_archive_gives_nothing_and_says_why(clone, tmp_path, case):
    store, state, archive = clone
    damage, message = DAMAGE[case]
    damage(archive)
    before = sorted(tmp_path.rglob("*"))
    found = fetch(store, state, [str(archive)])
    (problem,) = found.problems
    assert message in problem and str(archive) in problem and found.taken == 0
    assert sorted(tmp_path.rglob("*")) == before and not taken(state)


def test_a_damaged_archive_stops_no_other_of_its_folder(clone, tmp_path):
    store, state, archive = clone
    folder = tmp_path / "archives"
    folder.mkdir()
    (folder / "a.zip").write_bytes(b"no archive")
    shutil.copy(archive, folder / "b.zip")
    found = fetch(store, state, [str(folder)])
    (problem,) = found.problems
    assert str(folder / "a.zip") in problem and found.taken == len(taken(state)) == 4


def test_no_member_chooses_where_it_is_written(clone, tmp_path):
    store, state, archive = clone
    hostile = {"../../out.npz": b"x", str(tmp_path / "out.npz"): b"x", "parameters/" + "b" * 16 + ".npz": b"x"}
    rewritten(archive, lambda members: members.update(hostile))
    assert fetch(store, state, [str(archive)]).taken == len(taken(state)) == 4
    assert not list(tmp_path.rglob("out.npz"))


def other(members: dict) -> None:
    members[PREDICTED] = members[f"artifacts/{run_key(RUNS[1])}.npz"]


def linked(members: dict) -> None:
    info = zipfile.ZipInfo(PREDICTED)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    del members[PREDICTED]
    members[info] = b"/etc/passwd"


PREDICTED, TRAINED = f"artifacts/{run_key(RUNS[0])}.npz", f"parameters/{training_key(RUNS[0])}.npz"
FALSE = {
    "a byte": (flipped, "Bad CRC-32"),
    "of another run": (partial(rewritten, change=other), f"of {DIGESTS}, found"),
    "a link": (partial(rewritten, change=linked), f"of {DIGESTS}, found"),
    "another": (partial(rewritten, change=lambda members: members.update({PREDICTED: b"no"})), f"of {DIGESTS}, found"),
}


@pytest.mark.parametrize("case", FALSE)
def test_a_file_without_its_digest_costs_itself_alone(clone, case):
    store, state, archive = clone
    change, message = FALSE[case]
    change(archive)
    (problem,) = fetch(store, state, [str(archive)]).problems
    assert message in problem and "it was not taken" in problem
    assert len(taken(state)) == 3 and all(name.endswith(".npz") for name in taken(state))
    known = digests(store.root)
    assert all(hashlib.sha256((state / name).read_bytes()).hexdigest() == known[name] for name in taken(state))


def test_a_compressed_file_is_not_read(clone):
    store, state, archive = clone
    rewritten(archive, lambda members: None, zipfile.ZIP_DEFLATED)
    found = fetch(store, state, [str(archive)])
    assert len(found.problems) == 4 and "expected no compression" in found.problems[0] and not taken(state)


@pytest.mark.parametrize("line", [b"0" * 64 + b"  ../../out.npz\n", b"\xff\n"])
def test_a_damaged_list_of_digests_is_an_error(clone, line):
    store, state, archive = clone
    (store.root / DIGESTS).write_bytes(line)
    with pytest.raises(ArchiveError, match="restore it with git"):
        fetch(store, state, [str(archive)])


@pytest.fixture
def served(made, monkeypatch, tmp_path):
    """served(path) -> the address of a file; the cache of data is empty."""
    monkeypatch.setenv("FVI_DATA_CACHE", str(tmp_path / "cache"))

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    folder = made[2].parent
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/digits.zip"
    server.shutdown()
    server.server_close()


def test_an_address_is_fetched_once_and_only_with_its_checksum(clone, made, served, tmp_path, monkeypatch):
    store, state, archive = clone
    said: list[str] = []
    address = f"{served}#sha256={sha256(archive)}"
    for wrong, message in (
        (served, "expected its SHA-256"),
        (address[:-1], "expected its SHA-256"),
        (f"{served}#{sha256(archive)}", "expected its SHA-256"),
        (f"{served}#sha256={'0' * 64}", "could not be fetched"),
    ):
        (problem,) = fetch(store, state, [wrong], say=said.append).problems
        assert message in problem and not taken(state) and not taken(tmp_path / "cache")
    assert fetch(store, state, [address], say=said.append).taken == 4
    monkeypatch.setenv("FVI_OFFLINE", "1")
    assert fetch(store, tmp_path / "other", [address], say=said.append).taken == 4, "it is in the cache"
    assert said == [f"fetching {served}"] * 2
    shutil.rmtree(tmp_path / "cache")
    assert "FVI_OFFLINE is set" in fetch(store, state, [address]).problems[0]


def test_the_commands_pack_list_and_measure(made, clone, tmp_path, say, monkeypatch):
    store, state, _ = made
    here, empty, archive = clone
    say = partial(say, suite=Suite(), folders=False)
    out = ["--out", str(tmp_path / "out")]
    status, output = say("artifacts", "pack", *out, "--results", str(store.root), "--state", str(state))
    assert (
        status == 0
        and f"sha256={sha256(archive)}" in output
        and "2 records, files 2 of artifacts, 2 of parameters" in output
    )
    status, output = say("artifacts", "list", str(archive), "--results", str(here.root))
    assert status == 0 and output.splitlines()[1].split()[:3] == [str(archive), "4", "4"]
    lost = str(tmp_path / "lost.zip")
    status, output = say("artifacts", "list", lost, str(archive), "--results", str(here.root))
    assert status == 1 and output.splitlines()[1].split()[:3] == [str(archive), "4", "4"]
    assert f"not listed: {lost}: there is no such archive" in output
    folders = ["--results", str(here.root), "--state", str(empty)]
    status, output = say("artifacts", "fetch", *folders)
    assert status == 2 and "name them, or set FVI_ARTIFACTS" in output
    record = here.get(RUNS[0])
    name = record["metrics"][0]["metric"]
    older = here.make(RUNS[0], [row for row in record["metrics"] if row["metric"] != name], {}, record["provenance"])
    here.write(older)
    monkeypatch.setenv(VARIABLE, str(archive))
    method_options = [word for method in METHODS for word in ("--method", method)]
    status, output = say("measure", "digits", "--protocol", "smoke", "--seeds", "1", *method_options, *folders)
    assert status == 0 and "4 files taken from archives" in output and f"1 {CHANGED}, 1 {UNCHANGED}" in output, output
    assert here.get(RUNS[0])["metrics"] == store.get(RUNS[0])["metrics"]
    monkeypatch.setenv(VARIABLE, f"'{tmp_path / 'no such'}' {archive}")
    status, output = say("measure", "digits", "--protocol", "smoke", "--seeds", "1", *method_options, *folders)
    assert status == 1 and "not fetched: " in output and "there is no such archive" in output
    status, output = say("artifacts", "fetch", *folders)
    assert status == 1 and "0 files taken (0.0 MB), 4 already there" in output
    monkeypatch.setenv(VARIABLE, "'")
    assert "expected paths and addresses" in say("artifacts", "fetch", *folders)[1]
