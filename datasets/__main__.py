"""The command `python -m datasets`: get data sets, list them, or make corrupted images in advance."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from fvi_core.printing import streams
from fvi_core.spelling import unknown_variables

from . import BadData, DataNotFound, UnknownDataset, describe, names
from .fetch import cache_folder, fetch, mirror_folders
from .fundus import splits as fundus
from .image_schemes import some
from .image_sets import CORRUPTED, SEVERITIES
from .images import read_subset
from .needs import lacking


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return exit status 1 for a missing or bad file, 2 for an unknown data set or wrong option, 130
    where Ctrl-C stops it.
    """
    parser = argparse.ArgumentParser(prog="python -m datasets", description="The data sets of the tables, and yours.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", help="with --help: its options")
    fetched = _command(commands, "fetch", _fetch, "get the files of data sets: from the cache, a mirror or the network")
    _command(commands, "list", _list, "list data sets, those of plug-ins included, without getting any file")
    made = _command(commands, "corrupt", _corrupt, f"make the corrupted test images of {' and '.join(CORRUPTED)} now")
    made.description = "Make corrupted test images in advance. Several commands share the work; a stopped one resumes."
    for command in (fetched, made):
        command.add_argument("--cache", metavar="FOLDER", help="folder of the file cache instead of $FVI_DATA_CACHE")
    made.add_argument("--images", type=int, metavar="N", help="only so many, as reduced evaluation sets have them")
    with streams():
        for note in unknown_variables():
            print(f"note: {note}", file=sys.stderr)
        options = vars(parser.parse_args(arguments))
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


def _command(commands: Any, name: str, run: Callable[..., int], purpose: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
    command.add_argument("wanted", nargs="*", metavar="NAME", help="names of data sets (default: all)")
    command.set_defaults(run=run)
    return command


def _list(wanted: list[str]) -> int:
    import_module("fvi_core.plugins").load()  # by name: datasets/ imports no other room, only this command needs it
    chosen = wanted or names()
    for name in set(chosen) - set(names()):
        describe(name)  # which raises UnknownDataset
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
    print(f"cache: {cache_folder(cache)}; mirrors: {', '.join(map(str, mirror_folders())) or 'none'}")
    groups = {
        name: {file: None for scheme in describe(name).schemes for file in describe(name, scheme).files}
        for name in wanted or names()
    }
    failed = fetch(groups, cache, lambda line: print(line, flush=True))
    for lack in (lack for name in groups if name in fundus.NAMES for lack in lacking(name, root=cache)):
        print(f"{lack.dataset}: not available. {lack.reason.splitlines()[-1]}")
    have = len(groups) - len(failed)
    missing = f"; not available: {', '.join(failed)}" if failed else ""
    print(f"{have} of {len(groups)} data sets are ready{missing}")
    return 1 if failed else 0


def _corrupt(wanted: list[str], cache: str | None, images: int | None) -> int:
    from .corruptions import corrupted  # here, since scipy takes a second to load

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

            made, source = corrupted(name, None, severity, test.images, test.labels, cache, rows=rows, say=say)
            print(f"{head}: {len(made)} images ({source})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
