"""Folder of a small SLURM cluster: slurm.conf, munge's key, and places for state, sockets and logs."""

from __future__ import annotations

import contextlib
import os
import random
import re
import secrets
import shutil
import socket
from pathlib import Path

from benchmarks.errors import BenchmarkError

MARK = "# Made by tools/cluster, which may delete this folder\n"
FOLDERS = {"munge": 0o700, "run": 0o755, "state": 0o700, "spool": 0o755, "log": 0o700}
LONGEST = 70  # characters of the folder's path: a socket's path has at most 107

CONFIGURATION = """\
ClusterName=local
SlurmctldHost={host}({address})
SlurmctldPort={controller_port}
SlurmdPort={node_port}
{listening}
SlurmUser=root
AuthInfo=socket={folder}/run/munge.socket,cred_expire={requeue_wait}
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
JobRequeue=1
MaxArraySize=1001
MinJobAge=300
KillWait={kill_wait}
ReturnToService=2
SlurmdTimeout=30
MessageTimeout={message_timeout}
SlurmdParameters=config_overrides
DefMemPerCPU=4096
NodeName=local NodeHostname={host} NodeAddr={address} CPUs={cores} RealMemory={memory} State=UNKNOWN
PartitionName=all Nodes=local Default=YES MaxTime=INFINITE State=UP
"""


class ClusterError(BenchmarkError):
    """The cluster cannot be started here, or one of its daemons fails."""


def check(folder: Path) -> None:
    """Raise :class:`ClusterError` for a folder unsuitable for a cluster, or with other files in it."""
    if len(str(folder)) > LONGEST or not re.fullmatch(r"[\w./+-]+", str(folder)):
        raise ClusterError(
            f"--folder {folder}: its {len(str(folder))} characters must be at most {LONGEST}, and only letters, digits "
            "and . / _ + -, since SLURM's sockets and configuration take no others: choose another folder"
        )
    if folder.exists() and folder.stat().st_uid != os.geteuid():
        raise ClusterError(f"--folder {folder}: expected a folder of this user, found another's: choose another folder")
    if folder.is_dir() and any(folder.iterdir()) and not made_here(folder):
        raise ClusterError(f"--folder {folder}: expected an empty or a new folder, found files: choose another folder")
    for parent in (folder, *folder.parents):
        if parent.is_dir() and not parent.stat().st_mode & 0o001:
            raise ClusterError(
                f"--folder {folder}: the user munge must be able to enter {parent}, which only some may: "
                f"choose another folder, or allow it with chmod o+x {parent}"
            )


def made_here(folder: Path) -> bool:
    """Whether a cluster was set up in a folder before."""
    try:
        return (folder / "slurm.conf").read_text().startswith(MARK)
    except OSError:
        return False


def set_up(folder: Path, *, cores: int, kill_wait: int, message_timeout: int) -> None:
    """Write slurm.conf and a new key, and make the folders that the daemons need. Arguments: see ``cluster.up``."""
    controller_port, node_port = _free_ports(2)
    host = socket.gethostname().split(".")[0]
    address, listening = _address(host)
    configuration = CONFIGURATION.format(
        folder=folder,
        host=host,
        address=address,
        listening=listening,
        controller_port=controller_port,
        node_port=node_port,
        # A requeued job waits as long as a credential lives, at least 5 s. Were it started again on a failed node
        # before its processes there are dead, SLURM would hold the job and drain the node.
        requeue_wait=max(5, kill_wait + 3),
        kill_wait=kill_wait,
        cores=cores,
        memory=cores * 4096,
        message_timeout=message_timeout,
    )
    (folder / "slurm.conf").write_text(MARK + configuration)
    for name, mode in FOLDERS.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name).chmod(mode)
    for name in ("munge", "run"):
        shutil.chown(folder / name, "munge", "munge")
    key = folder / "munge" / "key"
    with open(os.open(key, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o400), "wb") as file:
        file.write(secrets.token_bytes(128))
    shutil.chown(key, "munge", "munge")


def clear(folder: Path) -> None:
    """Delete the files that a cluster needs only while it is up; slurm.conf and the logs stay."""
    if made_here(folder):
        for name in FOLDERS.keys() - {"log"}:
            shutil.rmtree(folder / name, ignore_errors=True)


def _address(host: str) -> tuple[str, str]:
    """Return the daemons' address, and the setting that makes them listen only there, where SLURM allows it.

    SLURM can bind only to the address of the machine's name, which may not resolve or may be a network's.
    """
    with contextlib.suppress(OSError):
        address = socket.gethostbyname(host)
        if address.startswith("127."):
            return address, "CommunicationParameters=NoCtldInAddrAny,NoInAddrAny"
    return "127.0.0.1", ""


def _free_ports(count: int) -> list[int]:
    """Return unused ports below those that the system gives to outgoing connections."""
    ports: list[int] = []
    with contextlib.ExitStack() as held:
        for port in random.SystemRandom().sample(range(10000, 32000), 1000):
            with contextlib.suppress(OSError):
                held.enter_context(socket.socket()).bind(("", port))
                ports.append(port)
            if len(ports) == count:
                return ports
    raise ClusterError("SLURM's daemons need two ports between 10000 and 32000, found none free")
