import math

import gpytorch
import pytest
import torch

import fvi_core.kernels  # noqa: F401  (registers its parts)
from fvi_core.gaussian_process import fit_kernel, log_evidence, log_marginal_likelihood, posterior
from fvi_core.random import Streams
from fvi_core.registry import KERNELS
from fvi_core.telling import listening

RBF = KERNELS.build({"name": "rbf"})


def data(replicas=2, n=12, d=2, outputs=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(replicas, n, d, generator=generator, dtype=torch.float64)
    shape = (replicas, n) if outputs is None else (replicas, n, outputs)
    y = torch.randn(*shape, generator=generator, dtype=torch.float64)
    return x, y, torch.rand(*shape, generator=generator, dtype=torch.float64) + 0.1


def parameters(replicas=2, d=2):
    generator = torch.Generator().manual_seed(9)
    params = RBF.init(replicas, d)
    return {k: v + 0.3 * torch.randn(v.shape, generator=generator, dtype=v.dtype) for k, v in params.items()}


class ExactModel(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, log_variance, log_lengthscale):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=x.shape[-1]))
        self.double()
        self.covar_module.outputscale = log_variance.exp()
        self.covar_module.base_kernel.lengthscale = log_lengthscale.exp()

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def gpytorch_model(x, y, noise, params, r):
    likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(noise=noise.expand(len(x)).clone())
    return ExactModel(x, y, likelihood, params["log_variance"][r], params["log_lengthscale"][r])


