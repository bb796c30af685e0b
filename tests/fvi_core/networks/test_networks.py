"""Networks against torch.nn.functional, one replica and sample at a time, and their faster paths against them."""

import math

import pytest
import torch
import torch.nn.functional as F
from scipy.stats import truncnorm

from fvi_core import blocks, shallow
from fvi_core.families.base import DrawnNetworks, points_at_once
from fvi_core.networks import ACTIVATIONS, Network, Tape, layers
from fvi_core.networks.layers import Linear
from fvi_core.registry import NETWORKS
from tests.fvi_core import small

UNPADDED = {"name": "cnn", "channels": [2], "dense": [4], "pool": [1], "padding": 0}


def plain(network, spec, parameters, x):
    """Return the outputs of a network, of one replica and sample, by torch.nn.functional."""

    def linear(name, a):
        return F.linear(a, parameters[f"{name}.weight"].T, parameters[f"{name}.bias"])

    if spec["name"] == "mlp":
        a = x.flatten(1)
        for i in range(len(spec["hidden"])):
            a = ACTIVATIONS[spec["activation"]](linear(f"hidden{i}", a))
        return linear("head", a)
    for i, pool in enumerate(spec["pool"]):
        x = F.relu(
            F.conv2d(x, parameters[f"conv{i}.weight"], parameters[f"conv{i}.bias"], padding=spec.get("padding", 1))
        )
        x = F.max_pool2d(x, 2) if pool else x
    a = x.flatten(1)
    for i in range(len(spec["dense"])):
        a = F.relu(linear(f"dense{i}", a))
    return linear("head", a)


@pytest.mark.parametrize("spec", [small.RELU, small.TANH, small.CNN, UNPADDED, {**small.TANH, "hidden": []}])
@pytest.mark.parametrize(("replicas", "samples"), [(1, 1), (3, 1), (1, 4), (2, 3)])
def test_a_network_is_that_of_torch_functional(spec, replicas, samples):
    network = small.network(spec)
    parameters, x = small.draws(network, replicas, samples), small.inputs(replicas, 5, small.SHAPES[spec["name"]])
    actual = network(parameters, x)
    expected = [
        [plain(network, spec, {k: v[r, s] for k, v in parameters.items()}, x[r]) for s in range(samples)]
        for r in range(replicas)
    ]
    torch.testing.assert_close(actual, torch.stack([torch.stack(row) for row in expected]), rtol=1e-12, atol=1e-12)


def test_features_then_head_is_the_network():
    for spec in (small.RELU, small.TANH, small.CNN):
        network = small.network(spec)
        parameters, x = small.draws(network, 2, 3), small.inputs(2, 5, small.SHAPES[spec["name"]])
        assert torch.equal(network.head(parameters, network.features(parameters, x)), network(parameters, x))


def test_a_tape_holds_input_and_output_of_every_layer():
    network, tape = small.network(small.CNN), Tape()
    parameters = small.draws(network, 2, 1)
    f = network(parameters, small.inputs(2, 5, (2, 4, 4)), tape=tape)
    assert [layer.name for layer, _, _ in tape.entries] == ["conv0", "conv1", "dense0", "head"]
    assert tape.entries[-1][2] is f
    assert all(torch.equal(layer(parameters, a), z) for layer, a, z in tape.entries)


@pytest.mark.parametrize(
    ("spec", "sites"), [(small.TANH, ["hidden0", "hidden1"]), (small.CNN, ["conv0", "conv1", "dense0", "head"])]
)
def test_dropout_is_called_at_every_site(spec, sites):
    network, seen = small.network(spec), []

    def zero(site, a):
        seen.append(site)
        return a * 0

    parameters = small.draws(network, 1, 1)
    f = network(parameters, small.inputs(1, 5, small.SHAPES[spec["name"]]), dropout=zero)
    assert seen == sites
    assert torch.equal(f, parameters["head.bias"][:, :, None].expand_as(f))


