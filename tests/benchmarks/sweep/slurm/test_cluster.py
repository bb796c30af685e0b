"""The small cluster: it comes up whole, runs arrays, outlives its daemons, and goes without a trace."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.cluster import cluster as local
from tools.cluster import files as cluster_files
from tools.cluster.__main__ import main
from tools.cluster.cluster import ClusterError, wait_for

ROOT = Path(__file__).resolve().parents[4]
PLACES = ("/etc/munge", "/etc/slurm", "/run", "/var/lib/munge", "/var/lib/slurm", "/var/log", "/var/spool", "/dev/shm")


class Shell:
    """SLURM's commands against one cluster."""

    def __init__(self, cluster):
        self.environment = {**os.environ, **cluster.environment}

    def __call__(self, *command):
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True).stdout.strip()

    def submit(self, script, *options):
        return self("sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={script}")

    def statuses(self, job):
        """Array task id to status, of one job or array."""
        lines = self("squeue", "--noheader", "--array", "--states=all", f"--jobs={job}", "--format=%i %T").split("\n")
        return dict(line.split() for line in lines)


@pytest.fixture
def shell(cluster):
    return Shell(cluster)


def test_an_array_runs_through_plain_sbatch(shell, tmp_path):
    job = shell.submit(f"srun sh -c 'echo $SLURM_ARRAY_TASK_ID >> {tmp_path}/seen'", "--array=0-5%3")
    wait_for(lambda: set(shell.statuses(job).values()) == {"COMPLETED"}, 60, "the array to complete")
    assert sorted((tmp_path / "seen").read_text().split()) == list("012345")
    assert len(shell.statuses(job)) == 6


def test_more_jobs_run_at_once_than_there_are_cores(shell):
    job = shell.submit("sleep 60", "--array=0-7", "--mem=100M")
    wait_for(lambda: [*shell.statuses(job).values()] == ["RUNNING"] * 8, 60, "eight jobs to run at once")


def test_a_requeued_job_starts_again_and_knows_it(shell, tmp_path):
    lives = f"echo ${{SLURM_RESTART_COUNT:-0}} >> {tmp_path}/lives"
    job = shell.submit(f'{lives}; [ -n "$SLURM_RESTART_COUNT" ] || sleep 60')
    wait_for((tmp_path / "lives").exists, 60, "the first life")
    shell("scontrol", "requeue", job)
    wait_for(lambda: shell.statuses(job)[job] == "COMPLETED", 60, "the second life to end")
    assert (tmp_path / "lives").read_text().split() == ["0", "1"]


def test_a_job_is_killed_for_the_memory_that_it_did_not_ask_for(shell, tmp_path):
    hog = f"{sys.executable} -c 'import time; x = bytearray(300 << 20); time.sleep(60)'"
    job = shell.submit(f"srun {hog}", "--mem=100M", f"--error={tmp_path}/errors")
    wait_for(lambda: shell.statuses(job)[job] == "FAILED", 60, "the job to be killed")
    assert "exceeded memory limit" in (tmp_path / "errors").read_text()


@pytest.mark.parametrize(
    "name, how",
    [
        ("slurmctld", signal.SIGTERM),
        ("slurmctld", signal.SIGKILL),
        ("slurmd", signal.SIGKILL),
    ],
)
def test_jobs_outlive_a_daemon(shell, cluster, tmp_path, name, how):
    running = shell.submit(f"touch {tmp_path}/runs; until [ -e {tmp_path}/go ]; do sleep 0.1; done")
    waiting = shell.submit("true", f"--dependency=afterok:{running}")
    wait_for((tmp_path / "runs").exists, 60, "the job to run")
    if (name, how) == ("slurmctld", signal.SIGKILL):  # it saves its state every few seconds, and forgets the rest
        now, saved = time.time(), cluster.folder / "state" / "job_state"
        wait_for(lambda: saved.stat().st_mtime > now, 60, "the state to be saved")
    cluster.stop(name, how)
    assert name not in cluster.daemons()
    cluster.start(name)
    assert cluster.status() == "mixed", "the node is back, with a job"
    assert (shell.statuses(running), shell.statuses(waiting)) == ({running: "RUNNING"}, {waiting: "PENDING"})
    (tmp_path / "go").touch()
    wait_for(lambda: shell.statuses(waiting)[waiting] == "COMPLETED", 60, "the job that waited to be done")


