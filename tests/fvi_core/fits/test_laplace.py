"""Laplace approximations against brute force: Jacobians by automatic differentiation, dense inverses, closed forms."""

import dataclasses
import math

import pytest
import scipy.stats
import torch
from torch.func import jacrev

from fvi_core import curvature
from fvi_core.families.base import FitData, NotSupported
from fvi_core.fits.laplace import _log_predictive
from fvi_core.fits.posterior import CURVATURE, Around
from fvi_core.registry import FITS, LIKELIHOODS
from tests.fvi_core import small
from tests.fvi_core.fits.cases import (
    DELTA,
    KINDS,
    STD,
    N,
    covariance,
    curvature_of,
    fitted,
    ggn,
    inputs,
    jacobian,
    model,
    parameters,
    second,
    training_data,
    wave,
)
from tests.fvi_core.networks.test_residual import SHAPE, tiny

STRUCTURES = ("full", "diagonal", "kronecker", "last_layer", "subnetwork")
each_kind, each_structure = pytest.mark.parametrize("kind", KINDS), pytest.mark.parametrize("structure", STRUCTURES)


SIZES = {
    "mlp": 9,
    "cnn": 90,
}  # 70 weights of the convolutional network belong to units that never speak, and come first


def spec(structure, kind="cnn", **options):
    if structure == "subnetwork":
        return {"name": "subnetwork_laplace", "size": SIZES[kind], **options}
    return {"name": "laplace", "structure": structure, **options}


def dense(kind, structure):
    """The precision of all weights [P, P] that a structure stands for, infinite for weights that stay."""
    made, (whole, _) = model(kind, None), ggn(kind, model(kind, None))
    network, identity = made.network, DELTA * torch.eye(made.network.n_parameters, dtype=torch.float64)
    if structure == "full":
        return whole + identity
    if structure == "diagonal":
        return whole.diagonal().diag() + identity
    if structure == "kronecker":
        return kronecker(kind, made) + identity
    if structure == "last_layer":
        chosen = torch.arange(network.n_parameters)[-sum(network.sizes[k] for k in network.head.shapes) :]
    else:
        weights = torch.cat([torch.full((size,), name.endswith("weight")) for name, size in network.sizes.items()])
        variances = torch.where(weights, 1 / (whole.diagonal() + DELTA), -1)
        chosen = variances.argsort(descending=True, stable=True)[: SIZES[kind]].sort().values
    found = torch.full_like(whole, torch.nan)
    found[chosen[:, None], chosen] = (whole + identity)[chosen[:, None], chosen]
    return found


def kronecker(kind, made):
    """Blocks ``mean aa^T (x) sum d^T L d`` and, for biases, the second factor, of inputs and gradients that torch
    records.
    """
    network, x = made.network, inputs(kind)
    at = {k: v[:, None] for k, v in parameters(made).items() if k in network.shapes}
    tape = curvature.Tape()
    f = network({k: v.requires_grad_() for k, v in at.items()}, x[None], tape=tape)
    root = torch.linalg.cholesky(second(kind, f[0, 0].detach()) + 1e-14 * torch.eye(f.shape[-1]))
    blocks = []
    for _, a, z in tape.entries:
        convolution = z.dim() == 6
        a = torch.nn.functional.unfold(a[0, 0], 3, padding=1) if convolution else a[0, 0, :, :, None]
        gradients = []
        for c in range(root.shape[-1]):
            d = torch.autograd.grad((f[0, 0] * root[..., c]).sum(), z, retain_graph=True)[0][0, 0]
            gradients.append(d.flatten(2) if convolution else d[..., None])
        b = sum(torch.einsum("nit,njt->ij", d, d) for d in gradients)
        a = torch.einsum("nit,njt->ij", a, a).detach() / a.shape[0] / a.shape[-1]
        blocks += [torch.kron(b, a) if convolution else torch.kron(a, b), b]
    return torch.block_diag(*blocks)


