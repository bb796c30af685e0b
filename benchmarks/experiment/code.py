"""Which code trains: told without loading it."""

from __future__ import annotations

from pathlib import Path

import fvi_core
from benchmarks.state.checkpoints import code_digest

HERE = Path(__file__).parent
CODE = code_digest([Path(fvi_core.__file__).parent, HERE / "execute.py", HERE / "trained.py", HERE / "assembly.py"])
"""Names the code that trains, as it was when this process loaded it. Data are told by their fingerprints, and parts of
plug-ins by the digests in the configuration."""
