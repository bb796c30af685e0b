"""Figures drawn by several processes: the same files and results as by one, also where a process is killed."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing import active_children
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
import torch

from benchmarks.errors import UsageError
from benchmarks.suite import Suite
from reports.figures import FIGURES, Drawn, draw, processes
from reports.figures.options import Options
from reports.figures.processes import drawing
from reports.records import Records

CHOSEN = [figure for figure in FIGURES.values() if not figure.table] + [FIGURES["digits-roc"]]
FORMS = (".svg", ".csv")


@pytest.fixture(autouse=True)
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "available_cores", lambda: 2)
    monkeypatch.setattr(processes, "WORTH", 1)


@pytest.mark.parametrize("killed", [False, True])
def test_several_processes_draw_what_one_draws(killed: bool, tmp_path: Path) -> None:
    records = Records(tmp_path / "results")
    alone = list(draw(CHOSEN, Suite(), records, tmp_path / "alone", None, None, FORMS))
    with drawing(CHOSEN, Suite(), records, tmp_path / "together", None, None, FORMS) as drawn:
        for process in active_children() if killed else ():
            process.kill()
        found = list(drawn)
    assert [each.name for each in found] == [each.name for each in alone] == [figure.name for figure in CHOSEN]
    assert [each.skipped for each in found] == [each.skipped for each in alone]
    assert not any(each.skipped for each in found[:-1]) and "no records" in found[-1].skipped
    for one, other in zip(alone, found):
        assert [file.name for file in other.files] == [file.name for file in one.files]
        assert [file.read_bytes() for file in other.files] == [file.read_bytes() for file in one.files]
    assert not active_children()


def test_an_error_of_the_user_reaches_the_one_who_reads(tmp_path: Path) -> None:
    options = Options(columns=("Q",))
    with (
        drawing(CHOSEN, Suite(), Records(tmp_path), tmp_path, None, None, FORMS, options) as drawn,
        pytest.raises(UsageError, match="unknown column .Q."),
    ):
        list(drawn)
    assert not active_children()


def test_processes_draw_from_what_was_read_before_they_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite, records = Suite(), Records(tmp_path)

    def stub(figures: Any, *given: Any) -> list[Drawn]:
        return [Drawn(figure.name, skipped=f"{os.getpid()} {[*map(id, given)][:2]}") for figure in figures]

    monkeypatch.setattr(processes, "draw", stub)
    with drawing(CHOSEN, suite, records, tmp_path) as drawn:
        found = {tuple(each.skipped.split(" ", 1)) for each in drawn}
    assert str(os.getpid()) not in {pid for pid, _ in found}
    assert {objects for _, objects in found} == {str([id(suite), id(records)])}


def test_ctrl_c_ends_drawing_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "draw", lambda *about: time.sleep(600))

    def interrupt() -> None:
        for pid in [*(process.pid for process in active_children()), os.getpid()]:
            os.kill(pid or 0, signal.SIGINT)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), drawing(CHOSEN, Suite(), Records(tmp_path), tmp_path) as drawn:
        Timer(2, interrupt).start()
        list(drawn)
    assert time.monotonic() - began < 60 and not active_children()


def test_processes_do_not_wait_for_threads_that_a_fork_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stub(figures: Any, *about: Any) -> list[Drawn]:
        return [Drawn(figure.name, skipped=str(torch.get_num_threads())) for figure in figures]

    monkeypatch.setattr(processes, "draw", stub)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with drawing(CHOSEN, Suite(), Records(tmp_path), tmp_path) as drawn:
            assert {each.skipped for each in drawn} == {"1"}
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
