"""python -m tools.cluster: a small SLURM cluster on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.errors import as_messages
from tools.cluster import cluster

app = typer.Typer(
    help="A real SLURM cluster of one node on this machine, to try things out. As root.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
FolderOption = Annotated[
    Path, typer.Option("--folder", help="where all its files are", show_default=str(cluster.default_folder()))
]


@app.command()
def up(
    folder: FolderOption = cluster.default_folder(),
    cores: Annotated[
        int | None, typer.Option(min=1, help="of the node, may exceed the machine's (default: the machine's)")
    ] = None,
    kill_wait: Annotated[int, typer.Option(min=1, help="seconds between SIGTERM and SIGKILL of a job")] = 5,
) -> None:
    """Start it; prints the line that makes SLURM's commands find it."""
    before = cluster.Cluster(folder.absolute()).daemons()
    started = cluster.up(folder, cores=cores, kill_wait=kill_wait)
    known = before == started.daemons()
    print(f"the cluster in {started.folder} {'was up already' if known else 'is up'}; now give", file=sys.stderr)
    print(*(f"export {name}={value}" for name, value in started.environment.items()), sep="\n")


@app.command()
def down(folder: FolderOption = cluster.default_folder()) -> None:
    """End it with all its jobs; its logs stay."""
    ended = cluster.Cluster(folder.absolute()).down()
    print(f"the cluster in {folder} {'is down' if ended else 'was not up'}")


@app.command()
def status(folder: FolderOption = cluster.default_folder()) -> None:
    """Show the running daemons and the node's status. Exit status 1 if the cluster is not up."""
    local = cluster.Cluster(folder.absolute())
    daemons = local.daemons()
    for name in cluster.DAEMONS:
        print(f"{name:<10} {f'process {daemons[name]}' if name in daemons else 'down'}")
    whole = len(daemons) == len(cluster.DAEMONS)
    print(f"{'node':<10} {(local.status() if whole else '') or 'unknown'}")
    if not whole:
        raise typer.Exit(1)
    print(*(f"export {name}={value}" for name, value in local.environment.items()), sep="\n")


def main(arguments: list[str] | None = None) -> None:
    """The command line as a function of its arguments; it exits."""
    with as_messages():
        app(arguments)


if __name__ == "__main__":
    main()