def covariance_of(precision):
    chosen = ~precision.diagonal().isnan()
    found = torch.zeros_like(precision)
    rows = chosen.nonzero()[:, 0]
    found[rows[:, None], rows] = torch.linalg.inv(precision[rows[:, None], rows])
    return found


@each_kind
def test_the_whole_matrix_and_its_diagonal_are_those_of_the_jacobian(kind, monkeypatch):
    expected, _ = ggn(kind, model(kind, None))
    for block in (curvature.BLOCK, 1):  # all inputs at once, and one by one
        monkeypatch.setattr(curvature, "BLOCK", block)
        torch.testing.assert_close(curvature_of(kind, spec("full"))[1][CURVATURE], expected, rtol=1e-9, atol=1e-10)
        made, found = curvature_of(kind, spec("diagonal"))
        layers = curvature.weights(made.network)
        own = {k: found[CURVATURE + k] for k in made.network.shapes}
        flat = made.network.flatten(
            {k: curvature.from_matrix(layers[k], v) if k in layers else v for k, v in own.items()}
        )
        torch.testing.assert_close(flat, expected.diagonal(), rtol=1e-9, atol=1e-10)


@each_kind
@each_structure
def test_draws_and_marginals_have_the_covariance_of_the_inverse_precision(kind, structure):
    made, family, own = fitted(kind, spec(structure, kind))
    expected = covariance_of(dense(kind, structure))
    scale = expected.diagonal().sqrt()
    actual = covariance(made, own)
    assert not actual[scale == 0].any() and not actual[:, scale == 0].any()
    moving = scale > 0
    ratio = (actual - expected)[moving][:, moving] / scale[moving][:, None] / scale[moving]
    assert ratio.abs().max() < 0.05
    x = inputs(kind)[:4] * 1.1
    mean, variance = made.fit.marginals(made.network, made.family, family, own, x[None])
    j = jacobian(made.network, family, x)
    torch.testing.assert_close(variance[0], torch.einsum("nqp,pr,nqr->nq", j, expected, j), rtol=1e-7, atol=1e-9)
    assert torch.equal(mean, made.network({k: v[:, None] for k, v in family.items()}, x[None])[:, 0])
    if kind == "cnn":
        return  # thousands of convolutions; that functions are linear in what is drawn has a test of its own
    f = made.fit.functions(made.network, made.family, family, own, 20000, small.streams(1))(x[None])[0]
    assert ((f.mean(0) - mean[0]).abs() < 5 * (variance[0] / 20000).sqrt()).all()
    assert ((f.var(0) / variance[0]).log().abs() < 0.06).all()


@each_structure
def test_draws_are_linear_or_networks(structure):
    made, family, own = fitted("cnn", spec(structure))
    x, state = inputs("cnn")[None, :3], {k: v[0] for k, v in own.items()}
    steps = made.fit.posterior.draw(made.network, state, 4, small.streams(1).subset([0]))
    assert set(steps) == set(made.network.head.shapes if structure == "last_layer" else made.network.shapes)
    drawn = {k: v[:, None] + steps.get(k, torch.zeros(())) for k, v in family.items()}
    glm = made.fit.functions(made.network, made.family, family, own, 4, small.streams(1))(x)
    j, step = jacobian(made.network, family, x[0]), torch.zeros(4, made.network.n_parameters).double()
    step = made.network.flatten({k: steps.get(k, torch.zeros(4, *s).double()) for k, s in made.network.shapes.items()})
    mean = made.network({k: v[:, None] for k, v in family.items()}, x)
    torch.testing.assert_close(glm[0], mean[0] + torch.einsum("nqp,sp->snq", j, step), rtol=1e-9, atol=1e-10)
    by_weights, family, own = fitted("cnn", spec(structure, predictive="weights"))
    f = by_weights.fit.functions(made.network, made.family, family, own, 4, small.streams(1))(x)
    expanded = {k: v.expand(1, 4, *v.shape[2:]) for k, v in drawn.items()}
    torch.testing.assert_close(f, made.network(expanded, x), rtol=1e-9, atol=1e-10)
    assert by_weights.fit.marginals(made.network, made.family, family, own, x) is None


