"""Commands on all records: demo, verify, again, select, export, keys."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import interface, tables
from benchmarks.commands import demo, inspection, selection, which
from benchmarks.commands.options import KeyArgument, ResultsOption, SeedsOption, StateOption, WorkersOption, existing
from benchmarks.errors import UsageError
from benchmarks.records import frame
from benchmarks.records.config import is_external, method_of
from benchmarks.records.form import RecordError
from benchmarks.records.store import Store
from benchmarks.shapes import Record
from benchmarks.suite import Suite
from benchmarks.sweep import hints, progress, runner, verify
from benchmarks.sweep.begin import parse_seeds
from benchmarks.sweep.plan import counts_text
from benchmarks.sweep.workers import Workers
from benchmarks.tables import manifest

EXPORT = """Write every metric of every record as one table, for pandas, R or a spreadsheet.

Status 1: invalid records were left out, and are named.

\b
Columns:
""" + "\n".join(f"  {name:<11}{what}" for name, what in frame.COLUMNS.items())
KEYS = """List rows of the tables whose runs differ from keys.txt, and records that belong to no table.

A changed recipe gives its runs other keys, and their records leave the tables. This command names the changed settings
and counts these records; --write renews benchmarks/tables/keys.txt, and adds the records to results/retired.txt with
the --reason. Status 1: something has changed.
"""


def add(app: typer.Typer, suite: Suite) -> None:
    """Add the commands to a command line."""

    @app.command("export", help=EXPORT)
    def export_(
        out: Annotated[Path, typer.Argument(help="file to write: records.csv or records.parquet")],
        results: ResultsOption = runner.RESULTS,
    ) -> None:
        raise typer.Exit(1 if interface.records(existing(results), out, suite=suite).attrs["problems"] else 0)

    @app.command()
    def select(
        table: Annotated[str, typer.Argument(help="name of a table whose hyper-parameters table NAME-selection tries")],
        protocol: Annotated[
            str | None, typer.Option(help="protocol of the candidates (default: the selection table's)")
        ] = None,
        results: ResultsOption = runner.RESULTS,
        state: StateOption = runner.STATE,
    ) -> None:
        """Choose hyper-parameters by the validation scores of a selection table's records.

        A candidate that failed cannot be chosen; the file says which and why.
        """
        print(selection.write(table, existing(results), state, protocol))

    @app.command("demo", help=demo.HELP)
    def demo_(
        seeds: SeedsOption = None, workers: WorkersOption = None, results: ResultsOption = runner.RESULTS
    ) -> None:
        store = Store(results, suite.metrics)
        try:
            remade = demo.demo(suite, store, Workers(workers), progress.display(every=5.0), parse_seeds(seeds))
        except KeyboardInterrupt:
            print("stopped; nothing was saved or changed")
            raise
        raise typer.Exit(1 if any(one.alarming for one in remade) else 0)

    @app.command("verify")
    def verify_(
        keys: Annotated[
            list[str] | None,
            typer.Argument(metavar="KEY", help="keys of records, or their first digits (default: a random sample)"),
        ] = None,
        n: Annotated[int, typer.Option("--n", help="how many records")] = 12,
        minutes: Annotated[
            float, typer.Option("--minutes", help="only records whose training took at most so long")
        ] = 5.0,
        seed: Annotated[
            int | None, typer.Option("--seed", help="of the random choice (default: another each time)")
        ] = None,
        workers: WorkersOption = None,
        results: ResultsOption = runner.RESULTS,
    ) -> None:
        """Train records again, in a temporary folder, and compare. Nothing in results/ changes.

        Status 1: a run failed, read other data, or gave other numbers on the same model of processor; or invalid
        records, which are named, were left out of the random sample.
        """
        store, invalid = Store(existing(results), suite.metrics), list[RecordError]()
        if keys:
            chosen, sampling = [_record("verify", key, store) for key in keys], ""
        else:
            seed = secrets.randbelow(10**6) if seed is None else seed
            chosen, short, every, invalid = verify.sample(store, n, minutes, seed)
            sampling = (
                f" (--seed {seed}) of the {short} whose training took at most {minutes:g} min, of {every} that are not "
                "retired"
            )
        took = progress.duration(verify.estimate(chosen))
        print(f"{len(chosen)} records{sampling}; their trainings took {took} on one core each")
        remade = list(verify.make_again(chosen, store, Workers(workers), suite, progress.display()))
        print(comparison_text(remade), *(f"not counted: {error}" for error in invalid), sep="\n")
        raise typer.Exit(1 if invalid or any(one.alarming for one in remade) else 0)

    @app.command()
    def again(
        key: KeyArgument,
        workers: WorkersOption = None,
        results: ResultsOption = runner.RESULTS,
    ) -> None:
        """Train the run of one record again from scratch; the new record replaces the old one."""
        store = Store(existing(results), suite.metrics)
        store.check_writable()
        record = _record("again", key, store)
        print(f"{record['key']}: took {progress.duration(verify.estimate([record]))} when it was made")
        (remade,) = verify.make_again([record], store, Workers(workers), suite, progress.display())
        print(comparison_text([remade]))
        if not remade.again:
            raise typer.Exit(1)
        print(f"wrote {store.write(remade.again)}")

    @app.command("keys", help=KEYS)
    def keys_(
        write: Annotated[bool, typer.Option("--write", help="renew keys.txt and retired.txt")] = False,
        reason: Annotated[
            str, typer.Option("--reason", metavar="TEXT", help="why records that no table has any more are retired")
        ] = "",
        results: ResultsOption = runner.RESULTS,
        file: Annotated[
            Path, typer.Option("--file", help="the manifest of keys", show_default="benchmarks/tables/keys.txt")
        ] = manifest.FILE,
    ) -> None:
        store, declared = Store(existing(results)), list(tables.declared().values())
        now = dict(manifest.plans(declared))
        planned = (run for table in declared for protocol in table.protocols for run in table.runs(protocol))
        orphans = manifest.orphans(store, planned)
        retired = manifest.read_retired(results / manifest.RETIRED)
        new = {record: config for record, config in orphans.items() if record not in retired}
        back = sorted(set(retired) - set(orphans))
        before = manifest.read(file) if file.exists() else {}
        changes, left = manifest.changes(before, now, new)
        lines = [*map(str, changes), *(f"{record}: of no table, and no row has changed" for record in left)]
        lines += [f"{record}: retired, but not there or of a table again" for record in back]
        print("\n".join(lines) or f"nothing has changed: {len(before)} rows, {len(retired)} retired records")
        if not write:
            if lines:
                print(f"if this is meant: {hints.benchmarks('keys', '--write')}" + " --reason '...'" * bool(new))
            raise typer.Exit(1 if lines else 0)
        if new and not reason:
            raise UsageError(f"{len(new)} records would belong to no table: say why they are retired, with --reason")
        manifest.write(manifest.manifest(now.items()), file)
        still_retired = {record: why for record, why in retired.items() if record in orphans}
        manifest.write_retired(still_retired | dict.fromkeys(new, reason), results / manifest.RETIRED)
        print(f"{file} written; {len(new)} records retired, {len(back)} no longer")


def _record(command: str, key: str, store: Store) -> Record:
    """Return the record of a training whose key starts with these digits; in messages, the command with other keys.

    Raises UsageError for external predictions.
    """
    where = hints.folders(results=store.root)
    path = store.paths()[which.key(key, store, lambda one: hints.benchmarks(command, one, *where))]
    record = store.read(path)
    if is_external(record["config"]):
        raise UsageError(
            f"{record['key']}: external predictions, which have no training; to replace them delete {path}, then score "
            "other ones"
        )
    return record


def comparison_text(remade: list[verify.Remade]) -> str:
    """Describe each record trained again in a line, then counts, and the meaning of differences."""
    rows: list[tuple[str, ...]] = []
    for one in remade:
        config = one.record["config"]
        size = "" if one.verdict in (verify.EQUAL, verify.FAILED) else f"{one.difference:.1e}"
        what = one.reason if one.verdict == verify.FAILED else one.of if size else ""
        pairs = zip((one.record, one.again or one.record), one.machines)
        machines = [f"{str(record['provenance'].get('commit'))[:7]}, {cpu}" for record, cpu in pairs]
        named = one.record["key"], method_of(config), config["dataset"]["name"]
        rows.append((*named, one.verdict, size, *machines, progress.brief(what, 80)))
    head = "key", "method", "data set", "verdict", "largest difference", "made by", "again by", "where"
    lines = [inspection.columns([head, *rows])]
    verdicts = verify.EQUAL, verify.ROUNDED, verify.DIFFERENT, verify.FAILED
    counts = {verdict: sum(one.verdict == verdict for one in remade) for verdict in verdicts}
    lines.append(f"{len(remade)} records: {counts_text(counts)}")
    lines += [
        f"{one.record['key']} read other data than its record says: {', '.join(one.other_data)}"
        for one in remade
        if one.other_data
    ]
    if counts[verify.DIFFERENT] and not any(one.alarming for one in remade):
        lines.append(
            "Numbers differ only from records of another model of processor, number of threads or device, or of a "
            "processor whose exact model they do not name. The cause may be rounding that training amplifies; this "
            "comparison does not show it."
        )
    return "\n".join(lines)
