"""Demo: three methods trained from scratch, beside the records of the same runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import mean, stdev
from typing import Any

from benchmarks.commands.inspection import columns
from benchmarks.errors import UsageError
from benchmarks.records.store import Store
from benchmarks.shapes import Record
from benchmarks.suite import Suite
from benchmarks.sweep import hints, verify
from benchmarks.sweep.begin import beyond, only
from benchmarks.sweep.progress import brief
from benchmarks.sweep.runner import Display
from benchmarks.sweep.workers import Workers
from fvi_core.telling import plural

TABLE, PROTOCOL, METHODS = "digits", "paper", ("MAP", "MFVI", "FSVI")
SHOWN = ("accuracy", "nll", "ece", "ood_auroc")
HELP = f"""Train {len(METHODS)} methods from scratch in under a minute, and compare their numbers with the records.

{", ".join(METHODS)} on handwritten digits that come with scikit-learn, as in table {TABLE}, trained in a
temporary folder: results/ does not change, and checkpoints are not used. Status 1: a run failed, or gave other numbers
on the same processor model.
"""


def demo(
    suite: Suite, store: Store, workers: Workers | None, display: Display, seeds: list[int] | None = None
) -> list[verify.Remade]:
    """Train the runs, and print them beside their records. Raises UsageError where a record is missing."""
    table = suite.table(TABLE)
    for sentence in beyond([table], PROTOCOL, seeds):
        print(sentence)
    records = _records(table, store, seeds)
    print(f"{table.title}\n{', '.join(METHODS)}: {plural(len(records), 'run')}, in a temporary folder\n", flush=True)
    remade = list(verify.make_again(records, store, workers, suite, display))
    print("\n" + text(table, remade))
    return remade


def _records(table: Any, store: Store, seeds: list[int] | None) -> list[Record]:
    configs = only(table.runs(PROTOCOL, seeds), list(METHODS), [])
    records = [store.get(config, curves=False) for config in configs]
    lacking = [config for config, record in zip(configs, records) if record is None]
    if lacking or not records:
        some = f"{lacking[0]['method']}, seed {lacking[0]['seed']}" if lacking else f"seeds {seeds}"
        raise UsageError(
            f"{store.root}: no record of {some} on {TABLE}, so there is nothing to compare with: "
            f"restore it (git checkout -- results/{TABLE})"
        )
    return [record for record in records if record]


def text(table: Any, remade: Sequence[verify.Remade]) -> str:
    """Compare the runs trained now with the records, explain the differences, and name the next commands."""
    rows: list[tuple[str, ...]] = [("method", "metric", "trained now", "recorded", "largest difference")]
    for method in dict.fromkeys(one.record["config"]["method"] for one in remade):
        same = [one for one in remade if one.record["config"]["method"] == method and one.again]
        rows += [(method, *cells) for cells in _cells(table, same)]
    failed = [one for one in remade if one.verdict == verify.FAILED]
    lines = [columns(rows), "", *(f"failed: {one.record['config']['method']}: {brief(one.reason)}" for one in failed)]
    lines += [_meaning([one for one in remade if one.again]), "", "Next:"]
    lines.append("  make table-digits   the whole table, twelve methods: its runs are recorded, so nothing is trained")
    lines.append("  make page           every table, method and figure as a site: reports/output/page/index.html")
    return "\n".join(lines)


def _cells(table: Any, remade: Sequence[verify.Remade]) -> Iterable[tuple[str, ...]]:
    """Yield for every shown metric its name, its mean now and in the records, and the largest difference of runs."""
    shown = [column for column in table.columns if column.cell.metric in SHOWN and "shift" not in column.cell.condition]
    for column in shown if remade else ():
        where = column.cell.dataset, column.cell.condition, column.cell.metric
        sides = zip(*((one.again, one.record) for one in remade))
        now, then = ([_value(record, where) * column.scale for record in records] for records in sides)
        apart = max(abs(one - other) for one, other in zip(now, then))
        digits = column.digits + 1
        yield column.label, _mean(now, digits), _mean(then, digits), "0" if apart == 0 else f"{apart:.1e}"


def _value(record: Record | None, where: tuple[str, str, str]) -> float:
    rows = record["metrics"] if record else []
    return {(row["dataset"], row["condition"], row["metric"]): row["value"] for row in rows}.get(where, math.nan)


def _mean(values: Sequence[float], digits: int) -> str:
    error = f" ± {stdev(values) / math.sqrt(len(values)):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{error}"


def _meaning(remade: Sequence[verify.Remade]) -> str:
    """Say whether the numbers agree, and why they may differ."""
    if not remade:
        return "Nothing was trained."
    runs, equal = plural(len(remade), "run"), sum(one.verdict == verify.EQUAL for one in remade)
    apart, largest = sum(one.verdict == verify.DIFFERENT for one in remade), max(one.difference for one in remade)
    then, now = remade[0].machines
    machines = f"Records: {then}; here: {now}."
    if equal == len(remade):
        return f"Every metric of {runs}, shown or not, agrees to the last bit. {machines}"
    if not apart:
        every = f"Every metric of {runs}, shown or not, agrees to rounding"
        return f"{every} (largest relative difference {largest:.1e}). {machines}"
    differences = f"{apart} of {runs} differ from their records, by a share of {largest:.2g} at most. {machines}"
    if any(one.alarming for one in remade):
        again = hints.benchmarks("verify")
        return f"{differences}\nThey should agree on one processor model: have versions or code changed? {again}"
    return (
        f"{differences}\nProcessor models round differently, and training amplifies this. The expected differences are "
        "smaller than those between seeds."
    )
