"""Variational implicit processes: the family's contract, Bayesian linear regression in closed form, the
alpha-energy.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from fvi_core.contexts import ContextSource
from fvi_core.families.implicit_process import COEFFICIENTS, FACTOR, NOISE
from fvi_core.held import Held
from fvi_core.likelihoods import LIKELIHOODS
from fvi_core.training import Training
from tests.fvi_core import small
from tests.fvi_core.contracts import FamilyContract, N, R

D = 5
VIP = {
    "family": {"name": "implicit_process", "draws": D, "std_init": 0.8},
    "divergence": {"name": "weight_kl"},
    "prior": {"name": "gaussian_weights", "variance": 1.0},
}


class TestImplicitProcess(FamilyContract):
    spec = VIP["family"]

    def parameters(self, replicas=range(R)):
        parameters = super().parameters(replicas)
        draws = small.streams(R, name="q").subset(replicas)
        return parameters | {COEFFICIENTS: draws.normal(D), FACTOR: 0.3 * draws.normal(D, D)}


def made(**options):
    model = small.model({**VIP, "likelihood": {"name": "gaussian", "init_std": 0.4}, "weight": options})
    return model, model.family.init(model.network, small.streams(R)), model.likelihood.init(R, torch.float64)


def test_the_prior_has_the_moments_of_the_draws():
    """At the start q(a) is p(a): mean and variance of the functions are those of D networks, divided by D - 1."""
    model, parameters, _ = made()
    x = small.inputs(R, N)
    means = model.network.flatten({k: parameters["mean/" + k] for k in model.network.shapes}).unsqueeze(1)
    f = model.network(model.network.unflatten(means + 0.8 * parameters[NOISE]), x)
    mean, variance = model.family.marginals(model.network, parameters, x)
    torch.testing.assert_close(mean, f.mean(1))
    torch.testing.assert_close(variance, f.var(1))


def test_the_divergence_is_that_of_the_coefficients():
    model, parameters, _ = made()
    parameters |= {COEFFICIENTS: small.streams(R).normal(D), FACTOR: 0.5 * small.streams(R).normal(D, D)}
    factor = model.family.factor(parameters)
    assert (factor.triu(1) == 0).all() and (factor.diagonal(dim1=-2, dim2=-1) > 0).all()
    step = small.step(model, parameters, small.training_data(R, N), small.streams(R))
    q = MultivariateNormal(parameters[COEFFICIENTS], scale_tril=factor)
    exact = kl_divergence(q, MultivariateNormal(torch.zeros(D).double(), torch.eye(D).double()))
    torch.testing.assert_close(model.divergence(step), exact)
    wide = model.family.weight_kl(model.network, parameters, 0.5, 2.0, None)
    other = MultivariateNormal(torch.full((D,), 0.5).double(), 2 * torch.eye(D).double())
    torch.testing.assert_close(wide, kl_divergence(q, other))


def loss(model, parameters, likelihood, data):
    source = ContextSource(data.x, data.low, data.high, {})
    names = ("functions", "context", "divergence", "prior")
    streams = {name: small.streams(R).child(name) for name in names}
    return model.loss(parameters, likelihood, {}, data.x, data.y, data.x.shape[1], 4, source, streams)


def test_without_alpha_the_optimum_is_bayesian_linear_regression_and_its_value_the_log_evidence():
    model, parameters, likelihood = made()
    data = small.training_data(R, 12)
    mean, deviations = model.family.basis(model.network, parameters, data.x)
    mean, phi, noise = mean[..., 0], deviations[..., 0].mT, 0.4**2
    precision = phi.mT @ phi / noise + torch.eye(D).double()
    covariance = torch.linalg.inv(precision)
    centre = covariance @ phi.mT @ (data.y - mean).unsqueeze(-1) / noise
    raw = torch.linalg.cholesky(covariance)
    raw = raw.tril(-1) + torch.diag_embed(raw.diagonal(dim1=-2, dim2=-1).log())
    parameters |= {COEFFICIENTS: centre.squeeze(-1).requires_grad_(), FACTOR: raw.requires_grad_()}
    found = loss(model, parameters, likelihood, data)
    gradients = torch.autograd.grad(found.sum(), [parameters[COEFFICIENTS], parameters[FACTOR]])
    assert all(gradient.abs().max() < 1e-10 for gradient in gradients)
    evidence = MultivariateNormal(mean, phi @ phi.mT + noise * torch.eye(12).double()).log_prob(data.y)
    torch.testing.assert_close(-12 * found, evidence)
    # And prediction is that of the regression.
    x = small.inputs(R, 4) + 1
    there, features = model.family.basis(model.network, parameters, x)
    predicted, variance = model.family.marginals(model.network, parameters, x)
    features = features[..., 0].mT
    torch.testing.assert_close(predicted, there + features @ centre)
    torch.testing.assert_close(variance[..., 0], (features @ covariance @ features.mT).diagonal(dim1=-2, dim2=-1))


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 1.0])
def test_the_alpha_energy_of_a_point_is_that_of_numeric_integration(alpha):
    gaussian = LIKELIHOODS.build({"name": "gaussian", "init_std": 0.7})
    params = gaussian.init(1, torch.float64)
    mean, var, y = (torch.tensor([[v]]).double() for v in (0.3, 0.5, 1.4))
    f = torch.linspace(-8, 8, 20001).double()
    density = Normal(mean[0], var[0].sqrt()).log_prob(f).exp() * (alpha * Normal(f, 0.7).log_prob(y[0])).exp()
    numeric = torch.trapezoid(density, f).log() / alpha
    found = gaussian.log_mean_power_gaussian(params, mean.unsqueeze(-1), var.unsqueeze(-1), y, alpha)
    torch.testing.assert_close(found[0], numeric.view(1), rtol=1e-6, atol=1e-8)
    vector = gaussian.log_mean_power_gaussian(
        params, mean.expand(1, 1, 3), var.expand(1, 1, 3), y.unsqueeze(-1).expand(1, 1, 3), alpha
    )
    torch.testing.assert_close(vector, 3 * found)
    if alpha == 1.0:
        torch.testing.assert_close(found, Normal(mean, (var + 0.49).sqrt()).log_prob(y))
    if alpha == 1e-3:
        expected = gaussian.expected_log_prob_gaussian(params, mean.unsqueeze(-1), var.unsqueeze(-1), y)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("alpha", [1e-8, 1e-3, 0.09])
def test_a_small_power_keeps_its_digits_in_single_precision(alpha):
    gaussian, streams = LIKELIHOODS.build({"name": "gaussian", "init_std": 0.7}), small.streams(2)
    mean, var, y = streams.normal(9, 2), streams.uniform(9, 2) + 0.1, streams.normal(9, 2)
    noise = gaussian.noise_std(params := gaussian.init(2))[:, None, None].double().square()
    # log E exp(a l) of a quadratic l, in double precision
    exact = -0.5 * (torch.log1p(alpha * var / noise) / alpha + (y - mean).square() / (noise + alpha * var))
    exact = (exact - 0.5 * (2 * math.pi * noise).log()).sum(-1)
    found = gaussian.log_mean_power_gaussian(params, mean.float(), var.float(), y.float(), alpha)
    torch.testing.assert_close(found.double(), exact, rtol=3e-6, atol=3e-6)
    model = small.model({**VIP, "weight": {"alpha": alpha}}, 3)
    f, labels = streams.normal(5, 9, 3), streams.integers(3, 9)
    powers = torch.special.logsumexp(alpha * model.likelihood.log_prob({}, f, labels), 1)
    exact = ((powers - math.log(5)) / alpha).mean(1)
    found = model._sampled_term({}, f.float(), labels).double()
    torch.testing.assert_close(found, exact, rtol=3e-6, atol=3e-6)


def test_the_objective_sums_these_terms_and_the_divergence():
    model, parameters, likelihood = made(alpha=0.5)
    parameters |= {COEFFICIENTS: small.streams(R).normal(D)}
    data = small.training_data(R, 12)
    marginals = model.family.marginals(model.network, parameters, data.x)
    terms = model.likelihood.log_mean_power_gaussian(likelihood, *marginals, data.y, 0.5)
    kl = model.family.weight_kl(model.network, parameters, 0.0, 1.0, None)
    torch.testing.assert_close(loss(model, parameters, likelihood, data), -(terms.sum(1) - kl) / 12)


def test_of_classes_the_power_is_averaged_over_draws():
    model = small.model({**VIP, "weight": {"alpha": 0.5}}, 3)
    parameters, data = model.family.init(model.network, small.streams(R)), small.training_data(R, 12, 3)
    f = model.family.functions(model.network, parameters, 4, small.streams(R).child("functions"))(data.x)
    p = f.softmax(-1).gather(-1, data.y[:, None, :, None].expand(-1, 4, -1, 1))[..., 0]
    expected = -(p.sqrt().mean(1).log() / 0.5).mean(1)  # q(a) is p(a) still, so the divergence is 0
    torch.testing.assert_close(loss(model, parameters, {}, data), expected)


@pytest.mark.parametrize("outputs", [1, 3])
def test_it_trains_and_its_draws_stay(outputs):
    model, data = small.model({**VIP, "weight": {"alpha": 0.5}}, outputs), small.training_data(R, 20, outputs)
    training = Training(60, 20, {"name": "adam", "lr": 0.02, "weight_decay": 0.01}, samples=5, dtype="float64")
    trained = training.start(model, data, small.streams(R)).run()
    start = model.family.init(model.network, small.streams(R).child("init"))
    for r, each in enumerate(trained):
        assert each.loss[-1] < each.loss[0] - 0.05 and math.isfinite(each.loss[-1])
        assert torch.equal(each.parameters[NOISE], start[NOISE][r : r + 1])
        assert not torch.equal(each.parameters[FACTOR], start[FACTOR][r : r + 1])
        assert set(Held.of(each.parameters).family) == set(start)


@pytest.mark.parametrize(("outputs", "samples"), [(3, 1), (3, 2), (1, 1)])
def test_of_classes_a_power_of_a_single_draw_has_no_effect_and_says_so(outputs, samples):
    losses = []
    for alpha in (0.5, 0.0):
        model = small.model({**VIP, "weight": {"alpha": alpha}}, outputs)
        training = Training(1, 20, {"name": "adam", "lr": 0.02}, samples=samples, dtype="float64")
        (trained,) = training.start(model, small.training_data(1, 20, outputs), small.streams(1)).run()
        losses.append(trained.loss[0])
        warned = outputs == 3 and samples == 1 and alpha > 0
        assert trained.warnings == ["weight: alpha 0.5 has no effect with one draw in training (samples 1)"] * warned
    assert (losses[0] == pytest.approx(losses[1], rel=1e-12)) == (outputs == 3 and samples == 1)


def test_of_one_draw_from_a_family_without_moments_a_power_has_no_effect_and_says_so_for_numbers_too():
    parts = {"family": {"name": "mean_field"}, "divergence": VIP["divergence"], "prior": VIP["prior"]}
    model, training = (
        small.model({**parts, "weight": {"alpha": 0.5}}),
        Training(1, 20, {"name": "adam"}, dtype="float64"),
    )
    (trained,) = training.start(model, small.training_data(1, 20), small.streams(1)).run()
    assert trained.warnings == ["weight: alpha 0.5 has no effect with one draw in training (samples 1)"]


def test_wrong_options_are_named():
    with pytest.raises(ValueError, match="'implicit_process': draws: expected 2 or more, found 1"):
        small.model({**VIP, "family": {"name": "implicit_process", "draws": 1}})
    with pytest.raises(ValueError, match="alpha must be 0 or more, found -1"):
        small.model({**VIP, "weight": {"alpha": -1}})


@pytest.mark.parametrize("family", [VIP["family"], {"name": "linearised_mean_field", "log_var_init": [-1.0, 0.0]}])
def test_a_likelihood_of_independent_outputs_is_refused(family):
    parts = {**VIP, "family": family}
    model = small.model(parts, 3)
    parameters, x = model.family.init(model.network, small.streams(R)), small.inputs(R, 1)
    f = model.family.functions(model.network, parameters, 20_000, small.streams(R))(x)[:, :, 0]
    correlations = torch.stack([own.T.corrcoef() for own in f])
    assert correlations.triu(1).abs().amax() > 0.1  # the outputs at an input depend on each other
    with pytest.raises(TypeError, match="'robust_max' is for independent outputs, and those of family .* share random"):
        small.model({**parts, "likelihood": {"name": "robust_max"}}, 3)
    with pytest.raises(TypeError, match="'robust_max' is for independent outputs"):
        small.model({**parts, "family": {"name": "ensemble", "base": family}, "likelihood": {"name": "robust_max"}}, 3)
