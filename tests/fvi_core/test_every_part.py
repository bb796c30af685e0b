"""Contracts of every registered prior, context, likelihood, network, optimiser, schedule and fit.

A part inherits these tests by being registered; one line of SPECS says how it is described. Families, divergences and
kernels have contracts of their own (contracts.py, test_kernels.py).
"""

import json

import pytest
import torch

from fvi_core.contexts import ContextSource
from fvi_core.data import TrainingSet
from fvi_core.families.base import NotSupported
from fvi_core.hamiltonian import HamiltonianMonteCarlo
from fvi_core.held import BUFFER
from fvi_core.kernels import KERNELS
from fvi_core.registry import (
    DIVERGENCES,
    FAMILIES,
    REGISTRIES,
    TRAININGS,
    UnknownPart,
)
from fvi_core.training import Training
from fvi_core.vogn import VOGN
from tests.fvi_core import small

R, S, N, D = 3, 4, 6, 2
OF_CLASSES = ("categorical", "kernel_scores", "robust_max")
RBF = {"name": "rbf", "ard": False}
BATCH = {"name": "training_batch"}
SPECS = {
    "prior": [
        {"name": "gaussian_weights", "variance": 0.7},
        {"name": "gaussian_weights", "features": "draw", "jacobian": "full"},
        {"name": "gaussian_factors"},
        {"name": "gaussian_functions"},
        {"name": "dirichlet", "concentrations": 0.5},
        {"name": "gaussian_process", "kernel": RBF, "fit_steps": 2},
        {"name": "gaussian_process", "kernel": {"name": "helmholtz"}, "parameters": {}},
    ],
    "context": [
        {"name": "uniform_box", "points": 5},
        {"name": "grid", "low": [0.0, 0.0], "high": [1.0, 1.0], "step": 0.5},
        BATCH,
        {"name": "training_batch", "points": 3},
        {"name": "rotated_batch", "angles": [90, 180]},
        {"name": "random_pixel", "points": 5},
        {"name": "random_monochrome", "points": 5},
        {"name": "uniform_noise", "points": 5},
        {"name": "images", "points": 5, "pool": "other"},
        {"name": "mixture", "parts": [BATCH, {"name": "images", "points": 5, "pool": "other"}]},
    ],
    "likelihood": [
        {"name": "gaussian", "init_std": 0.4},
        {"name": "residual_gaussian"},
        {"name": "categorical"},
        {"name": "categorical", "class_weights": "batch"},
        {"name": "kernel_scores"},
        {"name": "robust_max"},
    ],
    "network": [
        small.TANH,
        small.CNN,
        {**small.CNN, "norm": "batch", "padding": [1, 1]},
        {"name": "lenet"},
        {"name": "resnet18", "width": 2},
        {"name": "resnet18", "width": 2, "norm": "none"},
        {"name": "resnet50", "width": 2},
        {"name": "vector_field", "hidden": [4, 3]},
        {"name": "torchvision", "model": "shufflenet_v2_x0_5"},
    ],
    "optimiser": [{"name": "adam"}, {"name": "sgd", "momentum": 0.9}, {"name": "sgd", "weight_decay": 0.1}],
    "schedule": [
        {"name": "constant"},
        {"name": "plateau", "patience": 1},
        {"name": "multistep"},
        {"name": "cosine"},
        {"name": "one_cycle"},
        {"name": "linear", "final": 0.1},
    ],
    "fit": [
        {"name": "temperature", "samples": 4},
        {"name": "laplace"},
        {"name": "laplace", "structure": "full", "precision": "evidence"},
        {"name": "laplace", "structure": "kronecker", "precision": "validation", "steps": 3, "samples": 4},
        {"name": "laplace", "structure": "last_layer", "precision": 2.0, "predictive": "weights"},
        {"name": "subnetwork_laplace", "size": 5, "predictive": "probit"},
    ],
}
TESTED = {kind: {spec["name"] for spec in specs} for kind, specs in SPECS.items()}


def every(kind):
    return pytest.mark.parametrize("spec", SPECS[kind], ids=lambda spec: "-".join(map(str, spec.values()))[:40])


def build(kind, spec):
    return REGISTRIES[kind].build(json.loads(json.dumps(spec)))


def alone(r):
    return small.streams(R).subset([r])


@pytest.mark.parametrize("kind", SPECS)
def test_every_registered_part_is_tested(kind):
    own = {name for name, cls in REGISTRIES[kind].classes.items() if cls.__module__.startswith("fvi_core.")}
    assert own == TESTED[kind], f"give each {kind} a line in SPECS"


