"""Texts for people: plans, summaries, statuses, records, cells."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import files
from benchmarks.commands.which import pick
from benchmarks.records import published
from benchmarks.records.config import PARTS, is_external, method_of, once, run_key
from benchmarks.records.provenance import lost_remark
from benchmarks.records.store import Store
from benchmarks.shapes import Failure, Record, RunConfig
from benchmarks.state import kept
from benchmarks.state.checkpoints import progress
from benchmarks.state.remarks import Remarks
from benchmarks.suite import Suite, resolve
from benchmarks.sweep import hints
from benchmarks.sweep.begin import merged, seeds_text
from benchmarks.sweep.plan import STATUSES, TO_TRAIN, WAITING, Plan, counts_text, make_plan
from benchmarks.sweep.progress import brief, duration, groups_text
from benchmarks.sweep.runner import Summary
from benchmarks.sweep.slurm import jobs
from benchmarks.tables.external import with_external_rows
from fvi_core.telling import plural

CHECKED = "checked.json"  # file of the state folder
NARROWEST, LEAST = 80, 20  # characters of a terminal, and of the last column of a list in it
OWN_FOLDERS = ("--results", "again", "--state", "again/.state")


def columns(rows: Sequence[Sequence[Any]]) -> str:
    """Return rows as aligned columns; the first row is the heading."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in texts)


