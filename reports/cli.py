"""The command line: python -m reports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from benchmarks.errors import BenchmarkError
from benchmarks.plan import beyond, check_protocol, parse_seeds
from benchmarks.provenance import ROOT
from benchmarks.suite import Suite

HELP = "Print tables, draw figures and count what is reproduced, from the records in results/. Nothing is trained."

ProtocolOption = Annotated[Optional[str], typer.Option("--protocol", help="paper, short or smoke; without it the table's own")]
SeedsOption = Annotated[Optional[str], typer.Option("--seeds", help="how many (5), a range (0-4) or a list (0,3); without it all")]
ResultsOption = Annotated[Path, typer.Option("--results", help="folder of the records")]
StateOption = Annotated[Path, typer.Option("--state", help="folder that knows which runs failed")]
OutOption = Annotated[Path, typer.Option("--out", help="folder to write to")]
RESULTS, STATE, OUT = ROOT / "results", ROOT / ".state", ROOT / "reports" / "output"


def build(suite: Suite) -> Callable[[list[str] | None], None]:
    """The command line over a suite, as a function of the arguments; it exits."""
    app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, rich_markup_mode=None)

    @app.command()
    def table(
        name: Annotated[str, typer.Argument(help="name of a table")],
        protocol: ProtocolOption = None,
        seeds: SeedsOption = None,
        results: ResultsOption = RESULTS,
        state: StateOption = STATE,
        out: OutOption = OUT,
    ) -> None:
        """Print one table; write it as Markdown and LaTeX, and draw its figures."""
        found = suite.table(name)
        chosen, numbers = check_protocol(found, protocol), parse_seeds(seeds)
        for line in beyond([found], chosen, seeds):
            print(line)
        _print_table(suite, found, chosen, numbers, results, state, out)

    @app.command()
    def tables(
        protocol: ProtocolOption = None,
        seeds: SeedsOption = None,
        results: ResultsOption = RESULTS,
        state: StateOption = STATE,
        out: OutOption = OUT,
    ) -> None:
        """Write every table that has the protocol as Markdown and LaTeX, and say how much of each is there."""
        from reports.tables import render_table

        for found in map(suite.table, suite.table_names()):
            if protocol is None or protocol in found.protocols:
                chosen = protocol or found.default_protocol
                for line in beyond([found], chosen, seeds):
                    print(line)
                rendered = render_table(found, chosen, results, out, parse_seeds(seeds), state)
                print(f"{found.name}: {rendered.counts}; {_shown(rendered.files['Markdown'])}")

    @app.command()
    def figures(
        names: Annotated[Optional[list[str]], typer.Argument(metavar="[FIGURE...]", help="names; without any, all")] = None,
        protocol: ProtocolOption = None,
        seeds: SeedsOption = None,
        results: ResultsOption = RESULTS,
        out: OutOption = OUT,
    ) -> None:
        """Draw figures as PDF and PNG; those without records are skipped and say which.

        Without --protocol, a figure whose table has no records of its own protocol shows those of protocol short.
        """
        from reports.figures import select

        _draw(suite, select(names or []), protocol, parse_seeds(seeds), results, out)

    @app.command()
    def coverage(results: ResultsOption = RESULTS, out: OutOption = OUT) -> None:
        """Count, per paper and table, the published cells, those with records, and those reproduced."""
        from reports import coverage as counting

        rows = counting.coverage(results, suite)
        out.mkdir(parents=True, exist_ok=True)
        (out / "coverage.md").write_text(counting.markdown(rows), encoding="utf-8")
        print(f"{counting.text(rows)}\nMarkdown: {_shown(out / 'coverage.md')}")

    def main(arguments: list[str] | None = None) -> None:
        try:
            app(arguments)
        except (BenchmarkError, KeyError, ValueError) as error:
            if not type(error).__module__.startswith(("benchmarks", "datasets", "fvi_core")):
                raise
            print(f"error: {error}", file=sys.stderr)
            sys.exit(getattr(error, "exit_code", 2))
        except OSError as error:
            print(f"error: {error.filename}: {error.strerror}: choose another folder with --out", file=sys.stderr)
            sys.exit(1)

    return main


def _print_table(
    suite: Suite, found: Any, protocol: str, seeds: list[int] | None, results: Path, state: Path, out: Path
) -> None:
    from reports.figures import FIGURES
    from reports.tables import render_table

    rendered = render_table(found, protocol, results, out, seeds, state)
    print(rendered.text)
    for form, path in rendered.files.items():
        print(f"{form}: {_shown(path)}")
    _draw(suite, [figure for figure in FIGURES.values() if figure.table == found.name], protocol, seeds, results, out)


def _draw(
    suite: Suite, figures: list, protocol: str | None, seeds: list[int] | None, results: Path, out: Path
) -> None:
    from reports.figures import draw

    for drawn in draw(figures, suite, results, out, protocol, seeds):
        what = f"{_shown(drawn.files[0])} and .png" if drawn.files else f"skipped: {drawn.skipped}"
        print(f"Figure {drawn.name}: {what}", flush=True)


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