def test_up_again_is_the_same_cluster(cluster):
    before = cluster.daemons()
    assert local.up(cluster.folder, cores=1) == cluster
    assert cluster.daemons() == before and len(before) == 3


def test_two_that_start_it_at_once_get_one_cluster(folder):
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda cores: local.up(folder, cores=cores), (1, 2))
    assert first == second and len(first.daemons()) == 3 and first.status() == "idle"


def test_down_leaves_no_process_and_nothing_outside_the_folder(folder):
    start = time.time()
    cluster = local.up(folder, cores=2, kill_wait=2)
    assert oct((folder / "munge" / "key").stat().st_mode & 0o777) == "0o400"
    Shell(cluster).submit("trap '' TERM; setsid sleep 1000 & sleep 1000")
    wait_for(lambda: any("1000" in command for _, command in commands(cluster)), 60, "the job to run")
    made = {pid for pid, _ in commands(cluster)}
    assert cluster.down() and not cluster.down()
    assert not [pid for pid in made if alive(pid)] and not cluster.daemons() and not cluster.processes()
    assert sorted(path.name for path in folder.iterdir()) == ["log", "slurm.conf"]
    assert not [*new_files(start)]


def test_what_a_dead_cluster_left_is_cleared_away(folder):
    cluster = local.up(folder, cores=2, kill_wait=2)
    job = Shell(cluster).submit("sleep 1000")
    wait_for(lambda: "RUNNING" in Shell(cluster).statuses(job).values(), 60, "the job to run")
    # The controller says so before the node has started it.
    wait_for(lambda: "sleep" in map(local._name, cluster.processes()), 60, "the job's process")
    before = cluster.daemons()
    for name in ("slurmctld", "slurmd"):
        cluster.stop(name, signal.SIGKILL)
    for path in (folder / "run").glob("*.pid"):
        path.write_text(f"{os.getpid()}\n")  # the ids have passed to another process
    old = cluster.processes()
    assert old, "the job is still there"
    assert local.up(folder, cores=2, kill_wait=2) == cluster
    assert not cluster.daemons().items() & before.items() and not [pid for pid in old if alive(pid)]
    assert Shell(cluster)("squeue", "--noheader", "--states=all") == "" and cluster.status() == "idle"
    cluster.down()
    assert not [pid for pid in before.values() if alive(pid)]


def test_down_where_nothing_is_up_is_no_error(tmp_path):
    assert not local.Cluster(tmp_path / "none").down()
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "precious").touch()
    assert not local.Cluster(tmp_path).down() and (tmp_path / "state" / "precious").exists()


def test_unsuitable_folders_are_refused(folder):
    def refused(path):
        with pytest.raises(ClusterError) as error:
            local.up(path)
        return str(error.value)

    assert "at most 70" in refused(folder / ("long" * 20)) and "letters" in refused(folder / "with space")
    (folder / "full").mkdir()
    (folder / "full" / "state").touch()
    assert "found files" in refused(folder / "full")
    (folder / "closed").mkdir(mode=0o700)
    assert f"chmod o+x {folder}/closed" in refused(folder / "closed" / "cluster")
    (folder / "other").mkdir()
    os.chown(folder / "other", 1, 1)
    assert "another's" in refused(folder / "other")