def test_kinds_with_contracts_of_their_own_test_every_part_too():
    from tests.fvi_core import test_kernels, test_samplers
    from tests.fvi_core.contracts import DivergenceContract, FamilyContract
    from tests.fvi_core.divergences import test_divergences, test_spectral
    from tests.fvi_core.families import (
        test_centroids,
        test_collapsed_gp,
        test_families,
        test_gaussian_head,
        test_gwi,
        test_implicit_process,
        test_radial,
        test_rank1,
        test_sparse_gp,
        test_swag,
    )

    modules = (test_divergences, test_spectral, test_samplers, test_families, test_gwi, test_implicit_process)
    modules += (
        test_centroids,
        test_collapsed_gp,
        test_gaussian_head,
        test_radial,
        test_rank1,
        test_sparse_gp,
        test_swag,
    )
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    for registry, contract in ((FAMILIES, FamilyContract), (DIVERGENCES, DivergenceContract)):
        own = {name for name, cls in registry.classes.items() if cls.__module__.startswith("fvi_core.")}
        tested = {cls.spec["name"] for cls in classes if issubclass(cls, contract) and hasattr(cls, "spec")}
        assert own == tested, f"give each {registry.kind} a class that inherits {contract.__name__}"
    assert set(KERNELS.classes) == {spec["name"] for spec in test_kernels.SPECS}
    trainings = {"gradient": Training, "hmc": HamiltonianMonteCarlo, "vogn": VOGN}
    assert TRAININGS.classes == trainings, "test_training.py, test_samplers.py and test_vogn.py test these"
    assert {*SPECS, "family", "divergence", "kernel", "training"} == set(REGISTRIES)


@pytest.mark.parametrize("kind", SPECS)
def test_an_unknown_option_is_named(kind):
    for spec in SPECS[kind]:
        with pytest.raises(UnknownPart, match=f"{kind} '{spec['name']}' has no hyper-parameter 'nonsense'"):
            build(kind, {**spec, "nonsense": 1})


VIEWS = {
    "flat_weights": lambda prior, network, state, x, streams: prior.flat_weights(network, S, streams),
    "functions": lambda prior, network, state, x, streams: prior.functions(network, state, S, streams)(x),
    "moments": lambda prior, network, state, x, streams: prior.moments(network, state, x, "full")[1],
    "variances": lambda prior, network, state, x, streams: prior.moments(network, state, x, "diagonal")[1],
    "joint": lambda prior, network, state, x, streams: prior.moments(network, state, x, "joint")[1],
}


@every("prior")
class TestPrior:
    def state(self, spec, streams, replicas=slice(None)):
        prior, network, data = build("prior", spec), small.network(), small.training_data(R, N)
        train = TrainingSet(data.x[replicas], data.y[replicas], 2, spec["name"] == "dirichlet")
        return prior, prior.init(network, network.init(streams), train, streams)

    def test_what_it_is_fitted_to_is_each_replicas_own(self, spec):
        _, together = self.state(spec, small.streams(R))
        for r in range(R):
            _, single = self.state(spec, alone(r), slice(r, r + 1))
            assert single.keys() == together.keys()
            assert all(torch.equal(value, together[name][r : r + 1]) for name, value in single.items())

    def test_it_has_a_view_and_names_itself_where_another_is_requested(self, spec):
        prior, state = self.state(spec, small.streams(R))
        network, x, given = small.network(), small.inputs(R, N), []
        shapes = {
            "flat_weights": [(R, S, network.n_parameters)],
            "functions": [(R, S, N, 2)],
            "moments": [(R, 1, N, N), (R, 2, N, N)],
            "variances": [(R, 1, N), (R, 2, N)],
            "joint": [(R, 1, 2 * N, 2 * N)],
        }
        for name, view in VIEWS.items():
            try:
                value = view(prior, network, state, x, small.streams(R))
            except NotSupported as error:
                assert f"prior {spec['name']!r}" in str(error)
                continue
            given.append(name)
            assert tuple(value.shape) in shapes[name] and torch.isfinite(value).all()
            for r in range(R):
                single = view(prior, network, {k: v[r : r + 1] for k, v in state.items()}, x[r : r + 1], alone(r))
                assert torch.equal(single, value[r : r + 1]), name
        for name, view in (
            ("gaussian_weights", prior.gaussian_weights),
            ("concentration", lambda: prior.concentration(3)),
        ):
            try:
                view()
                given.append(name)
            except NotSupported as error:
                assert f"prior {spec['name']!r}" in str(error)
        assert given

    def test_covariances_are_those_of_some_distribution(self, spec):
        prior, state = self.state(spec, small.streams(R))
        try:
            covariance = VIEWS["moments"](prior, small.network(), state, small.inputs(R, N), None)
        except NotSupported as error:
            pytest.skip(str(error))
        torch.testing.assert_close(covariance, covariance.mT)
        assert torch.linalg.eigvalsh(covariance.double()).min() > -1e-9
        variances = VIEWS["variances"](prior, small.network(), state, small.inputs(R, N), None)
        torch.testing.assert_close(variances.double(), covariance.diagonal(dim1=-2, dim2=-1).double())
        joint = VIEWS["joint"](prior, small.network(), state, small.inputs(R, N), None)[:, 0].double()
        assert torch.linalg.eigvalsh(joint).min() > -1e-9
        own = torch.stack([joint[:, q::2, q::2] for q in range(2)], dim=1)
        torch.testing.assert_close(own, covariance.double().expand_as(own))