def test_logits_are_divided_by_their_probit_factor():
    made, family, own = fitted("cnn", spec("full", predictive="probit"))
    x = inputs("cnn")[None, :3]
    f = made.fit.functions(made.network, made.family, family, own, 7, small.streams(1))(x)
    j, expected = jacobian(made.network, family, x[0]), covariance_of(dense("cnn", "full"))
    variance = torch.einsum("nqp,pr,nqr->nq", j, expected, j)
    logits = made.network({k: v[:, None] for k, v in family.items()}, x)
    torch.testing.assert_close(f, logits / (1 + math.pi / 8 * variance).sqrt(), rtol=1e-9, atol=1e-10)
    assert made.fit.marginals(made.network, made.family, family, own, x) is None
    moved = x.clone().requires_grad_()
    with torch.enable_grad():
        total = made.fit.functions(made.network, made.family, family, own, 1, small.streams(1))(moved).sum()
    slope, step = torch.autograd.grad(total, moved)[0], torch.zeros_like(x)
    step[0, 1, 0, 2, 1] = 1e-6
    functions = made.fit.functions(made.network, made.family, family, own, 1, small.streams(1))
    change = float((functions(x + step) - functions(x - step)).sum()) / 2e-6
    assert math.isclose(float(slope[0, 1, 0, 2, 1]), change, rel_tol=1e-5), "attacks see the variance too"
    with pytest.raises(ValueError, match="'probit' is for classes, found a regression; choose 'glm'"):
        fitted("mlp", spec("full", predictive="probit"))


@pytest.mark.parametrize("structure", ["full", "kronecker", "last_layer"])
def test_without_a_hidden_layer_it_is_bayesian_linear_regression(structure):
    linear = {"name": "mlp", "hidden": []}
    made = model("mlp", spec(structure), network=linear)
    data, x = training_data("mlp"), inputs("mlp")
    phi = torch.cat([x, torch.ones(N, 1, dtype=torch.float64)], 1)
    precision = phi.T @ phi / STD**2 + DELTA * torch.eye(3, dtype=torch.float64)
    mean = torch.linalg.solve(precision, phi.T @ data.y[0] / STD**2)  # of each target, and of MAP
    map_parameters = parameters(made) | {"head.weight": mean[None, :2], "head.bias": mean[None, 2]}
    fit = made.after_training(map_parameters, data, small.streams(1))
    other = inputs("mlp").flip(0)[None, :5] * 2
    f, variance = made.marginals(fit, other)
    tested = torch.cat([other[0], torch.ones(5, 1, dtype=torch.float64)], 1)
    torch.testing.assert_close(f[0], tested @ mean)
    if structure == "kronecker":  # weight and bias are uncorrelated there, each exact
        precision = torch.block_diag(precision[:2, :2], precision[2:, 2:])
    expected = torch.linalg.inv(precision)
    torch.testing.assert_close(variance[0, :, 0], ((tested @ expected) * tested).sum(1), rtol=1e-9, atol=0)
    assert torch.equal(variance[..., 0], variance[..., 1])
    posterior = covariance(made, {k.removeprefix("fit/"): v for k, v in fit.items() if k.startswith("fit/")})
    ordered = torch.kron(expected.contiguous(), torch.eye(2, dtype=torch.float64))
    scale = ordered.diagonal().sqrt()
    assert ((posterior - ordered) / scale[:, None] / scale).abs().max() < 0.05