@pytest.mark.parametrize("name", ["slurmctld", "slurmd"])
def test_a_daemon_that_does_not_come_up_is_named_with_its_log(folder, monkeypatch, name):
    with socket.create_server(("127.0.0.1", 0)) as held:
        ports = [*cluster_files._free_ports(1), held.getsockname()[1]]
        monkeypatch.setattr(cluster_files, "_free_ports", lambda _: ports if name == "slurmd" else ports[::-1])
        with pytest.raises(ClusterError, match=f"{name} ended at once(.|\n)*{name}.log: .*bind"):
            local.up(folder)
    assert not local.Cluster(folder).daemons()


def test_up_ends_only_with_all_daemons_up(folder, monkeypatch):
    monkeypatch.setattr(local.Cluster, "start", lambda *_: None)
    with pytest.raises(ClusterError, match="munged and slurmctld and slurmd ended at once"):
        local.up(folder)


def test_a_node_that_takes_no_jobs_is_not_taken_for_one_that_is_up(cluster, shell, monkeypatch):
    monkeypatch.setattr(local, "PATIENCE", 3.0)
    shell("scontrol", "update", "nodename=local", "state=drain", "reason=test")
    try:
        with pytest.raises(ClusterError, match="sinfo -R"):
            cluster.start("slurmd")
    finally:
        shell("scontrol", "update", "nodename=local", "state=resume")
    cluster.start("slurmd")


@pytest.mark.parametrize("path, user, words", [("/nowhere", 0, "apt-get install slurm-wlm munge"), (None, 1, "root")])
def test_a_machine_without_slurm_or_root_gets_a_message_of_what_it_lacks(monkeypatch, tmp_path, path, user, words):
    if path is None:
        for name in (*local.DAEMONS, *local.COMMANDS):
            (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr(local, "PATH", path or str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(ClusterError, match=words):
        local.up(tmp_path / "cluster")


def test_the_command_line_starts_shows_and_ends_a_cluster(folder, call):
    def say(*words):
        return call(main, *words, "--folder", str(folder))

    line = f"export SLURM_CONF={folder}/slurm.conf\n"
    assert say("status")[0] == 1
    status, output, aside = say("up", "--cores", "3", "--kill-wait", "2")
    assert (status, output) == (0, line) and "is up" in aside
    assert "was up already" in say("up")[2]
    status, output, _ = say("status")
    assert status == 0 and "idle" in output and line in output
    assert "CPUTot=3" in Shell(local.Cluster(folder))("scontrol", "show", "node")
    assert "is down" in say("down")[1] and "was not up" in say("down")[1] and say("status")[0] == 1
    (folder / "slurm.conf").write_text("someone else's")
    status, _, aside = say("up")
    assert status == 1 and aside.startswith("error: --folder")


def test_an_end_of_the_process_that_tests_takes_their_cluster_along(tmp_path):
    code = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from tools.cluster import cluster
from tests.benchmarks.sweep.slurm.conftest import passing_folder
with passing_folder() as folder:
    cluster.up(folder, cores=1, kill_wait=2)
    print(folder, flush=True)
    os.kill(os.getpid(), 9)
"""
    if local.why_not():
        pytest.skip(local.why_not())
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    found = local.Cluster(Path(done.stdout.strip()))
    assert done.returncode == -signal.SIGKILL and found.folder.name.startswith("fvi-slurm-")
    wait_for(lambda: not found.folder.exists(), 60, "the folder to go")
    assert not found.daemons()


def commands(cluster):
    """Process ids and command lines of the whole cluster."""
    ids = {*cluster.daemons().values(), *cluster.processes()}
    return [(pid, Path(f"/proc/{pid}/cmdline").read_text()) for pid in ids if alive(pid)]


def alive(pid):
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def new_files(start):
    """Files of SLURM or munge in their usual places that were written after a time."""
    for path in (found for place in PLACES for found in Path(place).rglob("*")):
        if re.search("slurm|munge", str(path)) and path.lstat().st_mtime >= start:
            yield path
