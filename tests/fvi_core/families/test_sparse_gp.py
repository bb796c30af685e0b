"""Sparse Gaussian processes against GPyTorch, and against exact regression where they are exact."""

import copy
import math
from dataclasses import replace

import gpytorch
import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from fvi_core.data import TrainingSet
from fvi_core.families.base import NotSupported
from fvi_core.families.sparse_gp import FACTOR, INPUTS, MEAN
from fvi_core.gaussian_process import log_marginal_likelihood, posterior
from fvi_core.held import CONSTANT, Held
from fvi_core.registry import FAMILIES, KERNELS, PRIORS
from fvi_core.training import Training
from fvi_core.triangular import lower_triangle
from tests.fvi_core import small
from tests.fvi_core.contracts import DivergenceContract, FamilyContract, N, R

M = 4
SPEC = {"name": "sparse_gp", "kernel": {"name": "rbf"}, "points": M}
KL = {"family": SPEC, "divergence": {"name": "inducing_kl"}}


class TestSparseGP(FamilyContract):
    spec = SPEC
    one_function = False  # what inducing values leave open is drawn at every call

    def parameters(self, replicas=range(R)):
        both = small.moved(self.family().init(self.network(), small.streams(R)))
        return {k: v[list(replicas)] for k, v in both.items()}

    def test_values_of_one_call_vary_together(self):
        parameters, x = self.parameters(), small.inputs(R, 3)
        covariance = self.family().process(parameters).covariance(x, x)
        f = self.draw(parameters, samples=20000)(x)
        centred = (f - f.mean(1, keepdim=True)).permute(0, 3, 2, 1).contiguous()
        torch.testing.assert_close(centred @ centred.mT / 20000, covariance, rtol=0.05, atol=0.03)

    def test_options_are_checked(self):
        for wrong, said in (
            ({"points": 0}, "points: expected 1 or more, found 0"),
            ({"jitter": -1.0}, "jitter: expected 0 or more, found -1.0"),
            ({"draws": "both"}, "draws 'both' is not known; known: joint, marginal"),
        ):
            with pytest.raises(ValueError, match=f"'sparse_gp': {said}"):
                FAMILIES.build(SPEC | wrong)
        with pytest.raises(
            ValueError, match="'sparse_gp': expected a kernel of numbers, found 'helmholtz', of vectors"
        ):
            FAMILIES.build(SPEC | {"kernel": {"name": "helmholtz"}})


class TestSparseGPOfMarginalDraws(TestSparseGP):
    spec = {**SPEC, "draws": "marginal"}

    def test_values_of_one_call_vary_together(self):
        """Values vary together only by the inducing values; the rest of their variance is drawn independently."""
        parameters, x = self.parameters(), small.inputs(R, 1).expand(-1, 2, -1)
        points = self.family().process(parameters).points
        left = points.variance_left(x, points.project(x))[:, 0, None]
        with torch.no_grad():
            f = self.draw(parameters, samples=20000)(x)
        torch.testing.assert_close((f[:, :, 0] - f[:, :, 1]).var(1), (2 * left).expand(-1, 2), rtol=0.05, atol=0)


class TestSparseGPOfAHeldKernel(TestSparseGP):
    spec = {**SPEC, "fit_steps": 4}


def test_a_held_kernel_is_that_of_a_prior_fitted_to_all_training_data():
    data = small.training_data(R, 2 * N)
    parts = {**KL, "family": {**SPEC, "fit_steps": 20, "fit_lr": 0.1}}
    model, trainer = trained(parts, data, 30)
    results = [result.parameters for result in trainer.run()]
    fit = {"fit_steps": 20, "fit_lr": 0.1, "fit_batch": 2 * N}
    prior = PRIORS.build({"name": "gaussian_process", "kernel": SPEC["kernel"], **fit})
    train = TrainingSet(data.x, data.y, 1, False)
    fitted = prior.init(model.network, {}, train, small.streams(R).child("another"))
    started = model.family.init(model.network, small.streams(R))
    for r, parameters in enumerate(results):
        for name, value in fitted.items():
            # The prior draws the order of its batch, which moves the last bits.
            torch.testing.assert_close(parameters[CONSTANT + name], value[r : r + 1], rtol=1e-7, atol=1e-9)
        assert not torch.equal(parameters[MEAN], started[MEAN][r : r + 1])
        process = model.family.process(Held.of(parameters).family)
        own = {name: parameters[CONSTANT + name] for name in fitted}
        x = small.inputs(R, 3)[r : r + 1]
        torch.testing.assert_close(process.prior_covariance(x, x), process.points.kernel(own, x, x))


def test_a_kernel_is_not_fitted_to_classes():
    with pytest.raises(NotSupported, match="'sparse_gp': fit_steps: a kernel is fitted to numbers, not to classes"):
        trained({**KL, "family": {**SPEC, "fit_steps": 2}}, small.training_data(R, N, 3), 1, outputs=3)


