"""Residual networks and batch normalisation against the same network of torch.nn modules."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fvi_core.linearisation import full_network_moments, last_layer_moments
from fvi_core.networks import BatchNorm
from fvi_core.networks.layers import Conv2d
from fvi_core.networks.residual import residual_network
from fvi_core.registry import NETWORKS
from fvi_core.training import Trainer, Training
from tests.fvi_core import small
from tests.fvi_core.test_linearisation import assert_close, gradients

SHAPE, N = (2, 6, 5), 7


def tiny(norm=True, shared=False, outputs=3):
    """Two groups of one block: an identity and a projected shortcut."""
    return residual_network(SHAPE, outputs, 2, (1, 1), norm, shared)


class Modules(nn.Module):
    """Residual network of torch.nn modules with the parameters of one replica and sample."""

    def __init__(self, network, parameters):
        super().__init__()
        self.layers = nn.ModuleDict()
        for layer in network.parametrised:
            own = {name.rsplit(".", 1)[1]: parameters[name] for name in layer.shapes}
            if isinstance(layer, BatchNorm):
                module = nn.BatchNorm2d(layer.outputs)
                own = {"weight": own["scale"], "bias": own["shift"]}
            elif layer is network.head:
                module = nn.Linear(layer.inputs, layer.outputs)
                own["weight"] = own["weight"].T
            else:
                sizes = (layer.inputs, layer.outputs, layer.kernel, layer.stride, layer.padding)
                module = nn.Conv2d(*sizes, bias="bias" in own)
            module.to(torch.float64).load_state_dict(own, strict=False)
            self.layers[layer.name.replace(".", "_")] = module

    def conv(self, name, x):
        x = self.layers[name](x)
        return self.layers[f"{name}_norm"](x) if f"{name}_norm" in self.layers else x

    def forward(self, x):
        x = self.conv("stem", x).relu()
        for g in range(2):
            block = f"group{g}_block0"
            z = self.conv(f"{block}_conv1", self.conv(f"{block}_conv0", x).relu())
            x = (z + (self.conv(f"{block}_shortcut", x) if g else x)).relu()
        return self.layers["head"](x.mean((2, 3)))

    def gradient(self, network, name):
        layer, kind = name.rsplit(".", 1)
        module = self.layers[layer.replace(".", "_")]
        gradient = {"scale": module.weight, "shift": module.bias}.get(kind, getattr(module, kind, None)).grad
        return gradient.T if name == "head.weight" else gradient


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize(("replicas", "samples"), [(1, 1), (2, 3)])
def test_values_gradients_and_statistics_in_training_are_those_of_modules(norm, replicas, samples):
    network, x, seen = tiny(norm), small.inputs(replicas, N, SHAPE), {}
    parameters = small.draws(network, replicas, samples)
    for value in parameters.values():
        value.retain_grad()
    f = network.recording(seen)(parameters, x)
    (f * small.streams(replicas, name="weights").normal(samples, N, 3)).sum().backward()
    running = network.track(network.init_buffers(small.streams(replicas)), seen)
    assert running.keys() == network.buffers.keys()
    for r in range(replicas):
        modules = [Modules(network, {k: v[r, s].detach() for k, v in parameters.items()}) for s in range(samples)]
        values = [module(x[r]) for module in modules]
        for s, (module, value) in enumerate(zip(modules, values, strict=True)):
            torch.testing.assert_close(f[r, s], value, rtol=1e-10, atol=1e-10)
            (value * small.streams(replicas, name="weights").normal(samples, N, 3)[r, s]).sum().backward()
            for name, tensor in parameters.items():
                torch.testing.assert_close(tensor.grad[r, s], module.gradient(network, name), rtol=1e-9, atol=1e-9)
        for name, value in running.items():
            layer, kind = name.removeprefix("buffer/").rsplit(".", 1)
            expected = [getattr(module.layers[layer.replace(".", "_")], f"running_{kind}") for module in modules]
            torch.testing.assert_close(value[r], torch.stack(expected).mean(0), rtol=1e-10, atol=1e-12)


def test_values_in_prediction_are_those_of_modules_with_their_running_statistics():
    network, x, seen = tiny(), small.inputs(1, N, SHAPE), {}
    parameters = {k: v.detach() for k, v in small.draws(network, 1, 1).items()}
    module = Modules(network, {k: v[0, 0] for k, v in parameters.items()})
    buffers = network.init_buffers(small.streams(1))
    for step in range(3):
        seen = {}
        network.recording(seen)(parameters, x + step)
        buffers = network.track(buffers, seen)
        module(x[0] + step)
    f = network(parameters | {k: v[:, None] for k, v in buffers.items()}, x)
    torch.testing.assert_close(f[0, 0], module.eval()(x[0]), rtol=1e-10, atol=1e-10)


def test_only_the_first_pass_is_watched_and_only_through_the_watched_network():
    network, x, seen = tiny(), small.inputs(2, N, SHAPE), {}
    parameters = small.draws(network, 2, 1)
    watched = network.recording(seen)
    watched(parameters, x)
    first = {k: v.clone() for k, v in seen.items()}
    watched(parameters, x * 2)
    network(parameters, x * 3)
    assert first.keys() == network.buffers.keys() and all(torch.equal(seen[k], v) for k, v in first.items())
    assert not tiny(norm=False).buffers and tiny(norm=False).recording(seen).batch_statistics is None


def test_members_of_an_ensemble_have_running_statistics_of_their_own():
    network, x = tiny(), small.inputs(2, N, SHAPE)
    buffers = {k: v.unflatten(0, (2, 3)) for k, v in network.init_buffers(small.streams(6)).items()}
    parameters = {k: v.detach() for k, v in small.draws(network, 2, 3).items()}
    seen_as_samples, seen_as_replicas = {}, {}
    network.recording(seen_as_samples)(parameters, x)
    members = {k: v.flatten(0, 1).unsqueeze(1) for k, v in parameters.items()}
    network.recording(seen_as_replicas)(members, x.repeat_interleave(3, dim=0))
    one, other = network.track(buffers, seen_as_samples), network.track(buffers, seen_as_replicas)
    for name, value in one.items():
        assert value.shape == buffers[name].shape
        torch.testing.assert_close(value, other[name], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(value, 0.9 * buffers[name] + 0.1 * seen_as_samples[name], rtol=1e-12, atol=1e-12)


def test_replicas_together_are_bitwise_the_same_as_alone():
    network, x = tiny(), small.inputs(3, N, SHAPE)
    parameters = small.draws(network, 3, 2)
    together = network(parameters, x)
    for r in range(3):
        assert torch.equal(network(small.one(parameters, r), x[r : r + 1]), together[r : r + 1])


def test_statistics_are_what_normalisation_is_given():
    network, x = tiny(), small.inputs(2, N, SHAPE)
    parameters = {k: v.detach() for k, v in small.draws(network, 2, 3).items()}
    held = network.statistics(parameters, x)
    stem = network.layers[0](parameters, x[:, None])
    torch.testing.assert_close(held["buffer/stem.norm.mean"], stem.mean((2, 4, 5)), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(held["buffer/stem.norm.var"], stem.var((2, 4, 5)), rtol=1e-12, atol=1e-12)
    assert not tiny(norm=False).statistics(small.draws(tiny(norm=False), 1, 1), x[:1])


def trained_state(network, replicas):
    """Running statistics that are neither 0 nor 1."""
    streams = small.streams(replicas, name="state")
    draw = {"mean": lambda s: streams.normal(*s) * 0.3, "var": lambda s: streams.uniform(*s) + 0.5}
    return {name: draw[name.rsplit(".", 1)[1]](shape) for name, shape in network.buffers.items()}


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("norm", [True, False])
def test_moments_of_the_linearised_network_are_those_of_the_jacobian(norm, covariance):
    network, r, n = tiny(norm), 2, 4
    x = small.inputs(r, n, SHAPE)
    flat = small.streams(r).normal(2, network.n_parameters)
    mean, log_var = network.unflatten(flat[:, 0] * 0.7), network.unflatten(flat[:, 1] - 1)
    mean, log_var = ({k: v.contiguous().requires_grad_() for k, v in p.items()} for p in (mean, log_var))
    buffers = trained_state(network, r)
    for names in (list(network.shapes), ["head.weight", "head.bias"]):
        values, spreads = [], []
        for i in range(r):

            def f(moved, i=i):
                at = {k: v[i] for k, v in (mean | buffers).items()} | moved
                return network({k: v[None, None] for k, v in at.items()}, x[i : i + 1])[0, 0].T

            own = {k: mean[k][i] for k in names}
            jacobians = torch.func.jacrev(f)(own)
            columns = torch.cat([(jacobians[k] * (0.5 * log_var[k][i]).exp()).flatten(2) for k in names], -1)
            spread = columns @ columns.mT
            values.append(f(own))
            spreads.append(spread if covariance == "full" else spread.diagonal(dim1=-2, dim2=-1))
        expected = torch.stack(values), torch.stack(spreads)
        if len(names) > 2:
            actual = full_network_moments(network, mean | buffers, log_var, x, covariance)
        else:
            actual = last_layer_moments(network, mean | buffers, mean, log_var, x, covariance)
        assert_close(actual, expected)
        assert_close(gradients(actual, mean, log_var), gradients(expected, mean, log_var))


def test_dropout_is_called_after_every_relu():
    network, seen = tiny(), []
    network(small.draws(network, 1, 1), small.inputs(1, N, SHAPE), dropout=lambda s, a: seen.append(s) or a)
    assert seen == ["stem", "group0.block0.conv0", "group0.block0", "group1.block0.conv0", "group1.block0"]


def test_resnet18_has_the_layers_and_the_size_of_he_et_al():
    network = NETWORKS.build({"name": "resnet18"}).build((3, 32, 32), 10)
    # 3x3 stem of 1,728 weights, 16 convolutions, 3 shortcuts, 20 normalisations of 2 x channels, a head of 5,130.
    assert network.n_parameters == 11_173_962
    plain = NETWORKS.build({"name": "resnet18", "norm": "none"}).build((3, 32, 32), 10)
    assert plain.n_parameters == 11_173_962 - 4_800  # a shift but no scale for each of 4,800 channels
    assert network.multiplications == 555_422_720, "by hand: pixels times channels in and out times nine, and the head"
    assert network.width == 64 * 32 * 32 and len([x for x in network.parametrised if isinstance(x, BatchNorm)]) == 20
    made = network.init(small.streams(1))
    assert {k: v.shape for k, v in made.items()} == {k: (1, *s) for k, s in network.shapes.items()}


def test_initial_normalisation_changes_nothing_but_scale():
    network = tiny()
    parameters, buffers = network.init(small.streams(2)), network.init_buffers(small.streams(2))
    for layer in network.parametrised:
        if isinstance(layer, BatchNorm):
            scale, shift = (parameters[name] for name in layer.shapes)
            mean, var = (buffers[name] for name in layer.buffers)
            assert (scale == 1).all() and (shift == 0).all() and (mean == 0).all() and (var == 1).all()


def test_options_are_checked():
    with pytest.raises(ValueError, match="context_statistics 'share' is not known; did you mean 'shared'"):
        NETWORKS.build({"name": "resnet18", "context_statistics": "share"})
    with pytest.raises(ValueError, match="'resnet18' expects images"):
        NETWORKS.build({"name": "resnet18"}).build((784,), 10)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_images_and_their_gradients_stay_channels_last(monkeypatch, processor, channels, samples, precision):
    processor(True)
    network = residual_network((channels, 8, 8), 4, 8, (1, 1), True, False).in_precision(precision)
    x, layouts, conv2d = small.inputs(1, 16, (channels, 8, 8), torch.float32), [], F.conv2d

    def spy(a, *rest, **options):
        z = conv2d(a, *rest, **options)
        layouts.append((a.stride(1), z.stride(1)))
        z.register_hook(lambda gradient: layouts.append((gradient.stride(1), z.stride(1))))
        return z

    monkeypatch.setattr(F, "conv2d", spy)
    parameters = {
        k: v.unsqueeze(1).repeat(1, samples, *[1] * (v.dim() - 1)).requires_grad_()
        for k, v in network.init(small.streams(1, torch.float32)).items()
    }
    torch.autograd.grad(network(parameters, x).square().sum(), list(parameters.values()))
    assert layouts == [(1, 1)] * 12 * samples


def test_in_bfloat16_values_and_gradients_are_near(processor):
    processor(True)
    network = residual_network((3, 8, 8), 4, 8, (1, 1), True, False)
    x, seen = small.inputs(1, 16, (3, 8, 8), torch.float32), {}
    parameters = {k: v.unsqueeze(1).requires_grad_() for k, v in network.init(small.streams(1, torch.float32)).items()}
    reduced = network.in_precision("bfloat16").recording(seen)
    f, exact = reduced(parameters, x), network(parameters, x)
    made = torch.autograd.grad(f.square().sum(), list(parameters.values()))
    assert f.dtype == made[0].dtype == seen["buffer/stem.norm.mean"].dtype == torch.float32
    assert not torch.equal(f, exact)
    torch.testing.assert_close(f, exact, rtol=0.05, atol=0.05)
    expected = torch.autograd.grad(exact.square().sum(), list(parameters.values()))
    made, expected = (torch.cat([g.flatten() for g in gradients]) for gradients in (made, expected))
    assert torch.cosine_similarity(made, expected, 0) > 0.99


def test_training_in_bfloat16_hands_over_parameters_in_float32(processor):
    processor(True)

    def train(precision):
        model, data = small.model({"family": {"name": "point"}}, 3), small.training_data(1, 8, 3, dtype=torch.float32)
        training = Training(3, 4, {"name": "adam"}, precision=precision)
        return Trainer(model, training, data, small.streams(1, torch.float32)).run()[0]

    results = [train(precision) for precision in ("float32", "bfloat16")]
    assert results[0].loss != results[1].loss and all(v.dtype == torch.float32 for v in results[1].parameters.values())
    assert results[1].loss == pytest.approx(results[0].loss, rel=0.05)
    with pytest.raises(ValueError, match="precision 'bf16' is not known; did you mean 'bfloat16'"):
        train("bf16")


@pytest.mark.parametrize(("inputs", "outputs", "pixels"), [(8, 16, 64), (4, 8, 64), (16, 32, 32), (4, 8, 15)])
def test_strided_kernels_of_one_pixel_stay_in_their_memory(inputs: int, outputs: int, pixels: int) -> None:
    layer = Conv2d("shortcut", inputs, outputs, kernel=1, padding=0, stride=2, bias=False)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 1, 4, inputs, pixels, pixels, generator=generator, requires_grad=True)
    w = torch.randn(1, 1, outputs, inputs, 1, 1, generator=generator, requires_grad=True)
    z = layer({"shortcut.weight": w}, x)
    given = torch.randn(z.shape, generator=generator)
    z.backward(given)
    read = x.detach()[0, 0, ..., ::2, ::2]
    matrix = w.detach()[0, 0, :, :, 0, 0]
    torch.testing.assert_close(z[0, 0], torch.einsum("oc,nchw->nohw", matrix, read))
    assert x.grad is not None and w.grad is not None
    torch.testing.assert_close(
        w.grad[0, 0, :, :, 0, 0], torch.einsum("nohw,nchw->oc", given[0, 0], read), rtol=1e-4, atol=1e-3
    )
    torch.testing.assert_close(x.grad[0, 0, ..., ::2, ::2], torch.einsum("oc,nohw->nchw", matrix, given[0, 0]))
    assert x.grad[..., 1::2, :].abs().max() == x.grad[..., 1::2].abs().max() == 0
