"""Surface currents of the Gulf of Mexico: velocities of 20 points on tracks of drifting buoys, and on a grid of 34 x
16.

The cut of the GulfDrifters set (Lilly and Perez-Brunius 2021) that GPJax's example of Helmholtz kernels uses, which
cinquin2024 follows. Inputs are degrees east and north of the training inputs' mean: not scaled, so that gradients and
rotated gradients stay what they are. Targets are two velocities in metres a second, as they are.
"""

from __future__ import annotations

import math
import os

import numpy as np

from .checks import read_table
from .contract import Arrays, Description, EvaluationSet, Split
from .fetch import locate

NAME, VERSION = "gulf_drifters", "1"
FILES = ("gulfdrifters/gulfdata_train.csv", "gulfdrifters/gulfdata_test.csv")
HEADERS = (",lon,lat,ubar,vbar", ",lon,lat,ubar,vbar,shape")
SIZES = (20, 544)
DESCRIPTION = Description(
    NAME,
    "regression",
    VERSION,
    "",
    ("",),
    1,
    2,
    (2,),
    *SIZES,
    "GulfDrifters, files of JaxGaussianProcesses/static",
    FILES,
)


def load(root: str | os.PathLike | None = None) -> Split:
    """The one split; the box is that of the grid, which is the test subset. Raises DataNotFound, BadData."""
    tables = [
        read_table(locate(file, root), size, header.count(",") + 1, header)
        for file, size, header in zip(FILES, SIZES, HEADERS)
    ]
    centre = [math.fsum(column) / SIZES[0] for column in tables[0][:, 1:3].T]
    train, test = (Arrays((table[:, 1:3] - centre).astype(np.float32), table[:, 3:5].copy()) for table in tables)
    evaluations = {
        "grid": lambda: EvaluationSet("grid", "grid", "inputs=grid", test.x, None),
        "train": lambda: EvaluationSet("train", "id", "inputs=train", train.x, train.y),
    }
    low, high = test.x.min(0), test.x.max(0)
    return Split(
        NAME, VERSION, 0, "", DESCRIPTION.task, DESCRIPTION.n_outputs, train, test, low, high, evaluations=evaluations
    )