class TestInducingKL(DivergenceContract):
    spec = KL["divergence"]
    parts = {"family": SPEC}
    unfit = {"family": {"name": "mean_field"}}
    outputs = 2

    def start(self, model):
        return small.moved(super().start(model))

    def test_is_that_of_the_values_themselves_by_torch_distributions(self):
        model = self.model()
        parameters = self.parameters(model)
        root = model.family.process(parameters).points.factor[:, None]
        mean = (root @ parameters[MEAN][..., None])[..., 0]
        factor = root @ lower_triangle(parameters[FACTOR])
        prior = MultivariateNormal(torch.zeros_like(mean), scale_tril=root.expand_as(factor))
        expected = kl_divergence(MultivariateNormal(mean, scale_tril=factor), prior).sum(1)
        torch.testing.assert_close(self.value(model, parameters), expected, rtol=1e-9, atol=1e-9)

    def test_of_the_start_is_zero(self):
        model = self.model()
        start = model.family.init(model.network, small.streams(R))
        assert self.value(model, start).abs().max() < 1e-12


class Variational(gpytorch.models.ApproximateGP):
    """Sparse variational process of GPyTorch, in float64 and with the jitter of ours."""

    def __init__(self, z, mean, factor, hyper, jitter):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(len(z))
        super().__init__(gpytorch.variational.VariationalStrategy(self, z, distribution, True, jitter_val=jitter))
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=z.shape[-1]))
        self.double()
        self.covar_module.outputscale = hyper["log_variance"].exp()
        self.covar_module.base_kernel.lengthscale = hyper["log_lengthscale"].exp()
        self.variational_strategy.variational_params_initialized.fill_(1)
        distribution.variational_mean.data = mean
        distribution.chol_variational_covar.data = factor

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def test_bound_mean_and_variance_are_those_of_gpytorch():
    model, data, jitter = small.model(KL), small.training_data(R, N), 1e-6
    parameters = small.moved(model.family.init(model.network, small.streams(R)))
    noise = {"rho": torch.linspace(-1.5, 0.5, R).double()}
    variance = model.likelihood.noise_std(noise).square()
    loss = model.loss(
        parameters, noise, {}, data.x, data.y, 5 * N, 1, None, {"functions": None, "divergence": None, "prior": None}
    )
    x = small.inputs(R, 7) * 1.5
    mean, var = model.family.marginals(model.network, parameters, x)
    for r in range(R):
        own = {k: v[r] for k, v in parameters.items()}
        other = Variational(own[INPUTS], own[MEAN][0], lower_triangle(own[FACTOR][0]), own, jitter)
        gaussian = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=gpytorch.constraints.Positive()).double()
        gaussian.noise = variance[r]
        with torch.no_grad(), gpytorch.settings.cholesky_jitter(double_value=0.0):
            other.train()
            bound = gpytorch.mlls.VariationalELBO(gaussian, other, num_data=5 * N)(other(data.x[r]), data.y[r])
            # GPyTorch adds its jitter to the variances of f too, which lowers the expected likelihood.
            bound = bound + jitter / (2 * variance[r])
            other.eval()
            expected = other(x[r])
        torch.testing.assert_close(-loss[r], bound, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(mean[r, :, 0], expected.mean, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(var[r, :, 0], expected.variance - jitter, rtol=1e-8, atol=1e-8)


def test_with_all_inputs_inducing_and_the_best_values_it_is_exact_regression():
    parts = {**KL, "family": {**SPEC, "kernel": {"name": "matern52"}, "points": N, "jitter": 0.0}}
    model, data = small.model(parts), small.training_data(R, N)
    kernel = KERNELS.build(parts["family"]["kernel"])
    hyper = {k: v + 0.2 for k, v in kernel.init(R, 2).items()}
    noise = {"rho": torch.linspace(-1.5, 0.5, R).double()}
    variance = model.likelihood.noise_std(noise).square()
    gram = kernel(hyper, data.x, data.x)
    root = torch.linalg.cholesky(gram)
    # Posterior of v = L^-1 f: covariance (I + L^T L / s^2)^-1, mean covariance L^T y / s^2.
    precision = torch.eye(N).double() + root.mT @ root / variance[:, None, None]
    covariance = torch.linalg.inv(precision)
    mean = (covariance @ root.mT @ data.y[..., None])[..., 0] / variance[:, None]
    factor = torch.linalg.cholesky(covariance)
    raw = factor.tril(-1) + torch.diag_embed(factor.diagonal(dim1=1, dim2=2).log())
    parameters = hyper | {INPUTS: data.x, MEAN: mean[:, None], FACTOR: raw[:, None]}
    streams = {"functions": None, "divergence": None, "prior": None}
    bound = -N * model.loss(parameters, noise, {}, data.x, data.y, N, 1, None, streams)
    torch.testing.assert_close(
        bound, log_marginal_likelihood(kernel, hyper, variance, data.x, data.y), rtol=1e-8, atol=1e-8
    )
    x = small.inputs(R, 7) * 1.5
    found = (m[..., 0] for m in model.family.marginals(model.network, parameters, x))
    for one, exact in zip(found, posterior(kernel, hyper, variance, data.x, data.y, x), strict=True):
        torch.testing.assert_close(one, exact, rtol=1e-8, atol=1e-8)


def trained(parts, data, epochs=60, streams=None, outputs=1, **options):
    model = small.model(parts, outputs)
    options = {"batch_size": N, "optimiser": {"name": "adam", "lr": 0.05}, "dtype": "float64"} | options
    return model, Training(epochs, **options).start(model, data, streams or small.streams(len(data.x)))


def test_training_raises_the_bound_and_moves_everything():
    _, trainer = trained(KL, small.training_data(R, 2 * N))
    start = {k: v.clone() for k, v in trainer.parameters.items()}
    results = trainer.run()
    for r, result in enumerate(results):
        assert result.loss[-1] < result.loss[0]
        for name, value in result.parameters.items():
            assert (value != start[name][r : r + 1]).any(), name


def test_inducing_points_start_at_distinct_training_inputs():
    data = small.training_data(R, 2 * N)
    _, trainer = trained(KL, data)
    for z, x in zip(trainer.parameters[INPUTS], data.x, strict=True):
        places = (z[:, None] == x).all(-1).nonzero()[:, 1]
        assert len(places.unique()) == M
    _, trainer = trained({**KL, "family": {**SPEC, "points": 100}}, data)
    assert trainer.parameters[INPUTS].shape == (R, 2 * N, 2)  # no more points than there are


def test_members_of_a_joint_ensemble_have_inducing_points_of_their_own():
    data = small.training_data(R, 2 * N)
    parts = {"family": {"name": "ensemble", "base": SPEC, "size": 3, "joint": True}}
    _, trainer = trained(parts, data)
    z = trainer.parameters[INPUTS]
    assert z.shape == (R, 3, M, 2) and not torch.equal(z[:, 0], z[:, 1])
    assert all((z[r, m, :, None] == data.x[r]).all(-1).any(-1).all() for r in range(R) for m in range(3))


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_stack_is_each_replica_alone_and_may_go_on_later(outputs):
    data = small.training_data(R, 2 * N, outputs)
    _, trainer = trained(KL, data, 4, outputs=outputs)
    together = trainer.run()
    for r in range(R):
        _, alone = trained(KL, small.one(data, r), 4, small.streams(R).subset([r]), outputs)
        (own,) = alone.run()
        assert own.loss == together[r].loss
        assert all(torch.equal(v, together[r].parameters[k]) for k, v in own.parameters.items())
    _, first = trained(KL, data, 4, outputs=outputs)
    states = []
    first.run(checkpoint=lambda stack: states.append(copy.deepcopy(stack.state())) if stack.epoch == 2 else None)
    model, options = small.model(KL, outputs), first.training
    again = options.start(model, data, small.streams(R), states[0]).run()
    assert [a.loss for a in again] == [t.loss for t in together]


def test_classes_are_learned_from_draws():
    data = small.training_data(R, 40, 3)
    parts = {**KL, "family": {**SPEC, "points": 12, "draws": "marginal"}}
    model, trainer = trained(parts, data, 80, outputs=3, batch_size=40, samples=4)
    for r, result in enumerate(trainer.run()):
        f = model.functions(result.parameters, 50, small.streams(1))(data.x[r : r + 1])
        assert (f.softmax(-1).mean(1).argmax(-1) == data.y[r]).double().mean() > 0.8


def test_a_kernel_matrix_that_is_not_positive_definite_fails_its_replica_alone_and_is_named():
    data = small.training_data(R, 2 * N)
    flat = replace(data, x=torch.cat([data.x[:1], data.x[1:2] * 0, data.x[2:]]))  # all inputs of replica 1 are the same
    _, trainer = trained({**KL, "family": {**SPEC, "jitter": 0.0}}, flat, 3)
    good, bad, other = trainer.run()
    assert good.reason is None and other.reason is None and math.isfinite(good.loss[-1])
    assert (
        "the loss or a parameter stopped being finite in step 1 of 2 of epoch 1 of 3: "
        "the kernel matrix of the inducing points, 4 x 4" in bad.reason
    )
    assert "is not positive definite with 0 added to its diagonal, while rounding" in bad.reason
    assert bad.reason.endswith("; a larger jitter, fewer points or a smaller learning rate may help")
