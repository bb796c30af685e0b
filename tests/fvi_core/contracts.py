"""Contracts of families and divergences; a new part inherits these tests and gives its description."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest
import torch

from fvi_core.families.base import DrawnNetworks, Family, NotSupported
from fvi_core.held import BUFFER, trained_names
from fvi_core.networks import Network, Parameters
from fvi_core.objective import Model
from fvi_core.registry import DIVERGENCES, FAMILIES, UnknownPart
from tests.fvi_core import small

R, S, N = 3, 4, 6


class FamilyContract:
    """Inherit, and give ``spec``; ``one_function`` False where a draw is another function at every call;
    ``weights_make_functions`` False where a function is not the network at the drawn weights."""

    spec: ClassVar[dict[str, Any]]
    network_spec: ClassVar[dict[str, Any]] = small.TANH
    outputs: ClassVar[int] = 2
    one_function: ClassVar[bool] = True
    weights_make_functions: ClassVar[bool] = True

    def family(self) -> Family:
        return FAMILIES.build(json.loads(json.dumps(self.spec)))

    def network(self) -> Network:
        return small.network(self.network_spec, self.outputs)

    def parameters(self, replicas: range = range(R)) -> Parameters:
        """Parameters as prediction needs them."""
        return self.family().init(self.network(), small.streams(R).subset(replicas))

    def draw(self, parameters: Parameters, replicas: range = range(R), samples: int = S):
        return self.family().functions(
            self.network(), parameters, samples, small.streams(R, name="draw").subset(replicas)
        )

    def test_parameters_lead_with_replicas_and_do_not_depend_on_neighbours(self):
        parameters = self.parameters()
        assert parameters and all(v.shape[0] == R and torch.isfinite(v).all() for v in parameters.values())
        for r in range(R):
            alone = self.parameters(range(r, r + 1))
            assert alone.keys() == parameters.keys()
            assert all(torch.equal(alone[k], v[r : r + 1]) for k, v in parameters.items())

    def test_functions_have_values_for_every_replica_sample_point_and_output(self):
        f = self.draw(self.parameters())(small.inputs(R, N))
        assert f.shape[0] == R and 1 <= f.shape[1] <= S and f.shape[2:] == (N, self.outputs)
        assert torch.isfinite(f).all()

    def test_a_draw_is_one_function(self):
        functions, x = self.draw(self.parameters()), small.inputs(R, N)
        values = functions(x)
        assert torch.equal(functions(x), values) == self.one_function
        if self.one_function:
            torch.testing.assert_close(functions(x[:, 1:4]), values[:, :, 1:4], rtol=1e-12, atol=1e-12)

    def test_replicas_together_are_bitwise_the_same_as_alone(self):
        parameters, x = self.parameters(), small.inputs(R, N)
        together = self.draw(parameters)(x)
        for r in range(R):
            alone = self.draw(small.one(parameters, r), range(r, r + 1))(x[r : r + 1])
            assert torch.equal(alone, together[r : r + 1])

    def test_a_gradient_reaches_every_parameter(self):
        parameters = {k: v for k, v in self.parameters().items() if not k.startswith(BUFFER)}
        trained = {name: parameters[name].requires_grad_() for name in trained_names(parameters)}
        self.draw(parameters)(small.inputs(R, N)).square().sum().backward()
        for name, value in trained.items():
            assert value.grad is not None and value.grad.reshape(R, -1).any(1).all(), name

    def test_functions_are_the_network_at_the_weights_where_there_are_weights(self):
        family, network, parameters, x = self.family(), self.network(), self.parameters(), small.inputs(R, N)
        try:
            weights = family.weights(network, parameters, S, small.streams(R, name="draw"))
        except NotSupported as error:
            assert repr(family.name) in str(error)
            pytest.skip(str(error))
        assert weights.keys() == network.shapes.keys()
        assert all(v.shape[0] == R and v.shape[2:] == network.shapes[k] for k, v in weights.items())
        if self.weights_make_functions:
            torch.testing.assert_close(network(weights, x), self.draw(parameters)(x), rtol=1e-12, atol=1e-12)

    def test_marginals_are_the_moments_of_the_functions_where_there_are_marginals(self):
        parameters, x, samples = self.parameters(), small.inputs(R, N), 4000
        with torch.no_grad():
            marginals = self.family().marginals(self.network(), parameters, x)
            assert marginals is not None or not self.family().closed_form
            if marginals is None:
                pytest.skip(f"family {self.family().name!r} has no marginals in closed form")
            mean, variance = marginals
            assert mean.shape == variance.shape == (R, N, self.outputs)
            f = self.draw(parameters, samples=samples)(x)
        assert ((f.mean(1) - mean).abs() < 5 * (variance / samples).sqrt() + 1e-6).all()
        assert ((f.var(1) / variance).log().abs() < 5 * (2 / samples) ** 0.5).all()

    def test_it_says_whether_it_draws_networks(self):
        assert isinstance(self.draw(self.parameters()), DrawnNetworks) == self.family().draws_networks

    def test_the_initial_network_is_made_of_all_its_parameters_or_of_none(self):
        network = self.network()
        start = self.family().initial_network(network, self.family().init(network, small.streams(R)))
        assert not start or start.keys() == network.shapes.keys()

    def test_what_is_trained_independently_is_joined_again(self):
        network, family, streams = self.network(), self.family(), small.streams(R)
        member, count = family.independent()
        joined = family.joined(member.init(network, family.member_streams(streams)))
        together = family.init(network, small.streams(R))
        assert len(family.member_streams(streams)) == R * count and joined.keys() == together.keys()
        assert all(torch.equal(joined[name], value) for name, value in together.items())

    def test_an_unknown_option_is_named(self):
        with pytest.raises(UnknownPart, match="has no hyper-parameter 'nonsense'"):
            FAMILIES.build({**self.spec, "nonsense": 1})


class DivergenceContract:
    """Inherit, and give ``spec``, the ``parts`` that go with it, and parts that do not (``unfit``, None where all do).

    ``descends`` False: the gradient is not that of the value (parts of it are held constant).
    """

    spec: ClassVar[dict[str, Any]]
    parts: ClassVar[dict[str, Any]]
    unfit: ClassVar[dict[str, Any] | None]
    outputs: ClassVar[int] = 1
    descends: ClassVar[bool] = True

    def model(self, **changes: Any) -> Model:
        parts = {**self.parts, "divergence": json.loads(json.dumps(self.spec)), **changes}
        return small.model(parts, self.outputs)

    def start(self, model: Model) -> Parameters:
        return model.family.init(model.network, small.streams(R))

    def parameters(self, model: Model) -> Parameters:
        start = self.start(model)
        names = trained_names(start)
        return {k: v.requires_grad_(k in names) for k, v in start.items()}

    def value(self, model: Model, parameters: Parameters, replicas: range = range(R)):
        data = small.training_data(R, N, self.outputs)
        data = data if len(replicas) == R else small.one(data, replicas[0])
        start = self.parameters(model) if len(replicas) == R else small.one(self.parameters(model), replicas[0])
        return model.divergence(small.step(model, parameters, data, small.streams(R).subset(replicas), S, start))

    def test_one_finite_number_for_each_replica(self):
        model = self.model()
        value = self.value(model, self.parameters(model))
        assert value.shape == (R,) and torch.isfinite(value).all()

    def test_replicas_together_are_bitwise_the_same_as_alone(self):
        model = self.model()
        parameters = self.parameters(model)
        together = self.value(model, parameters)
        for r in range(R):
            assert torch.equal(self.value(model, small.one(parameters, r), range(r, r + 1)), together[r : r + 1])

    def test_a_replica_without_finite_parameters_leaves_the_others_as_they_are(self):
        model = self.model()
        found = []
        for spoilt in (None, 1):
            parameters = self.parameters(model)
            with torch.no_grad():
                for value in parameters.values() if spoilt else ():
                    value[spoilt] = torch.nan
            value, trained = self.value(model, parameters), [v for v in parameters.values() if v.requires_grad]
            gradients = torch.autograd.grad(value.sum(), trained, allow_unused=True, materialize_grads=True)
            found.append((value, *gradients))
        assert found[1][0][1].isnan()
        for whole, beside in zip(*found, strict=True):
            assert torch.equal(beside[[0, 2]], whole[[0, 2]])

    def test_a_step_against_the_gradient_makes_it_smaller(self):
        model = self.model()
        parameters = self.parameters(model)
        value = self.value(model, parameters)
        trained = {k: v for k, v in parameters.items() if v.requires_grad}
        gradients = torch.autograd.grad(value.sum(), list(trained.values()), allow_unused=True, materialize_grads=True)
        size = sum(g.square().reshape(R, -1).sum(1) for g in gradients)
        assert torch.isfinite(size).all() and (size > 0).all()
        if self.descends:
            moved = dict(parameters)
            for (k, v), g in zip(trained.items(), gradients, strict=True):
                moved[k] = (v.detach() - 1e-4 * g / size.sqrt().view(-1, *[1] * (v.dim() - 1))).requires_grad_()
            with torch.enable_grad():
                after = self.value(model, moved)
            torch.testing.assert_close(value - after, 1e-4 * size.sqrt(), rtol=0.2, atol=0)

    def test_parts_that_do_not_fit_are_named(self):
        if self.unfit is None:
            pytest.skip("it goes with every part")
        model = self.model(**self.unfit)
        with pytest.raises(NotSupported, match="|".join(repr(part["name"]) for part in self.unfit.values())):
            self.value(model, self.parameters(model))

    def test_an_unknown_option_is_named(self):
        with pytest.raises(UnknownPart, match="has no hyper-parameter 'nonsense'"):
            DIVERGENCES.build({**self.spec, "nonsense": 1})
