"""Archives of predictions and parameters: packed here, taken on a fresh clone, and refused where anything is wrong."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import stat
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from benchmarks import tables
from benchmarks.commands.cli import build
from benchmarks.experiment import archived
from benchmarks.experiment.archived import VARIABLE, fetch, pack
from benchmarks.experiment.execute import execute
from benchmarks.experiment.measure import CHANGED, EVALUATED, UNCHANGED, measure
from benchmarks.records.config import fixed, run_key, training_key
from benchmarks.records.store import Store
from benchmarks.state import kept
from benchmarks.state.archive import MANIFEST, sha256
from benchmarks.suite import Suite
from fvi_core import training as gradients

METHODS = ("MAP", "MFVI")
RUNS = [run for run in tables.get("digits").runs("smoke", [0]) if run["method"] in METHODS]


def further(run, samples=7):
    """Another evaluation of the same training."""
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
    """The files of a state folder; those that are being written too."""
    return sorted(f"{path.parent.name}/{path.name}" for path in state.rglob("*") if path.is_file())


def rewritten(path: Path, change=lambda members: None, manifest=lambda told: None) -> Path:
    """The archive with other members (name or ZipInfo to bytes) and another manifest."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    told = json.loads(members[MANIFEST])
    manifest(told)
    members[MANIFEST] = json.dumps(told).encode()
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_a_clone_measures_what_it_did_not_train(made, clone, tmp_path):
    (_, state, _), (here, empty, archive) = made, clone
    found = fetch(here, empty, [str(archive)])
    assert (found.taken, found.there, found.problems) == (4, 0, [])
    for name in taken(empty):
        assert (empty / name).read_bytes() == (state / name).read_bytes()
    assert measure(RUNS, here, empty).counts[UNCHANGED] == 2
    asked = [further(run) for run in RUNS]
    assert measure(asked, here, empty).counts[EVALUATED] == 2
    beside = Store(tmp_path / "beside")
    assert measure(asked, beside, state).counts[EVALUATED] == 2, "where it was trained"
    for run in asked:
        assert (
            here.get(run)["metrics"] == beside.get(run)["metrics"]
            and here.get(run)["curves"] == beside.get(run)["curves"]
        )


def test_only_what_is_asked_for_is_taken_and_a_stopped_fetch_goes_on(clone):
    store, state, archive = clone
    assert fetch(store, state, [str(archive)], [further(RUNS[0])]).taken == 1
    assert taken(state) == [f"parameters/{training_key(RUNS[0])}.npz"]
    left = state / "artifacts" / f".{run_key(RUNS[1])}.npz.0123456789abcdef.tmp"
    left.parent.mkdir()
    left.write_bytes(b"of a process that was killed")
    found = fetch(store, state, [str(archive)])
    assert (found.taken, found.there, found.problems) == (3, 1, []) and len(taken(state)) == 4
    assert fetch(store, state, [str(archive.parent)]).there == 4, "a folder of archives"


def test_the_same_files_give_the_same_bytes_and_are_left(made, tmp_path):
    store, state, archive = made
    first = pack(store, state, tmp_path)
    made_again = tmp_path / "digits.zip"
    assert made_again.read_bytes() == archive.read_bytes() and first.written == {made_again: sha256(archive)}
    assert (tmp_path / "SHA256SUMS").read_text() == f"{sha256(archive)}  digits.zip\n"
    before = made_again.stat().st_mtime_ns
    again = pack(store, state, tmp_path)
    assert again.unchanged and not again.written and made_again.stat().st_mtime_ns == before
    made_again.write_bytes(archive.read_bytes()[:-1])
    assert pack(store, state, tmp_path).written and made_again.read_bytes() == archive.read_bytes()


def test_only_what_belongs_to_records_is_packed(made, tmp_path):
    store, state, _ = made
    shutil.copytree(state, tmp_path / "state")
    shutil.copytree(store.root, tmp_path / "results")
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


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


