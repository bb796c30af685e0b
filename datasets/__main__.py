"""`python -m datasets list [names]` lists the data sets, those of plug-ins included; `fetch [names]` gets the files.

`python -m datasets corrupt [cifar10] [cifar100]` makes corrupted test images in advance; several such commands share
the work, and a stopped one resumes where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from importlib import import_module

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
    parser = argparse.ArgumentParser(prog="python -m datasets", description=__doc__)
    parser.add_argument(
        "command", nargs="?", choices=("fetch", "list", "corrupt"), default="fetch", help="default: fetch"
    )
    parser.add_argument("names", nargs="*", help="data sets to list, to fetch or to corrupt (default: all)")
    parser.add_argument("--cache", help="folder of the file cache instead of $FVI_DATA_CACHE")
    parser.add_argument("--images", type=int, help="corrupt: only so many, as reduced evaluation sets have them")
    with streams():
        for note in unknown_variables():
            print(f"note: {note}", file=sys.stderr)
        options = parser.parse_args(arguments)
        ignored = [
            (option, commands)
            for option, commands in (("images", "corrupt"), ("cache", "fetch and corrupt"))
            if getattr(options, option) is not None and options.command not in commands
        ]
        if ignored:
            (option, commands), *_ = ignored
            print(f"--{option} is for {commands}, found {options.command}; leave it out", file=sys.stderr)
            return 2
        try:
            if options.command == "corrupt":
                return _corrupt(options.names or CORRUPTED, options.cache, options.images)
            if options.command == "list":
                return _list(options.names)
            return _fetch(options.names or names(), options.cache)
        except (UnknownDataset, DataNotFound, ValueError) as error:
            own = isinstance(error, UnknownDataset | DataNotFound | BadData)
            if not own and type(error).__module__ != "fvi_core.plugins":
                raise
            print(error, file=sys.stderr)
            return 2 if isinstance(error, UnknownDataset) else 1
        except KeyboardInterrupt:
            print("stopped; what is finished is kept", file=sys.stderr)
            return 130


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
        for name in wanted
    }
    failed = fetch(groups, cache, lambda line: print(line, flush=True))
    for lack in (lack for name in wanted if name in fundus.NAMES for lack in lacking(name, root=cache)):
        print(f"{lack.dataset}: not available. {lack.reason.splitlines()[-1]}")
    have = len(groups) - len(failed)
    missing = f"; not available: {', '.join(failed)}" if failed else ""
    print(f"{have} of {len(groups)} data sets are ready{missing}")
    return 1 if failed else 0


def _corrupt(wanted: Iterable[str], cache: str | None, count: int | None) -> int:
    from .corruptions import corrupted  # here, since scipy takes a second to load

    for name in wanted:
        if name not in CORRUPTED:
            raise UnknownDataset(f"data set '{name}' has no corrupted images; those that have: {', '.join(CORRUPTED)}")
    for name in wanted:
        test = read_subset(name, "test", cache)
        if count is not None and not 0 < count < len(test.labels):
            print(f"--images: expected 1 to {len(test.labels) - 1} of the test images, found {count}", file=sys.stderr)
            return 2
        rows = None if count is None else some(test.labels, count)
        for severity in SEVERITIES[1:]:
            head, begun = f"{name}, severity {severity} of {SEVERITIES[-1]}", time.monotonic()

            def say(done: int, lacking: int, head: str = head, begun: float = begun) -> None:
                left = (time.monotonic() - begun) / done * (lacking - done)
                print(f"{head}: {done} of {lacking} corruptions, about {left:.0f} s left", flush=True)

            images, source = corrupted(name, None, severity, test.images, test.labels, cache, rows=rows, say=say)
            print(f"{head}: {len(images)} images ({source})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
