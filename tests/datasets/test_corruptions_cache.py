"""Generated images in the file cache: made once, by one process or several, resumed, and never believed unseen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from datasets import Arrays, __main__
from datasets.corruptions import cache, source
from datasets.corruptions.cache import SeverityFile
from datasets.image_schemes import SCHEMES
from datasets.image_sets import ImageSets
from fvi_core.telling import listening

ROOT = Path(__file__).resolve().parents[2]
SHAPE = (6, 4, 3, 8, 8)
ALL = range(6)


def images(i: int) -> np.ndarray:
    return np.random.RandomState(i).randint(0, 256, SHAPE[1:]).astype(np.uint8)


EVERY = np.stack([images(i) for i in ALL])


class Maker:
    """Function that makes images, lists them, and fails at the n-th."""

    def __init__(self, fails_at: int = 99) -> None:
        self.made: list[int] = []
        self.fails_at = fails_at

    def __call__(self, i: int) -> np.ndarray:
        if len(self.made) == self.fails_at:
            raise KeyboardInterrupt
        self.made.append(i)
        return images(i)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "severity-1.npy"


def test_images_are_made_once_and_mapped(path: Path) -> None:
    make, reports = Maker(), []
    found = SeverityFile(path, SHAPE).images(range(2, 4), make, lambda *progress: reports.append(progress))
    assert np.array_equal(found, EVERY[2:4]) and (make.made, reports) == ([2, 3], [(1, 2), (2, 2)])
    found = SeverityFile(path, SHAPE).images(ALL, make)
    assert np.array_equal(found, EVERY) and sorted(make.made) == list(ALL)
    assert isinstance(found, np.memmap) and np.array_equal(np.load(path, mmap_mode="r"), EVERY)
    again = SeverityFile(path, SHAPE).images(ALL, Maker(fails_at=0))
    found[:] = 0  # a copy of this process alone
    assert np.array_equal(again, EVERY) and np.array_equal(np.load(path), EVERY)


def test_a_stopped_process_leaves_what_it_has_made(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        SeverityFile(path, SHAPE).images(ALL, Maker(fails_at=4))
    make = Maker()
    assert np.array_equal(SeverityFile(path, SHAPE).images(ALL, make), EVERY) and make.made == [4, 5]


def test_images_without_their_digest_are_made_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed between writing images and writing their digest leaves such a file."""
    file, write = SeverityFile(path, SHAPE), cache._write
    digests = len(file.header) + EVERY.size

    def killed(stream: object, place: int, content: object) -> None:
        if place == digests + 3 * 32:
            raise KeyboardInterrupt
        write(stream, place, content)

    with monkeypatch.context() as once:
        once.setattr(cache, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            file.images(ALL, Maker())
    make = Maker()
    assert np.array_equal(SeverityFile(path, SHAPE).images(ALL, make), EVERY) and make.made == [3, 4, 5]


@pytest.mark.parametrize(
    ("damage", "again"),
    [
        (lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:], [0]),
        (lambda content: content[:-40] + bytes(8) + content[-32:], [4]),
        (lambda content: content[:-1], list(ALL)),
        (lambda content: content + b"x", list(ALL)),
        (lambda content: b"", list(ALL)),
        (lambda content: b"<html>" * 1000, list(ALL)),
    ],
)
def test_damage_is_noticed_and_mended(path: Path, damage: Callable[[bytes], bytes], again: list[int]) -> None:
    SeverityFile(path, SHAPE).images(ALL, Maker())
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    make = Maker()
    assert np.array_equal(SeverityFile(path, SHAPE).images(ALL, make), EVERY) and make.made == again
    assert path.read_bytes() == whole


def test_a_full_disk_costs_only_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, room = cache._write, 5

    def until_full(*where: object) -> None:
        nonlocal room
        room -= 1
        write(*where) if room else write(Full(), *where[1:])

    monkeypatch.setattr(cache, "_write", until_full)
    with pytest.warns(UserWarning, match="severity-1.npy: cannot be written .No space left on device.; these images"):
        assert np.array_equal(SeverityFile(path, SHAPE).images(ALL, Maker()), EVERY)