def test_flat_parameters_and_back():
    network = small.network(small.CNN)
    flat = small.streams(2).normal(3, network.n_parameters)
    assert torch.equal(network.flatten(network.unflatten(flat)), flat)
    assert {k: v.shape[2:] for k, v in network.unflatten(flat).items()} == {
        k: torch.Size(v) for k, v in network.shapes.items()
    }


@pytest.mark.parametrize("spec", [small.TANH, small.CNN])
def test_initial_parameters_are_those_of_pytorch_layers(spec):
    network = small.network(spec)
    parameters = network.init(small.streams(400))
    for layer in network.parametrised:
        for name in layer.shapes:
            bound = 1 / math.sqrt(layer.fan_in)
            assert parameters[name].shape == (400, *network.shapes[name])
            assert 0.9 * bound < parameters[name].abs().max() <= bound
            torch.testing.assert_close(parameters[name].std().item(), bound / math.sqrt(3), rtol=0.1, atol=0)
    alone = network.init(small.streams(400).subset([7]))
    assert all(torch.equal(alone[k], v[7:8]) for k, v in parameters.items())


DEVIATIONS = {
    "lecun": lambda weight: torch.nn.init.kaiming_normal_(weight, nonlinearity="linear").std(),
    "haiku": lambda weight: truncnorm(-2, 2).std() / math.sqrt(weight[0].numel()),
    "glorot": lambda weight: torch.nn.init.xavier_normal_(weight).std(),
    "he": lambda weight: torch.nn.init.kaiming_normal_(weight, nonlinearity="relu").std(),
}


@pytest.mark.parametrize("init", DEVIATIONS)
@pytest.mark.parametrize("spec", [small.TANH, small.CNN])
def test_initial_weights_of_other_libraries_are_theirs(spec, init):
    network = small.network({**spec, "init": init})
    parameters = network.init(small.streams(400))
    for layer in network.parametrised:
        weight = parameters[f"{layer.name}.weight"]
        one = weight[0].T if isinstance(layer, Linear) else weight[0]  # as torch.nn has it
        copies = [DEVIATIONS[init](torch.empty_like(one)) for _ in range(400)]
        expected = math.sqrt(sum(float(copy) ** 2 for copy in copies) / 400)
        assert weight.std().item() == pytest.approx(expected, rel=0.1)
        assert not parameters[f"{layer.name}.bias"].any()
    with pytest.raises(ValueError, match=f"network '{spec['name']}': init 'gloro' is not known; did you mean 'glorot'"):
        small.network({**spec, "init": "gloro"})


@pytest.mark.parametrize(("rows", "inner", "columns"), [(10, 21, 4), (7, 33, 5), (9, 13, 6), (13, 101, 4)])
def test_products_do_not_depend_on_the_place_in_the_stack(rows, inner, columns):
    """Shapes whose replicas start at addresses that are multiples of nothing."""
    streams = small.streams(3, torch.float32)
    a, b = streams.normal(rows, inner), streams.normal(columns, inner)
    together = torch.bmm(a, b.mT)
    for r in range(3):
        assert torch.equal(torch.bmm(a[r : r + 1].clone(), b[r : r + 1].clone().mT)[0], together[r])


def test_samples_that_share_convolutions_are_one_batch(monkeypatch):
    network, seen, conv2d = small.network(small.CNN), [], F.conv2d
    parameters, a = small.draws(network, 2, 1), small.inputs(2, 3 * 5, (2, 4, 4)).unflatten(1, (3, 5))
    monkeypatch.setattr(F, "conv2d", lambda a, *rest, **options: seen.append(len(a)) or conv2d(a, *rest, **options))
    layer = network.parametrised[0]
    z = layer(parameters, a)
    assert seen == [15, 15]
    for s in range(3):
        torch.testing.assert_close(z[:, s : s + 1], layer(parameters, a[:, s : s + 1]), rtol=1e-12, atol=1e-12)


