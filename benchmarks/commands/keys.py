"""Command keys: rows whose runs differ from keys.txt, and records that belong to no table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks import tables
from benchmarks.commands.options import ResultsOption
from benchmarks.errors import UsageError
from benchmarks.records.store import Store
from benchmarks.sweep import hints, runner
from benchmarks.tables import manifest

HELP = """List rows of the tables whose runs differ from keys.txt, and records that belong to no table.

A changed recipe gives its runs other keys, and their records leave the tables. This command names the changed settings
and counts these records; --write renews benchmarks/tables/keys.txt, and adds the records to results/retired.txt with
the --reason. Status 1: something has changed.
"""


def add(app: typer.Typer) -> None:
    """Add the command to a command line."""

    @app.command("keys", help=HELP)
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
        declared = list(tables.declared().values())
        now = dict(manifest.plans(declared))
        planned = (run for table in declared for protocol in table.protocols for run in table.runs(protocol))
        found = manifest.orphans(Store(results), planned)
        retired = manifest.read_retired(results / manifest.RETIRED)
        new = {record: config for record, config in found.items() if record not in retired}
        back = sorted(set(retired) - set(found))
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
        kept = {record: why for record, why in retired.items() if record in found}
        manifest.write_retired(kept | dict.fromkeys(new, reason), results / manifest.RETIRED)
        print(f"{file} written; {len(new)} records retired, {len(back)} no longer")
