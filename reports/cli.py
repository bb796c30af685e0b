"""The command line: python -m reports."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from benchmarks import files
from benchmarks.commands.options import (
    AlsoOption,
    ResultsOption,
    SeedsOption,
    StateOption,
    TableArgument,
    existing,
)
from benchmarks.errors import BenchmarkError, UsageError, as_messages, unknown
from benchmarks.records.provenance import ROOT
from benchmarks.suite import Suite
from benchmarks.sweep.begin import adding, beyond, lacking, parse_seeds
from benchmarks.sweep.runner import RESULTS, STATE
from benchmarks.tables.external import with_external_rows
from reports import interface, options
from reports.aggregate import TableResult
from reports.choice import WHOLE, Choice, page_size
from reports.records import Records

HELP = (
    "Print tables, draw figures and count reproduced cells, from the records in results/, without training. "
    "Status 1: invalid records were not counted, and are named."
)

OUT, DOCS, README = ROOT / "reports" / "output", ROOT / "docs", ROOT / "README.md"


def build(suite: Suite) -> Callable[[list[str] | None], None]:
    """Return the command line over a suite, as a function of the arguments; it exits."""
    app = typer.Typer(
        help=HELP, no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )

    @app.command()
    def table(
        name: TableArgument,
        protocol: options.ProtocolOption = None,
        seeds: SeedsOption = None,
        also: AlsoOption = None,
        row: options.RowOption = None,
        column: options.ColumnOption = None,
        metric: options.MetricOption = None,
        digits: options.DigitsOption = None,
        published: options.PublishedOption = True,
        difference: options.DifferenceOption = True,
        across: options.AcrossOption = None,
        notes: options.NotesOption = True,
        page: options.PageOption = None,
        results: ResultsOption = RESULTS,
        state: StateOption = STATE,
        out: options.OutOption = OUT,
    ) -> None:
        """Print one table; write it as Markdown and LaTeX, and draw the figures of a whole table.

        Options select and arrange: reports table uci --row MFVI --row NN-HyVI --metric rmse --across
        """
        choice = Choice(
            rows=tuple(row or ()), columns=tuple(column or ()), metrics=tuple(metric or ()), digits=digits,
            published=published, difference=difference, across=across, notes=notes,
            page=page_size(page) if page else WHOLE.page,
        )  # fmt: skip
        records = _records(results, state)
        found = interface.chosen(name, records, also or (), suite)
        result = interface.result(found, protocol, seeds, records)
        if protocol is None and result.protocol != found.default_protocol:
            print(f"no run is recorded at protocol {found.default_protocol} yet; this is protocol {result.protocol}:")
        for line in (*beyond([found], result.protocol, seeds), *lacking([found], result.protocol)):
            print(line)
        _print_table(suite, result, parse_seeds(seeds), records, out, choice)

    @app.command()
    def tables(
        protocol: options.ProtocolOption = None,
        seeds: SeedsOption = None,
        results: ResultsOption = RESULTS,
        state: StateOption = STATE,
        out: options.OutOption = OUT,
    ) -> None:
        """Write every table that has the protocol as Markdown and LaTeX, and count its cells."""
        from reports.tables import render_table

        records = _records(results, state)
        problems: list[str] = []
        for found in with_external_rows([suite.table(name) for name in suite.table_names()], suite, records.store):
            if protocol is None or protocol in found.protocols:
                result = interface.result(found, protocol, seeds, records)
                for line in beyond([found], result.protocol, seeds):
                    print(line)
                rendered = render_table(result, out)
                print(f"{found.name}: {rendered.counts}; {_shown(rendered.files['Markdown'])}")
                problems += rendered.problems
        _end(problems)

    @app.command()
    def figures(
        names: Annotated[
            Optional[list[str]],
            typer.Argument(
                metavar="FIGURE",
                help="names of figures or tables, also of plug-ins: rotated-mnist-points, mine-reliability (default: "
                "the whole catalogue)",
            ),
        ] = None,
        protocol: options.ProtocolOption = None,
        seeds: SeedsOption = None,
        also: AlsoOption = None,
        size: Annotated[
            Optional[str], typer.Option("--size", help="inches (3.4x2.5, or a width alone), column or text")
        ] = None,
        title: Annotated[
            Optional[str], typer.Option("--title", help="another title; off: none (the caption is a file)")
        ] = None,
        rows: Annotated[
            Optional[list[str]], typer.Option("--row", metavar="ROW", help="only this row, or method; repeat for more")
        ] = None,
        columns: Annotated[
            Optional[list[str]],
            typer.Option("--column", metavar="PANEL", help="only this panel: a column, metric or shift; repeat"),
        ] = None,
        font: Annotated[Optional[str], typer.Option("--font", help="font family: serif, DejaVu Sans")] = None,
        font_size: Annotated[
            Optional[float], typer.Option("--font-size", min=3, max=40, help="points (default: 8)")
        ] = None,
        formats: Annotated[
            Optional[list[str]], typer.Option("--format", metavar="FORMAT", help="pdf, png or svg; repeat for more")
        ] = None,
        listed: Annotated[
            bool, typer.Option("--list", help="draw nothing; say which rows of each figure have records")
        ] = False,
        results: ResultsOption = RESULTS,
        out: options.OutOption = OUT,
    ) -> None:
        """Draw figures as PDF and PNG, each with its numbers as CSV and its caption as text; skip and name those
        without records.

        A table's name selects all its figures, NAME-points (its columns as points with errors), and the curves in its
        records (NAME-reliability, NAME-roc, NAME-curves). Without --protocol, a figure uses protocol short if that has
        records of more than twice as many rows as the table's first protocol.

        For a column of a paper: python -m reports figures rudner2021-figure-6-fashion_mnist --size column --title off
        --format pdf --row FSVI --row MFVI
        """
        from reports.figures import options as looks
        from reports.figures import standing, with_runs
        from reports.figures.own import select

        if also and not names:
            raise UsageError(f"--also {also[0]} is for figures that are named: figures uci-points --also METHOD")
        shown = adding(suite, also)
        records = _records(results)
        chosen = looks.Options(
            *looks.size(size),
            "" if title == looks.OFF else title,
            tuple(rows or ()),
            tuple(columns or ()),
            looks.font(font),
            font_size,
        )
        forms = (*looks.forms(formats or []), ".csv", ".txt")
        figures = select(names or [], shown, records, protocol)
        if listed:
            found = list(with_runs(figures, shown, records, protocol, parse_seeds(seeds), chosen))
            print(*(standing(figure, runs) for figure, _, runs in found), sep="\n")
            return _end(problem for _, _, runs in found if runs for problem in runs.problems)
        _end(_draw(shown, figures, protocol, parse_seeds(seeds), records, out, forms, chosen))

    @app.command()
    def coverage(results: ResultsOption = RESULTS, out: options.OutOption = OUT) -> None:
        """Count, per paper and table, the published cells, those with records, and those reproduced."""
        from reports import coverage as counting

        rows = counting.remembered(_records(results), suite, out / ".coverage")
        print(f"{counting.text(rows)}\nMarkdown: {_written(out / 'coverage.md', counting.markdown(rows))}")
        problems = counting.problems(rows)
        _end(problems, printed=problems)

    @app.command()
    def page(
        results: ResultsOption = RESULTS,
        state: StateOption = STATE,
        out: Annotated[Path, typer.Option("--out", help="folder of the site")] = OUT / "page",
    ) -> None:
        """Make a site of all tables, methods and figures. It opens from its files, without a server or a network."""
        from reports.page.site import API, write

        site = write(suite, _records(results, state), out)
        print(f"{site.pages} pages, {site.bytes / 1e6:.1f} MB: {_shown(site.start)}")
        if not (out / API).exists():
            print("The site has no link to the library's functions: make docs page writes their pages and links them.")
        if site.warning:
            print(site.warning)
        _end(site.problems)

    @app.command()
    def paper(
        results: ResultsOption = RESULTS,
        state: StateOption = STATE,
        out: Annotated[Path, typer.Option("--out", help="folder of the PDF and its source")] = OUT / "paper",
    ) -> None:
        """Make one PDF of every table and figure that has records, of the methods, and of differences and their causes.

        Needs pdflatex; without it the source is written, and the message says what to install.
        """
        from reports.paper import counts, write

        written = write(suite, _records(results, state), out, lambda words: print(words, flush=True))
        print(f"{counts(written)}: {_shown(written.pdf)}")
        _end(written.problems)

    @app.command()
    def protocols(
        file: options.FileOption = DOCS / "protocols.md",
    ) -> None:
        """Write docs/protocols.md: our settings beside those of the papers and of their authors' code."""
        from reports.protocols.page import page

        print(_written(file, page(suite)))

    @app.command()
    def causes(
        results: ResultsOption = RESULTS,
        file: options.PageOfDocsOption = None,
    ) -> None:
        """Write docs/causes.md: every cell that differs at protocol paper, its cause, and what was tried."""
        from reports.tried import page

        records = _records(results)
        folder = DOCS if results.resolve() == RESULTS else OUT
        print(_written(file or folder / "causes.md", page(suite, records)))
        _end(records.problems)

    @app.command()
    def findings(
        paper: Annotated[str, typer.Option("--paper", help="print and draw every claim of this paper")] = "",
        results: ResultsOption = RESULTS,
        out: options.OutOption = OUT,
        file: options.PageOfDocsOption = None,
        readme: Annotated[
            Optional[Path], typer.Option("--readme", help="the file whose table is renewed (default: as for --file)")
        ] = None,
    ) -> None:
        """Print which claims of the papers survive, by their own numbers and by the records; write docs/findings.md."""
        from reports.findings import claims, page, words
        from reports.page.book import Book

        if paper and paper not in claims.papers():
            raise unknown("paper", paper, claims.papers())
        records = _records(results)
        verdicts = page.of_book(Book(suite, records))
        print(page.text(verdicts, _width(), paper))
        comparisons, drawn = _written(out / "findings.csv", words.as_csv(words.flat(verdicts))), ""
        if paper:
            from reports.figures.claims import draw  # matplotlib, slow to load

            drawn = f"; picture: {_shown(draw(verdicts[paper], paper, out / f'findings-{paper}'))} and .png"
        own = results.resolve() == RESULTS
        listed = _written(file or (DOCS if own else out) / "findings.md", page.page(verdicts))
        readme = readme or (README if own else out / README.name)
        if readme.is_file():
            files.write(readme, page.readme(readme.read_text(encoding="utf-8"), verdicts))  # only a part of it is ours
        print(f"Every claim: {listed}; every comparison: {comparisons}{drawn}")
        _end(records.problems)

    @app.command("claims")
    def own_claims(
        file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV file of claims (docs/verdicts.md)")],
        also: AlsoOption = None,
        results: ResultsOption = RESULTS,
        out: options.OutOption = OUT,
    ) -> None:
        """Judge claims of your own, by published numbers and by the records, as findings judges those of the papers."""
        from reports.figures.claims import draw
        from reports.findings import page, words

        records = _records(results)
        found = interface.judged(file, records, also or (), suite)
        print(page.text_of_file(found, _width()))
        added = (word for name in also or () for word in ("--also", name))
        command = shlex.join([".venv/bin/python", "-m", "reports", "claims", str(file), *added])
        forms = {".md": page.page_of_file(found, command), ".tex": page.tex_of_file(found), ".csv": words.as_csv(found)}
        listed, tex, comparisons = (_written(out / f"claims-{file.stem}{form}", text) for form, text in forms.items())
        drawn = _shown(draw(found, file.name, out / f"claims-{file.stem}"))
        print(f"Every claim: {listed} and {tex}; every comparison: {comparisons}; picture: {drawn} and .png")
        _end(records.problems)

    for each in app.registered_commands:
        each.callback = _naming(each.callback)

    def main(arguments: list[str] | None = None) -> None:
        with as_messages():
            app(arguments)

    return main