def test_networks_of_the_papers_have_their_sizes():
    sizes = {
        # conv 32, conv 64, dense 256, head, as rudner2022's code has it
        824_458: {"name": "cnn", "channels": [32, 64], "pool": [1, 1], "dense": [256]},
        # the LeNet of Ovadia et al.: 9,216 features after the pooling
        1_199_882: {"name": "lenet"},
        # cinquin2024: 7x7x64 features
        426_122: {"name": "cnn", "channels": [16, 32, 64], "pool": [1, 1, 0], "dense": [128]},
        42_310: {"name": "mlp", "hidden": [50, 50]},
    }
    for size, spec in sizes.items():
        assert NETWORKS.build(spec).build((1, 28, 28), 10).n_parameters == size
    seven = {"name": "cnn", "channels": [32, 32, 64, 64, 128, 128], "pool": [0, 1, 0, 1, 0, 1], "dense": [128]}
    assert NETWORKS.build(seven).build((3, 32, 32), 10).n_parameters == 550_570


def test_the_width_is_that_of_the_widest_layer():
    assert small.network(small.TANH).width == 4 and small.network({**small.TANH, "hidden": []}, 5).width == 5
    cnn = NETWORKS.build({"name": "cnn", "channels": [8, 4], "pool": [1, 0], "dense": [6]}).build((1, 10, 8), 2)
    assert cnn.width == 8 * 10 * 8


def test_images_too_small_for_a_network_are_named():
    with pytest.raises(ValueError, match=r"images of \[1, 4, 4\] are too small for 2 convolutions"):
        NETWORKS.build({"name": "cnn", "channels": [2, 2], "pool": [1, 1], "dense": [], "padding": 0}).build(
            (1, 4, 4), 2
        )


def test_a_convolutional_network_of_another_activation_is_that_of_torch():
    spec = {"name": "cnn", "channels": [3], "pool": [1], "dense": [5], "activation": "tanh"}
    network = NETWORKS.build(spec).build((1, 6, 6), 2)
    parameters, x = small.draws(network, 1, 1), small.inputs(1, 4, (1, 6, 6))
    own = {name: value[0, 0] for name, value in parameters.items()}
    a = F.max_pool2d(torch.tanh(F.conv2d(x[0], own["conv0.weight"], own["conv0.bias"], padding=1)), 2).flatten(1)
    a = torch.tanh(a @ own["dense0.weight"] + own["dense0.bias"])
    torch.testing.assert_close(network(parameters, x)[0, 0], a @ own["head.weight"] + own["head.bias"])
    with pytest.raises(ValueError, match="network 'cnn': activation 'tan' is not known; did you mean 'tanh'"):
        NETWORKS.build({**spec, "activation": "tan"})


def test_inputs_of_another_shape_are_named():
    network = small.network(small.TANH)
    with pytest.raises(ValueError, match=r"expects inputs \[R, N, 2\], found \[1, 5, 3\]"):
        network(small.draws(network, 1, 1), torch.zeros(1, 5, 3))
    with pytest.raises(ValueError, match=r"'cnn' expects images \[channels, height, width\], found \[2\]"):
        NETWORKS.build(small.CNN).build((2,), 1)


def values_and_gradients(evaluate, parameters, weights):
    f = evaluate()
    return f.detach(), torch.autograd.grad((f * weights).sum(), list(parameters.values()))


def assert_same(actual, expected, **tolerance):
    torch.testing.assert_close(actual[0], expected[0], **tolerance)
    for a, e in zip(actual[1], expected[1], strict=True):
        torch.testing.assert_close(a, e, **tolerance)