@every("context")
class TestContext:
    def source(self, spec, replicas=slice(None)):
        shape = (2,) if spec["name"] == "grid" else (3, 4, 4)
        x, pool = small.inputs(R, N, shape), small.inputs(1, 9, shape)[0] + 5
        pools = {"other": pool} if build("context", spec).pools() else {}
        return ContextSource(x[replicas], x.amin(1)[replicas], x.amax(1)[replicas], pools)

    def test_points_are_inputs_of_the_network_and_each_replicas_own(self, spec):
        context, source = build("context", spec), self.source(spec)
        points = context(source, small.streams(R))
        assert points.shape[0] == R and points.shape[1] >= 1 and points.shape[2:] == source.x.shape[2:]
        assert points.dtype == source.x.dtype and torch.isfinite(points).all()
        assert torch.equal(context(source, small.streams(R)), points)
        for r in range(R):
            assert torch.equal(context(self.source(spec, slice(r, r + 1)), alone(r)), points[r : r + 1])

    def test_it_says_how_it_relates_to_the_batch(self, spec):
        context, source = build("context", spec), self.source(spec)
        points = context(source, small.streams(R))
        assert context.is_batch() == (points is source.x)
        begins = points.shape[1] > N and torch.equal(points[:, :N], source.x)
        assert context.extends_batch() == begins
        assert context.pools() <= {"other"}


@every("likelihood")
class TestLikelihood:
    def parts(self, spec, replicas=range(R)):
        likelihood, outputs = build("likelihood", spec), 3 if spec["name"] in OF_CLASSES else 1
        data = small.training_data(R, N, outputs)
        f = small.streams(R, name="f").normal(S, N, likelihood.outputs(outputs))
        params = {
            k: v + 0.1 * torch.arange(R)[list(replicas)]
            for k, v in likelihood.init(len(replicas), torch.float64).items()
        }
        return likelihood, params, f[list(replicas)], data.y[list(replicas)]

    def test_densities_and_data_term_are_each_replicas_own(self, spec):
        likelihood, params, f, y = self.parts(spec)
        log, term = likelihood.log_prob(params, f, y), likelihood.data_term(params, f, y)
        assert (
            log.shape == (R, S, N) and term.shape == (R,) and torch.isfinite(log).all() and torch.isfinite(term).all()
        )
        for r in range(R):
            own, params_r, f_r, y_r = self.parts(spec, range(r, r + 1))
            assert torch.equal(own.log_prob(params_r, f_r, y_r), log[r : r + 1])
            assert torch.equal(own.data_term(params_r, f_r, y_r), term[r : r + 1])

    def test_training_on_it_raises_it(self, spec):
        likelihood, params, f, y = self.parts(spec)
        f.requires_grad_()

        def term(f):
            if likelihood.by_draws:
                return likelihood.data_term(params, f, y)
            return likelihood.expected_log_prob_gaussian(params, f[:, 0], f[:, 1].exp(), y).mean(1)

        before = term(f)
        (gradient,) = torch.autograd.grad(before.sum(), f)
        assert (term(f + 1e-3 * gradient / gradient.norm()) > before).all()

    def test_the_closed_form_that_it_claims_is_there_and_no_other(self, spec):
        likelihood, params, f, y = self.parts(spec)
        mean, var = f[:, 0], f[:, 1].exp()
        if not likelihood.has_closed_form:
            with pytest.raises(NotImplementedError, match=f"likelihood '{spec['name']}' has no closed-form"):
                likelihood.expected_log_prob_gaussian(params, mean, var, y)
            pytest.skip("it claims none")
        draws = mean[:, None] + var[:, None].sqrt() * small.streams(R, name="draws").normal(50000, *mean.shape[1:])
        expected = likelihood.log_prob(params, draws, y).mean(1)
        torch.testing.assert_close(
            likelihood.expected_log_prob_gaussian(params, mean, var, y), expected, rtol=0.05, atol=0.05
        )

    def test_only_what_it_learns_has_a_gradient(self, spec):
        likelihood, params, f, y = self.parts(spec)
        params = {name: value.requires_grad_() for name, value in params.items()}
        term = likelihood.data_term(params, f.requires_grad_(), y).sum()
        made = torch.autograd.grad(term, list(params.values()), allow_unused=True) if params else ()
        assert all((each is not None) == likelihood.learned for each in made)

    def test_what_prediction_asks_of_it(self, spec):
        likelihood, params, f, y = self.parts(spec)
        targets = 3 if spec["name"] in OF_CLASSES else 1
        assert likelihood.values(f).shape == (R, S, N, targets)
        for marginals in (None, (f[0, 0], f[0, 1].exp())):
            predicted = likelihood.predicted(f[0], marginals)
            assert predicted.shape[1:] == (N, targets) and torch.isfinite(predicted).all()
        scores = likelihood.scores(likelihood.values(f)[0].numpy())
        assert all(score.shape == (N,) for score in scores.values())
        std = likelihood.noise_std(params)
        assert std is None or ((std > 0).all() and std.shape == (R,))
        if y.is_floating_point():
            assert std is not None, "predictions of a regression hold its noise"

    def test_members_are_joined_and_an_estimate_returns_all_parameters(self, spec):
        likelihood, params, f, y = self.parts(spec)
        joined = likelihood.joined({name: value.unsqueeze(1).expand(-1, 5) for name, value in params.items()})
        for name, value in params.items():
            torch.testing.assert_close(joined[name], value)
        fitted = likelihood.estimate_noise(params, iter(f.split(2, 2)), y)
        assert {k: v.shape for k, v in fitted.items()} == {k: v.shape for k, v in params.items()}


