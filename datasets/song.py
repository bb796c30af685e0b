"""Songs as out-of-distribution inputs of small tables (cinquin2024 App. C.5): rows of UCI's YearPredictionMSD.

The paper's "subset of equal length and with an equal number of features" is not specified further. Here: the first
features of the file and as many random rows as the test subset has, drawn for each split (neighbouring rows are often
of one artist). Songs are standardised by their own mean and deviation, our reading of the paper's "same preprocessing":
in units of the training inputs they would be far from all data.

In the set "ood-song-year" the year, first column of the file, is the first feature: the authors' later code takes the
last column of every file as target and the first of the others as features, standardised over the rows drawn.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .checks import read_table
from .contract import EvaluationSet, Split
from .fetch import Folder, locate
from .tabular import standardisation

NAME, SET, YEAR = "song", "ood-song", "ood-song-year"
SETS = (SET, YEAR)
FILE = "song/YearPredictionMSD_1176rows.csv"
ROWS, FEATURES = 1176, 90


def evaluations(split: Split, root: Folder = None) -> dict[str, partial[EvaluationSet]]:
    """Return the song sets for a table's split; none if the file has too few rows or features."""
    n, features = split.test.x.shape
    enough = n <= ROWS and features <= FEATURES
    return {name: partial(songs, n, features, split.split, root, name == YEAR) for name in SETS} if enough else {}


def songs(n: int, features: int, seed: int, root: Folder = None, year: bool = False) -> EvaluationSet:
    """Return n songs [n, features]; with `year` it is the first feature. Raises DataNotFound, BadData."""
    table = read_table(locate(FILE, root), ROWS, 1 + FEATURES, separator=",")
    first = 0 if year else 1
    x, rows = table[:, first : first + features], np.random.RandomState(seed).permutation(ROWS)[:n]
    mean, std = standardisation(x[rows] if year else x)
    drawn, name = ((x[rows] - mean) / std).astype(np.float32), YEAR if year else SET
    return EvaluationSet(name, "ood", name.replace("-", "=", 1), drawn, None, f"{FILE}, {n} of {ROWS:,} rows")
