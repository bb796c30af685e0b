"""Find the missing files of data sets, and download them. No array is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from . import fetch, song, uci, user_arrays
from .checks import BadData, DataNotFound
from .fetch import Folder
from .fundus import splits as fundus
from .image_schemes import SCHEMES
from .image_sets import REDUCED, partner
from .images import SOURCES, which_for_contexts
from .registry import describe


@dataclass(frozen=True)
class Lack:
    """Missing files of a data set. reason: why they are not available; empty before a download is tried."""

    dataset: str
    files: tuple[str, ...]
    reason: str = ""

    @property
    def megabytes(self) -> float:
        """Size of the missing files together."""
        return sum(fetch.registry()[name].size for name in self.files) / 1e6


def lacking(
    name: str,
    scheme: str | None = None,
    sets: Iterable[str] = (),
    pools: Iterable[str] = (),
    root: Folder = None,
) -> list[Lack]:
    """List the missing files of a data set, its evaluation partners and its context pools.

    Nothing is downloaded. Raises UnknownDataset, UnknownSplit.
    """
    sets = list(sets)
    try:
        known = describe(name, scheme)
    except (DataNotFound, BadData) as error:  # a user's file
        return [Lack(name, (), str(error))]
    if name in fundus.NAMES:
        return [Lack(own, (), why) for own, why in fundus.lacking(name, sets, root).items()]
    lacks, wanted = [], {name: dict.fromkeys(known.files)}
    if name in uci.SOURCES and not set(song.SETS).isdisjoint(sets):
        wanted[song.NAME] = dict.fromkeys((song.FILE,))
    if name in SOURCES:
        wanted = {name: _frost(name, known.scheme, sets, root)}
        for dataset, subset in _subsets(name, known.scheme, sets, pools, root):
            files = SOURCES[dataset].files.get(subset)
            if user_arrays.find(dataset, subset):
                continue
            if files is None:
                how = user_arrays.how(dataset, subset, SOURCES[dataset].shape)
                lacks.append(Lack(dataset, (), f"no file of a {subset} subset is known; {how}"))
            else:
                wanted.setdefault(dataset, {}).update(dict.fromkeys(files))
    for dataset, names in wanted.items():
        absent = tuple(file for file in names if not fetch.at_hand(file, root))
        lacks += [Lack(dataset, absent)] if absent else []
    return lacks


def get(lack: Lack, say: Callable[[str], None]) -> Lack | None:
    """Download missing files, with a line on each. Return those still missing and why, or None."""
    for i, name in enumerate(lack.files):
        if any(map(fetch.reachable, fetch.registry()[name].urls)):
            say(f"fetching {name} ({fetch.registry()[name].size / 1e6:.3g} MB)")
        try:
            fetch.locate(name)
        except DataNotFound as error:
            tried = [line.strip() for line in str(error).splitlines() if line.startswith("  ")]
            host = re.sub(rf"\w+://([^/]+).*: {fetch.UNREACHABLE}", rf"\1 {fetch.UNREACHABLE}", tried[-1])
            return replace(lack, files=lack.files[i:], reason=host)
    return lack if lack.reason else None


def _subsets(name: str, scheme: str, sets: list[str], pools: Iterable[str], root: Folder) -> list[tuple[str, str]]:
    """Return the subsets of image sets that training and evaluation read."""
    chosen = SCHEMES[name][scheme]
    subsets = [(name, subset) for subset in chosen.subsets]
    drawn = {pool: which_for_contexts(pool, root, chosen.whole_contexts) for pool in chosen.contexts}
    subsets += [(pool, subset) for pool in pools if pool in drawn for subset in drawn[pool]]
    for other in filter(None, (partner(name, each) for each in sets)):
        subsets.append((other, chosen.ood_subset))
        if chosen.ood_subset in drawn.get(other, ()):
            subsets.append((other, "train"))  # images that contexts draw from are not scored
    return list(dict.fromkeys(subsets))


def _frost(name: str, scheme: str, sets: Iterable[str], root: Folder) -> dict[str, None]:
    """Return the missing files that the corruption frost needs, if the evaluation sets have it."""
    forms = (re.fullmatch(rf"{name}_c-(?:([a-z_]+)-)?([1-5]){REDUCED}", each) for each in sets)
    files = [file for file in fetch.registry() if file.startswith("frost/")]
    if not any(form and form[1] in (None, "frost") for form in forms) or all(
        fetch.at_hand(file, root) for file in files
    ):
        return {}
    from .corruptions.source import published  # here, since scipy takes a second to load

    return {} if published(name, root) and not SCHEMES[name][scheme].part else dict.fromkeys(files)
