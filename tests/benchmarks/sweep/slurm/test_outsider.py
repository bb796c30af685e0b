"""An outsider's plug-in in the array tasks of a real cluster, from the copy that was taken when they were submitted."""

from __future__ import annotations

from benchmarks import tables
from benchmarks.commands import sweeping
from benchmarks.records import provenance
from benchmarks.records.store import Store
from benchmarks.suite import Suite
from benchmarks.sweep.plan import make_plan
from benchmarks.sweep.slurm.options import Options
from tests import outsider
from tests.plugins import forgotten


def test_array_tasks_use_the_plugin_as_it_was_submitted(cluster, tmp_path, monkeypatch):
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sweeping, "LOOK_EVERY", 0.3)
    assert provenance.ROOT == outsider.ROOT
    plugin = outsider.write(tmp_path)
    monkeypatch.setenv("FVI_PLUGINS", str(plugin))
    folders = tmp_path / "results", tmp_path / "state"
    with forgotten():
        configs = [config for config in tables.get("mine").runs("smoke", (0,)) if config["method"] == "Wasserstein FVI"]
        plan = make_plan(configs, *folders, Suite())
        sweeping.submit(plan, Options(time=10, memory="3G"))
        plugin.write_text("1 / 0\n")  # too late for what was submitted
        runs = sweeping.follow(plan).runs
        assert [run.status for run in runs] == ["done", "done"], [run.note for run in runs]
        assert {config["dataset"]["name"] for config in configs} == {"bikes", "waves"}
        assert all("largest_error" in Store(folders[0]).get(config)["metric_versions"] for config in configs)
