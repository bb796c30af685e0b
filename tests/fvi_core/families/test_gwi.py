"""Gaussian Wasserstein inference against closed forms of Gaussians and moments written out."""

import math

import pytest
import torch

import fvi_core as fvi
from fvi_core.data import TrainingSet
from fvi_core.divergences.gaussian import root_trace
from fvi_core.families.base import NotSupported
from fvi_core.families.gwi import FACTOR, inverse_factor, inverse_factor_of_sum
from fvi_core.families.sparse_gp import INPUTS
from fvi_core.gaussian_process import fit_kernel, posterior
from fvi_core.held import CONSTANT
from fvi_core.kernels import KERNELS
from fvi_core.likelihoods import RobustMax
from fvi_core.registry import FAMILIES, LIKELIHOODS
from fvi_core.training import Training
from tests.fvi_core import small
from tests.fvi_core.contracts import DivergenceContract, FamilyContract, N, R

M = 4
SPEC = {"name": "gwi", "kernel": {"name": "rbf"}, "points": M, "fit_steps": 3}
BATCH = {"name": "training_batch"}
W2 = {"family": SPEC, "divergence": {"name": "gaussian_wasserstein"}, "context": BATCH}


class TestGWI(FamilyContract):
    spec = SPEC
    one_function = False  # what inducing values leave open is drawn at every call

    def parameters(self, replicas=range(R)):
        both = small.moved(self.family().init(self.network(), small.streams(R)))
        return {k: v[list(replicas)] for k, v in both.items()}

    def test_moments_are_the_network_and_the_covariance_of_the_paper(self):
        family, network, parameters, x = self.family(), self.network(), self.parameters(), small.inputs(R, N)
        kernel = KERNELS.build(SPEC["kernel"])
        hyper = {k: parameters[CONSTANT + k] for k in ("log_variance", "log_lengthscale")}
        z, factor = parameters[CONSTANT + INPUTS], parameters[FACTOR].tril()
        k_xz, gram = kernel(hyper, x, z), kernel(hyper, z, z) + 1e-6 * torch.eye(M)
        left = kernel(hyper, x, x) - k_xz @ torch.linalg.inv(gram) @ k_xz.mT
        r = left[:, None] + k_xz[:, None] @ factor @ factor.mT @ k_xz.mT[:, None]
        mean, variance = family.marginals(network, parameters, x)
        torch.testing.assert_close(family.process(parameters).covariance(x, x), r, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(variance, r.diagonal(dim1=-2, dim2=-1).mT, rtol=1e-9, atol=1e-9)
        weights = {name: parameters[name][:, None] for name in network.shapes}
        assert torch.equal(mean, network(weights, x)[:, 0])

    def test_its_inducing_values_have_no_divergence_of_the_whole_process(self):
        with pytest.raises(NotSupported, match="'gwi' is about a network.* use 'gaussian_wasserstein'"):
            self.family().inducing_values(self.parameters())

    def test_its_factor_starts_at_the_covariance_of_a_process_that_has_seen_further_points(self):
        """With as many inducing points as inputs both are all inputs: the posterior of exact regression."""
        data = small.training_data(R, N)
        model, trainer = trained({**W2, "family": {**SPEC, "points": N, "jitter": 1e-10}}, data, 1)
        parameters = trainer.parameters
        hyper = {k: parameters[CONSTANT + k] for k in ("log_variance", "log_lengthscale")}
        assert not torch.equal(hyper["log_variance"], torch.zeros(R).double())  # fitted
        x = small.inputs(R, 5) * 1.5
        _, variance = model.family.marginals(model.network, parameters, x)
        kernel = KERNELS.build(SPEC["kernel"])
        _, noise = fit_kernel(kernel, data.x, data.y, small.streams(R), steps=3, lr=0.1)
        _, exact = posterior(kernel, hyper, noise, data.x, data.y, x)
        torch.testing.assert_close(variance[..., 0], exact, rtol=1e-4, atol=1e-6)

    def test_its_factor_starts_from_the_further_points_where_these_are_not_the_inducing_points(self):
        """``L L^T = (K_ZZ + k_ZZ' k_Z'Z / noise)^-1`` with M of N inputs each (docstring of the family)."""
        data, network = small.training_data(R, 3 * M), self.network()
        family = FAMILIES.build({**SPEC, "jitter": 1e-10})
        train = TrainingSet(data.x, data.y, 1, False)
        start = family.init(network, small.streams(R))
        found = family.prepare(network, start, train, small.streams(R, name="fit"))
        streams = small.streams(R, name="fit")
        (index, z), (_, further) = family.random_inputs(train, streams), family.random_inputs(train, streams)
        assert torch.equal(z, found[CONSTANT + INPUTS]) and not torch.equal(z.sort(1)[0], further.sort(1)[0])
        kernel = KERNELS.build(SPEC["kernel"])
        hyper, noise = fit_kernel(kernel, z, data.y.gather(1, index), streams, steps=3, lr=0.1)
        cross = kernel(hyper, z, further)
        precision = kernel(hyper, z, z) + 1e-10 * torch.eye(M) + cross @ cross.mT / noise[:, None, None]
        factor = found[FACTOR][:, 0].tril()
        torch.testing.assert_close(factor @ factor.mT, torch.linalg.inv(precision), rtol=1e-6, atol=1e-8)

    def test_its_kernel_is_fitted_in_the_numbers_and_from_the_start_of_its_settings(self):
        data, network = small.training_data(R, 3 * M), self.network()
        family = FAMILIES.build({**SPEC, "fit_transform": "softplus", "fit_start": "one"})
        train = TrainingSet(data.x, data.y, 1, False)
        found = family.prepare(network, family.init(network, small.streams(R)), train, small.streams(R, name="fit"))
        streams = small.streams(R, name="fit")
        (index, z), _ = family.random_inputs(train, streams), family.random_inputs(train, streams)
        options = {"steps": 3, "lr": 0.1, "transform": "softplus", "start": "one"}
        hyper, _ = fit_kernel(KERNELS.build(SPEC["kernel"]), z, data.y.gather(1, index), streams, **options)
        assert all(torch.equal(value, found[CONSTANT + name]) for name, value in hyper.items())


class TestGaussianWasserstein(DivergenceContract):
    spec = W2["divergence"]
    parts = {"family": SPEC, "context": BATCH}
    unfit = {"family": {"name": "mean_field"}}
    outputs = 2

    def start(self, model):
        return small.moved(super().start(model))

    def expected(self, model, parameters, x):
        """Squared 2-Wasserstein distance of the Gaussians of all values at x, each point with weight 1 / N:
        1/N [ |m|^2 + tr K + tr R - 2 tr (K^1/2 R K^1/2)^1/2 ].
        """
        mean, _ = model.family.marginals(model.network, parameters, x)
        process = model.family.process(parameters)
        total = mean.square().sum((1, 2))
        prior = process.prior_covariance(x, x)
        values, vectors = torch.linalg.eigh(prior)
        root = vectors @ torch.diag_embed(values.clamp_min(0).sqrt()) @ vectors.mT
        for r in process.covariance(x, x).unbind(1):
            shared = torch.linalg.eigvalsh(root @ r @ root).clamp_min(0).sqrt().sum(-1)
            total = total + prior.diagonal(dim1=1, dim2=2).sum(1) + r.diagonal(dim1=1, dim2=2).sum(1) - 2 * shared
        return total / x.shape[1]

    def test_at_the_points_themselves_it_is_that_of_finitely_many_gaussians(self):
        model = self.model()
        parameters = self.parameters(model)
        with torch.no_grad():
            expected = self.expected(model, parameters, small.training_data(R, N).x)
            torch.testing.assert_close(self.value(model, parameters), expected, rtol=1e-8, atol=1e-8)

    def test_few_context_points_come_close_to_it(self):
        model = self.model(context={"name": "training_batch", "points": 150})
        parameters = {k: v.detach() for k, v in self.parameters(model).items()}
        data = small.training_data(R, 400)
        found = model.divergence(small.step(model, parameters, data, small.streams(R)))
        torch.testing.assert_close(found, self.expected(model, parameters, data.x), rtol=0.05, atol=0)

    def test_of_the_prior_from_itself_is_zero(self):
        model = self.model()
        parameters = {k: v.detach() for k, v in self.parameters(model).items()}
        root = model.family.process(parameters).points.factor
        whole = torch.linalg.inv(root @ root.mT)
        parameters |= {k: torch.zeros_like(parameters[k]) for k in model.network.shapes}
        parameters[FACTOR] = torch.linalg.cholesky(whole)[:, None].expand(-1, 2, -1, -1)
        assert self.value(model, parameters).abs().max() < 1e-5

    def test_the_mean_of_the_prior_and_the_root_of_the_code(self):
        plain, shifted = self.model(), self.model(divergence={**self.spec, "prior_mean": 0.7})
        rooted = self.model(divergence={**self.spec, "root": True})
        parameters = self.parameters(plain)
        value = self.value(plain, parameters)
        torch.testing.assert_close(self.value(rooted, parameters).square(), value, rtol=1e-10, atol=0)
        mean, _ = plain.family.marginals(plain.network, parameters, small.training_data(R, N).x)
        further = ((mean - 0.7).square() - mean.square()).mean(1).sum(-1)
        torch.testing.assert_close(self.value(shifted, parameters) - value, further, rtol=1e-8, atol=1e-8)

    def test_marginals_that_the_likelihood_has_made_are_not_made_again(self, monkeypatch):
        model, data = self.model(likelihood={"name": "robust_max"}), small.training_data(R, N, 2)
        streams = {name: small.streams(R) for name in ("functions", "context", "divergence", "prior")}
        calls, run = [], type(model.network)._run
        monkeypatch.setattr(type(model.network), "_run", lambda *a, **k: calls.append(1) or run(*a, **k))
        source = small.ContextSource(data.x, data.low, data.high, data.pools)
        loss = model.loss(self.parameters(model), {}, {}, data.x, data.y, 50, 1, source, streams)
        assert torch.isfinite(loss).all() and len(calls) == 1


def test_the_trace_of_the_root_has_the_gradient_of_its_value():
    streams = small.streams(2)
    x, s = streams.normal(7, 2), streams.normal(4, 2)
    kernel = KERNELS.build({"name": "matern52"})
    k = kernel(kernel.init(2, 2), s, x)
    noise = 0.1 * streams.normal(3, 4, 7)
    r = (k[:, None] + noise).requires_grad_()
    assert torch.autograd.gradcheck(lambda r: root_trace(r, k), r, rtol=1e-4)
    assert torch.autograd.gradcheck(root_trace, (r, k.requires_grad_()), rtol=1e-4)


def test_the_inverse_factor_of_a_sum_is_that_of_its_matrix():
    streams = small.streams(2)
    root, rows = streams.normal(1, 4, 4).tril() + 2 * torch.eye(4), streams.normal(3, 4, 6)
    found, expected = inverse_factor_of_sum(root, rows), torch.linalg.inv(root @ root.mT + rows @ rows.mT)
    assert torch.equal(found, found.tril())
    torch.testing.assert_close(found @ found.mT, expected, rtol=1e-10, atol=1e-10)


def test_targets_without_noise_have_a_start():
    """Planes, to which the kernel fits a variance of which noise and jitter are tiny parts."""
    x = small.streams(2).normal(20, 3)
    family = FAMILIES.build({**SPEC, "points": 20, "fit_steps": 100})
    network = small.network({"name": "mlp", "hidden": [3]}, 2, (3,))
    train = TrainingSet(x, x[..., :2], 2, False)
    start = family.prepare(network, family.init(network, small.streams(2)), train, small.streams(2))
    variance = family.process(start).moments(x)[1]
    assert (variance < 1e-3 * start[CONSTANT + "log_variance"].exp()[:, None, None]).all()


def test_processes_have_nothing_in_common_at_points_where_the_kernel_is_zero():
    """A squared-exponential kernel rounds to 0 beyond 39 length-scales."""
    r = torch.ones(1, 1, 2, 3, dtype=torch.float64, requires_grad=True)
    found = root_trace(r, torch.zeros(1, 2, 3, dtype=torch.float64))
    assert found.tolist() == [[0.0]]
    assert torch.equal(torch.autograd.grad(found.sum(), r)[0], torch.zeros_like(r))


@pytest.mark.parametrize("name", ["rbf", "matern52"])
def test_a_process_that_trains_its_kernel_has_the_gradient_of_its_distance(name):
    family = {"name": "sparse_gp", "kernel": {"name": name}, "points": M}
    model, data = small.model({**W2, "family": family}), small.training_data(1, N)
    start = small.moved(model.family.init(model.network, small.streams(1)))

    def distance(*values):
        step = small.step(model, dict(zip(start, values, strict=True)), data, small.streams(1))
        return model.divergence(step).sum()

    values = [value.detach().requires_grad_() for value in start.values()]
    assert torch.autograd.gradcheck(distance, values, rtol=1e-4, atol=1e-6)


def test_a_lower_factor_of_the_inverse():
    a = small.streams(R).normal(2, M, M)
    matrix = a @ a.mT + torch.eye(M)
    factor = inverse_factor(matrix)
    assert torch.equal(factor, factor.tril())
    torch.testing.assert_close(factor @ factor.mT, torch.linalg.inv(matrix), rtol=1e-9, atol=1e-9)


def trained(parts, data, epochs, streams=None, outputs=1, **options):
    model = small.model(parts, outputs)
    options = {"batch_size": 10, "optimiser": {"name": "adam", "lr": 0.02}, "dtype": "float64"} | options
    return model, Training(epochs, **options).start(model, data, streams or small.streams(len(data.x)))


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_stack_is_each_replica_alone_and_constants_stay(outputs):
    likelihood = {"name": "gaussian"} if outputs == 1 else {"name": "robust_max"}
    parts, data = {**W2, "likelihood": likelihood}, small.training_data(R, 20, outputs)
    _, trainer = trained(parts, data, 3, outputs=outputs)
    start = {k: v.clone() for k, v in trainer.parameters.items()}
    together = trainer.run()
    for r in range(R):
        _, alone = trained(parts, small.one(data, r), 3, small.streams(R).subset([r]), outputs)
        (own,) = alone.run()
        assert own.reason is None and own.loss == together[r].loss
        for name, value in own.parameters.items():
            assert torch.equal(value, together[r].parameters[name])
            assert torch.equal(value, start[name][r : r + 1]) == name.startswith(CONSTANT), name


def test_inducing_points_are_training_inputs():
    _, trainer = trained(W2, data := small.training_data(R, 20), 1)
    for z, x in zip(trainer.parameters[CONSTANT + INPUTS], data.x, strict=True):
        assert (z[:, None] == x).all(-1).any(-1).all()


def test_it_learns_classes_and_predicts_one_distribution():
    data = small.training_data(R, 40, 3)
    parts = {**W2, "family": {**SPEC, "points": 6, "fit_steps": 10}, "likelihood": {"name": "robust_max"}}
    model, trainer = trained(parts, data, 60, outputs=3, batch_size=40, optimiser={"name": "adam", "lr": 0.05})
    for r, result in enumerate(trainer.run()):
        fitted = model.after_training(result.parameters, data.of(r), small.streams(1))
        x = data.x[r : r + 1]
        f, marginals = model.functions(fitted, 20, small.streams(1))(x)[0], model.marginals(fitted, x)
        p = model.likelihood.predicted(f, tuple(m[0] for m in marginals)).exp()
        assert p.shape == (1, 40, 3)
        torch.testing.assert_close(p.sum(-1), torch.ones(1, 40).double(), rtol=0, atol=0.05)
        assert (p[0].argmax(-1) == data.y[r]).double().mean() > 0.7


def test_robust_max_is_that_of_many_draws():
    likelihood = LIKELIHOODS.build({"name": "robust_max", "epsilon": 0.03})
    mean, var = small.streams(1).normal(5, 4)[0], small.streams(1, name="var").normal(5, 4)[0].exp()
    f = mean + var.sqrt() * small.streams(1, name="f").normal(100000, 5, 4)[0]
    won = torch.nn.functional.one_hot(f.argmax(-1), 4).double().mean(0)
    for k in range(4):
        torch.testing.assert_close(likelihood.winning(mean, var, torch.full((5,), k)), won[:, k], rtol=0, atol=0.006)
    mixture = (0.97 * won + 0.01 * (1 - won)).log()
    torch.testing.assert_close(likelihood.predicted(f[:3], (mean, var))[0], mixture, rtol=0, atol=0.05)


def test_the_expected_power_of_robust_max_is_that_of_many_draws():
    likelihood = LIKELIHOODS.build({"name": "robust_max", "epsilon": 0.3})
    mean, var = small.streams(2).normal(5, 3), small.streams(2, name="var").uniform(5, 3) + 0.1
    y = small.streams(2, name="y").integers(3, 5)
    f = mean.unsqueeze(1) + var.sqrt().unsqueeze(1) * small.streams(2, name="f").normal(20000, 5, 3)
    power = (0.5 * likelihood.log_prob({}, f, y)).exp().mean(1)
    found = likelihood.log_mean_power_gaussian({}, mean, var, y, 0.5)
    torch.testing.assert_close(found, power.log() / 0.5, rtol=0, atol=0.02)
    nearly = likelihood.log_mean_power_gaussian({}, mean, var, y, 1e-6)
    torch.testing.assert_close(nearly, likelihood.expected_log_prob_gaussian({}, mean, var, y), rtol=1e-4, atol=1e-4)


def test_robust_max_of_two_classes_is_the_normal_distribution_function():
    mean, var = small.streams(1).normal(6, 2)[0], small.streams(1, name="var").normal(6, 2)[0].exp()
    expected = torch.special.ndtr((mean[:, 0] - mean[:, 1]) / var.sum(1).sqrt())
    torch.testing.assert_close(RobustMax().winning(mean, var, torch.zeros(6).long()), expected, rtol=1e-4, atol=1e-5)
    certain = RobustMax().winning(mean, var * 0, mean.argmax(1))
    torch.testing.assert_close(certain, torch.ones(6).double(), rtol=1e-6, atol=1e-6)


def test_robust_max_checks_its_options_and_names_families_that_cannot_train_on_it():
    for wrong, said in (
        ({"epsilon": 0.0}, "epsilon: expected above 0 and below 1"),
        ({"points": 0}, "points: expected 1"),
    ):
        with pytest.raises(ValueError, match=f"'robust_max': {said}"):
            LIKELIHOODS.build({"name": "robust_max", **wrong})
    model, data = (
        small.model({"family": {"name": "mean_field"}, "likelihood": {"name": "robust_max"}}, 3),
        small.training_data(R, N, 3),
    )
    with pytest.raises(TypeError, match="likelihood 'robust_max' is trained on moments .* family 'mean_field' has not"):
        model.loss(model.family.init(model.network, small.streams(R)), {}, {}, data.x, data.y, N, 1, None, {})
    assert math.isclose(math.exp(model.likelihood.values(torch.tensor([0.0, 2.0, 1.0]))[1]), 0.99, rel_tol=1e-6)


def test_labels_are_learned_where_no_likelihood_is_chosen():
    x = small.streams(1).normal(120, 2)[0].float()
    y = (x[:, 0] * x[:, 1] > 0).long()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 30), torch.nn.Tanh(), torch.nn.Linear(30, 2))
    posterior = fvi.fit(net, (x, y), "GWI", epochs=100, optimiser={"name": "adam", "lr": 0.01}, progress=False)
    assert posterior.model.likelihood.name == "robust_max" and posterior.score(x, y)["accuracy"] > 0.9
