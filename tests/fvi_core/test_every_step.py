"""Contracts of optimisers, schedules and fits, which every registered one inherits."""

import dataclasses
import json

import numpy as np
import torch

from fvi_core.families.base import FitData
from fvi_core.fitting import PREFIX
from fvi_core.optimisers import ScheduleState
from fvi_core.stack import subset_of
from tests.fvi_core import small
from tests.fvi_core.test_every_part import N, R, S, alone, build, every


@every("optimiser")
class TestOptimiser:
    def walk(self, spec, replicas, steps=6, leave=None):
        """Parameters after some steps down a bowl; ``leave``: from the third step on these places alone."""
        optimiser, streams = build("optimiser", spec), small.streams(R).subset(replicas)
        tensors, rates = (
            [streams.normal(4, 2), streams.normal(3)],
            torch.tensor([0.1, 0.03, 0.01]).double()[list(replicas)],
        )
        state = optimiser.start(tensors)
        for step in range(steps):
            if step == 3 and leave is not None:
                index = torch.tensor(leave)
                tensors, rates = [t[index] for t in tensors], rates[index]
                state = subset_of(state, leave, index)
            gradients = [t.clone() for t in tensors]
            optimiser.step(tensors, gradients, state, rates)
            assert all(torch.isfinite(t).all() for t in tensors)
        return tensors

    def test_replicas_are_each_their_own_and_may_leave(self, spec):
        together, left = self.walk(spec, range(R)), self.walk(spec, range(R), leave=[0, 2])
        for r in range(R):
            for one, all_ in zip(self.walk(spec, range(r, r + 1)), together, strict=True):
                assert torch.equal(one, all_[r : r + 1])
        for some, all_ in zip(left, together, strict=True):
            assert torch.equal(some, all_[[0, 2]])

    def test_it_goes_down(self, spec):
        before, after = self.walk(spec, range(R), 0), self.walk(spec, range(R), 6)
        for start, end in zip(before, after, strict=True):
            assert (end.flatten(1).norm(dim=1) < start.flatten(1).norm(dim=1)).all()


@every("schedule")
class TestSchedule:
    def rates(self, spec, replicas, leave=None, epochs=12):
        schedule, state = build("schedule", spec), ScheduleState.start(0.1, len(replicas), torch.device("cpu"))
        losses, rates = small.streams(R, name="losses").normal(epochs)[list(replicas)], []
        for epoch in range(1, epochs + 1):
            if epoch == 5 and leave is not None:
                index = torch.tensor(leave)
                state, losses, rates = subset_of(state, leave, index), losses[index], [rate[index] for rate in rates]
            schedule.after_epoch(state, epoch, epochs, losses[:, epoch - 1], 0.1)
            rates.append(state.lr.clone())
        return torch.stack(rates)

    def test_rates_are_each_replicas_own_and_replicas_may_leave(self, spec):
        together = self.rates(spec, range(R))
        assert torch.isfinite(together).all() and (together >= 0).all() and together[0].max() <= 0.1
        for r in range(R):
            assert torch.equal(self.rates(spec, range(r, r + 1))[:, 0], together[:, r])
        assert torch.equal(self.rates(spec, range(R), leave=[0, 2]), together[:, [0, 2]])


@every("fit")
class TestFit:
    """Fit of a point network of classes; test_fitting.py and fits/ test the results of each part."""

    def model(self, spec):
        trained = {"divergence": {"name": "weight_penalty"}, "prior": {"name": "gaussian_weights"}}
        return small.model({"family": {"name": "point"}, "fit": json.loads(json.dumps(spec)), **trained}, 3)

    def fitted(self, spec, replicas=range(R)):
        """The model, its parameters before and after, of replicas that were fitted together."""
        model, data = self.model(spec), small.training_data(R, N, 3, validation=4)
        start = model.family.init(model.network, small.streams(R).subset(replicas))
        held = [torch.stack([pair[i] for pair in data.validation])[list(replicas)] for i in (0, 1)]
        rows = (data.x[list(replicas)], data.y[list(replicas)], small.streams(R, name="fit").subset(replicas))
        fitting = FitData(model.network, model.family, model.likelihood, *rows, tuple(held))
        fitting = dataclasses.replace(fitting, weight_prior=model.weight_prior)
        return model, start, model.fit(start, fitting)

    def test_it_adds_parameters_of_its_own_and_changes_none(self, spec):
        _, start, fitted = self.fitted(spec)
        assert all(torch.equal(fitted[name], value) for name, value in start.items())
        own = {name: value for name, value in fitted.items() if name not in start}
        assert own and all(name.startswith(PREFIX) and len(value) == R for name, value in own.items())
        assert all(torch.isfinite(value).all() and not value.requires_grad for value in own.values())

    def test_what_is_fitted_and_predicted_is_each_replicas_own(self, spec):
        model, _, together = self.fitted(spec)
        x = small.inputs(R, 5)
        f = model.functions(together, S, small.streams(R))(x)
        assert f.shape[0] == R and 1 <= f.shape[1] <= S and f.shape[2:] == (5, 3) and torch.isfinite(f).all()
        for r in range(R):
            _, _, single = self.fitted(spec, range(r, r + 1))
            assert single.keys() == together.keys()
            assert all(torch.equal(value, together[name][r : r + 1]) for name, value in single.items())
            assert torch.equal(model.functions(single, S, alone(r))(x[r : r + 1]), f[r : r + 1])

    def test_a_draw_is_one_function_also_of_parameters_that_were_kept(self, spec, tmp_path):
        model, _, fitted = self.fitted(spec)
        x, functions = small.inputs(R, N), model.functions(fitted, S, small.streams(R))
        values = functions(x)
        assert torch.equal(functions(x), values)
        torch.testing.assert_close(functions(x[:, 1:4]), values[:, :, 1:4], rtol=1e-10, atol=1e-10)
        np.savez(tmp_path / "kept.npz", **{name: value.numpy() for name, value in fitted.items()})
        with np.load(tmp_path / "kept.npz") as file:
            kept = {name: torch.from_numpy(file[name]) for name in file.files}
        assert torch.equal(model.functions(kept, S, small.streams(R))(x), values)