def linked(members: dict) -> None:
    info = zipfile.ZipInfo(next(name for name in members if name.startswith("artifacts/")))
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    del members[info.filename]
    members[info] = b"/etc/passwd"


def squeezed(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content, zipfile.ZIP_STORED if name == MANIFEST else None)


def absent(told: dict) -> None:
    name = "parameters/" + "a" * 16 + ".npz"
    told["files"][name] = {"sha256": "0" * 64, "bytes": 3}


def with_member(name: str, content: bytes = b"x"):
    """A change of an archive: a file more, or another one."""
    return partial(rewritten, change=lambda members: members.update({name: content}))


def told(change):
    """A change of the manifest."""
    return partial(rewritten, manifest=change)


DAMAGE = {
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-200]), "it is truncated, or no archive"),
    "begun": (lambda path: path.write_bytes(path.read_bytes()[:5000]), "found a truncated or other one"),
    "no archive": (lambda path: path.write_text("no"), "expected a whole zip file"),
    "missing": (lambda path: path.unlink(), "there is no such archive"),
    "no manifest": (
        partial(rewritten, change=lambda m: m.pop(MANIFEST)),
        "expected manifest.json in it, found none: it is truncated",
    ),
    "no JSON": (with_member(MANIFEST, b"{"), "expected an archive of `benchmarks artifacts pack`"),
    "no sizes": (told(lambda t: t.update(files={"a": 1})), "expected an archive of `benchmarks artifacts pack`"),
    "later": (told(lambda t: t.update(format=2)), "format 2, this code reads 1"),
    "traversal": (with_member("../../out.npz"), "'../../out.npz': expected artifacts/<run key>"),
    "absolute": (with_member("/tmp/out.npz"), "'/tmp/out.npz': expected artifacts/<run key>"),
    "link": (partial(rewritten, change=linked), "found a link"),
    "unnamed": (with_member("parameters/" + "b" * 16 + ".npz"), "its manifest does not name it"),
    "absent": (told(absent), "it lacks it"),
    "compressed": (squeezed, "expected no compression"),
    "foreign": (told(lambda t: t.update(records={})), "it belongs to other results"),
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


def replaced(name: str, content: bytes):
    """A change of an archive: a file of it holds something else, and the manifest says so too."""
    listed = {name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}}
    change = lambda members: members.update({name: content})
    return partial(rewritten, change=change, manifest=lambda told: told["files"].update(listed))


def arrays(**given) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **given)
    return buffer.getvalue()


PREDICTED, TRAINED = f"artifacts/{run_key(RUNS[0])}.npz", f"parameters/{training_key(RUNS[0])}.npz"
SCHEMA = {"schema": np.asarray(1)}
FLAT = SCHEMA | {"test/logits": np.zeros((3, 2), np.float16)}
FALSE = {
    "a pickle": (replaced(PREDICTED, arrays(schema=np.array([print]))), PREDICTED, "expected predictions, found none"),
    "other sets": (replaced(PREDICTED, arrays(**SCHEMA)), PREDICTED, "expected predictions at the sets test,"),
    "another shape": (replaced(PREDICTED, arrays(**FLAT)), PREDICTED, "expected [samples, points, classes]"),
    "no parameters": (replaced(TRAINED, arrays(about=np.zeros(3))), TRAINED, "expected parameters, found none"),
    "a fingerprint": (
        told(lambda t: t["records"][run_key(RUNS[0])]["made"].update(fingerprint="f" * 64)),
        PREDICTED,
        "its manifest says fingerprint fff",
    ),
}


@pytest.mark.parametrize("case", FALSE)
def test_a_file_that_is_not_the_records_own_is_not_taken(clone, case):
    store, state, archive = clone
    change, name, message = FALSE[case]
    change(archive)
    found = fetch(store, state, [str(archive)])
    assert message in found.problems[0] and name in found.problems[0]
    assert found.taken == 4 - len(found.problems) and name not in taken(state) and len(taken(state)) == found.taken