def test_kronecker_factors_are_exact_where_gradients_are_alike_at_all_places():
    """One channel whose four pixels are the four outputs: the gradients at a pixel are those at any other."""
    spec_ = {"name": "cnn", "channels": [1], "dense": [], "pool": [0]}
    network = small.network(spec_, 4, (2, 2, 2))
    made = small.model(
        {"family": {"name": "point"}, "network": spec_, "likelihood": {"name": "gaussian"}}, 4, (2, 2, 2)
    )
    at = network.unflatten(wave(network.n_parameters, 0.01, 1.7)) | {
        "conv0.bias": torch.ones(1, dtype=torch.float64),  # the ReLU passes everything
        "head.weight": torch.eye(4, dtype=torch.float64),
    }
    x = wave(N * 8, 1.0, 2.3).view(1, N, 2, 2, 2)
    y = torch.zeros(1, N, 4, dtype=torch.float64)
    fitting = FitData(network, made.family, made.likelihood, x, y, small.streams(1))
    params = made.likelihood.init(1, torch.float64)
    found = FITS.build(spec("kronecker")).posterior.curvature(Around(at, params, fitting))
    j = jacobian(network, {k: v[None] for k, v in at.items()}, x[0])[..., :19]
    exact = torch.einsum("nqp,nqr->pr", j, j) / made.likelihood.noise_std(params) ** 2
    block, name = exact[:18, :18], "conv0.weight"
    vectors = torch.kron(found[f"left/{name}"], found[f"right/{name}"])
    rebuilt = vectors @ found[CURVATURE + name].flatten().diag() @ vectors.T
    torch.testing.assert_close(rebuilt, block, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found[CURVATURE + "conv0.bias"], exact[18, 18:], rtol=1e-9, atol=1e-9)


@each_structure
def test_replicas_together_are_bitwise_the_same_as_alone(structure):
    made, R = model("cnn", spec(structure, precision="evidence")), 3
    together, data = parameters(made, R), training_data("cnn")
    x, y, streams = data.x.expand(R, *data.x.shape[1:]), data.y.expand(R, -1), small.streams(R)
    fitting = FitData(made.network, made.family, made.likelihood, x, y, streams, weight_prior=made.weight_prior)
    fit, at = made.fit(together, fitting), inputs("cnn")[None, :3].expand(R, -1, -1, -1, -1) * 1.2
    assert len({float(v) for v in fit["fit/prior_precision"]}) == R
    f, moments = made.functions(fit, 4, small.streams(R))(at), made.fit.marginals
    own = {k.removeprefix("fit/"): v for k, v in fit.items() if k.startswith("fit/")}
    mean, variance = moments(made.network, made.family, fit, own, at)
    for r in range(R):
        alone = made.after_training(small.one(together, r), data, small.streams(R).subset([r]))
        assert alone.keys() == fit.keys() and all(torch.equal(v, fit[k][r : r + 1]) for k, v in alone.items())
        assert torch.equal(made.functions(alone, 4, small.streams(R).subset([r]))(at[r : r + 1]), f[r : r + 1])
        single = moments(made.network, made.family, small.one(fit, r), small.one(own, r), at[r : r + 1])
        assert torch.equal(single[0], mean[r : r + 1]) and torch.equal(single[1], variance[r : r + 1])


