import math

import gpytorch
import pytest
import torch
from torch.func import jacfwd, jacrev

from fvi_core.kernels import KERNELS, median_distance
from fvi_core.registry import UnknownPart

NAMES = ["linear", "matern12", "matern32", "matern52", "rational_quadratic", "rbf"]
SPECS = [{"name": "periodic"}, *({"name": name} for name in NAMES), {"name": "helmholtz", "field": "curl_free"}]
D = 3


def inputs(*shape, seed=0):
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def perturbed(kernel, replicas, n_features=D, seed=1):
    generator = torch.Generator().manual_seed(seed)
    params = kernel.init(replicas, n_features)
    return {k: v + 0.4 * torch.randn(v.shape, generator=generator, dtype=v.dtype) for k, v in params.items()}


def gpytorch_matrix(name, params, x1, x2):
    """Return the covariance matrix by gpytorch, one replica at a time."""
    rows = []
    for r in range(len(x1)):
        if name == "linear":  # gpytorch's has neither an offset nor length-scales
            base = gpytorch.kernels.LinearKernel().double()
            base.variance, scale = 1.0, params["log_lengthscale"][r].exp()
            rows.append(params["log_variance"][r].exp() * (1 + base(x1[r] / scale, x2[r] / scale).to_dense()))
            continue
        if name == "rbf":
            base = gpytorch.kernels.RBFKernel(ard_num_dims=D)
        elif name == "rational_quadratic":
            base = gpytorch.kernels.RQKernel(ard_num_dims=D)
            base.alpha = params["log_alpha"][r].exp()
        else:
            base = gpytorch.kernels.MaternKernel(nu=int(name[-2]) / 2, ard_num_dims=D)
        base = base.double()
        base.lengthscale = params["log_lengthscale"][r].exp()
        rows.append(params["log_variance"][r].exp() * base(x1[r], x2[r]).to_dense())
    return torch.stack(rows).detach()


@pytest.mark.parametrize("name", NAMES)
def test_matrix_is_that_of_gpytorch(name):
    kernel = KERNELS.build({"name": name})
    params = perturbed(kernel, 2)
    x1, x2 = inputs(2, 7), inputs(2, 5, seed=2)
    with gpytorch.settings.lazily_evaluate_kernels(False):
        expected = gpytorch_matrix(name, params, x1, x2)
    torch.testing.assert_close(kernel(params, x1, x2), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["name"])
class TestEveryKernel:
    def test_matrix_is_symmetric_positive_semidefinite_float64(self, spec):
        kernel = KERNELS.build(spec)
        x = inputs(2, 20).float()
        matrix = kernel(perturbed(kernel, 2), x, x)
        assert matrix.dtype == torch.float64
        torch.testing.assert_close(matrix, matrix.mT, rtol=0, atol=1e-12)
        assert torch.linalg.eigvalsh(matrix).min() > -1e-10

    def test_diagonal_is_that_of_the_matrix(self, spec):
        kernel = KERNELS.build(spec)
        params, x = perturbed(kernel, 2), inputs(2, 50)
        diagonal = kernel(params, x, x).diagonal(dim1=1, dim2=2)
        torch.testing.assert_close(kernel.diagonal(params, x), diagonal, rtol=1e-13, atol=0)

    def test_gradients_are_finite_at_zero_distance(self, spec):
        kernel = KERNELS.build(spec)
        params = {k: v.requires_grad_() for k, v in perturbed(kernel, 2).items()}
        x = inputs(2, 4).repeat(1, 2, 1).requires_grad_()
        kernel(params, x, x).square().sum().backward()
        assert x.grad.isfinite().all()
        assert all(v.grad.isfinite().all() and v.grad.abs().max() > 0 for v in params.values())

    def test_gradients_are_right(self, spec):
        kernel = KERNELS.build(spec)
        params = perturbed(kernel, 1)
        names = list(params)
        x1, x2 = inputs(1, 3), inputs(1, 2, seed=2)
        values = [params[name].requires_grad_() for name in names]
        assert torch.autograd.gradcheck(lambda *v: kernel(dict(zip(names, v)), x1, x2), values)

    def test_replicas_together_are_bitwise_the_same_as_alone(self, spec):
        kernel = KERNELS.build(spec)
        params, x1, x2 = perturbed(kernel, 3), inputs(3, 40), inputs(3, 30, seed=2)
        together = kernel(params, x1, x2)
        for r in range(3):
            alone = kernel({k: v[r : r + 1] for k, v in params.items()}, x1[r : r + 1], x2[r : r + 1])
            assert torch.equal(together[r : r + 1], alone)

    def test_start_from_data_has_a_useful_correlation(self, spec):
        kernel = KERNELS.build(spec)
        x = 50 * inputs(2, 30)
        params = kernel.init(2, D, x)
        assert {k: v.shape for k, v in params.items()} == {k: v.shape for k, v in kernel.init(2, D).items()}
        assert all(v.isfinite().all() for v in params.values())


