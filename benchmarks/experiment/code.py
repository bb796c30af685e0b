"""Digest of the code that trains, computed without loading it."""

from __future__ import annotations

from pathlib import Path

import fvi_core
from benchmarks.state.checkpoints import code_digest

HERE = Path(__file__).parent
CODE = code_digest([Path(fvi_core.__file__).parent, HERE / "execute.py", HERE / "trained.py", HERE / "assembly.py"])
"""Digest of the code that trains, as this process loaded it. Data have fingerprints, and parts of plug-ins have digests
in the configuration."""