@each_structure
def test_running_statistics_of_batch_normalisation_are_constants(structure):
    network, data = tiny(), small.training_data(1, 8, 3, SHAPE)
    made = dataclasses.replace(model("cnn", spec(structure, precision=DELTA)), network=network)
    at = {k: v[None] for k, v in network.unflatten(wave(network.n_parameters, 0.6, 1.7)).items()}
    kept = {k: v + 0.2 for k, v in network.init_buffers(small.streams(1)).items()}
    fit, x = made.after_training(at | kept, data, small.streams(1)), data.x[:, :3] * 1.1
    own = {k.removeprefix("fit/"): v for k, v in fit.items() if k.startswith("fit/")}

    def f(flat):
        drawn = {k: v[None, None] for k, v in network.unflatten(flat).items()} | {
            k: v[:, None] for k, v in kept.items()
        }
        return network(drawn, x)[0, 0]

    j, mean = jacrev(f)(network.flatten(at)[0]), f(network.flatten(at)[0])
    steps = made.fit.posterior.draw(network, {k: v[0] for k, v in own.items()}, 3, small.streams(1))
    step = network.flatten({k: steps.get(k, torch.zeros(3, *s).double()) for k, s in network.shapes.items()})
    values = made.functions(fit, 3, small.streams(1))(x)
    torch.testing.assert_close(values[0], mean + torch.einsum("nqp,sp->snq", j, step), rtol=1e-8, atol=1e-8)
    found, variance = made.fit.marginals(network, made.family, fit, own, x)
    torch.testing.assert_close(found[0], mean)
    if structure == "full":
        train = {k: v[0] for k, v in (at | kept).items()}
        recorded = curvature.record(network, train, data.x[0])
        columns = {k: torch.arange(n) for k, n in network.sizes.items()}
        p, total = recorded.outputs.detach().softmax(-1), torch.zeros(2 * (network.n_parameters,)).double()
        rows = [
            curvature.jacobian(network, recorded.gradients(e.expand(8, -1)), columns) for e in torch.eye(3).double()
        ]
        whole, weight = torch.stack(rows, 1), torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
        total = torch.einsum("nap,nab,nbq->pq", whole, weight, whole) + DELTA * torch.eye(network.n_parameters)
        torch.testing.assert_close(
            variance[0], torch.einsum("nqp,pr,nqr->nq", j, torch.linalg.inv(total), j), rtol=1e-7, atol=1e-9
        )


def test_a_subnetwork_may_be_chosen_by_the_iterates_of_swag():
    swag = {"name": "swag", "rank": 2}
    made = model("cnn", spec("subnetwork", variances="swag", size=5), family=swag)
    own, network = parameters(made), made.network
    spread = network.unflatten(wave(network.n_parameters, 1.0, 0.9).abs())
    kept = {"buffer/swag_count": torch.full((1,), 6.0, dtype=torch.float64)}
    kept |= {f"buffer/swag_square/{k}": v[None] for k, v in spread.items()}
    fit = made.after_training(own | kept, training_data("cnn"), small.streams(1))
    weights = network.flatten({k: torch.full(s, float(k.endswith("weight"))) for k, s in network.shapes.items()})
    expected = (network.flatten(spread) * weights).topk(5).indices.sort().values
    assert torch.equal(fit["fit/index"][0], expected)
    with pytest.raises(NotSupported, match="variances 'swag' needs family 'swag' and iterates that it has seen"):
        made.after_training(own, training_data("cnn"), small.streams(1))
    with pytest.raises(NotSupported, match="expected family 'swag', found 'point'"):
        model("cnn", spec("subnetwork", variances="swag"))


def test_the_log_density_that_chooses_a_precision_is_of_functions_and_noise_together():
    """``log N(y; m, v + sigma^2)`` of moments, and ``log mean_s N(y; f_s, sigma^2)`` of draws, as torch and SciPy have
    them.
    """
    likelihood = LIKELIHOODS.build({"name": "gaussian"})
    params = {name: value + 0.3 for name, value in likelihood.init(3, torch.float64).items()}
    std = likelihood.noise_std(params)
    mean, y = small.streams(3).normal(5, 1), small.streams(3, name="y").normal(5)
    variance = small.streams(3, name="v").uniform(5, 1) + 0.5
    found = _log_predictive(likelihood, params, (mean, variance), lambda x: x, small.inputs(3, 5), y)
    expected = scipy.stats.norm.logpdf(y, mean[..., 0], (variance[..., 0] + std[:, None] ** 2) ** 0.5)
    torch.testing.assert_close(found, torch.from_numpy(expected), rtol=1e-9, atol=1e-9)
    f = small.streams(3, name="f").normal(7, 5, 1)
    found = _log_predictive(likelihood, params, None, lambda x: f, small.inputs(3, 5), y)
    expected = scipy.stats.norm.pdf(y[:, None], f[..., 0], std[:, None, None]).mean(1)
    torch.testing.assert_close(found, torch.from_numpy(expected).log(), rtol=1e-9, atol=1e-9)
