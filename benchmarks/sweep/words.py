"""Sentences about a sweep before it starts: missing data, cost, and alternatives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.records.config import run_key
from benchmarks.sweep import data, hints
from benchmarks.sweep.estimate import LONGEST, Estimate
from benchmarks.sweep.groups import RunGroup
from benchmarks.sweep.plan import MEANINGLESS
from benchmarks.sweep.progress import duration
from benchmarks.sweep.similar import AT_MOST
from benchmarks.sweep.slurm.options import Options
from benchmarks.sweep.where import Place
from datasets.fetch import OFFLINE_VARIABLE

MEANING = {"short": "reduced as its notes say", MEANINGLESS: "seconds; meaningless numbers"}


def data_lines(missing: data.Missing, tried: bool) -> list[str]:
    """Name every data set that runs wait for, the reason, and the command that fetches it. tried: a download failed."""
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


def estimate_lines(found: Estimate, executor: Place) -> list[str]:
    """Describe an estimate and its sources."""
    if not found.runs:
        return []
    if len(found.unknown) == found.runs:
        lines = [f"estimate: none for {found.runs} runs"]
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
    if found.unknown:
        kinds = list(dict.fromkeys(f"{config['method']} on {config['dataset']['name']}" for config in found.unknown))
        some = ", ".join(kinds[:3]) + (", ..." if len(kinds) > 3 else "")
        lines.append(
            f"  not estimated: {len(found.unknown)} runs ({some}): no record of these methods on a CPU or GPU as here"
        )
    return lines


def refusal(
    found: Estimate, executor: Place, groups: Sequence[RunGroup], tables: Sequence[Any], protocol: str | None
) -> list[str]:
    """Explain why a sweep does not start by itself, and the alternatives."""
    how, limit = found.bound or "about", f"{LONGEST / 3600:.0f} h"
    chosen = {table.name: table.check_protocol(protocol) for table in tables}
    ways = _reduced(tables, protocol)
    first = {run_key(config) for table in tables for config in table.runs(chosen[table.name], [0])}
    shares = {group.keys: sum(key in first for key in group.keys) / len(group.keys) for group in groups}
    fewer = sum(seconds * shares.get(keys, 0.0) for keys, seconds in found.groups.items())
    if fewer < found.seconds:
        takes = duration(fewer / executor.size)
        ways.append((hints.option("SEEDS", "1"), f"one seed or split of each row: {how} {takes} here"))
    ways.append((hints.option("EXECUTOR", "slurm"), "on a cluster, see docs/cluster.md"))
    ways.append((hints.flag("ANYWAY"), "here, however long it takes"))
    return [
        f"not started: it would take {how} {duration(found.wall(executor.size))} here; "
        f"sweeps of more than {limit} need confirmation",
        "alternatives: the same command on a machine with a GPU, or here with",
        *_columns(ways),
    ]


def without_gpu(found: Estimate, options: Options, tables: Sequence[Any], protocol: str | None) -> list[str]:
    """Explain why tables made for a GPU are not submitted to nodes without one, and the alternatives; else nothing."""
    chosen = {table.name: table.check_protocol(protocol) for table in tables}
    made = [name for name, table in zip(chosen, tables) if chosen[name] in table.gpu]
    if not made or options.on_gpu:
        return []
    ways = [(hints.option("SLURM", "gpus=1"), "array tasks with a GPU; or gpus = 1 in slurm.toml")]
    ways += [*_reduced(tables, protocol), (hints.flag("ANYWAY"), "without a GPU, however long it takes")]
    cost = f"without one {found.runs} runs take {found.bound or 'about'} {_hours(found.seconds)} core-hours"
    return [
        f"not submitted: table {', '.join(made)} at protocol {chosen[made[0]]} is made for a GPU, and its array tasks "
        f"have none; {cost if found.seconds else 'the cost without one is unknown'}",
        "alternatives: the same command with",
        *_columns(ways),
    ]


def _columns(ways: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(option) for option, _ in ways)
    return [f"  {option.ljust(width)}  {meaning}" for option, meaning in ways]


def _reduced(tables: Sequence[Any], protocol: str | None) -> list[tuple[str, str]]:
    """Return the reduced protocols of every table, as options with their descriptions."""
    chosen = {table.name: table.check_protocol(protocol) for table in tables}
    names = [name for name in MEANING if all(_reduces(table, chosen[table.name], name) for table in tables)]
    return [(hints.option("PROTOCOL", name), MEANING[name]) for name in names]


def _reduces(table: Any, now: str, name: str) -> bool:
    """Whether a protocol of a table is smaller than the present one; protocols are listed from the most faithful on."""
    return name in table.protocols and table.protocols.index(name) > table.protocols.index(now)


def _workers(count: int) -> str:
    return f"{count} worker{'s' * (count != 1)}"


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.2g}" if hours < 10 else f"{hours:,.0f}"
