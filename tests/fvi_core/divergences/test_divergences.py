"""Every divergence keeps the contract, and is what its equation says."""

import math

import pytest
import torch
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from fvi_core.divergences.dirichlet import dirichlet_kl_monte_carlo, fit_dirichlet
from fvi_core.divergences.nearest_neighbour import nearest_neighbour_kl
from fvi_core.families.base import DrawnNetworks, NotSupported
from fvi_core.linearisation import full_network_moments, last_layer_moments
from fvi_core.metrics.probabilities import smooth
from fvi_core.networks import Network
from fvi_core.registry import DIVERGENCES, PRIORS, UnknownPart
from tests.fvi_core import small
from tests.fvi_core.contracts import DivergenceContract, N, R, S

WIDE = {"name": "mean_field", "log_var_init": [-3.0, -1.0]}
WEIGHTS = {"name": "gaussian_weights", "variance": 0.7}
PRIOR = Normal(torch.zeros((), dtype=torch.float64), 0.7**0.5)
BOX = {"name": "uniform_box", "points": 4}


def made(test):
    """The step of a contract's model on its training data, with its value."""
    model = test.model()
    parameters = test.parameters(model)
    step = small.step(model, parameters, small.training_data(R, N, test.outputs), small.streams(R), S)
    return model, parameters, step


class TestWeightKL(DivergenceContract):
    spec = {"name": "weight_kl"}
    parts = {"family": WIDE, "prior": WEIGHTS}
    unfit = {"family": {"name": "point"}}

    def test_is_that_of_torch_distributions(self):
        model, parameters, step = made(self)
        means, log_vars = model.family.gaussian_weights(parameters)
        expected = sum(kl_divergence(Normal(means[k], (log_vars[k] / 2).exp()), PRIOR).flatten(1).sum(1) for k in means)
        torch.testing.assert_close(model.divergence(step), expected, rtol=1e-10, atol=1e-10)

    def test_of_the_prior_from_itself_is_zero(self):
        model, parameters, step = made(self)
        step.parameters = {
            k: torch.full_like(v, math.log(0.7) if k.startswith("log_var/") else 0) for k, v in parameters.items()
        }
        assert model.divergence(step).abs().max() < 1e-12


class TestTiedWeightKL(DivergenceContract):
    spec = {"name": "tied_weight_kl"}
    parts = {"family": WIDE}
    unfit = {"family": {"name": "point"}}

    def test_is_that_of_torch_distributions_from_he_s_variance_about_the_means(self):
        model, parameters, step = made(self)
        means, log_vars = model.family.gaussian_weights(parameters)
        fans = {f"{layer.name}.{k}": layer.inputs for layer in model.network.parametrised for k in ("weight", "bias")}
        pairs = [(Normal(m, (log_vars[k] / 2).exp()), Normal(m, (2 / fans[k]) ** 0.5)) for k, m in means.items()]
        expected = sum(kl_divergence(q, p).flatten(1).sum(1) for q, p in pairs)
        torch.testing.assert_close(model.divergence(step), expected, rtol=1e-10, atol=1e-10)

    def test_means_have_no_gradient(self):
        model, parameters, step = made(self)
        trained = list(parameters.values())
        gradients = torch.autograd.grad(
            model.divergence(step).sum(), trained, allow_unused=True, materialize_grads=True
        )
        assert all(g.any() == k.startswith("log_var/") for k, g in zip(parameters, gradients, strict=True))

    def test_a_gain_of_zero_is_refused(self):
        with pytest.raises(ValueError, match="gain: expected above 0, found 0.0"):
            DIVERGENCES.build({**self.spec, "gain": 0.0})


class TestWeightPenalty(DivergenceContract):
    spec = {"name": "weight_penalty"}
    parts = {"family": {"name": "point"}, "prior": WEIGHTS}
    unfit = {"prior": {"name": "gaussian_functions"}}

    def test_is_minus_the_log_prior_up_to_a_constant(self):
        model, parameters, step = made(self)
        ratios = [PRIOR.log_prob(v) - PRIOR.log_prob(torch.zeros_like(v)) for v in parameters.values()]
        log_prior = sum(ratio.flatten(1).sum(1) for ratio in ratios)
        torch.testing.assert_close(model.divergence(step), -log_prior, rtol=1e-10, atol=1e-10)

    def test_of_a_joint_ensemble_is_the_mean_over_members_as_their_likelihood_is(self):
        model = self.model(family={"name": "ensemble", "base": {"name": "point"}, "size": 3, "joint": True})
        parameters, data = self.parameters(model), small.training_data(R, N)
        value = model.divergence(small.step(model, parameters, data, small.streams(R)))
        ratios = [PRIOR.log_prob(v) - PRIOR.log_prob(torch.zeros_like(v)) for v in parameters.values()]
        torch.testing.assert_close(value, -sum(ratio.flatten(2).sum(2) for ratio in ratios).mean(1))

    @pytest.mark.parametrize("family", ["mean_field", "radial", "rank1", "hypernetwork", "implicit_process"])
    def test_parameters_that_are_no_weights_are_refused(self, family):
        model = self.model(family={"name": family})
        parameters, data = self.parameters(model), small.training_data(R, N)
        with pytest.raises(NotSupported, match=f"parameters of family '{family}' are others"):
            model.divergence(small.step(model, parameters, data, small.streams(R)))


