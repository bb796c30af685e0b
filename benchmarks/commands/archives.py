"""Commands for archives of predictions and parameters: artifacts pack, fetch, list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.inspection import columns
from benchmarks.commands.options import ResultsOption, StateOption
from benchmarks.errors import UsageError
from benchmarks.records.store import Store
from benchmarks.suite import Suite
from benchmarks.sweep import progress, runner

HELP = """Archives of predictions and trained parameters of records (docs/archives.md).

`pack` writes them where runs were trained. On a fresh clone, `measure TABLE` takes the files it needs from the archives
in FVI_ARTIFACTS; `fetch` takes all files.
"""
ArchivesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ARCHIVE...]", help="paths, folders, https://...#sha256=... (default: $FVI_ARTIFACTS)"),
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
        """Write one archive per data set with the predictions and parameters of recorded runs in .state.

        The same files give the same bytes; an existing archive stays. Status 1: files were left out because they do not
        match their records.
        """
        from benchmarks.experiment import archived  # needs torch

        store, folder = Store(results, suite.metrics), out or state / "archives"
        found = archived.pack(store, state, folder, progress.Ticker(len(store.paths()), "records"))
        for path, digest in {**found.unchanged, **found.written}.items():
            was = "" if path in found.written else ", as it was"
            print(f"{path}: {path.stat().st_size / 1e6:,.1f} MB, sha256={digest}{was}")
        counts = ", ".join(f"{count} of {name}" for name, count in sorted(found.counts.items())) or "none"
        print(f"{found.records} records, files {counts}: {found.bytes / 1e6:,.1f} MB")
        if found.missing:
            some = ", ".join(found.missing[:3]) + (", ..." if len(found.missing) > 3 else "")
            print(f"{len(found.missing)} records have left neither in {state}: {some}")
        for problem in found.left:
            print(f"left out: {problem}")
        raise typer.Exit(1 if found.left else 0)

    @artifacts.command()
    def fetch(
        archives: ArchivesArgument = None,
        results: ResultsOption = runner.RESULTS,
        state: StateOption = runner.STATE,
    ) -> None:
        """Copy missing predictions and parameters of recorded runs from archives into .state.

        Every file is checked: its SHA-256 by the manifest, its numbers by the record. After a stop it resumes. Status
        1: some files, which it names, were not taken.
        """
        from benchmarks.experiment import archived  # needs torch

        found = archived.fetch(Store(results, suite.metrics), state, _given(archives))
        print(f"{found.taken} files taken ({found.bytes / 1e6:,.1f} MB), {found.there} already there")
        if found.gone:
            print(f"{found.gone} files went, to stay within FVI_STATE_GB")
        for problem in found.problems:
            print(f"not fetched: {problem}")
        raise typer.Exit(1 if found.problems else 0)

    @artifacts.command("list")
    def list_(archives: ArchivesArgument = None) -> None:
        """List the contents of archives."""
        from benchmarks.experiment import archived  # needs torch
        from benchmarks.state.archive import reading

        rows: list[tuple[str, ...]] = [("archive", "runs", "files", "MB")]
        for place in _given(archives):
            for path in archived.located(place):
                with reading(path) as archive:
                    held = archive.manifest
                rows.append((str(path), str(len(held.records)), str(len(held.files)), f"{held.bytes / 1e6:,.1f}"))
        print(columns(rows))


def _given(archives: list[str] | None) -> list[str]:
    """Return the given archives, else those of the environment. Raises UsageError without either."""
    from benchmarks.experiment import archived  # needs torch

    found = list(archives or archived.places())
    if not found:
        raise UsageError(f"expected archives: name them, or set {archived.VARIABLE} to their paths or addresses")
    return found
