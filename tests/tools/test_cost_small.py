"""The benchmark of small networks compares trainings of one objective."""

import pytest
import torch

from tools.cost import modules


@pytest.mark.parametrize("method", ["MAP", "MFVI"])
def test_the_plain_loop_takes_the_same_steps(method):
    given = modules.data((13,), modules.POINTS, 1)
    own = modules.dense(method, given, modules.POINTS, 3, log_var=-60.0)  # every draw is the mean, then
    start = {name: value.clone() for name, value in own.parameters.items()}
    (theirs,) = modules.plain_dense(start, given, modules.POINTS, 3)()
    (ours,) = own.run()
    assert ours.parameters.keys() == theirs.parameters.keys()
    for name, value in ours.parameters.items():
        torch.testing.assert_close(value, theirs.parameters[name][None], rtol=0, atol=1e-5)
        assert not torch.equal(value, start[name])