class GaussianContract(DivergenceContract):
    outputs = 2
    parts = {"family": WIDE, "prior": {**WEIGHTS, "centred": False}, "context": BOX}
    unfit = {"prior": {"name": "dirichlet"}}
    ridge = 1e-6

    def context(self, step):
        """Return one context set, and have every later call of the step return it too."""
        x = step.sample_context()
        step.sample_context = lambda: x
        return x

    def moments_q(self, model, step, x):
        inner = {k: v[:, 0] for k, v in step.functions.parameters.items()}
        return last_layer_moments(model.network, inner, *model.family.gaussian_weights(step.parameters), x)

    def test_is_that_of_torch_distributions_summed_over_outputs(self):
        model, _, step = made(self)
        x = self.context(step)
        mean_q, cov_q = self.moments_q(model, step, x)
        mean_p, cov_p = model.prior.moments(model.network, step.prior_parameters, x, "full")
        mean_p, cov_p = mean_p.expand_as(mean_q), cov_p.expand_as(cov_q)
        if self.spec.get("covariance") == "diagonal":
            cov_q, cov_p = (torch.diag_embed(c.diagonal(dim1=-2, dim2=-1)) for c in (cov_q, cov_p))
        ridge = self.ridge * torch.eye(x.shape[1], dtype=x.dtype)
        expected = kl_divergence(
            MultivariateNormal(mean_q, cov_q + ridge), MultivariateNormal(mean_p, cov_p + ridge)
        ).sum(1)
        torch.testing.assert_close(model.divergence(step), expected, rtol=1e-6, atol=1e-6)

    def test_of_the_prior_from_itself_is_zero(self):
        """The mean weights are where the prior is linearised, the variances its own."""
        model, parameters, step = made(self)
        if model.prior.name != "gaussian_weights":
            pytest.skip("only a weight prior has a posterior equal to it")
        state = step.prior_parameters
        step.parameters = {
            k: torch.full_like(v, math.log(0.7)) if k.startswith("log_var/") else v for k, v in parameters.items()
        }
        step.functions = DrawnNetworks(model.network, {k: v.unsqueeze(1) for k, v in state.items()})
        assert model.divergence(step).abs().max() < 1e-8

    def test_the_largest_of_several_sets_counts_for_each_replica(self):
        model, _, step = made(self)
        sets = [step.sample_context() for _ in range(8)]

        def value(divergence, sets):
            remaining = iter(sets)
            step.sample_context = lambda: next(remaining)
            return divergence(step)

        alone = torch.stack([value(model.divergence, [x]) for x in sets])
        assert len(set(alone.argmax(0).tolist())) > 1, "the test needs replicas whose largest set differs"
        together = value(DIVERGENCES.build({**self.spec, "sets": 8}), sets)
        assert torch.equal(together, alone.amax(0))


class TestLastLayerKL(GaussianContract):
    spec = {"name": "gaussian_kl"}

    def test_the_inner_layers_are_those_of_the_first_function_drawn(self):
        model, _parameters, step = made(self)
        self.context(step)
        value = model.divergence(step)
        drawn = step.functions.parameters
        for sample, same in ((1, True), (0, False)):
            moved = {k: v.clone() for k, v in drawn.items()}
            moved["hidden0.weight"][:, sample] += 1
            step.functions = DrawnNetworks(model.network, moved)
            assert torch.equal(model.divergence(step), value) == same

    def test_without_drawn_weights_it_draws_its_own(self):
        model, _, step = made(self)
        step.functions = None
        assert torch.isfinite(model.divergence(step)).all()

    def test_options_are_checked(self):
        with pytest.raises(ValueError, match="'gaussian_kl': covariance 'fully' is not known; did you mean 'full'"):
            DIVERGENCES.build({"name": "gaussian_kl", "covariance": "fully"})
        with pytest.raises(ValueError, match="jacobian 'half' is not known; known: full, last_layer"):
            DIVERGENCES.build({"name": "gaussian_kl", "jacobian": "half"})