def outputs_of(spec):
    return 2 if spec["name"] == "vector_field" else 3


@every("network")
class TestNetwork:
    def network(self, spec):
        shape = {"mlp": (2,), "cnn": (2, 4, 4), "vector_field": (2,)}.get(spec["name"], (2, 8, 8))
        return small.network(spec, outputs_of(spec), shape), small.inputs(R, N, shape)

    def draws(self, network):
        return network.unflatten(0.5 * small.streams(R).normal(S, network.n_parameters))

    def test_initial_parameters_are_each_replicas_own(self, spec):
        network, _ = self.network(spec)
        start, state = network.init(small.streams(R)), network.init_buffers(small.streams(R))
        assert {k: v.shape for k, v in start.items()} == {k: (R, *shape) for k, shape in network.shapes.items()}
        assert {k: v.shape for k, v in state.items()} == {k: (R, *shape) for k, shape in network.buffers.items()}
        assert all(name.startswith(BUFFER) for name in state)
        for r in range(R):
            assert all(torch.equal(v, start[k][r : r + 1]) for k, v in network.init(alone(r)).items())

    def test_values_are_each_replicas_and_samples_own(self, spec):
        network, x = self.network(spec)
        drawn = self.draws(network)
        f = network(drawn, x)
        assert f.shape == (R, S, N, outputs_of(spec)) and torch.isfinite(f).all()
        for r in range(R):
            single = network({k: v[r : r + 1] for k, v in drawn.items()}, x[r : r + 1])
            assert torch.equal(single, f[r : r + 1])
        one = network({k: v[:, 1:2] for k, v in drawn.items()}, x)
        torch.testing.assert_close(one, f[:, 1:2], rtol=1e-10, atol=1e-10)

    def test_it_is_its_head_of_its_features(self, spec):
        network, x = self.network(spec)
        drawn = self.draws(network)
        assert torch.equal(network.head(drawn, network.features(drawn, x)), network(drawn, x))
        assert torch.equal(network.flatten(network.unflatten(network.flatten(drawn))), network.flatten(drawn))

    def test_a_gradient_reaches_every_parameter(self, spec):
        network, x = self.network(spec)
        drawn = {k: v.detach().requires_grad_() for k, v in self.draws(network).items()}
        network(drawn, x).square().sum().backward()
        assert all(v.grad is not None and v.grad.flatten(1).any(1).all() for v in drawn.values())

    def test_inputs_of_another_shape_are_named(self, spec):
        network, x = self.network(spec)
        with pytest.raises(ValueError, match="network expects inputs"):
            network(self.draws(network), x[..., :1])
