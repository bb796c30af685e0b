"""Data sets: `load(name, split)` gives checked arrays; `names()`, `describe(name)` say what there is.

`training_content(name)` and `evaluation_content(name)` name the files that a user brought in place of registered ones.
"""
from .checks import BadData, DataNotFound, UnknownDataset, UnknownSplit
from .contract import Arrays, Description, EvaluationSet, Pixels, Pool, Split
from .registry import describe, evaluation_content, load, names, training_content

__all__ = ["Arrays", "BadData", "DataNotFound", "Description", "EvaluationSet", "Pixels", "Pool", "Split",
           "UnknownDataset", "UnknownSplit", "describe", "evaluation_content", "load", "names", "training_content"]