class TestDiagonalKL(GaussianContract):
    spec = {"name": "gaussian_kl", "covariance": "diagonal"}


class TestFullNetworkKL(GaussianContract):
    spec = {"name": "gaussian_kl", "jacobian": "full"}
    parts = {**GaussianContract.parts, "prior": {**WEIGHTS, "centred": False, "jacobian": "full"}}

    def moments_q(self, model, step, x):
        return full_network_moments(model.network, *model.family.gaussian_weights(step.parameters), x)


class TestDiagonalFullNetworkKL(TestFullNetworkKL):
    """rudner2021, algorithm 1."""

    spec = {"name": "gaussian_kl", "jacobian": "full", "covariance": "diagonal", "stop_gradient": True}
    parts = {"family": WIDE, "prior": {"name": "gaussian_functions", "variance": 10.0}, "context": BOX}
    descends = False


class TestRegularisedKL(TestFullNetworkKL):
    spec = {"name": "regularised_kl", "gamma": 1e-3}
    parts = {
        "family": {**WIDE, "name": "linearised_mean_field"},
        "context": BOX,
        "prior": {"name": "gaussian_process", "parameters": {"log_lengthscale": -0.5}},
    }
    ridge = 1e-3 * BOX["points"]


class JointContract(GaussianContract):
    """All outputs at once: their joint Gaussian, not each of them."""

    def test_is_that_of_torch_distributions_summed_over_outputs(self):
        model, _, step = made(self)
        x = self.context(step)
        inner = (
            {k: v[:, 0] for k, v in step.functions.parameters.items()} if self.spec["name"] == "gaussian_kl" else None
        )
        at = model.family.gaussian_weights(step.parameters)
        if inner:
            mean_q, cov_q = last_layer_moments(model.network, inner, *at, x, "joint")
        else:
            mean_q, cov_q = full_network_moments(model.network, *at, x, "joint")
        mean_p, cov_p = model.prior.moments(model.network, step.prior_parameters, x, "joint")
        assert cov_q.shape == cov_p.shape == (R, 1, 2 * x.shape[1], 2 * x.shape[1])
        ridge = self.ridge * torch.eye(2 * x.shape[1], dtype=x.dtype)
        q, p = MultivariateNormal(mean_q, cov_q + ridge), MultivariateNormal(mean_p, cov_p + ridge)
        torch.testing.assert_close(model.divergence(step), kl_divergence(q, p).sum(1), rtol=1e-6, atol=1e-6)


class TestJointLastLayerKL(JointContract):
    spec = {"name": "gaussian_kl", "outputs": "joint"}

    def test_of_independent_outputs_it_is_the_sum_of_theirs(self):
        model, _, step = made(self)
        self.context(step)
        apart = DIVERGENCES.build({"name": "gaussian_kl"})
        torch.testing.assert_close(model.divergence(step), apart(step), rtol=1e-9, atol=1e-9)

    def test_it_has_a_full_covariance(self):
        model = self.model(divergence={**self.spec, "covariance": "diagonal"})
        with pytest.raises(ValueError, match="outputs 'joint' has a full covariance, found 'diagonal'"):
            self.value(model, self.parameters(model))


class TestJointRegularisedKL(JointContract):
    """A network and a process of gradients, whose outputs depend on one another."""

    spec = {"name": "regularised_kl", "gamma": 1e-3, "outputs": "joint"}
    parts = {
        "network": {"name": "vector_field", "hidden": [4, 3]},
        "family": {**WIDE, "name": "linearised_mean_field"},
        "context": BOX,
        "prior": {"name": "gaussian_process", "kernel": {"name": "helmholtz"}, "parameters": {}},
        "likelihood": {"name": "gaussian"},
    }
    ridge = 1e-3 * 2 * BOX["points"]


@pytest.mark.parametrize("option", ["jitter", "covariance"])
def test_the_regularised_kl_takes_nothing_that_it_would_ignore(option):
    with pytest.raises(UnknownPart, match=f"no hyper-parameter '{option}'"):
        DIVERGENCES.build({"name": "regularised_kl", option: 1})


class NearestNeighbourContract(DivergenceContract):
    unfit = None

    def draws(self, model, step):
        """Samples of q and of p, made again from the same random numbers."""
        streams = small.streams(R)
        q = model.network.flatten(model.family.weights(model.network, step.parameters, 8, streams.child("divergence")))
        return q, model.network.flatten(model.prior.weights(model.network, 8, streams.child("prior")))

    def test_is_the_estimate_from_samples_of_both(self):
        model, _, step = made(self)
        q, p = self.draws(model, step)
        if self.spec["space"] == "predictor":
            x = step.sample_context()
            step.sample_context = lambda: x
            q, p = (model.network(model.network.unflatten(w), x).flatten(2) for w in (q, p))
        expected = nearest_neighbour_kl(q, p, self.spec.get("k", 1))
        torch.testing.assert_close(model.divergence(step), expected, rtol=1e-9, atol=1e-9)