def listing(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as :func:`columns` does; on a terminal the last column is broken into lines that fit.

    Elsewhere a row is one line, for programs that read it.
    """
    whole = columns(rows)
    width = max(shutil.get_terminal_size().columns, NARROWEST)
    if not sys.stdout.isatty() or max(map(len, whole.splitlines())) <= width:
        return whole
    room = width - sum(max(map(len, column)) + 2 for column in list(zip(*rows))[:-1])
    lines: list[tuple[str, ...]] = []
    for *names, words in rows:
        first, *more = textwrap.wrap(words, max(room, LEAST), break_on_hyphens=False) or [""]
        lines += [(*names, first), *((*[""] * len(names), line) for line in more)]
    return columns(lines)


def plan_text(plan: Plan) -> str:
    """Describe the runs of every method on every data set by status, then the run groups left."""
    counters: dict[tuple[str, str, str], Counter] = {}
    for run in plan.runs:
        named = method_of(run.config), run.config["dataset"]["name"], run.config["protocol"]
        counters.setdefault(named, Counter())[run.status] += 1
    rows = [(*named, *(counter[status] or "" for status in plan.counts)) for named, counter in counters.items()]
    lines = [columns([("method", "data set", "protocol", *plan.counts), *rows]), "", *plan.problems]
    lines.append(f"{plural(len(plan.runs), 'run')}: {counts_text(plan.counts)}")
    left, groups = len(plan.select(*TO_TRAIN)), plan.groups
    nothing = "nothing to train before their data are here" if plan.select(WAITING) else "nothing to do"
    lines.append(f"to train: {plural(left, 'run')} in {groups_text(len(groups))}" if groups else nothing)
    return "\n".join(lines)


def summary_text(summary: Summary, again: str) -> str:
    """Describe the result of a sweep: failed runs with reasons, and the command that continues it."""
    parts = [
        (len(summary.made), "made now"),
        (summary.plan.counts["done"], "already recorded"),
        (len(summary.elsewhere), "made by another sweep"),
        (len(summary.failed), "failed"),
        (summary.plan.counts.get(WAITING, 0), WAITING),
        (len(summary.unsaved), "made but not saved"),
    ]
    counts = ", ".join(f"{count} {what}" for count, what in parts if count)
    lines = [f"{plural(len(summary.plan.runs), 'run')}: {counts or 'none made'} ({duration(summary.seconds)})"]
    for reason, count in Counter(summary.failed.values()).most_common():
        first = next(key for key, why in summary.failed.items() if why == reason)
        lines.append(f"  failed {count}: {brief(reason)} ({_showing(first, summary.plan)})")
    lines += filter(None, [textwrap.indent(remarks_text(summary.plan), "  ")])
    for key, record in summary.unsaved.items():
        values = ", ".join(f"{row['metric']} {row['value']:.4g}" for row in record["metrics"][:6])
        lines.append(f"  not saved {key}: {values}")
    if summary.unsaved:
        lines.append(f"  {summary.unsaved_reason}")
    if summary.interrupted:
        lines.append(f"stopped; finished runs are saved; others continue from what {summary.plan.state} has of them")
    if not summary.complete:
        lines.append(f"to continue: {again}")
    # Waiting runs were explained before the sweep.
    return "" if summary.waits and not summary.plan.select(*TO_TRAIN) else "\n".join(lines)


def absent(results: Path) -> list[str]:
    """Say that a folder of records is not there, as its name may be misspelt."""
    return [] if results.is_dir() else [f"--results: there is no folder {results}, so no run has a record"]


def status_text(
    tables, protocol: str | None, seeds: list[int] | None, results: Path, state: Path, suite: Suite
) -> tuple[str, int]:
    """Describe counts for every table, running processes, failures with reasons, and files that are no records."""
    runs = {table.name: {run_key(config): config for config in table.runs(protocol, seeds)} for table in tables}
    everything = [config for own in runs.values() for config in own.values()]
    store = Store(results, suite.metrics, remember=state / CHECKED)
    metrics, queued = merged(table.metrics_of_runs(protocol, seeds) for table in tables), jobs.pending(state)
    plan = make_plan(everything, results, state, suite, metrics, strict=False, queued=queued, store=store)
    statuses = {run.key: run.status for run in plan.runs}
    rows: list[tuple] = []
    for table in tables:
        counts = Counter(statuses[key] for key in runs[table.name])
        named = table.name, table.check_protocol(protocol)
        rows.append((*named, *(counts[status] for status in STATUSES), len(runs[table.name])))
    lines = absent(results)
    lines.append(columns([("table", "protocol", *STATUSES, "all"), *rows]))
    for run in plan.select("running"):
        note = "; ".join(map(str, filter(None, [run.note, progress(state, run.key)])))
        lines.append(f"running {run.key}: {run.config['method']}, {run.config['dataset']['name']}: {note}")
    lines += [f"queued {count}: {note}" for note, count in Counter(r.note for r in plan.select("queued")).items()]
    lines += filter(None, [failures_text(plan), remarks_text(plan)])
    lines += [f"stale {count}: {note}" for note, count in Counter(r.note for r in plan.select("stale")).items()]
    lines += filter(None, [kept_text(state)])
    problems = dict.fromkeys([*store.problems().values(), *plan.problems])
    return "\n".join([*lines, *(f"not counted: {problem}" for problem in problems)]), len(problems)


def kept_text(state: Path) -> str:
    """Describe the size of the state folder and its limit; empty for an empty folder."""
    sizes = [f"{name} {count} files, {size / 1e6:.0f} MB" for name, (count, size) in kept.sizes(state).items() if count]
    if not sizes:
        return ""
    return f"stored in {state}: {'; '.join(sizes)} (at most {kept.limit() / 1e9:g} GB together, ${kept.VARIABLE})"


def measured_text(measured: Any, state: Path) -> str:
    """Describe the runs that were measured again, and those that need training."""
    lines = [f"{plural(sum(measured.counts.values()), 'run')}: {counts_text(measured.counts)}"]
    lines += [f"could not be measured: {problem}" for problem in measured.problems]
    lines += [f"not fetched: {problem}" for problem in measured.unfetched]
    if measured.lacking:
        some = ", ".join(measured.lacking[:3]) + (", ..." if len(measured.lacking) > 3 else "")
        lacking, have = plural(len(measured.lacking), "run"), "has" if len(measured.lacking) == 1 else "have"
        lines.append(
            f"{lacking} ({some}) {have} neither predictions nor parameters in {state}: `make` their "
            f"table to train runs without a record or a metric, `{hints.benchmarks('again', 'KEY')}` to train any, or "
            "name archives in FVI_ARTIFACTS (docs/archives.md)"
        )
    return "\n".join(lines)


def failures_text(plan: Plan) -> str:
    """Return a line for every reason why runs of a method on a data set failed."""
    failed: dict[tuple[str, str, str], list[str]] = {}
    for run in plan.select("failed"):
        failed.setdefault((method_of(run.config), run.config["dataset"]["name"], run.note), []).append(run.key)
    return "\n".join(
        f"failed {len(same)}: {method}, {dataset}: {brief(reason)} ({_showing(same[0], plan)})"
        for (method, dataset, reason), same in failed.items()
    )


def remarks_text(plan: Plan) -> str:
    """Return a line for every warning about runs that did not fail, with the log of the first."""
    remarks = Remarks(plan.state).of(run.key for run in plan.runs)
    warned: dict[tuple[str, str, str], list[str]] = {}
    for run in plan.runs:
        if remark := remarks.get(run.key):
            what = method_of(run.config), run.config["dataset"]["name"], remark.text
            warned.setdefault(what, []).append(remark.log)
    return "\n".join(
        f"warning {len(logs)}: {method}, {dataset}: {brief(text)} (log: {logs[0]})"
        for (method, dataset, text), logs in warned.items()
    )


def _showing(key: str, plan: Plan) -> str:
    """Return the command that shows why a run of a plan failed."""
    return hints.benchmarks("show", key, *hints.folders(results=plan.results, state=plan.state))


def record_text(record: Record, path: Path) -> str:
    """Return one record as text: its run, metrics and provenance."""
    config, about = record["config"], dict(record["provenance"])
    data, head = config["dataset"], ("data set", "condition", "metric", "value", "n")
    rows = [(r["dataset"], r["condition"], r["metric"], f"{r['value']:.6g}", r["n"]) for r in record["metrics"]]
    lines = [
        f"{config['method']} on {data['name']} (version {data['version']}, split {data['split']}), "
        f"seed {config['seed']}, protocol {config['protocol']}",
        f"{record['key']}  {path}",
        *("", *configuration_lines(config), "", columns([head, *rows]), ""),
    ]
    if record["curves"]:
        lines.append(f"curves: {', '.join(record['curves'])}")
    commit, changed = str(about.get("commit")), " with uncommitted changes" if about.pop("dirty", None) else ""
    about["commit"] = commit + changed + lost_remark(commit)
    if "seconds" in about:
        about["seconds"] = f"{about['seconds']:.2f}"
    lines += [f"{name}: {compact(value)}" for name, value in about.items()]
    return "\n".join(lines)


def failure_text(failure: Failure) -> str:
    """Describe why a run failed."""
    lines = [f"{failure['key']}: failed at attempt {failure['attempt']} ({failure['time'] or 'time not known'})"]
    if config := failure["config"]:
        data = config["dataset"]
        lines.append(f"{config['method']} on {data['name']}, split {data['split']}, seed {config['seed']}")
    lines += [f"reason: {failure['reason']}", failure["traceback"].rstrip(), f"log: {failure['log']}"]
    return "\n".join(filter(None, [*lines, *(f"  {line}" for line in files.tail(failure["log"]).splitlines()[-20:])]))


def cell_text(table, row_name, column_name, protocol, seeds, results, state, suite: Suite) -> tuple[str, int]:
    """Describe one cell, or the row's cells on a data set or under a label; count the invalid records of their runs."""
    options = ["--protocol", protocol] if protocol else []
    options += ["--seeds", seeds_text(seeds)] if seeds else []
    options += hints.also(row.method for row in table.rows if row.added) + hints.folders(results=results, state=state)

    (table,) = with_external_rows([table], suite, Store(results))

    def command(row: str, column: str) -> str:
        return hints.benchmarks("explain", table.name, row, column, *options)

    of = f" of table {table.name}"
    row = pick("row", row_name, _row_names(table), lambda name: command(name, column_name), of)
    own = [c for c in table.columns if column_name.lower() in (c.label.lower(), c.cell.dataset.lower())]
    names = _column_names(table)
    if not own or column_name.lower() in map(str.lower, names):
        own = [pick("column", column_name, names, lambda name: command(row_name, name), of)]
    cells = [_cell_text(table, row, column, protocol, seeds, results, state, suite) for column in own]
    return "\n\n".join(text for text, _ in cells), sum(problems for _, problems in cells)


def _cell_text(table, row, column, protocol, seeds, results: Path, state: Path, suite: Suite) -> tuple[str, int]:
    """Describe one cell: its value over its runs, the published value, records, configuration and command."""
    protocol = table.check_protocol(protocol)
    lines = [f"{table.name} ({protocol}): {row.label}, {column.label}"]
    target = column.published_key(row)
    if table.paper and target:
        cell = published.table(table.paper, table.number).get(target)
        lines.append(
            f"published: {' ± '.join(filter(None, cell.printed)) if cell else 'no number'} "
            f"({table.paper}, table {cell.table if cell else table.number}, {row.published})"
        )
    configs = table.cell_runs(row, column, protocol, seeds)
    if not configs:
        lines.append("ours: no method makes this row yet" if row.method is None else "ours: not planned")
        return "\n".join(lines), 0
    result, reasons = resolve(suite.cell)(table, row, column, protocol, (results, state), seeds)
    wanted, listed = column.cell_of(row), []
    plan = make_plan(configs, results, state, suite, strict=False)
    for run in plan.runs:
        where = run.config["dataset"]["split"], run.config["seed"]
        value = reasons.get(where) or brief(run.note, 80)
        if where in result.values:
            value = f"{result.values[where]:.{column.digits + 2}f}"
        listed.append((run.key, *where, run.status, value))
    lines.append(f"ours: {_mean_text(result, column.digits)}, {plural(len(configs), 'run')} planned")
    lines += [f"not counted: {problem}" for problem in filter(None, [result.different, *plan.problems])]
    named = " / ".join(filter(None, (wanted.dataset, wanted.condition, wanted.metric)))
    lines.append(f"metric: {named}" + (f", times {column.scale:g}" if column.scale != 1 else ""))
    values = columns([("key", "split", "seed", "status", "value"), *listed])
    lines += ["", values, "", *configuration_lines(configs[0]), ""]
    if is_external(configs[0]):
        command = ["score", table.name, "--protocol", protocol, "--method", row.method, "FILE.npz"]
        again = hints.benchmarks(*command, *hints.folders(results=results))
        lines.append(f"to add predictions (to replace some, delete their record first): {again}")
        return "\n".join(lines), len(plan.problems)
    command = making(table, row, protocol, configs)
    if any(run[3] != "done" for run in listed):
        here = hints.folders(results=results, state=state)
        lines.append(f"to make missing runs: {hints.benchmarks(*command, *here)}")
    lines.append(f"to make every run again, in folders of its own: {hints.benchmarks(*command, *OWN_FOLDERS)}")
    if table.paper and target:
        lines.append(
            "why it may differ from the published number: docs/causes.md; settings beside paper and authors' code: "
            "docs/protocols.md; when it counts as different: docs/verdicts.md"
        )
    return "\n".join(lines), len(plan.problems)


def making(table: Any, row: Any, protocol: str, configs: Sequence[RunConfig]) -> list[str]:
    """Return the command that makes a row's missing runs; with OWN_FOLDERS, all its runs again."""
    names = sorted({config["dataset"]["name"] for config in configs})
    which = [*hints.also([row.method]), "--method", row.method] if row.added else ["--method", row.label]
    command = ["run", table.name, "--protocol", protocol, *which]
    return [*command, *(word for name in names for word in ("--dataset", name))]


@once
def configuration_lines(config: RunConfig) -> list[str]:
    """Return the parts of a configuration, one line each."""
    parts = [f"{name}: {compact(config['parts'].get(name))}" for name in PARTS if not is_external(config)]
    named = {"sources": config.get("sources"), "the user's data": config["dataset"].get("content")}
    evaluation = {name: value for name, value in config["evaluation"].items() if value != {}}
    return [
        *parts,
        *(f"{name}: {compact(value)}" for name, value in named.items() if value),
        f"evaluation: {compact(evaluation)}",
    ]


def compact(value: Any, inner: bool = False, sets: str = "=") -> str:
    """Return a part as name and hyper-parameters, with inner parts in brackets; sets: text between name and value."""
    if isinstance(value, list):
        return f"[{', '.join(compact(each, True, sets) for each in value)}]"
    if not isinstance(value, dict):
        return value if isinstance(value, str) else json.dumps(value)
    settings = (", " if inner else " ").join(
        f"{name}{sets}{compact(part, True, sets)}" for name, part in value.items() if name != "name"
    )
    if inner:
        return f"{value.get('name', '')}({settings})" if settings or "name" not in value else str(value["name"])
    return " ".join(filter(None, [str(value.get("name", "")), settings]))


def _mean_text(cell: Any, digits: int) -> str:
    if not cell.values:
        return "no record" if cell.missing == "no run" else f"no value ({cell.missing})"
    error = f" ± {cell.stderr:.{digits + 1}f}" if cell.n > 1 else ""
    return f"{cell.mean:.{digits + 1}f}{error} (mean ± standard error, n = {cell.n})"


def _row_names(table: Any) -> dict[str, Any]:
    """Return rows by label, and by method where only one row has it."""
    methods = Counter(row.method for row in table.rows if row.method)
    return {**{r.method: r for r in table.rows if methods[r.method] == 1}, **{r.label: r for r in table.rows}}


def _column_names(table: Any) -> dict[str, Any]:
    """Return columns by label where only one column has it, and by data set, metric and condition."""
    labels = Counter(column.label for column in table.columns)
    full = {" ".join(filter(None, (c.cell.dataset, c.cell.metric, c.cell.condition))): c for c in table.columns}
    return {**full, **{c.label: c for c in table.columns if labels[c.label] == 1}}
