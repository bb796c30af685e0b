"""Data sets: `load(name, split)` gives checked arrays; `names()`, `describe(name)` say what there is.

`add_table` and `add_images` add files of one's own, `add` whatever a function makes. `training_content(name)` and
`evaluation_content(name)` name the files that a user brought; they are part of the identity of runs.
"""

from .checks import BadData, DataNotFound, UnknownDataset, UnknownSplit
from .contract import Arrays, Description, EvaluationSet, Pixels, Pool, Split
from .own_images import add_images
from .own_tables import add_table
from .registry import OwnFile, add, describe, evaluation_content, load, made_by, names, training_content

__all__ = [
    "Arrays",
    "BadData",
    "DataNotFound",
    "Description",
    "EvaluationSet",
    "OwnFile",
    "Pixels",
    "Pool",
    "Split",
    "UnknownDataset",
    "UnknownSplit",
    "add",
    "add_images",
    "add_table",
    "describe",
    "evaluation_content",
    "load",
    "made_by",
    "names",
    "training_content",
]
