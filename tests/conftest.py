"""Shared set-up: one thread per test worker, no window for figures, the same examples at every run."""

import os
import signal

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["MPLBACKEND"] = "Agg"

# Where tests are started by nohup, processes would inherit that they ignore a hang-up, and rightly go on after one.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

from hypothesis import settings  # noqa: E402  (the environment has to be set before numerical libraries load)

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")
