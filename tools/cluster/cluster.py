"""SLURM cluster of one node on this machine, for tests and trials, from the packages slurm-wlm and munge.

All files are in one folder. It has three daemons (munged, slurmctld, slurmd), no accounting and no cgroups. It may
declare more cores than the machine has, so that many jobs run at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.cluster.files import ClusterError, check, clear, set_up

DAEMONS = ("munged", "slurmctld", "slurmd")  # in the order of starting
HELPERS = ("slurmscriptd", "slurmstepd")
COMMANDS = ("sbatch", "squeue", "scontrol", "scancel", "srun", "sinfo")
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"  # daemons are in sbin, which users' PATH may lack
PATIENCE = 30.0  # seconds for a daemon to start or to end


@dataclass(frozen=True)
class Cluster:
    """Cluster in a folder, up or not."""

    folder: Path

    @property
    def configuration(self) -> Path:
        """Path for the variable SLURM_CONF."""
        return self.folder / "slurm.conf"

    @property
    def environment(self) -> dict[str, str]:
        """Environment with which sbatch, squeue, scontrol, scancel and srun reach this cluster."""
        return {"SLURM_CONF": str(self.configuration)}

    def daemons(self) -> dict[str, int]:
        """Return the running daemons and their process ids."""
        wanted = {name: self._command(name) for name in DAEMONS}
        return {
            name: pid
            for pid, command in _processes("cmdline")
            for name in DAEMONS
            if Path(command[0]).name == name and command[1:] == wanted[name][1:]
        }

    def processes(self) -> list[int]:
        """Return process ids of the cluster's jobs and of the helpers of slurmctld and slurmd."""
        mine = f"SLURM_CONF={self.configuration}"
        return [
            pid
            for pid, environment in _processes("environ")
            if mine in environment and pid != os.getpid()
            if _name(pid) in HELPERS or any(entry.startswith("SLURM_JOB_ID=") for entry in environment)
        ]

    def status(self, seconds: float = PATIENCE) -> str:
        """Return the node's status in the controller ("idle", "mixed", "down", ...); "" without an answer."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._ask("sinfo", "--noheader", "--format=%T", seconds=seconds).strip()
        return ""

    def start(self, name: str) -> None:
        """Start a daemon that is down; with all three up, wait for the node. Raises :class:`ClusterError`."""
        running = self.daemons()
        if name not in running:
            account = "munge" if name == "munged" else None
            done = subprocess.run(
                self._command(name),
                cwd="/",
                env=self._surroundings(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                user=account,
                group=account,
                extra_groups=[] if account else None,
            )
            if done.returncode:
                raise ClusterError(f"{name} does not start (status {done.returncode}): {done.stderr.strip()}")
        if {*running, name} == set(DAEMONS):
            self._wait()

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End one daemon, if it is running; jobs are not touched."""
        _end(lambda: [pid for daemon, pid in self.daemons().items() if daemon == name], how)

    def cancel(self) -> None:
        """Cancel all jobs of all users."""
        listed = self._ask("squeue", "--noheader", "--format=%A")
        if listed.split():
            self._ask("scancel", "--quiet", *sorted(set(listed.split())))

    def last_logs(self) -> str:
        """Return the last ten lines of the logs of slurmctld and slurmd."""
        return "\n".join(
            f"{path.name}: {line}"
            for path in sorted((self.folder / "log").glob("*.log"))
            for line in path.read_text(errors="replace").splitlines()[-10:]
        )

    def down(self) -> bool:
        """End the daemons and all jobs; keep slurm.conf and log/. Return False if nothing was up."""
        if not self.folder.is_dir():
            return False
        with _locked(self.folder):
            return self._clear()

    def _clear(self) -> bool:
        alive = bool(self.daemons() or self.processes())
        self.stop("slurmctld")  # first, or the controller would start other jobs
        self.stop("slurmd")
        _end(self.processes, signal.SIGKILL)
        self.stop("munged")
        clear(self.folder)
        return alive

    def _wait(self) -> None:
        wait_for(self._ready, PATIENCE, f"the node of {self.configuration} to take jobs; sinfo -R gives the reason")

    def _ready(self) -> bool:
        ended = set(DAEMONS) - set(self.daemons())
        if ended:
            raise ClusterError(f"{' and '.join(sorted(ended))} ended at once:\n{self.last_logs()}")
        return self.status(PATIENCE / 10) in ("idle", "mixed", "allocated", "completing")

    def _ask(self, name: str, *arguments: str, seconds: float = PATIENCE) -> str:
        command = [_program(name), *arguments]
        return subprocess.run(command, env=self._surroundings(), capture_output=True, text=True, timeout=seconds).stdout

    def _command(self, name: str) -> list[str]:
        if name != "munged":
            return [_program(name), "-f", str(self.configuration)]
        run, munge = self.folder / "run", self.folder / "munge"
        files = {"key-file": munge / "key", "seed-file": munge / "seed", "log-file": munge / "munged.log"}
        files |= {"pid-file": munge / "munged.pid", "socket": run / "munge.socket"}
        return [_program(name), "--origin=127.0.0.1", *(f"--{option}={path}" for option, path in files.items())]

    def _surroundings(self) -> dict[str, str]:
        return {"PATH": PATH, **self.environment}


