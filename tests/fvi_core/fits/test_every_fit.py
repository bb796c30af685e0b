"""What every registered fit part must do, about a point network of classes; what a part is of is in tests of its own.

A part inherits these tests by a line of SPECS that says how it is described.
"""

import dataclasses
import json

import numpy as np
import pytest
import torch

from fvi_core.fitting import PREFIX, Fitting
from tests.fvi_core import small

R, S, N = 3, 4, 6
SPECS = [
    {"name": "temperature", "samples": 4},
    {"name": "laplace"},
    {"name": "laplace", "structure": "full", "precision": "evidence"},
    {"name": "laplace", "structure": "kronecker", "precision": "validation", "steps": 3, "samples": 4},
    {"name": "laplace", "structure": "last_layer", "precision": 2.0, "predictive": "weights"},
    {"name": "subnetwork_laplace", "size": 5, "predictive": "probit"},
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: "-".join(map(str, spec.values()))[:40])
class TestFit:
    def model(self, spec):
        trained = {"divergence": {"name": "weight_penalty"}, "prior": {"name": "gaussian_weights"}}
        return small.model({"family": {"name": "point"}, "fit": json.loads(json.dumps(spec)), **trained}, 3)

    def fitted(self, spec, replicas=range(R)):
        """The model, its parameters before and after, of replicas that were fitted together."""
        model, data = self.model(spec), small.problem(R, N, 3, validation=4)
        start = model.family.init(model.network, small.streams(R).subset(replicas))
        held = [torch.stack([pair[i] for pair in data.validation])[list(replicas)] for i in (0, 1)]
        rows = (data.x[list(replicas)], data.y[list(replicas)], small.streams(R, name="fit").subset(replicas))
        fitting = Fitting(model.network, model.family, model.likelihood, *rows, tuple(held))
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
            assert torch.equal(model.functions(single, S, small.streams(R).subset([r]))(x[r : r + 1]), f[r : r + 1])

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
