"""Tests of signals and other requests to stop a sweep."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from benchmarks.sweep import stopping
from benchmarks.sweep.stopping import interrupt, stoppable
from tests.benchmarks.sweep.test_runner import until


@pytest.mark.parametrize("number", stopping.SIGNALS)
def test_a_signal_interrupts_once(number):
    before = {n: signal.getsignal(n) for n in stopping.SIGNALS}
    with pytest.raises(KeyboardInterrupt), stoppable():
        try:
            signal.raise_signal(number)
        finally:
            for repeated in stopping.SIGNALS:  # while the sweep saves what it has
                signal.raise_signal(repeated)
    assert {n: signal.getsignal(n) for n in stopping.SIGNALS} == before


def test_a_stop_that_was_not_heeded_can_be_requested_again(monkeypatch):
    clock = iter([100.0, 105.0, 100.0 + stopping.REPEATED])
    with stoppable():
        monkeypatch.setattr(stopping.time, "monotonic", lambda: next(clock))
        for heeded in (True, False, True):
            if heeded:
                with pytest.raises(KeyboardInterrupt):
                    interrupt()
            else:
                interrupt()


def test_an_ignored_signal_stays_ignored():
    """A process under nohup starts with SIGHUP ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


MAKE = """
import signal, sys, time
def end(number, frame):
    signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    print("waiting", flush=True)
    time.sleep(1000)
signal.signal(signal.SIGHUP, end)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP] if sys.argv[1:] else [])
print("working", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def make():
    """Processes that treat signals as make does."""
    started = []

    def start(*words: str) -> subprocess.Popen:
        started.append(subprocess.Popen([sys.executable, "-S", "-c", MAKE, *words], stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout.readline() == "working\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell of other processes")
def test_a_make_that_was_killed_or_waits_to_die_is_known(make):
    waiting, killed = make(), make()
    assert not stopping._ending(waiting.pid) and not stopping._ending(killed.pid)
    waiting.send_signal(signal.SIGHUP)
    assert waiting.stdout.readline() == "waiting\n" and stopping._ending(waiting.pid)
    killed.kill()
    until(lambda: stopping._ending(killed.pid))
    killed.wait()
    assert stopping._ending(killed.pid)
    assert not stopping._ending(make("blocks").pid), "it blocks signals for a moment as it starts a child"


def test_the_end_of_make_interrupts(make, monkeypatch):
    process = make()
    monkeypatch.setenv(stopping.MAKE, str(process.pid))
    monkeypatch.setattr(stopping, "LOOK_EVERY", 0.01)
    with pytest.raises(KeyboardInterrupt), stoppable():
        process.kill()
        threading.Event().wait(60)


def test_the_life_of_make_does_not(make, monkeypatch):
    monkeypatch.setenv(stopping.MAKE, str(make().pid))
    monkeypatch.setattr(stopping, "LOOK_EVERY", 0.01)
    before = threading.active_count()
    with stoppable():
        threading.Event().wait(0.2)
    until(lambda: threading.active_count() == before)
