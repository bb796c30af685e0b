"""What every executor must do; a new one inherits these tests and says how it is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.records.config import run_key
from benchmarks.state.claims import Claims
from benchmarks.state.failures import Failures
from benchmarks.sweep.groups import Executor, RunGroup
from benchmarks.sweep.plan import make_plan
from tests.benchmarks import fakes


class ExecutorContract:
    """Inherit, and give ``make``."""

    sees_every_report = True

    def make(self) -> Executor:
        raise NotImplementedError

    @pytest.fixture
    def folders(self, tmp_path: Path) -> tuple[Path, Path]:
        return tmp_path / "results", tmp_path / "state"

    def groups(self, configs, folders) -> list[RunGroup]:
        return make_plan(configs, *folders, fakes.SUITE).groups(*folders, fakes.SUITE)

    def run(self, groups, report=lambda *_: None):
        with self.make() as executor:
            executor.submit(groups)
            return list(executor.outcomes(report))

    def records(self, folders) -> dict[int, float]:
        return {r["config"]["seed"]: r["metrics"][0]["value"] for r in fakes.store(folders[0]).records()}

    def test_every_group_comes_back_once_and_is_recorded(self, folders):
        groups = self.groups([fakes.config(seed, stack=2) for seed in range(5)], folders)
        seen = []
        found = self.run(groups, lambda group, fraction, text: seen.append((group.keys, fraction, text)))
        assert sorted(group.keys for group, _ in found) == sorted(group.keys for group in groups)
        assert all([o.key for o in outcomes] == list(group.keys) for group, outcomes in found)
        assert {o.status for _, outcomes in found for o in outcomes} == {"done"}
        assert self.records(folders) == {s: fakes.number(fakes.config(s, stack=2)) for s in range(5)}
        if self.sees_every_report:
            assert {(group.keys, 0.5, "half way") for group in groups} <= set(seen)
        assert Claims(folders[1] / "claims").live() == {}

    def test_groups_may_be_submitted_while_outcomes_are_read(self, folders):
        first, second = self.groups([fakes.config(seed) for seed in range(2)], folders)
        with self.make() as executor:
            executor.submit([first])
            found = []
            for group, _ in executor.outcomes(lambda *_: None):
                found.append(group)
                if group == first:
                    executor.submit([second])
        assert found == [first, second]

    def test_an_exception_fails_its_group_and_no_other(self, folders):
        bad, good = fakes.config(0, do="raise"), fakes.config(1)
        found = {o.key: o for _, outcomes in self.run(self.groups([bad, good], folders)) for o in outcomes}
        assert found[run_key(good)].status == "done"
        assert (found[run_key(bad)].status, found[run_key(bad)].reason) == (
            "failed",
            "RuntimeError: the loss exploded",
        )
        failure = Failures(folders[1]).get(run_key(bad))
        assert failure["reason"] == "RuntimeError: the loss exploded" and "in execute" in failure["traceback"]
        assert failure["attempt"] == 1 and failure["config"] == bad
        log = Path(failure["log"]).read_text()
        assert "training 1 runs" in log and "the loss\nexploded" in log

    def test_a_number_that_is_none_fails_the_run(self, folders):
        ((_, (outcome,)),) = self.run(self.groups([fakes.config(do="nan")], folders))
        assert (outcome.status, outcome.reason) == ("failed", "accuracy of digits is nan")
        assert self.records(folders) == {}

    def test_the_good_runs_of_a_stack_are_kept(self, folders):
        ((_, outcomes),) = self.run(self.groups([fakes.config(s, do="partial", stack=3) for s in range(3)], folders))
        assert [o.status for o in outcomes] == ["done", "failed", "done"]
        assert outcomes[1].reason == "diverged at step 3" and sorted(self.records(folders)) == [0, 2]
        logs = [(folders[1] / "logs" / f"{o.key}.log").read_text() for o in outcomes]
        assert "training 3 runs" in logs[0] and logs[0] == logs[1] == logs[2]

    def test_what_another_sweep_has_done_since_is_not_done_again(self, folders):
        groups = self.groups([fakes.config(0), fakes.config(1, do="raise")], folders)
        self.run(groups)
        again = {o.status: o.reason for _, outcomes in self.run(groups) for o in outcomes}
        assert again == {"found": "", "failed": "RuntimeError: the loss exploded"}
        assert len((folders[1] / "trained").read_text().splitlines()) == 2

    def test_closing_leaves_no_claim(self, folders):
        executor = self.make()
        executor.submit(self.groups([fakes.config(seed) for seed in range(3)], folders))
        next(executor.outcomes(lambda *_: None))
        executor.close()
        assert Claims(folders[1] / "claims").live() == {}
        executor.close()
