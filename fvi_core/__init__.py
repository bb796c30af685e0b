"""Mathematics and training of function-space variational inference. Knows tensors, not data sets, files or tables."""

import os
import warnings

# Otherwise the last bits of MKL's products depend on where their operands lie in memory, and with them a replica's
# numbers on its place in the stack. MKL reads this at its first call.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

# Torch warns so of code of its own, when it first loads its optimisers or forward-mode derivatives.
warnings.filterwarnings("ignore", message=".*`torch.jit.script` is deprecated", category=FutureWarning)