def _naming(command: Any) -> Callable[..., None]:
    """Wrap a command so that errors of writing name its folder or file option."""

    @wraps(command)
    def named(**options: Any) -> None:
        option = "out" if "out" in options else "file"
        try:
            command(**options)
        except OSError as error:
            place = options[option] or DOCS
            path = Path(error.filename or place)
            if place not in (path, *path.parents) and path not in place.parents:
                raise
            raise BenchmarkError(f"{path}: {error.strerror}: choose another place with --{option}") from error

    return named


def _print_table(
    suite: Suite, result: TableResult, seeds: list[int] | None, records: Records, out: Path, choice: Choice
) -> None:
    from reports.figures import FIGURES
    from reports.tables import render_table
    from reports.terminal import width

    rendered = render_table(result, out, choice, width())
    print(rendered.text)
    files = [f"{form}: {_shown(path)}" for form, path in rendered.files.items()]
    print("In full, with all notes:" if choice.notes else "Files, without notes:", *files, sep="\n  ")
    figures = [figure for figure in FIGURES.values() if choice.whole and figure.table == result.table.name]
    problems = _draw(suite, figures, result.protocol, seeds, records, out)
    _end([*rendered.problems, *problems], printed=rendered.problems)


def _draw(
    suite: Suite,
    figures: list,
    protocol: str | None,
    seeds: list[int] | None,
    records: Records,
    out: Path,
    forms: tuple[str, ...] = (".pdf", ".png", ".csv", ".txt"),
    options: Any = None,
) -> list[str]:
    """Draw figures and print their paths, and the files that do not count, with reasons."""
    from reports.figures import Options
    from reports.figures.processes import drawing

    problems: list[str] = []
    with drawing(figures, suite, records, out, protocol, seeds, forms, options or Options()) as found:
        for drawn in found:
            what = f"skipped: {drawn.skipped}"
            if drawn.files:
                what = " and ".join([_shown(drawn.files[0]), ", ".join(file.suffix for file in drawn.files[1:])])
            print(f"Figure {drawn.name}: {what}", flush=True)
            problems += drawn.problems
    return problems


def _records(results: Path, *state: Path) -> Records:
    """Return the records of a folder. Raises UsageError if there is none."""
    return Records(existing(results), *state)


def _end(problems: Iterable[str], printed: Collection[str] = ()) -> None:
    """Print every problem not printed yet, and end with status 1 if there is any."""
    problems = dict.fromkeys(problems)
    for problem in problems:
        if problem not in printed:
            print(problem)
    if problems:
        raise typer.Exit(1)


def _width() -> int:
    """Return the width of the terminal's lines of text."""
    return min(shutil.get_terminal_size((100, 24)).columns, 120)


def _written(path: Path, text: str) -> str:
    files.write(path, text)
    return _shown(path)


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
