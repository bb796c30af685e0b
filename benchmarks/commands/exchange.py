"""Commands that exchange files with others: archives of predictions and parameters (artifacts pack, fetch, list), and
data and predictions of external models (sets, score)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from zipfile import ZipFile

import typer

from benchmarks import interface
from benchmarks.commands.inspection import columns
from benchmarks.commands.options import ProtocolOption, ResultsOption, SeedsOption, StateOption, TableArgument, existing
from benchmarks.errors import UsageError
from benchmarks.records.store import Store
from benchmarks.state import archive
from benchmarks.suite import Suite
from benchmarks.sweep import hints, progress, runner
from benchmarks.sweep.begin import parse_seeds

HELP = """Archives of predictions and trained parameters of records (docs/archives.md).

`pack` writes them where runs were trained. On a fresh clone, `measure TABLE` takes the files it needs from the archives
in FVI_ARTIFACTS; `fetch` takes all files.
"""
ArchivesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="ARCHIVE", help="paths, folders, https://...#sha256=... (default: $FVI_ARTIFACTS)"),
]


def add(app: typer.Typer, suite: Suite) -> None:
    """Add the commands to a command line."""
    artifacts = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(artifacts, name="artifacts")

    @artifacts.command()
    def pack(
        out: Annotated[
            Path | None, typer.Option("--out", help="folder to write to (default: <state>/archives)")
        ] = None,
        results: ResultsOption = runner.RESULTS,
        state: StateOption = runner.STATE,
    ) -> None:
        """Write one archive for each data set, of what .state keeps of runs that have a record.

        The digests of its files go to artifacts.sha256 beside the records: commit it. Status 1: files were left out,
        since they are not what their records or digests say, or a record is invalid.
        """
        from benchmarks.experiment import archived  # here, since it needs torch

        store, folder = Store(existing(results), suite.metrics), out or state / "archives"
        packed = archived.pack(store, state, folder, progress.Ticker(len(store.paths()), "records"))
        for path, digest in packed.written.items():
            print(f"{path}: {path.stat().st_size / 1e6:,.1f} MB, sha256={digest}")
        counts = ", ".join(f"{count} of {name}" for name, count in sorted(packed.counts.items())) or "none"
        print(f"{packed.records} records, files {counts}: {packed.bytes / 1e6:,.1f} MB")
        if packed.missing:
            some = ", ".join(packed.missing[:3]) + (", ..." if len(packed.missing) > 3 else "")
            print(f"{len(packed.missing)} records have left neither in {state}: {some}")
        for problem in packed.left:
            print(f"left out: {problem}")
        raise typer.Exit(1 if packed.left else 0)

    @artifacts.command()
    def fetch(
        archives: ArchivesArgument = None,
        results: ResultsOption = runner.RESULTS,
        state: StateOption = runner.STATE,
    ) -> None:
        """Copy from archives into .state what it lacks of runs that have a record.

        Every file must have its SHA-256 in artifacts.sha256 beside the records. Stopped, it goes on where it was.
        Status 1: something was not taken; it is named.
        """
        fetched = archive.fetch(Store(existing(results), suite.metrics), state, _archives(archives))
        print(f"{fetched.taken} files taken ({fetched.bytes / 1e6:,.1f} MB), {fetched.there} already there")
        if fetched.removed:
            print(f"{fetched.removed} files went, to stay within FVI_STATE_GB")
        for problem in fetched.problems:
            print(f"not fetched: {problem}")
        raise typer.Exit(1 if fetched.problems else 0)

    @artifacts.command("list")
    def list_(archives: ArchivesArgument = None, results: ResultsOption = runner.RESULTS) -> None:
        """Say what archives hold, and how many of their files have their digest beside the records.

        Status 1: some archives cannot be read; they are named.
        """
        rows, known = [("archive", "files", "known", "MB")], archive.digests(existing(results))

        def show(path: Path, opened: ZipFile) -> None:
            held = opened.infolist()
            count, size = sum(each.filename in known for each in held), sum(each.file_size for each in held)
            rows.append((str(path), str(len(held)), str(count), f"{size / 1e6:,.1f}"))

        problems = [f"not listed: {problem}" for problem in archive.for_each(_archives(archives), show)]
        print(columns(rows), *problems, sep="\n")
        raise typer.Exit(1 if problems else 0)

    @app.command()
    def sets(
        table: TableArgument,
        out: Annotated[Path, typer.Option("--out", help="folder to write to")],
        protocol: ProtocolOption = None,
        seeds: SeedsOption = None,
    ) -> None:
        """Write the data of a table for external models, one npz file for every split (docs/predictions.md)."""
        from benchmarks.experiment.external import write_sets  # needs torch

        found, numbers = suite.table(table), parse_seeds(seeds)
        chosen = found.check_protocol(protocol)
        places = {(c["dataset"]["name"], c["dataset"]["split"]) for c in found.runs(chosen, numbers)}
        for path, left in write_sets(
            found, chosen, out, lambda one: (one["dataset"]["name"], one["dataset"]["split"]) in places
        ):
            print(path, *([f"without {', '.join(left)}: attacks need the model"] if left else []))

    @app.command()
    def score(
        table: TableArgument,
        files: Annotated[list[Path], typer.Argument(metavar="FILE", help="npz files of predictions")],
        method: Annotated[str, typer.Option("--method", metavar="NAME", help="the name of the row")],
        protocol: ProtocolOption = None,
        results: ResultsOption = runner.RESULTS,
    ) -> None:
        """Measure external predictions, and add them to a table as a row (docs/predictions.md)."""
        chosen = suite.table(table).check_protocol(protocol)
        for file in files:
            print(*interface.score(table, file, method, chosen, results=results, suite=suite))
        shown = ["table", suite.table(table).name, "--protocol", chosen, *hints.folders(results=results)]
        print(f"the row is in {hints.module('reports', *shown)}")


def _archives(archives: list[str] | None) -> list[str]:
    """Return archives that are named, else those of the environment. Raises UsageError without either."""
    named = list(archives or archive.places())
    if not named:
        raise UsageError(f"expected archives: name them, or set {archive.VARIABLE} to their paths or addresses")
    return named
