"""Songs as out-of-distribution inputs of small tables (cinquin2024 App. C.5): rows of UCI's YearPredictionMSD.

Of the paper's "subset of equal length and with an equal number of features" it is not said which. Here: the first
features of the file, and as many of its rows as the test subset has, another draw for every split (neighbours in the
file are often of one artist). Standardised by themselves, as the paper's "same preprocessing" is understood: on the
scale of the training inputs their raw values would be far away from everything.
"""

from __future__ import annotations

import os
from functools import partial

import numpy as np

from .checks import read_table
from .contract import EvaluationSet, Split
from .fetch import locate
from .tabular import standardisation

NAME, SET = "song", "ood-song"
FILE = "song/YearPredictionMSD_1176rows.csv"
ROWS, FEATURES = 1176, 90


def evaluations(split: Split, root: str | os.PathLike | None = None) -> dict[str, partial[EvaluationSet]]:
    """The set "ood-song" of a table's split; empty where the file has too few rows or features."""
    n, features = split.test.x.shape
    return {SET: partial(songs, n, features, split.split, root)} if n <= ROWS and features <= FEATURES else {}


def songs(n: int, features: int, seed: int, root: str | os.PathLike | None = None) -> EvaluationSet:
    """n of the songs [n, features]. Raises DataNotFound, BadData."""
    table = read_table(locate(FILE, root), ROWS, 1 + FEATURES, separator=",")
    x = table[:, 1 : 1 + features]
    mean, std = standardisation(x)
    rows = np.random.RandomState(seed).permutation(ROWS)[:n]
    drawn = ((x[rows] - mean) / std).astype(np.float32)
    return EvaluationSet(SET, "ood", f"ood={NAME}", drawn, None, f"{FILE}, {n} of {ROWS:,} rows")
