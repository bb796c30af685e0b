"""A real cluster of one node for these tests, where SLURM is installed and they are run by root."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import submitit  # noqa: F401  its import closes every log handler; absl's closes the stream that pytest then captures with

from tools.cluster import cluster as local

ROOT = Path(__file__).resolve().parents[4]
UNDERTAKER = """
import shutil, sys
from pathlib import Path
from tools.cluster.cluster import Cluster

sys.stdin.read()
cluster = Cluster(Path(sys.argv[1]))
cluster.down()
shutil.rmtree(cluster.folder)
"""


@contextlib.contextmanager
def passing_folder() -> Iterator[Path]:
    """A folder for a cluster; both are gone afterwards, whatever becomes of the tests or of this process."""
    reason = local.why_not()
    if reason:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="fvi-slurm-"))  # the user munge may not enter pytest's own folders
    folder.chmod(0o755)
    # The input of the watching process ends when this process ends.
    command = [sys.executable, "-c", UNDERTAKER, folder]
    undertaker = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT, start_new_session=True)
    try:
        yield folder
    finally:
        undertaker.communicate()
        assert undertaker.returncode == 0, f"the cluster in {folder} could not be taken down"


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder for a cluster of the test's own."""
    with passing_folder() as empty:
        yield empty


@pytest.fixture(scope="session")
def cluster() -> Iterator[local.Cluster]:
    """The cluster of all tests: 8 declared cores, 2 s from SIGTERM to SIGKILL.

    Tests that need it are skipped where it cannot be started, and fail where it can but does not come up.
    """
    with passing_folder() as folder:
        yield local.up(folder, cores=8, kill_wait=2, message_timeout=5)


@pytest.fixture(autouse=True)
def whole_cluster(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test finds all daemons up, leaves no job behind, and shows the daemons' logs if it fails."""
    if "cluster" not in request.fixturenames:
        yield
        return
    found = request.getfixturevalue("cluster")
    for name in local.DAEMONS:
        found.start(name)
    yield
    print(found.last_logs())
    for name in local.DAEMONS:
        found.start(name)
    found.cancel()
