"""VOGN against closed forms, loops over examples and a step computed by hand."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from fvi_core.data import Augmentation, TrainingData
from fvi_core.families.base import NotSupported
from fvi_core.registry import TRAININGS
from fvi_core.stack import FUNCTIONS_LABEL
from fvi_core.vogn import example_gradients, means
from tests.fvi_core import small

R = 2
LINEAR = {"name": "mlp", "hidden": [], "activation": "tanh"}
PARTS = {
    "network": LINEAR,
    "family": {"name": "mean_field"},
    "divergence": {"name": "weight_kl"},
    "prior": {"name": "gaussian_weights", "variance": 4.0},
    "likelihood": {"name": "gaussian", "init_std": 0.5, "learned": False},
}
NORMED = {"name": "cnn", "channels": [2, 3], "dense": [4], "pool": [1, 0], "norm": "batch"}


def trainer(parts, data, outputs=1, shape=None, replicas=R, **options):
    options = {"name": "vogn", "epochs": 1, "batch_size": data.x.shape[1], "dtype": "float64", **options}
    model = small.model({**PARTS, **parts}, outputs, shape)
    return TRAININGS.build(options).start(model, data, small.streams(replicas))


def by_example(parameters, x):
    """Return logits of the network NORMED, where each example has its own parameters ``[N, *shape]`` and shares
    batch statistics with the others; and these statistics, with the unbiased variance.
    """
    a, p, statistics = x, parameters, {}
    for i in range(2):
        weight, bias = p[f"conv{i}.weight"], p[f"conv{i}.bias"]
        a = torch.stack([F.conv2d(image, w, b, padding=1) for image, w, b in zip(a, weight, bias, strict=True)])
        mean, var = a.mean((0, 2, 3)), a.var((0, 2, 3), correction=0)
        n = a.numel() // a.shape[1]
        statistics |= {f"buffer/conv{i}.norm.mean": mean, f"buffer/conv{i}.norm.var": var * n / (n - 1)}
        a = (a - mean[:, None, None]) / (var + 1e-5).sqrt()[:, None, None]
        scale, shift = (p[f"conv{i}.norm.{name}"][..., None, None] for name in ("scale", "shift"))
        a = (scale * a + shift).relu()
        a = F.max_pool2d(a, 2) if i == 0 else a
    hidden = (torch.einsum("ni,nij->nj", a.flatten(1), p["dense0.weight"]) + p["dense0.bias"]).relu()
    return torch.einsum("ni,nij->nj", hidden, p["head.weight"]) + p["head.bias"], statistics


def gradients_by_example(parameters, x, y):
    """Return gradients ``[N, *shape]`` of minus the log-likelihood of NORMED by name, and batch statistics."""
    leaves = {k: v.expand(len(x), *v.shape).clone().requires_grad_() for k, v in parameters.items()}
    f, statistics = by_example(leaves, x)
    loss = F.cross_entropy(f, y, reduction="sum")
    gradients = torch.autograd.grad(loss, list(leaves.values()))
    return dict(zip(leaves, gradients, strict=True)), {k: v.detach() for k, v in statistics.items()}


def signs():
    """Two features of 16 points and a third column, all of +-1 and orthogonal to each other and to a constant."""
    bits = torch.arange(16)
    columns = [1 - 2 * ((bits >> k) & 1).double() for k in range(3)]
    return torch.stack(columns[:2], -1), columns[2]


def test_the_end_is_the_diagonal_posterior_of_bayesian_linear_regression():
    x, sign = signs()
    # Residuals of the exact fit are +-.5, the noise, so that squared gradients have the Gauss-Newton matrix as mean.
    y = 1.5 * x[:, 0] - 0.5 * x[:, 1] + 0.7 + 0.5 * sign
    x, y = (z.expand(R, *z.shape).repeat_interleave(8, 1) for z in (x, y))  # 128 points
    data = TrainingData(x, y, x.amin(1), x.amax(1))
    trained = trainer({}, data, epochs=150, lr=0.3, momentum=0.0, damping=0.0, newest=0.1, samples=20)
    for result in trained.run():
        assert result.reason is None
        precision = 128 / 0.25 + 1 / 4.0  # the columns are orthogonal, so the matrix is diagonal
        exact = {"weight": 128 / 0.25 * torch.tensor([[1.5], [-0.5]]) / precision, "bias": 128 / 0.25 * 0.7 / precision}
        for name, mean in exact.items():
            found = result.parameters[f"mean/head.{name}"][0]
            assert (found - mean).abs().max() < 0.03
            ratio = result.parameters[f"log_var/head.{name}"][0].exp() * precision
            # Residuals of drawn networks are larger by the variance of three weights, 3 / 128 of the noise's.
            assert (ratio - 1).abs().max() < 0.1, name


@pytest.mark.parametrize("network", [small.CNN, NORMED], ids=["plain", "batch normalisation"])
def test_gradients_of_examples_are_those_of_a_loop(network):
    shape = (2, 4, 4)
    model = small.model({**PARTS, "network": network, "likelihood": {"name": "categorical"}}, 3, shape)
    data = small.training_data(1, 5, 3, shape)
    parameters = {k: v[0] for k, v in small.moved(model.network.init(small.streams(1))).items()}
    x, y = data.x[0], data.y[0]
    loss, gradients = example_gradients(model, model.network, parameters, {}, x, y)
    found = {name: means(model.network, name, gradient) for name, gradient in gradients.items()}
    leaves = {k: v.clone().requires_grad_() for k, v in parameters.items()}

    def log_likelihood(rows):
        f = model.network({k: v[None, None] for k, v in leaves.items()}, x[None, rows])
        return model.likelihood.log_prob({}, f, y[None, rows])[0, 0]

    whole = torch.autograd.grad(-log_likelihood(slice(None)).mean(), list(leaves.values()))
    torch.testing.assert_close(loss, -log_likelihood(slice(None)).mean().detach())
    for (name, value), gradient in zip(leaves.items(), whole, strict=True):
        assert found[name][0].shape == found[name][1].shape == value.shape
        torch.testing.assert_close(found[name][0], gradient, rtol=1e-8, atol=1e-12)
    if network is NORMED:  # examples depend on each other: there is no loop over them
        each = gradients_by_example(parameters, x, y)[0]
    else:
        alone = [torch.autograd.grad(-log_likelihood([n])[0], list(leaves.values())) for n in range(5)]
        each = {name: torch.stack([one[i] for one in alone]) for i, name in enumerate(leaves)}
    for name in leaves:
        torch.testing.assert_close(found[name][1], each[name].square().mean(0), rtol=1e-8, atol=1e-12)


def test_two_steps_computed_by_hand():
    """Two features, Gaussian noise .5, prior variance 4, tau 2, N doubled; networks as drawn from the same streams. The
    schedule's second step is its last, at half the rate.
    """
    data, options = small.training_data(R, 6), {"lr": 0.1, "momentum": 0.9, "damping": 0.2, "newest": 0.75}
    options |= {"epochs": 2, "schedule": {"name": "one_cycle", "rise": 0.5, "final": 0.5}}
    stack = trainer({"weight": {"factor": 2.0}}, data, samples=3, data_factor=2.0, **options)
    start = {name: value.clone() for name, value in stack.parameters.items()}
    size, tau, s2 = 12.0, 2.0, 4.0
    prior = tau / (size * s2)
    torch.testing.assert_close(
        start["log_var/head.bias"].exp(), torch.full((R, 1), tau / (size * (0.2 + prior))).double()
    )
    noise = small.streams(R).child(FUNCTIONS_LABEL)
    state = {k: (start[f"mean/head.{k}"], 0.0, 0.0) for k in ("weight", "bias")}
    log_var = {k: start[f"log_var/head.{k}"] for k in state}
    for lr in (0.1, 0.05):
        loss = stack.advance()
        stack.now.epoch += 1
        epsilon = noise.normal(3, 3)  # of two weights and a bias, in the order of the network's parameters
        drawn = {
            "weight": state["weight"][0][:, None] + (log_var["weight"] / 2).exp()[:, None] * epsilon[..., :2, None],
            "bias": state["bias"][0][:, None] + (log_var["bias"] / 2).exp()[:, None] * epsilon[..., 2:],
        }
        residual = torch.einsum("rnd,rsd->rsn", data.x, drawn["weight"][..., 0])
        residual = residual + drawn["bias"] - data.y[:, None]
        misfit = (residual.square() / (2 * 0.25) + math.log(0.5 * math.sqrt(2 * math.pi))).mean((1, 2))
        ratios = {k: (log_var[k].exp() / s2, state[k][0].square() / s2) for k in state}
        kl = sum((v + m - 1 - v.log()).flatten(1).sum(1) / 2 for v, m in ratios.values())
        torch.testing.assert_close(loss, misfit + tau * kl / size)
        residual = residual / 0.25
        each = {"weight": (residual.unsqueeze(-1) * data.x[:, None]).unsqueeze(-1), "bias": residual.unsqueeze(-1)}
        for name, g in each.items():
            mean, h, v = state[name]
            h = 0.25 * h + 0.75 * g.square().mean((1, 2))
            v = 0.9 * v + g.mean((1, 2)) + prior * mean
            p = h + 0.2 + prior
            state[name], log_var[name] = (mean - lr * v / p, h, v), (tau / (size * p)).log()
        for name in state:
            torch.testing.assert_close(stack.parameters[f"mean/head.{name}"], state[name][0])
            torch.testing.assert_close(stack.parameters[f"log_var/head.{name}"], log_var[name])


def test_batch_normalisation_has_no_prior_and_its_statistics_are_followed():
    shape, samples, size, s2 = (2, 4, 4), 2, 8, 4.0
    data = small.training_data(R, size, 3, shape)
    parts = {"network": NORMED, "likelihood": {"name": "categorical"}}
    stack = trainer(parts, data, 3, shape, samples=samples, lr=0.1, damping=0.2, newest=0.75)
    start, network = {k: v.clone() for k, v in stack.parameters.items()}, stack.model.network
    noise = small.streams(R).child(FUNCTIONS_LABEL)
    drawn = stack.model.family.weights(network, start, samples, noise)
    prior = {name: 0.0 if ".norm." in name else 1 / (size * s2) for name in network.shapes}
    for name in network.shapes:
        expected = torch.tensor(1 / (size * (0.2 + prior[name]))).log().expand_as(start[f"log_var/{name}"])
        torch.testing.assert_close(start[f"log_var/{name}"], expected, check_dtype=False)
    stack.advance()
    for r in range(R):
        made = [
            gradients_by_example({k: drawn[k][r, s] for k in network.shapes}, data.x[r], data.y[r])
            for s in range(samples)
        ]
        for name in network.shapes:
            g, mean = torch.stack([gradients[name] for gradients, _ in made]), start[f"mean/{name}"][r]
            p = 0.75 * g.square().mean((0, 1)) + 0.2 + prior[name]
            moved = mean - 0.1 * (g.mean((0, 1)) + prior[name] * mean) / p
            torch.testing.assert_close(stack.parameters[f"mean/{name}"][r], moved)
            torch.testing.assert_close(stack.parameters[f"log_var/{name}"][r], -(size * p).log())
        for name in network.buffers:
            seen = torch.stack([statistics[name] for _, statistics in made]).mean(0)
            torch.testing.assert_close(stack.parameters[name][r], 0.9 * start[name][r] + 0.1 * seen)


def test_images_are_augmented_before_a_step():
    shape, changes = (2, 4, 4), {"crop": 1, "flip": True}
    data, parts = small.training_data(R, 6, 3, shape), {"network": small.CNN, "likelihood": {"name": "categorical"}}
    changed = replace(data, x=Augmentation(**changes)(data.x, small.streams(R).child("augment")))
    by_itself, by_hand, plain = (
        trainer(parts, given, 3, shape, augment=augment)
        for given, augment in ((data, changes), (changed, None), (data, None))
    )
    losses = [each.advance() for each in (by_itself, by_hand, plain)]
    assert torch.equal(losses[0], losses[1]) and not torch.isclose(losses[0], losses[2]).any()
    assert all(torch.equal(by_hand.parameters[k], v) for k, v in by_itself.parameters.items())


def test_replicas_are_their_own_and_training_goes_on_where_it_was_saved():
    shape = (2, 4, 4)
    parts = {"network": NORMED, "likelihood": {"name": "categorical"}}
    data, options = small.training_data(R, 8, 3, shape), {"epochs": 2, "batch_size": 4, "samples": 2}
    together = trainer(parts, data, 3, shape, **options).run()
    half = trainer(parts, data, 3, shape, **options)
    half.advance()
    half.now.epoch += 1
    model, procedure = (
        small.model({**PARTS, **parts}, 3, shape),
        TRAININGS.build({"name": "vogn", "dtype": "float64", **options}),
    )
    resumed = procedure.start(model, data, small.streams(R), half.state()).run()
    for r in range(R):
        alone = procedure.start(model, small.one(data, r), small.streams(R).subset([r])).run()[0]
        for other in (alone, resumed[r]):
            assert all(torch.equal(other.parameters[k], v) for k, v in together[r].parameters.items())
        assert any(k.startswith("buffer/") and v.abs().sum() > 0 for k, v in together[r].parameters.items())


@pytest.mark.parametrize(
    ("parts", "options", "said"),
    [
        ({"family": {"name": "point"}}, {}, "moves family 'mean_field', found 'point'"),
        ({"weight": {"scaling": "batch"}}, {}, "divergence 'weight_kl' and weight scaling 'elbo'"),
        ({"weight": {"factor": 0.0}}, {}, "draws weights of variance 0 at weight.factor 0"),
        ({"weight": {"rise": 0.5}}, {}, "moves all layers by one weight"),
        ({"weight": {"alpha": 0.5}}, {}, "use weight.alpha 0 and a likelihood without class_weights"),
        (
            {"likelihood": {"name": "categorical", "class_weights": "batch"}},
            {"outputs": 3},
            "without class_weights or an error of its own, found 'categorical'",
        ),
        ({"family": {"name": "mean_field", "layers": "last"}}, {}, "moves all layers by one weight"),
        ({"likelihood": {"name": "gaussian"}}, {}, "give likelihood 'gaussian' learned False"),
        ({"network": {"name": "vector_field", "hidden": [3]}}, {"outputs": 2}, "needs linear and convolutional layers"),
        ({}, {"newest": 0.0}, "newest: expected above 0 and 1 or less, found 0.0"),
    ],
)
def test_parts_that_do_not_fit_are_named(parts, options, said):
    with pytest.raises((NotSupported, ValueError), match=f"training 'vogn'.* {said}"):
        trainer({"likelihood": PARTS["likelihood"], **parts}, small.training_data(R, 6), **options)
