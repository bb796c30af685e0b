"""`python -m datasets list` says what there is; `python -m datasets fetch [names]` gets the files."""

from __future__ import annotations

import argparse
import sys

from . import UnknownDataset, describe, names
from .fetch import cache_folder, fetch, mirror_folders


def main(arguments: list[str] | None = None) -> int:
    """Exit status 1 when a file could not be had, 2 for an unknown data set."""
    parser = argparse.ArgumentParser(prog="python -m datasets", description=__doc__)
    parser.add_argument("command", nargs="?", choices=("fetch", "list"), default="fetch")
    parser.add_argument("names", nargs="*", help="data sets to fetch (default: all)")
    parser.add_argument("--cache", help="folder of the file cache instead of $FVI_DATA_CACHE")
    options = parser.parse_args(arguments)
    try:
        return _list() if options.command == "list" else _fetch(options.names or names(), options.cache)
    except UnknownDataset as error:
        print(error, file=sys.stderr)
        return 2


def _list() -> int:
    print(f"{'name':20} {'task':14} {'train':>6} {'test':>5} {'input':>9} {'splits':>6}  origin")
    for name in names():
        d = describe(name)
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
    have = len(groups) - len(failed)
    missing = f"; not available: {', '.join(failed)}" if failed else ""
    print(f"{have} of {len(groups)} data sets are ready{missing}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