@pytest.mark.parametrize("per_point", [False, True])
def test_marginal_likelihood_and_posterior_are_those_of_gpytorch(per_point):
    x, y, noise = data()
    noise = noise if per_point else noise[:, 0]
    x_test = data(n=7, seed=1)[0]
    params = parameters()
    evidence = log_marginal_likelihood(RBF, params, noise, x, y)
    mean, variance = posterior(RBF, params, noise, x, y, x_test)
    _, covariance = posterior(RBF, params, noise, x, y, x_test, full=True)
    assert evidence.shape == (2,) and mean.shape == variance.shape == (2, 7) and covariance.shape == (2, 7, 7)
    for r in range(2):
        model = gpytorch_model(x[r], y[r], noise[r], params, r)
        model.train()
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        torch.testing.assert_close(evidence[r], objective(model(x[r]), y[r]).detach() * 12, rtol=1e-8, atol=0)
        model.eval()
        with torch.no_grad(), gpytorch.settings.fast_pred_var(False):
            expected = model(x_test[r])
        torch.testing.assert_close(mean[r], expected.mean, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(variance[r], expected.variance, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(covariance[r], expected.covariance_matrix, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("split_parameters", ["replica", "point", "output"])
def test_outputs_are_independent_processes_that_share_the_kernel(split_parameters):
    x, y, noise = data(outputs=3)
    noise = {"replica": noise[:, 0, 0], "point": noise[:, :, 0], "output": noise}[split_parameters]
    x_test, params = data(n=5, seed=1)[0], parameters()
    evidence = log_marginal_likelihood(RBF, params, noise, x, y)
    mean, variance = posterior(RBF, params, noise, x, y, x_test)
    _, covariance = posterior(RBF, params, noise, x, y, x_test, full=True)
    assert mean.shape == variance.shape == (2, 5, 3) and covariance.shape == (2, 3, 5, 5)
    total = 0
    for q in range(3):
        own = noise[..., q] if split_parameters == "output" else noise
        total = total + log_marginal_likelihood(RBF, params, own, x, y[..., q])
        mean_q, variance_q = posterior(RBF, params, own, x, y[..., q], x_test)
        torch.testing.assert_close(mean[..., q], mean_q)
        torch.testing.assert_close(variance[..., q], variance_q)
        torch.testing.assert_close(covariance[:, q].diagonal(dim1=1, dim2=2), variance_q)
    torch.testing.assert_close(evidence, total)


def plain_likelihood(kernel, params, noise, x, y):
    """The marginal likelihood of y ``[R, N]`` or ``[R, N, Q]`` in operations that autograd differentiates."""
    y = y.flatten(1) if kernel.vector else y
    targets = (y[:, None] if y.dim() == 2 else y.mT)[..., None]
    noise = noise.mT if noise.dim() == 3 else noise.reshape(len(noise), 1, -1)
    gram = kernel(params, x, x)[:, None]
    factor = torch.linalg.cholesky_ex(gram + torch.diag_embed(noise.expand(-1, -1, gram.shape[-1])))[0]
    if factor.shape[1] == 1 < targets.shape[1]:
        white = torch.linalg.solve_triangular(factor[:, 0], targets[..., 0].mT, upper=False).mT[..., None]
    else:
        white = torch.linalg.solve_triangular(factor, targets, upper=False)
    log_det = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return -0.5 * (white.square().sum((-2, -1)) + log_det + targets.shape[-2] * math.log(2 * math.pi)).sum(1)


@pytest.mark.parametrize(
    ("kernel", "d", "outputs"),
    [
        *((kernel, 2, outputs) for kernel in sorted(KERNELS.classes) for outputs in (None, 2, "own noise")),
        ("rbf", 80, None),
    ],
)
def test_gradients_in_closed_form_are_those_of_autograd(kernel, d, outputs):
    made, own = KERNELS.build({"name": kernel}), outputs == "own noise"
    if made.vector and outputs != 2:
        pytest.skip("a process of vectors has vectors for targets, and one noise for their numbers")
    x, y, noise = data(replicas=2, n=41, d=d, outputs=2 if own else outputs)
    noise = noise if own else noise.flatten(1)[:, 0]
    found = []
    for likelihood in (log_evidence, log_marginal_likelihood, plain_likelihood):
        params = made.init(2, d, x) | {"noise": noise.log()}
        params = {name: value.clone().requires_grad_() for name, value in params.items()}
        descent, values = torch.optim.Adam(params.values(), 0.05), []
        for _ in range(50 if d == 2 else 10):
            hyper = {name: value for name, value in params.items() if name != "noise"}
            values.append(likelihood(made, hyper, params["noise"].exp(), x, y) / 41)
            descent.zero_grad()
            (-values[-1].sum()).backward()
            descent.step()
        found.append([*values, *params.values()])
    assert found[0][0].isfinite().all()
    assert all(torch.equal(a, b) for a, b in zip(*found[1:], strict=True)), "priors are fitted to the last bit"
    torch.testing.assert_close(*found[:2], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("outputs", [None, 2, "own noise"])
def test_gradients_of_targets_and_noise_are_those_of_autograd(outputs):
    own = outputs == "own noise"
    x, y, noise = data(outputs=2 if own else outputs)
    noise, found = noise if own else noise.flatten(1)[:, 0].contiguous(), []
    for likelihood in (log_evidence, plain_likelihood):
        given = [each.clone().requires_grad_() for each in (y, noise)]
        value = likelihood(RBF, parameters(), given[1], x, given[0])
        found.append(torch.autograd.grad(value @ torch.tensor([1.0, -3.0], dtype=torch.float64), given))
    torch.testing.assert_close(*found)


def test_a_covariance_that_is_not_positive_definite_is_nan_for_its_replica_alone():
    x, y, _ = data()
    params = {name: value.requires_grad_() for name, value in parameters().items()}
    for likelihood in (log_evidence, log_marginal_likelihood):
        found = likelihood(RBF, params, torch.tensor([-5.0, 0.1]), x, y)
        assert found.isnan().tolist() == [True, False]
        for gradient in torch.autograd.grad(found.sum(), list(params.values())):
            assert gradient[0].isnan().all() and gradient[1].isfinite().all()


def process_samples(replicas, n, lengthscale, noise, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = 4 * torch.rand(replicas, n, 1, generator=generator, dtype=torch.float64)
    params = RBF.init(replicas, 1)
    params["log_lengthscale"] += math.log(lengthscale)
    factor = torch.linalg.cholesky(RBF(params, x, x) + noise * torch.eye(n, dtype=torch.float64))
    return x, (factor @ torch.randn(replicas, n, 1, generator=generator, dtype=torch.float64))[..., 0]


def test_fit_on_batches_comes_close_to_the_full_evidence_and_recovers_the_noise():
    x, y = process_samples(2, 150, lengthscale=0.5, noise=0.04)
    start = log_marginal_likelihood(RBF, RBF.init(2, 1, x), torch.full((2,), 0.1), x, y)
    evidence = {}
    for size in (None, 50):
        params, noise = fit_kernel(RBF, x, y, Streams([0, 1]), steps=150, batch_size=size, min_noise=0.02)
        assert not any(value.requires_grad for value in (*params.values(), noise))
        evidence[size] = log_marginal_likelihood(RBF, params, noise, x, y)
        torch.testing.assert_close(noise, torch.full_like(noise, 0.04), rtol=0.3, atol=0)
    assert (evidence[None] > start + 20).all()
    assert (evidence[50] > evidence[None] - 5).all()


def test_fit_keeps_a_given_noise_per_point():
    x, y = process_samples(1, 40, lengthscale=0.5, noise=0.01)
    fixed = torch.where(torch.arange(40) < 10, 0.01, 25.0).double()[None]
    y = y + fixed.sqrt() * torch.randn(1, 40, generator=torch.Generator().manual_seed(1))
    options = {"steps": 150, "fixed_noise": fixed}
    full, noise = fit_kernel(RBF, x, y, Streams([0]), **options)
    batches, _ = fit_kernel(RBF, x, y, Streams([0]), batch_size=20, **options)
    assert torch.equal(noise, fixed)
    best = log_marginal_likelihood(RBF, full, fixed, x, y)
    assert best > log_marginal_likelihood(RBF, RBF.init(1, 1, x), fixed, x, y) + 1
    assert log_marginal_likelihood(RBF, batches, fixed, x, y) > best - 1


@pytest.mark.parametrize("transform", ["log", "softplus"])
def test_a_fit_begins_at_the_given_values_and_moves_the_transformed_numbers(transform):
    """Adam's first step moves each of them by the learning rate."""
    x, y = process_samples(1, 40, lengthscale=0.5, noise=0.04)
    for start, given in (("median", x), ("one", None)):
        options = {"steps": 1, "lr": 0.1, "transform": transform, "start": start}
        params, noise = fit_kernel(RBF, x, y, Streams([0]), min_noise=0.01, init_noise=0.05, **options)
        begun = {name: value.exp().item() for name, value in RBF.init(1, 1, given).items()}
        moved = {name: value.exp().item() for name, value in params.items()}
        for before, after in [*((begun[name], moved[name]) for name in begun), (0.04, noise.item() - 0.01)]:
            free = [math.log(v) if transform == "log" else math.log(math.expm1(v)) for v in (before, after)]
            assert abs(free[1] - free[0]) == pytest.approx(0.1, rel=1e-5)


def test_transforms_lead_to_one_optimum():
    x, y = process_samples(2, 60, lengthscale=0.5, noise=0.04)
    found = {}
    for transform in ("log", "softplus"):
        params, noise = fit_kernel(RBF, x, y, Streams([0, 1]), steps=400, transform=transform, start="one")
        found[transform] = torch.stack([*(value.flatten() for value in params.values()), noise.log()])
    torch.testing.assert_close(found["softplus"], found["log"], rtol=0, atol=0.02)


def test_noise_never_falls_below_its_floor():
    x, _ = process_samples(1, 30, lengthscale=0.5, noise=0.01)
    y = x[..., 0]
    _, noise = fit_kernel(RBF, x, y, Streams([0]), steps=100, lr=0.2, init_noise=0.1, min_noise=0.05)
    assert 0.05 < noise < 0.06
    with pytest.raises(ValueError, match="init_noise > min_noise"):
        fit_kernel(RBF, x, y, Streams([0]), init_noise=0.1, min_noise=0.2)


@pytest.mark.parametrize("transform", ["log", "softplus"])
def test_replicas_fitted_together_are_bitwise_the_same_as_alone(transform):
    x, y = process_samples(3, 30, lengthscale=0.5, noise=0.04)
    options = {"steps": 10, "batch_size": 8, "transform": transform}
    together, noise = fit_kernel(RBF, x, y, Streams([4, 5, 6]), **options)
    for r in range(3):
        one = slice(r, r + 1)
        alone, own_noise = fit_kernel(RBF, x[one], y[one], Streams([4 + r]), **options)
        assert torch.equal(noise[one], own_noise)
        assert all(torch.equal(together[k][one], alone[k]) for k in alone)
        for full in (False, True):
            both = posterior(RBF, together, noise, x, y, x, full)
            own = posterior(RBF, alone, own_noise, x[one], y[one], x[one], full)
            assert all(torch.equal(a[one], b) for a, b in zip(both, own))


@pytest.mark.parametrize("noisy", ["replica", "number"])
def test_a_process_of_vectors_is_one_of_all_their_numbers(noisy):
    """Written out with the whole matrix; the scalar process is tested above."""
    kernel = KERNELS.build({"name": "helmholtz"})
    x, y, noise = data(outputs=2)
    params = {k: v + 0.1 * (i + 1) for i, (k, v) in enumerate(kernel.init(2, 2).items())}
    given = noise[:, 0, 0] if noisy == "replica" else noise
    x_test = data(n=5, seed=1)[0]
    mean, variance = posterior(kernel, params, given, x, y, x_test)
    _, covariance = posterior(kernel, params, given, x, y, x_test, full=True)
    evidence = log_marginal_likelihood(kernel, params, given, x, y)
    assert mean.shape == variance.shape == (2, 5, 2) and covariance.shape == (2, 10, 10)
    for r in range(2):
        spread = given[r].expand(24) if noisy == "replica" else given[r].flatten()
        gram = kernel(params, x, x)[r] + torch.diag(spread)
        cross, flat = kernel(params, x_test, x)[r], y[r].flatten()
        exact = kernel(params, x_test, x_test)[r] - cross @ torch.linalg.solve(gram, cross.mT)
        torch.testing.assert_close(mean[r].flatten(), cross @ torch.linalg.solve(gram, flat), rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(covariance[r], exact, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(variance[r].flatten(), exact.diagonal(), rtol=1e-8, atol=1e-8)
        density = torch.distributions.MultivariateNormal(torch.zeros(24).double(), gram).log_prob(flat)
        torch.testing.assert_close(evidence[r], density, rtol=1e-9, atol=0)


def test_the_kernel_of_a_field_is_fitted_to_vectors():
    kernel = KERNELS.build({"name": "helmholtz"})
    x = data(1, 40)[0]
    true = kernel.init(1, 2)
    gram = kernel(true, x, x) + 0.01 * torch.eye(80)
    y = torch.linalg.cholesky(gram) @ torch.randn(1, 80, 1, generator=torch.Generator().manual_seed(0)).double()
    y = y.reshape(1, 40, 2)
    params, noise = fit_kernel(kernel, x, y, Streams([0]), steps=200, min_noise=1e-3)
    found = log_marginal_likelihood(kernel, params, noise, x, y)
    assert found > log_marginal_likelihood(kernel, true, torch.tensor([0.01]), x, y) - 1


@pytest.mark.parametrize(("steps", "reported"), [(3, [0, 1, 2]), (250, list(range(0, 250, 3)))])
def test_a_fit_tells_how_far_it_has_come_a_hundred_times_at_most(steps, reported):
    x, y, _ = data(1, 3)
    heard: list[str] = []
    with listening(heard.append):
        fit_kernel(RBF, x, y, Streams([0]), steps=steps)
    assert heard == [f"fitting a kernel, step {step} of {steps}" for step in reported]