def test_the_periodic_kernel_is_that_of_its_equation_and_repeats():
    kernel = KERNELS.build({"name": "periodic"})
    params = perturbed(kernel, 2)
    x1, x2 = inputs(2, 7), inputs(2, 5, seed=2)
    lengths, period = params["log_lengthscale"].exp(), params["log_period"].exp()
    waves = (math.pi * (x1[:, :, None] - x2[:, None]) / period[:, None, None]).sin() / lengths[:, None, None]
    expected = params["log_variance"].exp()[:, None, None] * (-2 * waves.square().sum(-1)).exp()
    torch.testing.assert_close(kernel(params, x1, x2), expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(kernel(params, x1 + 3 * period[:, None], x2), expected, rtol=1e-9, atol=1e-9)


def test_images_are_flattened_and_their_product_form_agrees_with_differences():
    kernel = KERNELS.build({"name": "matern52", "ard": False})
    x = torch.rand(1, 6, 1, 9, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    params = kernel.init(1, 81, x)
    flat = x.flatten(2)
    distance = (flat[:, :, None] - flat[:, None]).square().sum(-1).sqrt()
    expected = kernel.correlation(params, distance / params["log_lengthscale"].exp()[:, None])
    torch.testing.assert_close(kernel(params, x, x), expected, rtol=1e-9, atol=1e-9)
    assert params["log_lengthscale"].shape == (1, 1)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "linear"])
def test_repeated_images_leave_a_matrix_with_a_factor(name):
    """Monochrome contexts repeat; gamma M of cinquin2024 is 1e-10 times their number."""
    x = 3 * torch.rand(1, 25, 784, generator=torch.Generator().manual_seed(0)).round().repeat(1, 2, 1)
    kernel = KERNELS.build({"name": name, "ard": False})
    matrix = kernel(kernel.init(1, 784, x), x, x)[0]
    torch.testing.assert_close(matrix.diagonal(), torch.ones(50, dtype=torch.float64), rtol=0, atol=1e-12)
    assert torch.linalg.cholesky_ex(matrix + 50e-10 * torch.eye(50, dtype=torch.float64)).info == 0


def test_median_distance_of_known_points():
    x = torch.tensor([[[0.0, 5.0], [3.0, 5.0], [4.0, 5.0]]])
    torch.testing.assert_close(median_distance(x, per_feature=False), torch.tensor([[3.0]]).double())
    # A constant feature has no distance of its own and keeps length-scale 1.
    expected = torch.tensor([[3 * 2**0.5, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(median_distance(x, per_feature=True), expected)


def test_unknown_kernels_name_the_nearest():
    with pytest.raises(UnknownPart, match="did you mean 'matern52'"):
        KERNELS.build({"name": "matern-52"})


def rbf_at(hyper, a, b):
    """The RBF kernel at two points, written out: its own matrix has no second derivatives."""
    square = ((a - b).square() / (2 * hyper["log_lengthscale"][0]).exp()).sum()
    return hyper["log_variance"][0].exp() * torch.exp(-square / 2)


@pytest.mark.parametrize("ard", [False, True])
@pytest.mark.parametrize("field", ["helmholtz", "curl_free", "divergence_free"])
def test_fields_have_the_covariance_of_derivatives_of_processes_by_autograd(field, ard):
    kernel = KERNELS.build({"name": "helmholtz", "field": field, "ard": ard})
    params = perturbed(kernel, 2, 2)
    x1, x2 = inputs(2, 4)[..., :2], inputs(2, 3, seed=2)[..., :2]
    actual = kernel(params, x1, x2).unflatten(1, (4, 2)).unflatten(3, (3, 2)).transpose(2, 3)
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]]).double()  # rot = turn grad
    for r in range(2):
        for i in range(4):
            for j in range(3):
                total = torch.zeros(2, 2).double()
                for name, own in (("potential", torch.eye(2).double()), ("stream", turn)):
                    if f"{name}.log_variance" not in params:
                        continue
                    hyper = {k.removeprefix(f"{name}."): v[r : r + 1] for k, v in params.items() if k.startswith(name)}
                    slopes = jacfwd(jacrev(rbf_at, 1), 2)(hyper, x1[r, i], x2[r, j])
                    total = total + own @ slopes @ own.mT
                torch.testing.assert_close(actual[r, i, j], total, rtol=1e-10, atol=1e-12)
    diagonal = kernel(params, x1, x1).diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(kernel.diagonal(params, x1), diagonal, rtol=1e-12, atol=0)


def test_fields_of_gradients_name_what_they_need():
    with pytest.raises(ValueError, match="kernel 'helmholtz': field 'curl' is not known; did you mean 'curl_free'"):
        KERNELS.build({"name": "helmholtz", "field": "curl"})
    with pytest.raises(ValueError, match="rotated gradients need 2 features, found 3"):
        KERNELS.build({"name": "helmholtz"}).init(1, 3)


def test_gradients_of_the_rbf_kernel_have_the_bits_of_autograd():
    distances = torch.rand(2, 9, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    distances.diagonal(dim1=1, dim2=2).zero_()
    ours, plain = (distances.clone().requires_grad_() for _ in range(2))
    values, expected = KERNELS.build({"name": "rbf"}).correlation({}, ours), (plain.square() * -0.5).exp()
    assert torch.equal(values, expected)
    (found,), (slopes,) = (torch.autograd.grad(f.cos().sum(), x) for f, x in ((values, ours), (expected, plain)))
    assert torch.equal(found, slopes)
