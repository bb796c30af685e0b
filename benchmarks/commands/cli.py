"""The command line: python -m benchmarks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks import interface
from benchmarks.commands import exchange, inspection, parts, sweeping, upkeep, which
from benchmarks.commands.options import (
    AlsoOption,
    KeyArgument,
    ProtocolOption,
    ResultsOption,
    SeedsOption,
    StateOption,
    TableArgument,
    WorkersOption,
)
from benchmarks.errors import UsageError, as_messages, unknown
from benchmarks.records.provenance import ROOT
from benchmarks.records.rows import spelled
from benchmarks.records.store import Store
from benchmarks.state.failures import Failures
from benchmarks.suite import Suite
from benchmarks.sweep import begin, hints, runner
from benchmarks.sweep.estimate import LONGEST
from benchmarks.sweep.slurm.options import load as load_options
from benchmarks.sweep.stopping import stoppable

HELP = """Make the runs of tables, and show records and progress.

A run is one training of a method on one split of a data set with one seed, and its evaluation. A run with a record in
results/ is not made again; all tables share it.

First `plan TABLE`, then `run TABLE`; stop with Ctrl-C, and repeat the command to continue. Several `run` at once share
the work. `make table-NAME` runs, then prints the table. With `--executor slurm`, `run` submits missing runs to the
cluster and returns; `status` then reads records and queue.
"""

Tables = Annotated[list[str], typer.Argument(metavar="TABLE", help="names of tables (see `tables`)")]
AnyTables = Annotated[list[str] | None, typer.Argument(metavar="TABLE", help="names of tables (default: all)")]
MethodOption = Annotated[
    list[str] | None,
    typer.Option("--method", metavar="METHOD", help="only this method, or row by its label; may be repeated"),
]
DatasetOption = Annotated[
    list[str] | None, typer.Option("--dataset", metavar="NAME", help="only this data set; may be repeated")
]
ExecutorOption = Annotated[
    str, typer.Option("--executor", help=f"where runs are trained: {', '.join(begin.EXECUTORS)}")
]
SlurmOption = Annotated[
    list[str] | None,
    typer.Option("--slurm", metavar="KEY=VALUE", help="for a cluster: partition=gpu, time=8:00:00; may be repeated"),
]
SlurmFileOption = Annotated[
    Path | None,
    typer.Option("--slurm-file", help="TOML file of such options (default: $FVI_SLURM or slurm.toml)"),
]
WaitOption = Annotated[bool, typer.Option("--wait", help="for a cluster: wait until every run is over")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="show the plan and its cost without running it")]
AnywayOption = Annotated[
    bool, typer.Option("--anyway", help=f"start even if it takes more than {LONGEST / 3600:.0f} h here, or lacks a GPU")
]
JsonOption = Annotated[bool, typer.Option("--json", help="as JSON")]


say = partial(print, flush=True)  # at once, since the next step may take long


def build(suite: Suite) -> Callable[..., None]:
    """Return the command line over a suite: a function of its words (default: those of this process), which exits."""
    app = typer.Typer(
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )

    @app.command("tables")
    def tables_() -> None:
        """List the tables."""
        rows = [(t.name, " ".join(t.protocols), t.title) for t in map(suite.table, suite.table_names())]
        print(inspection.listing([("table", "protocols", "title"), *rows]))

    @app.command()
    def methods() -> None:
        """List the methods."""
        rows = [(name, m.paper or "", m.description) for name, m in suite.catalogue().items()]
        print(inspection.listing([("method", "paper", "description"), *rows]))

    @app.command("parts")
    def parts_(
        kind: Annotated[str | None, typer.Argument(metavar="KIND", help="family, prior, ..., or a part")] = None,
        name: Annotated[str | None, typer.Argument(metavar="NAME", help="of one part")] = None,
    ) -> None:
        """List parts, their hyper-parameters, and which families, divergences and priors fit together."""
        print(parts.text(kind, name))

    @app.command()
    def plan(
        tables: Tables,
        protocol: ProtocolOption = None,
        seeds: SeedsOption = None,
        method: MethodOption = None,
        dataset: DatasetOption = None,
        also: AlsoOption = None,
        results: ResultsOption = runner.RESULTS,
        state: StateOption = runner.STATE,
    ) -> None:
        """Show the runs that tables need and their statuses; `run --dry-run` adds the cost of the missing ones.

        Status 1: invalid records do not count, and are named.
        """
        what: Any = {"methods": method or (), "datasets": dataset or (), "also": also or ()}
        found = interface.plan(tables, protocol, seeds, **what, cost=False, results=results, state=state, suite=suite)
        print(*inspection.absent(results), inspection.plan_text(found.plan), sep="\n")
        raise typer.Exit(1 if found.plan.problems else 0)

    @app.command()
    def run(
        tables: Tables,
        protocol: ProtocolOption = None,
        seeds: SeedsOption = None,
        method: MethodOption = None,
        dataset: DatasetOption = None,
        also: AlsoOption = None,
        executor: ExecutorOption = "pool",
        workers: WorkersOption = None,
        slurm: SlurmOption = None,
        slurm_file: SlurmFileOption = None,
        wait: WaitOption = False,
        dry_run: DryRunOption = False,
        anyway: AnywayOption = False,
        results: ResultsOption = runner.RESULTS,
        state: StateOption = runner.STATE,
    ) -> None:
        """Make the runs that have no record, and retry failed ones.

        Status 1: some runs failed, or wait for data while a table has no records. Status 3: a cluster is making them.
        Status 4: they would take too long here, or lack a GPU, and none was started. Status 5: the only runs left wait
        for data that cannot be fetched, and every table has records.
        """
        options = load_options(slurm_file, slurm or (), folder=ROOT) if executor == "slurm" else None
        what: Any = {"methods": method or (), "datasets": dataset or (), "also": also or (), "say": say}
        what |= {"executor": executor, "workers": workers, "results": results, "state": state, "suite": suite}
        if not options and (slurm or slurm_file or wait):
            raise UsageError(f"--slurm, --slurm-file and --wait are for --executor slurm, found --executor {executor}")
        if dry_run or options:
            planned = interface.plan(tables, protocol, seeds, **what, options=options, fetch=not dry_run)
            if dry_run or not options:
                raise typer.Exit(sweeping.show(planned))
            raise typer.Exit(sweeping.hand_over(planned, options, wait, anyway))
        try:
            summary = interface.run(tables, protocol, seeds, **what, anyway=anyway)
        except begin.TooLong as refused:
            raise typer.Exit(sweeping.refuse(refused.planned)) from None
        if text := inspection.summary_text(summary, again=hints.again()):
            print(text)
        raise typer.Exit(sweeping.status(summary, tables, protocol))

    @app.command()
    def measure(
        tables: Tables,
        protocol: ProtocolOption = None,
        seeds: SeedsOption = None,
        method: MethodOption = None,
        dataset: DatasetOption = None,
        results: ResultsOption = runner.RESULTS,
        state: StateOption = runner.STATE,
    ) -> None:
        """Measure runs from predictions and parameters in .state, without training.

        A new metric is computed from the predictions. A run that differs from a trained one only in evaluation sets,
        attacks or draws is evaluated from the parameters. Runs that need training are named. Files missing from .state
        are first taken from the archives in FVI_ARTIFACTS (docs/archives.md).
        """
        what: Any = {"methods": method or (), "datasets": dataset or ()}
        folders: Any = {"results": results, "state": state, "suite": suite}
        found = interface.measure(tables, protocol, seeds, **what, **folders)
        print(*inspection.absent(results), inspection.measured_text(found, state), sep="\n")
        raise typer.Exit(1 if found.problems or found.unfetched else 0)

    @app.command()
    def status(
        tables: AnyTables = None,
        protocol: ProtocolOption = None,
        seeds: SeedsOption = None,
        also: AlsoOption = None,
        results: ResultsOption = runner.RESULTS,
        state: StateOption = runner.STATE,
    ) -> None:
        """Count runs by status; list failures and warnings with reasons, and invalid records.

        Status 1: some records are invalid.
        """
        if also and not tables:
            raise UsageError(f"--also {also[0]} is for tables that are named: status TABLE --also METHOD")
        listed = begin.with_rows(tables or suite.table_names(), also, suite)
        if not tables and protocol:
            listed = [table for table in listed if protocol in table.protocols]
            if not listed:
                raise unknown("protocol", protocol, {p for n in suite.table_names() for p in suite.table(n).protocols})
        for line in (*begin.beyond(listed, protocol, seeds), *begin.lacking(listed, protocol)):
            print(line)
        text, problems = inspection.status_text(listed, protocol, begin.parse_seeds(seeds), results, state, suite)
        print(text)
        raise typer.Exit(1 if problems else 0)

    @app.command()
    def show(
        key: KeyArgument,
        as_json: JsonOption = False,
        results: ResultsOption = runner.RESULTS,
        state: StateOption = runner.STATE,
    ) -> None:
        """Show one record with all its provenance, and why the run failed where it did."""
        store, failures = Store(results), Failures(state)
        where = hints.folders(results=results, state=state)
        found = which.key(key, store, lambda one: hints.benchmarks("show", one, *where), failures.keys())
        path, failure = store.paths().get(found), failures.get(found)
        if path is None:
            if failure is None:
                raise unknown("key", key, [], "it was tried again meanwhile")
            print(json.dumps(failure, indent=1) if as_json else inspection.failure_text(failure))
            return
        if failure and not as_json:  # a record that is stale or invalid could not be made again
            print(inspection.failure_text(failure), end="\n\n", flush=True)
        record = store.read(path)
        strict = {**record, "metrics": list(map(spelled, record["metrics"]))}
        print(json.dumps(strict, indent=1) if as_json else inspection.record_text(record, path))

    @app.command()
    def explain(
        table: TableArgument,
        row: Annotated[str, typer.Argument(help="label or method of a row (none: list the rows)")] = "",
        column: Annotated[
            str, typer.Argument(help="label of a column, or data set and metric, as 'boston rmse' (none: list them)")
        ] = "",
        protocol: ProtocolOption = None,
        seeds: SeedsOption = None,
        also: AlsoOption = None,
        results: ResultsOption = runner.RESULTS,
        state: StateOption = runner.STATE,
    ) -> None:
        """Show the sources of one cell of a table, and the command that makes it again.

        Status 1: invalid records do not count, and are named.
        """
        words = [*(("--protocol", protocol) if protocol else ()), *(("--seeds", seeds) if seeds else ())]
        words += hints.also(also or ()) + hints.folders(results=results, state=state)
        try:
            (chosen,) = begin.with_rows(table, also, suite)
        except KeyError:  # part of a name, or a wrong name
            names = {name: name for name in suite.table_names()}
            again = which.pick("table", table, names, lambda one: hints.benchmarks("explain", one, row, column, *words))
            (chosen,) = begin.with_rows(again, also, suite)
        numbers = begin.parse_seeds(seeds)
        text, problems = inspection.cell_text(chosen, row, column, protocol, numbers, results, state, suite)
        print(text)
        raise typer.Exit(1 if problems else 0)

    upkeep.add(app, suite)
    exchange.add(app, suite)

    def main(arguments: list[str] | None = None) -> None:
        try:
            with as_messages(), stoppable():
                app(arguments)
        except KeyboardInterrupt:
            sys.exit(130)

    return main
