"""Surface currents of the Gulf of Mexico: velocities at 20 points of buoys' tracks, and on a grid of 34 x 16.

The subset of GulfDrifters (Lilly and Perez-Brunius 2021) in GPJax's example of Helmholtz kernels, which cinquin2024
follows. Inputs are degrees east and north of the training inputs' mean, unscaled, so that gradients and rotated
gradients keep their meaning. Targets are two velocities in metres a second, unscaled.

Scheme "scaled", as the networks in the script of the first author's next paper: inputs are also divided by the training
inputs' standard deviations; both velocities are standardised by one mean and standard deviation over all targets of the
test subset.
"""

from __future__ import annotations

import math

import numpy as np

from .checks import read_table
from .contract import Arrays, Description, EvaluationSet, Split
from .fetch import Folder, locate

NAME, VERSION = "gulf_drifters", "1"
SCHEMES = ("", "scaled")
FILES = ("gulfdrifters/gulfdata_train.csv", "gulfdrifters/gulfdata_test.csv")
SIZES, COLUMNS = (20, 544), (5, 6)  # number, longitude, latitude, two velocities; for the test subset also a shape


def describe(name: str, scheme: str) -> Description:
    origin = "GulfDrifters, files of JaxGaussianProcesses/static"
    return Description(name, "regression", VERSION, scheme, SCHEMES, 1, 2, (2,), *SIZES, origin, FILES, validated=False)


def load(name: str = NAME, split: int = 0, scheme: str = "", root: Folder = None) -> Split:
    """Return the only split; its box is the range of the grid, the test subset. Raises DataNotFound, BadData."""
    tables = [
        read_table(locate(file, root), rows, columns, ",", skip=1) for file, rows, columns in zip(FILES, SIZES, COLUMNS)
    ]
    centre = [math.fsum(column) / SIZES[0] for column in tables[0][:, 1:3].T]
    widths, y_mean, y_std = [1.0, 1.0], 0.0, 1.0
    if scheme == "scaled":
        widths = [float(column.std()) for column in tables[0][:, 1:3].T]
        y_mean, y_std = float(tables[1][:, 3:5].mean()), float(tables[1][:, 3:5].std())
    train, test = (
        Arrays(((table[:, 1:3] - centre) / widths).astype(np.float32), (table[:, 3:5] - y_mean) / y_std)
        for table in tables
    )
    evaluations = {
        "grid": lambda: EvaluationSet("grid", "grid", "inputs=grid", test.x, None),
        "train": lambda: EvaluationSet("train", "id", "inputs=train", train.x, train.y),
    }
    low, high = test.x.min(0), test.x.max(0)
    about = name, VERSION, split, scheme, "regression", 2
    return Split(*about, train, test, low, high, y_mean=y_mean, y_std=y_std, evaluations=evaluations)
