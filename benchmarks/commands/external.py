"""Commands for external models: sets, score."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks import interface
from benchmarks.commands.options import ProtocolOption, ResultsOption, SeedsOption, TableArgument
from benchmarks.suite import Suite
from benchmarks.sweep import hints, runner
from benchmarks.sweep.plan import parse_seeds


def add(app: typer.Typer, suite: Suite) -> None:
    """Add the commands to a command line."""

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
        files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="npz files of predictions")],
        method: Annotated[str, typer.Option("--method", help="the name of the row")],
        protocol: ProtocolOption = None,
        results: ResultsOption = runner.RESULTS,
    ) -> None:
        """Measure external predictions, and add them to a table as a row (docs/predictions.md)."""
        chosen = suite.table(table).check_protocol(protocol)
        for file in files:
            print(*interface.score(table, file, method, chosen, results=results, suite=suite))
        print(f"the row is in {hints.module('reports', 'table', suite.table(table).name, '--protocol', chosen)}")