class Full:
    """File with room for only a part of what is written."""

    def seek(self, place: int) -> None:
        pass

    def write(self, content: bytes) -> int:
        return len(content) - 1


WORKER = """
import sys, time
from pathlib import Path
from datasets.corruptions import cache
from tests.datasets.test_corruptions_cache import EVERY, SHAPE, ALL, images

path, mine = Path(sys.argv[1]), []

def make(i):
    mine.append(i)
    if sys.argv[2] == "hold":
        print("held", flush=True)
        time.sleep(600)
    time.sleep(0.05)
    return images(i)

print("ready", flush=True)
sys.stdin.readline()
found = cache.SeverityFile(path, SHAPE).images(ALL, make)
assert (found == EVERY).all()
print(*mine)
"""


def worker(path: Path, how: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path), how],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_share_the_work_and_make_nothing_twice(path: Path) -> None:
    workers = [worker(path, "make") for _ in range(2)]
    for each in workers:
        assert each.stdout.readline() == "ready\n"
    for each in workers:
        each.stdin.write("go\n")
        each.stdin.flush()
    said = [each.communicate()[0] for each in workers]
    assert sorted(map(int, " ".join(said).split())) == list(ALL)


def test_who_has_stopped_is_not_waited_for_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "PATIENCE", 0.2)
    stopped, make = worker(path, "hold"), Maker()
    try:
        stopped.stdin.write("go\n")
        stopped.stdin.flush()
        assert [stopped.stdout.readline() for _ in range(2)] == ["ready\n", "held\n"]
        assert np.array_equal(SeverityFile(path, SHAPE).images(ALL, make), EVERY)
    finally:
        stopped.kill()
        stopped.communicate()
    assert make.made == [1, 2, 3, 4, 5, 0]


def test_the_command_makes_what_is_missing(
    bring: Callable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(source, "CORRUPTIONS", ("brightness", "contrast"))
    bring("cifar10", "test", 20)
    assert __main__.main(["corrupt", "cifar10"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 15 and said[0].startswith("cifar10, severity 1 of 5: 1 of 2 corruptions, about ")
    assert said[2] == "cifar10, severity 1 of 5: 40 images (CIFAR-10-C, generated from the test part, version 1)"
    assert __main__.main(["corrupt", "cifar10"]) == 0 and len(capsys.readouterr().out.splitlines()) == 5
    assert __main__.main(["corrupt", "cifar10", "--images", "11"]) == 0
    assert "cifar10, severity 5 of 5: 22 images" in capsys.readouterr().out
    for wrong, status, message in (
        (["mnist"], 2, "data set 'mnist' has no corrupted images; those that have: cifar10, cifar100"),
        (["cifar10", "--images", "20"], 2, "--images: expected 1 to 19 of the test images, found 20"),
        (["cifar100"], 1, "file 'cifar100/cifar-100-binary.tar.gz' was not found"),
    ):
        assert __main__.main(["corrupt", *wrong]) == status and message in capsys.readouterr().err


def test_listeners_hear_the_progress_while_a_run_makes_images(bring: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "CORRUPTIONS", ("brightness", "contrast"))
    test = Arrays(**dict(zip("xy", bring("cifar10", "test", 20).values())))
    sets = ImageSets("cifar10", SCHEMES["cifar10"]["dirichlet2022"], test, None)
    messages: list[str] = []
    with listening(messages.append):
        sets["cifar10_c-1"]()
    assert messages == [f"corrupting images of cifar10, severity 1: {made} of 2" for made in (1, 2)]
    with listening(messages.append):
        sets["cifar10_c-1"]()
    sets["cifar10_c-2"]()
    assert len(messages) == 2, "nothing is made again, and nobody listens any more"
