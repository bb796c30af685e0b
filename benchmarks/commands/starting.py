"""A sweep from its beginning: are the data there, what will it cost, and is that too much to begin without asking?"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.commands import inspection, sweeping
from benchmarks.records.config import run_key
from benchmarks.records.store import Store
from benchmarks.shapes import RunConfig
from benchmarks.state.costs import AT_MOST
from benchmarks.suite import Suite
from benchmarks.sweep import data, hints, runner
from benchmarks.sweep.estimate import Estimate, estimate
from benchmarks.sweep.groups import Executor, RunGroup
from benchmarks.sweep.known import Known
from benchmarks.sweep.plan import WAITING, Plan, check_protocol, make_plan
from benchmarks.sweep.progress import display, duration
from datasets.fetch import OFFLINE_VARIABLE

LONGEST = 48 * 3600.0  # seconds that a sweep may take on this machine if nobody says that it may take more
TOO_LONG = 4  # exit status: nothing was trained, since it would take longer
TICK = 2.0  # seconds between lines while kinds of runs are timed
MEANINGLESS = "smoke"  # the protocol whose numbers are not worth showing
MEANING = {"short": "stated reductions, numbers that are meant", MEANINGLESS: "seconds, numbers without meaning"}


@dataclass(frozen=True)
class Sweep:
    """A sweep as it was asked for: runs of tables under a protocol, who trains them, and where all is kept."""

    tables: Sequence[Any]
    protocol: str | None
    configs: list[RunConfig]
    asked: Mapping[str, Iterable[str]]
    executor: Executor
    results: Path
    state: Path
    suite: Suite

    def show(self) -> int:
        """Say what would be run, what it waits for and what it costs. The exit status of the command."""
        plan = self._plan(fetch=False)
        groups = plan.groups(self.results, self.state, self.suite)
        print(inspection.plan_text(plan, groups))
        found = self._estimate(groups)
        wrong = self.suite.misfits([*found.timed, *found.not_known])  # others have records or a checkpoint
        for line in [*wrong, *(self._refusal(found, groups) if self._too_long(found) else ())]:
            print(line)
        return 1 if wrong else 0

    def run(self, anyway: bool = False, wait: bool = False) -> int:
        """Make the runs, unless that takes too long here. The exit status of the command."""
        plan = self._plan(fetch=True)
        groups = plan.groups(self.results, self.state, self.suite)
        if groups:
            runner.check_folders(self.results, self.state)
        found = self._estimate(groups)
        where = self.results, self.state, self.suite
        if self._too_long(found) and not anyway:
            if len(self.tables) == 1:
                print_best(self.tables[0], self.protocol, *where)
            print("\n".join(self._refusal(found, groups)))
            return TOO_LONG
        if self.executor.outlives:
            waiting = {run.key: run.note for run in plan.select(WAITING)}
            return sweeping.run(self.configs, self.executor, *where, wait, self.asked, waiting)
        summary = runner.run(
            self.configs,
            self.executor,
            results=self.results,
            state=self.state,
            suite=self.suite,
            display=display(),
            plan=plan,
            estimate=found,
        )
        print(inspection.summary_text(summary, again=hints.again()))
        return 130 if summary.interrupted else 0 if summary.complete else 1

    def _plan(self, fetch: bool) -> Plan:
        """What is to be done, after a word on data that are not there; ``fetch``: and an attempt to download them."""
        queued = self.executor.pending(self.state)
        plan = make_plan(self.configs, self.results, self.state, self.suite, queued=queued, asked=self.asked)
        missing = data.look(plan, fetch)
        for line in data_lines(missing, fetch):
            print(line)
        return plan.waiting(missing.notes)

    def _estimate(self, groups: Sequence[RunGroup]) -> Estimate:
        """What it costs, and a word on it."""
        known = Known(Store(self.results, self.suite.metrics), self.state)
        last = time.monotonic()

        def progress(done: int, of: int) -> None:
            nonlocal last
            if time.monotonic() - last >= TICK:
                last = time.monotonic()
                print(f"{done} of {of} kinds of runs timed", flush=True)

        found = estimate(groups, known, self.executor, progress)
        for line in estimate_lines(found, self.executor):
            print(line, flush=True)
        return found

    def _too_long(self, found: Estimate) -> bool:
        return not self.executor.outlives and found.wall(self.executor.size) > LONGEST

    def _refusal(self, found: Estimate, groups: Sequence[RunGroup]) -> list[str]:
        return refusal(found, self.executor, groups, self.tables, self.protocol)


def data_lines(missing: data.Missing, tried: bool) -> list[str]:
    """Every data set that runs wait for, why, and the command that fetches it. tried: whether that was tried now."""
    waiting = Counter(name for names in missing.runs.values() for name in names)
    lines = []
    for name, lack in missing.lacks.items():
        files = f"{len(lack.files)} file{'s' * (len(lack.files) != 1)} of {lack.megabytes:.3g} MB"
        why = f"could not be fetched ({lack.reason})" if tried else "not fetched yet"
        told = f"{files}, {why}" if lack.files else lack.reason
        runs = "1 run waits" if waiting[name] == 1 else f"{waiting[name]} runs wait"
        lines.append(f"{runs} for data set {name}: {told}")
    if names := [name for name, lack in missing.lacks.items() if lack.files]:
        before = "" if tried else f"the sweep tries to fetch them, unless {OFFLINE_VARIABLE} is set; "
        command = hints.module("datasets", "fetch", *names)
        lines.append(f"{before}to fetch them, where there is a network: {command}")
    return lines


def estimate_lines(found: Estimate, executor: Executor) -> list[str]:
    """An estimate in words, and what it rests on."""
    if not found.runs:
        return []
    left = sum(map(len, found.unknown.values()))
    if left == found.runs:
        lines = [f"estimate: what {found.runs} runs cost is not known"]
    else:
        how = found.bound or "about"
        where = (
            "" if executor.outlives else f", {duration(found.wall(executor.size))} here with {_workers(executor.size)}"
        )
        lines = [f"estimate: {found.runs} runs, {how} {_hours(found.seconds)} core-hours{where}"]
        told = [f"{count} runs by {source}" for source, count in found.sources.items()]
        told += [f"{found.trained_only} of them without their evaluation"] * bool(found.trained_only)
        told += [f"training may end early in {count}" for bound, count in found.bounds.items() if bound == AT_MOST]
        lines.append(f"  {', '.join(told)}")
    for reason, configs in found.unknown.items():
        kinds = list(dict.fromkeys(f"{config['method']} on {config['dataset']['name']}" for config in configs))
        some = ", ".join(kinds[:3]) + (", ..." if len(kinds) > 3 else "")
        lines.append(f"  not estimated: {len(configs)} runs ({some}): {reason}")
    return lines


def refusal(
    found: Estimate, executor: Executor, groups: Sequence[RunGroup], tables: Sequence[Any], protocol: str | None
) -> list[str]:
    """Why a sweep does not begin by itself, and the ways on."""
    how, limit = found.bound or "about", f"{LONGEST / 3600:.0f} h"
    chosen = {table.name: check_protocol(table, protocol) for table in tables}
    reduced = [name for name in MEANING if all(_reduces(table, chosen[table.name], name) for table in tables)]
    ways = [(hints.option("PROTOCOL", name), MEANING[name]) for name in reduced]
    first = {run_key(config) for table in tables for config in table.runs(chosen[table.name], [0])}
    shares = {group.keys: sum(key in first for key in group.keys) / len(group.keys) for group in groups}
    fewer = sum(seconds * shares.get(keys, 0.0) for keys, seconds in found.groups.items())
    if fewer < found.seconds:
        takes = duration(fewer / executor.size)
        ways.append((hints.option("SEEDS", "1"), f"one seed or split of each row: {how} {takes} here"))
    ways.append((hints.option("EXECUTOR", "slurm"), "on a cluster, see docs/cluster.md"))
    ways.append((hints.flag("ANYWAY"), "here, however long it takes"))
    width = max(len(option) for option, _ in ways)
    return [
        f"not begun: it would take {how} {duration(found.wall(executor.size))} here; "
        f"what takes more than {limit} does not begin by itself",
        "ways on: the same command on a machine with a GPU, or here with",
        *(f"  {option.ljust(width)}  {meaning}" for option, meaning in ways),
    ]


def _reduces(table: Any, now: str, name: str) -> bool:
    """Whether a protocol of a table asks for less than the present one; they are listed from the most faithful on."""
    return name in table.protocols and table.protocols.index(name) > table.protocols.index(now)


def print_best(table: Any, protocol: str | None, results: Path, state: Path, suite: Suite) -> None:
    """Print a table as far as there are records, under the most faithful protocol that has any."""
    store = Store(results, suite.metrics)
    recorded = {
        name: sum(store.path(config).exists() for config in table.runs(name))
        for name in table.protocols
        if name != MEANINGLESS
    }
    best = next((name for name, count in recorded.items() if count), check_protocol(table, protocol))
    print(f"table {table.name} as far as there are records, at protocol {best}:", flush=True)
    if suite.reports:
        where = ["--results", str(results), "--state", str(state)]
        subprocess.run([sys.executable, "-m", suite.reports, "table", table.name, "--protocol", best, *where])


def _workers(count: int) -> str:
    return f"{count} worker{'s' * (count != 1)}"


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.2g}" if hours < 10 else f"{hours:,.0f}"
