"""Mathematics and training of function-space variational inference. Knows tensors, not data sets, files or tables."""

import os
import warnings

__version__ = "0.1.0"

# Otherwise the last bits of MKL's products depend on where their operands lie in memory, and with them a replica's
# numbers on its place in the stack. MKL reads this at its first call.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

# Torch warns so of code of its own, when it first loads its optimisers or forward-mode derivatives.
warnings.filterwarnings("ignore", message=".*`torch.jit.script` is deprecated", category=FutureWarning)


def __getattr__(name: str):
    """Load ``fit``, ``load`` and their types on first use."""
    if name in ("fit", "load", "Posterior", "Prediction", "TrainingFailed", "UnfitModule"):
        from fvi_core import interface, networks, prediction

        return next(getattr(each, name) for each in (interface, prediction, networks) if hasattr(each, name))
    raise AttributeError(f"module 'fvi_core' has no attribute {name!r}")
