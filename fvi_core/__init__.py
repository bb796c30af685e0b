"""Mathematics and training of function-space variational inference. Knows tensors, not data sets, files or tables.

Examples in docstrings of the public names run after these lines:

>>> import numpy as np, torch
>>> import fvi_core as fvi
>>> x = torch.randn(40, 2)
>>> y = (x.sum(1) > 0).long()
>>> nn = torch.nn
>>> net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
>>> posterior = fvi.fit(net, (x, y), "FSVI", epochs=5, context={"points": 10}, progress=False)
"""

import importlib
import os
import warnings

__all__ = ["Posterior", "Prediction", "TrainingFailed", "UnfitModule", "fit", "load", "methods", "metrics", "registry"]

__version__ = "0.1.0"

# Otherwise the last bits of MKL's products depend on where their operands lie in memory, and with them a replica's
# numbers on its place in the stack. MKL reads this at its first call.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

# Torch warns so of code of its own, when it first loads its optimisers or forward-mode derivatives.
warnings.filterwarnings("ignore", message=".*`torch.jit.script` is deprecated", category=FutureWarning)


def __getattr__(name: str):
    """Load a public name on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'fvi_core' has no attribute {name!r}")
    if name in ("methods", "metrics", "registry"):
        return importlib.import_module(f"fvi_core.{name}")
    from fvi_core import interface, networks, prediction

    globals()[name] = next(getattr(each, name) for each in (interface, prediction, networks) if hasattr(each, name))
    return globals()[name]