def test_predictions_of_another_run_are_not_taken(clone):
    store, state, archive = clone
    with zipfile.ZipFile(archive) as opened:
        other = opened.read(f"artifacts/{run_key(RUNS[1])}.npz")
    replaced(PREDICTED, other)(archive)
    (problem,) = fetch(store, state, [str(archive)]).problems
    assert PREDICTED in problem and "they belong to another training" in problem
    assert PREDICTED not in taken(state) and len(taken(state)) == 3


@pytest.mark.parametrize(
    "damage", [flipped, told(lambda t: t["files"][TRAINED].update(sha256="0" * 64))], ids=["a byte", "its checksum"]
)
def test_a_damaged_file_costs_itself_alone(clone, damage):
    store, state, archive = clone
    damage(archive)
    (problem,) = fetch(store, state, [str(archive)]).problems
    assert "it is damaged" in problem or "truncated or other one (Bad CRC-32" in problem
    assert len(taken(state)) == 3 and all(name.endswith(".npz") for name in taken(state))
    for run in RUNS:
        for path, check in archived._places(state, run_key(run)):
            if path.exists():
                check(path, store.get(run))


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
    for wrong, message in ((served, "expected its SHA-256"), (f"{served}#sha256={'0' * 64}", "could not be fetched")):
        (problem,) = fetch(store, state, [wrong], say=said.append).problems
        assert message in problem and not taken(state) and not taken(tmp_path / "cache")
    assert fetch(store, state, [address], say=said.append).taken == 4
    monkeypatch.setenv("FVI_OFFLINE", "1")
    assert fetch(store, tmp_path / "other", [address], say=said.append).taken == 4, "it is in the cache"
    assert said == [f"fetching {served}"] * 2
    shutil.rmtree(tmp_path / "cache")
    assert "FVI_OFFLINE is set" in fetch(store, state, [address]).problems[0]


def test_the_commands_pack_list_and_measure(made, clone, tmp_path, capsys, monkeypatch):
    store, state, _ = made
    here, empty, archive = clone

    def say(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            build(Suite())(list(words))
        said = capsys.readouterr()
        return end.value.code or 0, said.out + said.err

    out = ["--out", str(tmp_path / "out")]
    status, told = say("artifacts", "pack", *out, "--results", str(store.root), "--state", str(state))
    assert (
        status == 0
        and f"sha256={sha256(archive)}" in told
        and "2 records, files 2 of artifacts, 2 of parameters" in told
    )
    status, told = say("artifacts", "list", str(archive))
    assert status == 0 and told.splitlines()[1].split()[:3] == [str(archive), "2", "4"]
    folders = ["--results", str(here.root), "--state", str(empty)]
    status, told = say("artifacts", "fetch", *folders)
    assert status == 2 and "name them, or set FVI_ARTIFACTS" in told
    record = here.get(RUNS[0])
    name = record["metrics"][0]["metric"]
    older = here.make(RUNS[0], [row for row in record["metrics"] if row["metric"] != name], {}, record["provenance"])
    here.write(older)
    monkeypatch.setenv(VARIABLE, str(archive))
    asked = [word for method in METHODS for word in ("--method", method)]
    status, told = say("measure", "digits", "--protocol", "smoke", "--seeds", "1", *asked, *folders)
    assert status == 0 and "4 files taken from archives" in told and f"1 {CHANGED}, 1 {UNCHANGED}" in told, told
    assert here.get(RUNS[0])["metrics"] == store.get(RUNS[0])["metrics"]
    monkeypatch.setenv(VARIABLE, f"'{tmp_path / 'no such'}' {archive}")
    status, told = say("measure", "digits", "--protocol", "smoke", "--seeds", "1", *asked, *folders)
    assert status == 1 and "not fetched: " in told and "there is no such archive" in told
    status, told = say("artifacts", "fetch", *folders)
    assert status == 1 and "0 files taken (0.0 MB), 4 already there" in told
    monkeypatch.setenv(VARIABLE, "'")
    assert "expected paths and addresses" in say("artifacts", "fetch", *folders)[1]
