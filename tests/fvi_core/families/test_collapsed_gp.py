"""Sparse processes with the best inducing values, against GPyTorch, other values and exact regression."""

from dataclasses import replace

import gpytorch
import pytest
import torch

from fvi_core.families.base import FitData, NotSupported
from fvi_core.families.sparse_gp import FACTOR, INPUTS, MEAN, collapsed
from fvi_core.gaussian_process import log_marginal_likelihood, posterior
from fvi_core.held import Held
from fvi_core.registry import KERNELS, LIKELIHOODS
from fvi_core.training import Training
from tests.fvi_core import small
from tests.fvi_core.contracts import FamilyContract, N, R

M = 4
SPEC = {"name": "collapsed_gp", "kernel": {"name": "rbf"}, "points": M}
NOISE = torch.linspace(-1.5, 0.5, R).double()


def conditioned(family, network, data, parameters, std=0.3):
    """Parameters after training, of targets with noise of a standard deviation."""
    likelihood = LIKELIHOODS.build({"name": "gaussian", "init_std": std})
    fitting = FitData(network, family, likelihood, data.x, data.y, small.streams(len(data.x)))
    start = Held(parameters, likelihood.init(len(data.x), torch.float64)).flat()
    return Held.of(family.condition(start, fitting)).family


class TestCollapsedGP(FamilyContract):
    spec = SPEC
    one_function = False  # what inducing values leave open is drawn at every call

    def parameters(self, replicas=range(R)):
        family, network, data = self.family(), self.network(), small.training_data(R, 2 * N)
        free = small.moved(family.init(network, small.streams(R)))
        y = torch.stack([data.y, data.y.cos()], -1)
        data = replace(data, y=y)
        return {k: v[list(replicas)] for k, v in conditioned(family, network, data, free).items()}


def start(**changes):
    model, data = small.model({"family": SPEC | changes}), small.training_data(R, 2 * N)
    free = small.moved(model.family.init(model.network, small.streams(R)))
    return model, data, free


def loss(model, parameters, data):
    streams = {"functions": None, "divergence": None, "prior": None}
    n = data.x.shape[1]
    return n * model.loss(parameters, {"rho": NOISE}, {}, data.x, data.y, n, 1, None, streams)


class Titsias(gpytorch.models.ExactGP):
    """GPyTorch's exact process, to which a test gives a kernel of inducing points."""

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(torch.zeros(len(x)).double(), self.covar_module(x))


def test_bound_is_that_of_gpytorch():
    model, data, free = start(jitter=0.0)
    variance = model.likelihood.noise_std({"rho": NOISE}).square()
    found = -loss(model, free, data)
    for r in range(R):
        base = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2)).double()
        base.outputscale, base.base_kernel.lengthscale = (free[k][r].exp() for k in ("log_variance", "log_lengthscale"))
        gaussian = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=gpytorch.constraints.Positive()).double()
        gaussian.noise = variance[r]
        other = Titsias(data.x[r], data.y[r], gaussian)
        other.covar_module = gpytorch.kernels.InducingPointKernel(base, free[INPUTS][r], gaussian)
        other.train()
        with torch.no_grad():
            expected = gpytorch.mlls.ExactMarginalLogLikelihood(gaussian, other)(other(data.x[r]), data.y[r])
        torch.testing.assert_close(found[r], expected * data.x.shape[1], rtol=1e-6, atol=1e-5)


def test_no_other_inducing_values_have_a_larger_bound():
    model, data, free = start()
    y = torch.stack([data.y, data.y.cos()], -1)
    variance = model.likelihood.noise_std({"rho": NOISE}).square()
    bound, mean, factor = collapsed(model.family.inducing_points(free), variance, data.x, y)
    other = small.model({"family": {**SPEC, "name": "sparse_gp"}, "divergence": {"name": "inducing_kl"}})
    lower = torch.linalg.cholesky(factor @ factor.mT)
    raw = lower.tril(-1) + torch.diag_embed(lower.diagonal(dim1=-2, dim2=-1).log())
    bounds = []
    for q in range(2):
        best = {MEAN: mean[:, q : q + 1].clone().requires_grad_(), FACTOR: raw[:, q : q + 1].clone().requires_grad_()}
        value = -loss(other, free | best, replace(data, y=y[..., q]))
        assert max(slope.abs().max() for slope in torch.autograd.grad(value.sum(), list(best.values()))) < 1e-8
        bounds.append(value)
    torch.testing.assert_close(sum(bounds), bound, rtol=1e-9, atol=1e-9)


def test_with_all_inputs_inducing_it_is_exact_regression():
    model, data, free = start(jitter=0.0)
    family, free = model.family, free | {INPUTS: data.x}
    kernel, hyper = KERNELS.build(SPEC["kernel"]), {k: v for k, v in free.items() if k != INPUTS}
    variance = torch.full((R,), 0.3).double().square()
    bound = collapsed(family.inducing_points(free), variance, data.x, data.y)[0]
    exact = log_marginal_likelihood(kernel, hyper, variance, data.x, data.y)
    torch.testing.assert_close(bound, exact, rtol=1e-6, atol=1e-6)
    x = small.inputs(R, 7) * 1.5
    found = family.marginals(model.network, conditioned(family, model.network, data, free), x)
    for one, other in zip(found, posterior(kernel, hyper, variance, data.x, data.y, x), strict=True):
        torch.testing.assert_close(one[..., 0], other, rtol=1e-5, atol=1e-6)


def test_training_raises_the_bound_and_moves_everything():
    model, data, _ = start()
    options = {"batch_size": 2 * N, "optimiser": {"name": "adam", "lr": 0.05}, "dtype": "float64"}
    trainer = Training(60, **options).start(model, data, small.streams(R))
    began = {k: v.clone() for k, v in trainer.parameters.items()}
    for r, result in enumerate(trainer.run()):
        assert result.loss[-1] < result.loss[0]
        assert all((result.parameters[name] != value[r : r + 1]).any() for name, value in began.items())
        after = model.after_training(result.parameters, small.one(data, r), small.streams(1))
        mean, _ = model.family.marginals(model.network, Held.of(after).family, data.x[r : r + 1])
        assert (mean[0, :, 0] - data.y[r]).square().mean() < data.y[r].var()


def test_there_are_no_predictions_before_the_end_of_training():
    model, data, free = start()
    with pytest.raises(NotSupported, match="'collapsed_gp' has no predictions before the end of training"):
        model.family.marginals(model.network, free, data.x)


def test_noise_must_be_gaussian():
    model, data = small.model({"family": SPEC}, 3), small.training_data(R, N, 3)
    with pytest.raises(NotSupported, match="'collapsed_gp' needs Gaussian noise"):
        model.loss(model.family.init(model.network, small.streams(R)), {}, {}, data.x, data.y, N, 1, None, {})
