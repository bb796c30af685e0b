"""Options and arguments shared by several commands, here and in reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.errors import UsageError

PROTOCOLS = "paper (full settings; retina-mnist and retina-mnist-fsvi call them own), short or smoke"
TableArgument = Annotated[str, typer.Argument(help="name of a table")]
KeyArgument = Annotated[str, typer.Argument(help="a run's key, or its first digits")]
ProtocolOption = Annotated[
    str | None,
    typer.Option("--protocol", help=f"{PROTOCOLS} (default: the first that `tables` lists)"),
]
SeedsOption = Annotated[
    str | None, typer.Option("--seeds", help="how many (5), a range (0-4) or a list (0,3) (default: all)")
]
AlsoOption = Annotated[
    list[str] | None,
    typer.Option("--also", metavar="METHOD", help="add a row for this method; may be repeated"),
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", help="processes at once (default: one per GPU or core)")
]
StateOption = Annotated[
    Path, typer.Option("--state", help="folder of claims, failures, checkpoints, predictions", show_default=".state")
]
ResultsOption = Annotated[Path, typer.Option("--results", help="folder of the records", show_default="results")]


def existing(results: Path) -> Path:
    """Return the folder of the records. Raises UsageError if there is none, most often for a misspelt name."""
    if not results.is_dir():
        raise UsageError(f"--results: there is no folder {results}")
    return results