def up(
    folder: Path | str | None = None,
    *,
    cores: int | None = None,
    kill_wait: int = 5,
    message_timeout: int = 10,
) -> Cluster:
    """Start a cluster and wait until its node is idle; a cluster that is up is returned unchanged.

    Processes and files that a dead cluster left in the folder are ended and deleted first. A job without ``--mem`` gets
    4096 MB for each core, and is killed for using more.

    Args:
        folder: for all files of the cluster; empty, or a former cluster's. Default: :func:`default_folder`.
        cores: cores of the node, also more than the machine has. Default: those of the machine.
        kill_wait: seconds between SIGTERM and SIGKILL of a job.
        message_timeout: seconds for which squeue and other commands try to reach a controller that is down.

    Raises:
        ClusterError: not root, packages missing, an unsuitable folder, or a daemon that does not come up.
    """
    reason = why_not()
    if reason:
        raise ClusterError(reason)
    cluster = Cluster(Path(folder or default_folder()).absolute())
    check(cluster.folder)
    cluster.folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    with _locked(cluster.folder):
        if len(cluster.daemons()) == len(DAEMONS) and cluster.status():
            return cluster
        cluster._clear()
        set_up(
            cluster.folder,
            cores=cores or os.cpu_count() or 1,
            kill_wait=kill_wait,
            message_timeout=message_timeout,
        )
        try:
            for name in DAEMONS:
                cluster.start(name)
            cluster._wait()
        except BaseException:
            cluster._clear()
            raise
    return cluster


def why_not() -> str | None:
    """Return why no cluster can be started on this machine, or None."""
    missing = [name for name in (*DAEMONS, *COMMANDS) if not shutil.which(name, path=PATH)]
    if missing:
        return f"SLURM is not installed ({', '.join(missing)} not found): apt-get install slurm-wlm munge"
    if os.geteuid():
        return f"SLURM's daemons must be started by root, not by {getpass.getuser()}: use sudo"
    return None


def default_folder() -> Path:
    """Return the default folder of this user's cluster."""
    return Path(tempfile.gettempdir()) / f"fvi-bench-slurm-{getpass.getuser()}"


def wait_for(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until a condition holds. Raises :class:`ClusterError` if it does not within so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise ClusterError(f"waited {seconds:g} s without success for {what}")
        time.sleep(0.05)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a cluster's folder against other processes that start or stop the cluster."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _end(find: Callable[[], list[int]], how: signal.Signals) -> None:
    for by in (how, signal.SIGKILL):
        for pid in find():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, by)
        with contextlib.suppress(ClusterError):
            return wait_for(lambda: not find(), PATIENCE / 3, "processes to end")
    raise ClusterError(f"processes {find()} do not end")


def _processes(what: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the living processes with their command lines or environments."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            texts = (folder / what).read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            if texts != [""]:
                yield int(folder.name), texts


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def _program(name: str) -> str:
    return shutil.which(name, path=PATH) or name
