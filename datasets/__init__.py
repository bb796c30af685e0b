"""Data sets: `load(name, split)` returns checked arrays; `names()` and `describe(name)` list and describe data sets.

`add_table` and `add_images` add a user's files, `add` adds a data set that a function loads. `training_content(name)`
and `evaluation_content(name)` return digests of the user's files, which are part of a run's key.
"""

from .checks import BadData, DataNotFound, UnknownDataset, UnknownSplit
from .contract import Arrays, Description, EvaluationSet, Pixels, Pool, Split
from .registry import UserFile, add, describe, evaluation_content, load, made_by, names, training_content
from .user_images import add_images
from .user_tables import add_table

__all__ = [
    "Arrays",
    "BadData",
    "DataNotFound",
    "Description",
    "EvaluationSet",
    "Pixels",
    "Pool",
    "Split",
    "UnknownDataset",
    "UnknownSplit",
    "UserFile",
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
