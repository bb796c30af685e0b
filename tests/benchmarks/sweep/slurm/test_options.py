"""Options of a cluster: from a file, from the command line, and as sbatch gets them."""

from __future__ import annotations

import pytest

from benchmarks.errors import UsageError
from benchmarks.sweep.plan import RunGroup
from benchmarks.sweep.slurm.options import Options, load, minutes
from tests.benchmarks import fakes


def test_the_command_line_goes_before_the_file_and_the_file_before_the_defaults(tmp_path, monkeypatch):
    monkeypatch.delenv("FVI_SLURM", raising=False)
    assert load(folder=tmp_path) == Options()
    (tmp_path / "slurm.toml").write_text(
        'partition = "gpu"\ntime = "2-12:30"\nmemory = "8G"\nsetup = ["module load x", "echo y"]\n'
        'snapshot = false\n[sbatch]\nexclude = "n1"\n'
    )
    found = load(folder=tmp_path)
    assert (found.partition, found.time, found.memory, found.snapshot) == ("gpu", 3630, "8G", False)
    assert found.setup == ("module load x", "echo y") and found.sbatch == {"exclude": "n1"}
    found = load(changes=["partition=cpu", "cpus=4", "runs_per_task=5", "sbatch=--nice=9"], folder=tmp_path)
    assert (found.partition, found.cpus, found.runs_per_task, found.time) == ("cpu", 4, 5, 3630)
    assert found.sbatch == {"nice": "9"}
    (tmp_path / "other.toml").write_text("cpus = 2\n")
    monkeypatch.setenv("FVI_SLURM", str(tmp_path / "other.toml"))
    assert load(folder=tmp_path) == Options(cpus=2)
    assert load(tmp_path / "slurm.toml", folder=tmp_path).partition == "gpu"


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path):
    (tmp_path / "slurm.toml").write_bytes(b'\xef\xbb\xbfpartition = "gpu"\n')
    assert load(tmp_path / "slurm.toml").partition == "gpu"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30", 30), (45, 45), ("90:30", 91), ("8:00:00", 480), ("2-12", 3600), ("1-0:30", 1470), ("0:10", 1)],
)
def test_times_are_read_as_slurm_reads_them(text, expected):
    assert minutes(text) == expected


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("partitoin=x", "did you mean 'partition'"),
        ("partition", "expected key=value"),
        ("time=soon", "time is 'soon', expected minutes"),
        ("cpus=0", "--slurm cpus=0: cpus is 0, expected a whole number from 1 to 1,000,000"),
        ("cpus=1.5", "cpus is '1.5', expected a whole number"),
        ("gpus=-1", "gpus is '-1', expected a whole number from 0"),
        ("requeues=inf", "requeues is 'inf', expected a whole number"),
        ("time=" + "9" * 400, "time is '9999.*[.]{3}, expected minutes"),
        ("snapshot=perhaps", "expected true or false"),
    ],
)
def test_a_wrong_option_is_named_with_what_was_expected(word, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        load(changes=[word], folder=tmp_path)


def test_a_wrong_file_of_options_is_named(tmp_path):
    file = tmp_path / "mine.toml"
    with pytest.raises(UsageError, match="no such file"):
        load(file)
    file.write_text("cpus = ")
    with pytest.raises(UsageError, match="expected a TOML file"):
        load(file)
    for text, message in (("cpus = true", "cpus is True"), ('setup = [1]', "setup is"), ('sbatch = "x"', "sbatch is"),
                       ("qos = 3", "qos is 3, expected a text"), ("time = 1" + "0" * 400, "time is 1000"),
                       ("time = 1" + "0" * 5000, "expected a TOML file"), ("time = inf", "time is inf"),
                       ("requeues = inf", "requeues is inf"), ("requeues = nan", "requeues is nan"),
                       ("cpus = 1.5", "cpus is 1.5"), ("gpus = 1" + "0" * 400, "gpus is 1000.*[.]{3}, expected"),
                       ("notice = -1", "notice is -1"), ("snapshot = 1", "snapshot is 1, expected true"),
                       ("parallel = true", "parallel is True")):  # fmt: skip
        file.write_text(text)
        with pytest.raises(UsageError, match=message):
            load(file)


def test_what_sbatch_gets(tmp_path):
    from submitit import SlurmExecutor

    options = Options(partition="gpu", account="a", qos="q", constraint="c", time=480, memory="8G", cpus=4, gpus=1,
                      parallel=7, setup=("module load x",), sbatch={"exclude": "n1"})  # fmt: skip
    made = options.parameters("fvi-1", ["export A=1"])
    text = SlurmExecutor._make_submission_file_text  # the script itself, without a cluster
    found = text(_Executor(tmp_path, made | {"map_count": 20}), "run", "id").splitlines()
    for line in ("--partition=gpu", "--account=a", "--qos=q", "--constraint=c", "--time=480", "--mem=8G",
                 "--cpus-per-task=4", "--gpus-per-node=1", "--array=0-19%7", "--exclude=n1", "--job-name=fvi-1",
                 "--signal=USR2@90"):  # fmt: skip
        assert f"#SBATCH {line}" in found, line
    assert found.index("module load x") < found.index("export A=1")
    assert found.index("export SLURM_EXPORT_ENV=ALL") < found.index("module load x"), "--export=NONE ends at the script"
    least = Options(time=2).parameters("n", [])
    assert least["signal_delay_s"] == 30, "an array task of two minutes gets its signal half a minute before its end"
    assert not {"mem", "gpus_per_node", "partition", "account", "qos", "constraint"} & set(least)


def groups(n, network="mlp", runs=1):
    config = fakes.config()
    config["parts"]["network"] = {"name": network}
    return [RunGroup("", "", fakes.SUITE, (fakes.pending(config),) * runs) for _ in range(n)]


@pytest.mark.parametrize(
    ("options", "todo", "tasks"),
    [
        ({}, groups(7), 1),
        ({}, groups(41), 3),
        ({}, groups(2, runs=50), 2),
        ({}, groups(7, "cnn"), 7),
        ({"runs_per_task": 3}, groups(7), 3),
        ({"runs_per_task": 1, "parallel": 5}, groups(7), 5),
        ({"cpus": 4}, groups(8, "cnn"), 2),
        ({"gpus": 8, "cpus": 32}, groups(40, "cnn"), 5),
        ({"gpus": 8}, groups(3, "cnn"), 1),
    ],
)
def test_an_array_has_work_for_every_process(options, todo, tasks):
    assert Options(**options).array(todo) == tasks


def test_several_gpus_are_requested_and_have_a_process_each():
    options = Options(gpus=8, cpus=32)
    assert options.workers == 8 and options.parameters("fvi-1", [])["gpus_per_node"] == 8
    settings = ({"gres": "gpu:a100:2"}, {"gpus": "1"}, {"gpus-per-task": 1}, {"gres": "lustre"}, {})
    assert [Options(sbatch=each).on_gpu for each in settings] == [True, True, True, False, False] and options.on_gpu


class _Executor:
    def __init__(self, folder, parameters):
        self.folder, self.parameters = folder, parameters


def test_repeated_words_for_sbatch_make_one_table_in_place_of_the_file_s(tmp_path):
    file = tmp_path / "slurm.toml"
    file.write_text('[sbatch]\nexclude = "node3"\n')
    found = load(file, ["sbatch=mail-type=END", "sbatch=--exclusive", "sbatch=nice=9"])
    assert found.sbatch == {"nice": "9", "mail-type": "END", "exclusive": True}
