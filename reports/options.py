"""Options shared by several commands of reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from benchmarks.commands.options import PROTOCOLS

ProtocolOption = Annotated[
    Optional[str],
    typer.Option("--protocol", help=f"{PROTOCOLS} (default: the most faithful one with records)"),
]
RowOption = Annotated[
    Optional[list[str]],
    typer.Option("--row", help="only this row, by label or method; may be repeated, and orders them"),
]
ColumnOption = Annotated[
    Optional[list[str]], typer.Option("--column", help="only this column, by label or data set; may be repeated")
]
MetricOption = Annotated[Optional[list[str]], typer.Option("--metric", help="only this metric; may be repeated")]
DigitsOption = Annotated[
    Optional[int],
    typer.Option("--digits", min=0, max=9, help="decimals (default: two digits of each error)"),
]
PublishedOption = Annotated[bool, typer.Option("--published/--no-published", help="the published numbers")]
DifferenceOption = Annotated[bool, typer.Option("--difference/--no-difference", help="differences and verdicts")]
AcrossOption = Annotated[
    Optional[bool],
    typer.Option(
        "--across/--down", help="methods across or down the page (default: down; in LaTeX whichever takes fewer pages)"
    ),
]
NotesOption = Annotated[bool, typer.Option("--notes/--no-notes", help="the rules, counts and notes below the table")]
PageOption = Annotated[
    Optional[str],
    typer.Option("--page", metavar="WIDTHxHEIGHT", help="text area of your pages in cm, for LaTeX: 17x23"),
]
OutOption = Annotated[Path, typer.Option("--out", help="folder to write to")]
FileOption = Annotated[Path, typer.Option("--file", help="the page to write")]
PageOfDocsOption = Annotated[
    Optional[Path],
    typer.Option("--file", help="the page to write (default: in docs; of other records, in reports/output)"),
]
