"""The benchmark of modules compares what is the same."""

import copy

import pytest
import torch

from fvi_core.networks import ModuleNetwork
from fvi_core.registry import NETWORKS
from tools.cost import modules


def test_the_plain_loop_has_the_objective_of_map():
    torch.manual_seed(0)
    module, given = modules.group_normed(), modules.data((1, 28, 28), 8, 10)
    network = ModuleNetwork(module, given.x[0, :3])
    (own,) = modules.training(network, "MAP", given, 8)()()
    (theirs,) = modules.plain(lambda: copy.deepcopy(module), given, 8, False)()()
    for name, place in network.states.items():
        want = theirs.parameters[place.name]
        torch.testing.assert_close(own.parameters[name][0], want.mT if place.transposed else want, rtol=0, atol=1e-5)
        assert not torch.equal(want, network.parameters_of(module)[name])


@pytest.mark.parametrize("name", ["perceptron", "convolutional"])
def test_modules_have_as_many_parameters_as_the_built_in_networks(name):
    spec = {"name": "mlp", "hidden": [50, 50]}, {"name": "cnn", "channels": [32, 64], "pool": [1, 1], "dense": [256]}
    shape, outputs = ((8,), 1) if name == "perceptron" else ((1, 28, 28), 10)
    built = NETWORKS.build(spec[name == "convolutional"]).build(shape, outputs)
    network = ModuleNetwork(getattr(modules, name), torch.randn(3, *shape))
    assert network.way == "translated" and network.n_parameters == built.n_parameters
    assert list(map(type, network.layers)) == [type(x) for x in built.layers if type(x).__name__ != "DropoutSite"]