@pytest.mark.parametrize("block", [1, 2, 5])
@pytest.mark.parametrize("spec", [small.TANH, small.CNN])
def test_blocks_of_samples_are_the_whole(monkeypatch, spec, block):
    network = small.network(spec)
    parameters, x = small.draws(network, 2, 5), small.inputs(2, 6, small.SHAPES[spec["name"]])
    weights = small.streams(2, name="weights").normal(5, 6, 2)
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", block * 6 * network.width)
    monkeypatch.setattr(blocks, "TOGETHER", block)
    expected = values_and_gradients(lambda: network(parameters, x), parameters, weights)
    sizes = []

    def seen(self, parameters, x, call=Network.__call__):
        sizes.append(parameters["head.bias"].shape[1])
        return call(self, parameters, x)

    monkeypatch.setattr(Network, "__call__", seen)
    actual = values_and_gradients(lambda: blocks.evaluate(network, parameters, x), parameters, weights)
    assert sizes == [block] * (5 // block) + [5 % block] * (5 % block > 0)
    assert_same(actual, expected, rtol=1e-12, atol=1e-12)


def test_many_networks_of_images_take_as_many_inputs_as_a_block_of_them(monkeypatch):
    """Networks with common layers stay together, since one pass computes these for all; so they take fewer inputs."""
    network, cpu = small.network(small.CNN), torch.device("cpu")
    monkeypatch.setattr(blocks, "CHUNK", 60 * network.width)
    distinct = small.draws(network, 1, 20)
    shared = distinct | {name: value[:, :1] for name, value in distinct.items() if not name.startswith("head")}
    found = [points_at_once(DrawnNetworks(network, each), network, 20, cpu) for each in (distinct, shared)]
    assert found == [60 // blocks.TOGETHER, 60 // 20]
    few = DrawnNetworks(network, small.draws(network, 1, 4))
    assert points_at_once(few, network, 4, cpu) == points_at_once(few.__call__, network, 4, cpu) == 60 // 4


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_shared_matrix_too_large_for_copies_takes_all_samples_at_once(monkeypatch, replicas):
    layer, taken = Linear("hidden", 3, 5), []
    parameters = {name: small.streams(replicas, name=name).normal(1, *shape) for name, shape in layer.shapes.items()}
    parameters = {name: value.requires_grad_() for name, value in parameters.items()}
    a = small.streams(replicas, name="a").normal(4, 6, 3)
    weights = small.streams(replicas, name="weights").normal(4, 6, 5)
    expected = values_and_gradients(lambda: layer(parameters, a), parameters, weights)
    monkeypatch.setattr(layers, "COPIED", 4 * 15 - 1)
    monkeypatch.setattr(layers, "product", lambda x, *rest, f=layers.product: taken.append(len(x)) or f(x, *rest))
    actual = values_and_gradients(lambda: layer(parameters, a), parameters, weights)
    assert taken == [replicas]
    assert_same(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(shallow.numba is None, reason="Numba is not installed")
@pytest.mark.parametrize(("features", "points"), [(1, 7), (4, 16), (6, 35), (shallow.UNROLLED + 2, 7)])
def test_the_fused_pass_is_the_network(monkeypatch, features, points):
    network = NETWORKS.build(small.RELU).build((features,), 1)
    parameters = small.draws(network, 2, 9, torch.float32)
    x = small.inputs(2, points, (features,), torch.float32)
    weights = small.streams(2, torch.float32, "weights").normal(9, points, 1)
    taken = []
    monkeypatch.setattr(shallow, "evaluate", lambda *a, evaluate=shallow.evaluate: taken.append(1) or evaluate(*a))
    actual = values_and_gradients(lambda: blocks.evaluate(network, parameters, x), parameters, weights)
    expected = values_and_gradients(lambda: network(parameters, x), parameters, weights)
    assert taken
    assert_same(actual, expected, rtol=1e-5, atol=1e-5)


def test_only_small_relu_regression_networks_are_fused(monkeypatch):
    x = torch.zeros(1, 5, 2)
    fits = [shallow.fits(small.network(spec, q), x) for spec, q in ((small.RELU, 1), (small.RELU, 2), (small.TANH, 1))]
    assert fits == [shallow.numba is not None, False, False]
    assert not shallow.fits(small.network(small.RELU, 1), x.double())
    monkeypatch.setattr(shallow, "numba", None)
    assert not shallow.fits(small.network(small.RELU, 1), x)