class TestNearestNeighbourOfWeights(NearestNeighbourContract):
    spec = {"name": "nearest_neighbour_kl", "space": "parameter", "samples": 8, "k": 2}
    parts = {"family": WIDE, "prior": WEIGHTS}
    unfit = {"family": {"name": "dropout"}}


class TestNearestNeighbourOfGeneratedWeights(NearestNeighbourContract):
    spec = {"name": "nearest_neighbour_kl", "space": "parameter", "samples": 8}
    parts = {"family": {"name": "hypernetwork", "latent": 3, "hidden": [4]}, "prior": WEIGHTS}


class TestNearestNeighbourOfFunctions(NearestNeighbourContract):
    spec = {"name": "nearest_neighbour_kl", "space": "predictor", "samples": 8}
    parts = {"family": {"name": "hypernetwork", "latent": 3, "hidden": [4]}, "prior": WEIGHTS, "context": BOX}
    unfit = {"prior": {"name": "dirichlet"}}

    def test_a_gaussian_process_may_be_the_prior(self):
        prior = {"name": "gaussian_process", "parameters": {"log_lengthscale": -1.0}}
        model = self.model(prior=prior)
        assert torch.isfinite(self.value(model, self.parameters(model))).all()

    def test_space_is_checked(self):
        with pytest.raises(ValueError, match="space 'function' is not known; known: parameter, predictor"):
            DIVERGENCES.build({"name": "nearest_neighbour_kl", "space": "function"})


class TestDirichletKL(DivergenceContract):
    spec = {"name": "dirichlet_kl"}
    parts = {
        "family": {"name": "ensemble", "base": {"name": "point"}, "size": 4, "joint": True},
        "prior": {"name": "dirichlet", "concentrations": 2.0},
        "context": {"name": "training_batch"},
    }
    outputs = 3
    unfit = {"prior": WEIGHTS}
    descends = False  # the fitted Dirichlet is constant in the gradient

    def test_is_the_sum_over_points_of_the_kl_of_fitted_dirichlets(self):
        model, _, step = made(self)
        f = smooth(torch.softmax(step.values, -1), 1e-4)
        alpha = fit_dirichlet(f, 3.0, float(N))
        expected = dirichlet_kl_monte_carlo(f, alpha, torch.full((3,), 2.0, dtype=torch.float64)).mean(1)
        torch.testing.assert_close(model.divergence(step), expected)

    def test_one_sample_has_precision_n_for_n_training_points(self):
        model = self.model(family={"name": "point"})
        step = small.step(model, self.parameters(model), small.training_data(R, N, 3), small.streams(R))
        step.n_train = 500
        f = smooth(torch.softmax(step.values, -1), 1e-4)
        expected = dirichlet_kl_monte_carlo(f, 500 * f[:, 0], torch.full((3,), 2.0, dtype=torch.float64)).mean(1)
        torch.testing.assert_close(model.divergence(step), expected)

    @pytest.mark.parametrize(("context", "passes"), [({"name": "training_batch"}, 1), (BOX, 2)])
    def test_the_training_batch_needs_no_second_forward_pass(self, monkeypatch, context, passes):
        model = self.model(context=context)
        calls, run = [], Network._run
        monkeypatch.setattr(Network, "_run", lambda *a, **k: calls.append(1) or run(*a, **k))
        self.value(model, self.parameters(model))
        assert len(calls) == passes


def test_a_last_layer_of_points_is_named():
    family = {"name": "mean_field", "layers": "hidden"}
    model = small.model({"family": family, "divergence": {"name": "gaussian_kl"}, "prior": WEIGHTS, "context": BOX}, 2)
    start = model.family.init(model.network, small.streams(R))
    with pytest.raises(NotSupported, match="needs a Gaussian last layer, and that of family 'mean_field' is a point"):
        model.divergence(small.step(model, start, small.training_data(R, N, 2), small.streams(R)))


def test_names_and_views_that_are_not_there():
    with pytest.raises(UnknownPart, match="divergence 'weightkl' is not known; did you mean 'weight_kl'"):
        DIVERGENCES.build({"name": "weightkl"})
    with pytest.raises(UnknownPart, match="prior 'gaussian' is not known; did you mean"):
        PRIORS.build({"name": "gaussian"})
