"""Options that several groups of commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ProtocolOption = Annotated[
    str | None, typer.Option("--protocol", help="paper, short or smoke; without it the table's own")
]
SeedsOption = Annotated[
    str | None, typer.Option("--seeds", help="how many (5), a range (0-4) or a list (0,3); without it all")
]
StateOption = Annotated[
    Path, typer.Option("--state", help="folder of claims, failures, logs, checkpoints", show_default=".state")
]
ResultsOption = Annotated[Path, typer.Option("--results", help="folder of the records", show_default="results")]
