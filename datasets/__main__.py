"""The command `python -m datasets`: get data sets, list them, or make corrupted images in advance."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from fvi_core.printing import streams
from fvi_core.spelling import unknown_variables

from . import BadData, DataNotFound, UnknownDataset, describe, names, user_arrays
from .fetch import cache_folder, fetch, mirror_folders, users_folder
from .fundus import sources as fundus
from .image_schemes import SUBSETS, some
from .image_sets import CORRUPTED, SEVERITIES
from .images import SOURCES, read_subset
from .needs import lacking


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return exit status 1 for a missing or bad file, 2 for an unknown data set or wrong option, 130
    where Ctrl-C stops it.
    """
    parser = argparse.ArgumentParser(
        prog="python -m datasets",
        description="Get, list and prepare the data sets of the tables and of your plug-ins.",
        epilog="docs/data.md explains the cache, mirrors and your own files.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", title="commands (COMMAND --help shows the options)")
    fetched = _command(commands, "fetch", _fetch, "download the files that neither the cache nor a mirror has")
    _command(commands, "list", _list, "print task, size and origin of data sets; download nothing")
    corrupt = f"make the corrupted test images of {' and '.join(CORRUPTED)} now rather than on first use"
    made = _command(commands, "corrupt", _corrupt, corrupt, f"{' or '.join(CORRUPTED)} (default: both)")
    made.description += " Several commands share the work; a stopped one resumes."
    for command in (fetched, made):
        command.add_argument(
            "--cache", metavar="FOLDER", help="folder of the files (default: $FVI_DATA_CACHE, else ~/.cache/fvi-bench)"
        )
    made.add_argument("--images", type=int, metavar="N", help="corrupt N of the test images, for sets '...-of-N'")
    with streams():
        for note in unknown_variables():
            print(f"note: {note}", file=sys.stderr)
        options = vars(parser.parse_args(arguments))
        if not options:
            parser.print_help()
            return 0
        try:
            return options.pop("run")(**options)
        except (UnknownDataset, DataNotFound, ValueError) as error:
            own = isinstance(error, UnknownDataset | DataNotFound | BadData)
            if not own and type(error).__module__ != "fvi_core.plugins":
                raise
            print(error, file=sys.stderr)
            return 2 if isinstance(error, UnknownDataset) else 1
        except KeyboardInterrupt:
            print("stopped; what is finished is kept", file=sys.stderr)
            return 130


def _command(
    commands: Any, name: str, run: Callable[..., int], purpose: str, which: str = "data set (default: all)"
) -> Any:
    command = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
    command.add_argument("wanted", nargs="*", metavar="NAME", help=which)
    command.set_defaults(run=run)
    return command


def _chosen(wanted: list[str]) -> list[str]:
    """Return the names of data sets, those of plug-ins too, each once. Raises UnknownDataset."""
    import_module("fvi_core.plugins").load()  # by name: datasets/ imports no other room, only this command needs it
    for name in set(wanted) - set(names()):
        describe(name)  # which raises UnknownDataset
    return list(dict.fromkeys(wanted or names()))


def _list(wanted: list[str]) -> int:
    chosen = _chosen(wanted)
    print(f"{'name':20} {'task':14} {'train':>6} {'test':>5} {'input':>9} {'splits':>6}  origin")
    for name in chosen:
        try:
            d = describe(name)
        except (BadData, DataNotFound) as error:
            print(f"{name:20} {str(error).splitlines()[0]}")
            continue
        shape = "x".join(str(size) for size in d.shape)
        print(f"{name:20} {d.task:14} {d.n_train:6} {d.n_test:5} {shape:>9} {d.n_splits:6}  {d.source}")
    return 0


def _fetch(wanted: list[str], cache: str | None) -> int:
    chosen = _chosen(wanted)
    users_folder(fundus.VARIABLE)  # raises BadData, before anything is fetched
    user_arrays.note_unread(SOURCES, SUBSETS)
    print(f"cache: {cache_folder(cache)}; mirrors: {', '.join(map(str, mirror_folders())) or 'none'}")
    arrays = [f"{name}/{subset}" for name in SOURCES for subset in SUBSETS if user_arrays.find(name, subset)]
    if arrays:
        print(f"your arrays ({user_arrays.VARIABLE}) replace the files of {', '.join(arrays)}")
    lacks = [lack for name in chosen if name not in SOURCES for lack in lacking(name, root=cache)]
    lost = {lack.dataset: lack.reason.splitlines()[-1] for lack in lacks if not lack.files}
    groups = {name: [] if name in lost else _files(name) for name in chosen}
    failed = fetch(groups, cache, lambda line: print(line, flush=True), lost)
    by_hand = [name for name in failed if name in fundus.NAMES and name not in wanted]  # no command gets these
    failed = [name for name in failed if name not in by_hand]
    have = len(groups) - len(failed) - len(by_hand)
    missing = f"; not available: {', '.join(failed)}" if failed else ""
    missing += f"; to be got by hand: {', '.join(by_hand)}" if by_hand else ""
    print(f"{have} of {len(groups)} data sets are ready{missing}")
    return 1 if failed else 0


def _files(name: str) -> list[str]:
    """Return the registered files of a data set, without those that a user's arrays replace."""
    files = dict.fromkeys(file for scheme in describe(name).schemes for file in describe(name, scheme).files)
    subsets = SOURCES[name].files if name in SOURCES else {}
    read = {file for subset, own in subsets.items() if not user_arrays.find(name, subset) for file in own}
    replaced = {file for own in subsets.values() for file in own} - read
    return [file for file in files if file not in replaced]


def _corrupt(wanted: list[str], cache: str | None, images: int | None) -> int:
    from .corruptions import NotStored, corrupted  # here, since scipy takes a second to load

    wanted = wanted or list(CORRUPTED)
    for name in wanted:
        if name not in CORRUPTED:
            raise UnknownDataset(f"data set '{name}' has no corrupted images; those that have: {', '.join(CORRUPTED)}")
    for name in wanted:
        test = read_subset(name, "test", cache)
        if images is not None and not 0 < images < len(test.labels):
            print(f"--images: expected 1 to {len(test.labels) - 1} of the test images, found {images}", file=sys.stderr)
            return 2
        rows = None if images is None else some(test.labels, images)
        for severity in SEVERITIES[1:]:
            head, begun = f"{name}, severity {severity} of {SEVERITIES[-1]}", time.monotonic()

            def say(done: int, lacking: int, head: str = head, begun: float = begun) -> None:
                left = (time.monotonic() - begun) / done * (lacking - done)
                print(f"{head}: {done} of {lacking} corruptions, about {left:.0f} s left", flush=True)

            with warnings.catch_warnings():
                warnings.simplefilter("error", NotStored)  # to store images is all that this command is for
                try:
                    made, source = corrupted(name, None, severity, test.images, test.labels, cache, rows=rows, say=say)
                except NotStored as error:
                    print(f"{error.why}; free space there, or pass --cache with another folder", file=sys.stderr)
                    return 1
            print(f"{head}: {len(made)} images ({source})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
