"""State of jobs, from SLURM's own commands; no accounting database is needed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from benchmarks import files
from benchmarks.errors import BenchmarkError

TIMEOUT = 60  # longest time of a SLURM command, in seconds
WORDS = {
    "TIMEOUT": "passed its time limit",
    "OUT_OF_MEMORY": "was killed for want of memory",
    "NODE_FAIL": "lost its node",
    "BOOT_FAIL": "lost its node",
    "PREEMPTED": "was preempted and not requeued",
    "DEADLINE": "passed its deadline",
    "CANCELLED": "was cancelled",
}
MARKS = {  # marks of slurmstepd in a job's error file, for ends that the controller does not report
    "OUT_OF_MEMORY": r"oom[-_ ]?kill|Out Of Memory|[Ee]xceeded (?:job )?memory limit",
    "TIMEOUT": r"DUE TO TIME LIMIT",
    "NODE_FAIL": r"DUE TO NODE FAILURE",
    "PREEMPTED": r"DUE TO PREEMPTION",
    "CANCELLED": r"CANCELLED AT \S+ \*\*\*",
}
GONE = (*WORDS, "COMPLETED", "FAILED")


class SlurmError(BenchmarkError):
    """Error: SLURM's commands do not answer or refuse, or what jobs need cannot be written or read."""

    exit_code = 2  # nothing was started


@dataclass(frozen=True)
class QueuedTask:
    """Array task in the queue, waiting or running. id: as SLURM writes it, "12_3"; why: its reason for waiting."""

    id: str
    status: str
    why: str
    name: str


@dataclass(frozen=True)
class End:
    """End of an array task: SLURM's status ("" if unknown), exit code, node."""

    status: str
    exit_code: str = ""
    node: str = ""

    @property
    def words(self) -> str:
        """Describe the end in words."""
        code = f" with exit code {self.exit_code}" if self.exit_code not in ("", "0:0") else ""
        where = ", ".join(filter(None, (self.status, self.node)))
        return WORDS.get(self.status, f"ended{code}") + (f" ({where})" if where else "")


def ask(*command: str) -> str:
    """Return the output of a SLURM command. Raises SlurmError."""
    if shutil.which(command[0]) is None:
        raise SlurmError(
            f"{command[0]} is not on the PATH: SLURM's commands are needed; go to a login node of the cluster, "
            "or make a small cluster on this machine with `make slurm-up`"
        )
    try:
        # Job names of other users may be no UTF-8.
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", timeout=TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise SlurmError(f"{command[0]} gave no answer within {TIMEOUT} s: SLURM's controller may be down") from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split()) or "failed"
        raise SlurmError(f"{command[0]} was refused: {said}; is this a login node of the cluster, and is it up?")
    return done.stdout


def array_tasks(names: Collection[str]) -> dict[str, QueuedTask]:
    """Return the array tasks in the queue, by id, of arrays with these names, whoever submitted them: users may share a
    state folder. Raises SlurmError."""
    listing = ask(
        "squeue", "--noheader", "--array", "--states=all", f"--name={','.join(names)}", "--format=%i|%T|%r|%j"
    )
    lines = (line.split("|", 3) for line in listing.split("\n"))  # job names may hold other line ends
    tasks = (QueuedTask(*fields) for fields in lines if len(fields) == 4)
    return {task.id: task for task in tasks if task.name in names and task.status not in GONE}


def end(id_: str, errors: Path) -> End:
    """Return the end of an array task that has left the queue, from the controller or else from its error file."""
    try:
        fields = dict(re.findall(r"(\w+)=(\S+)", ask("scontrol", "--oneliner", "show", "job", id_)))
    except SlurmError:
        fields = {}
    status = fields.get("JobState", "")
    if status in ("", "FAILED"):  # without cgroups the controller reports a kill for lack of memory as a plain failure
        marks = MARKS if not status else {"OUT_OF_MEMORY": MARKS["OUT_OF_MEMORY"]}
        text = files.tail(errors)
        matches = [(match.start(), name) for name, mark in marks.items() for match in re.finditer(mark, text)]
        # The last one counts: a requeued job appends to the same file, and any kill is also logged as a cancellation.
        causes = [mark for mark in matches if mark[1] != "CANCELLED"] or matches
        status = max(causes)[1] if causes else status
    return End(status, fields.get("ExitCode", ""), fields.get("NodeList", ""))


def largest_array() -> int:
    """Return the largest number of array tasks in one array here. Raises SlurmError."""
    found = re.search(r"MaxArraySize\s*=\s*(\d+)", ask("scontrol", "show", "config"))
    return max(1, int(found[1]) - 1) if found else 1000
