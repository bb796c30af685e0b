"""The fast gradient sign method against finite differences, its bounds, and what it leaves alone."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fvi_core.attacks import fgsm
from fvi_core.registry import FAMILIES
from fvi_core.telling import listening
from tests.fvi_core import small

FAR = (-100.0, 100.0)


def linear(weights: Tensor):
    """Functions f_s(x) = x W_s: weights [S, D, K]."""
    return lambda x: torch.einsum("rnd,sdk->rsnk", x, weights.to(x))


def loss(functions, x: Tensor, y: Tensor) -> Tensor:
    """-log of the mean over samples of the probability of y, [R, N], written with softmax."""
    probabilities = functions(x).softmax(-1).mean(1)
    return -probabilities.gather(-1, y[..., None])[..., 0].log()


def ascent(functions, x: Tensor, y: Tensor, step: float = 1e-6) -> Tensor:
    """Central differences of the loss by every feature, [R, N, D]."""
    slopes = []
    for d in range(x.shape[-1]):
        shift = torch.zeros_like(x)
        shift[..., d] = step
        slopes.append((loss(functions, x + shift, y) - loss(functions, x - shift, y)) / (2 * step))
    return torch.stack(slopes, -1)


@pytest.fixture(params=[1, 4])
def case(request):
    """A linear model of one or four samples, points of two replicas, labels."""
    weights = small.streams(request.param, name="weights").normal(5, 3) * 2
    x = small.inputs(2, 7, (5,))
    return linear(weights), x, small.streams(2, name="labels").integers(3, 7)


def test_zero_epsilon_is_the_identity(case) -> None:
    functions, x, y = case
    assert torch.equal(fgsm(functions, x, y, 0.0, *FAR), x)
    assert torch.equal(fgsm(functions, x, y, 0.0, -0.1, 0.1), x)  # also of points beyond the bounds


def test_step_is_the_sign_of_the_finite_difference_on_a_linear_model(case) -> None:
    functions, x, y = case
    slope = ascent(functions, x, y)
    assert slope.abs().min() > 1e-5  # so that the sign of no difference is in doubt
    attacked = fgsm(functions, x, y, 0.25, *FAR)
    torch.testing.assert_close(attacked, x + 0.25 * slope.sign(), rtol=0, atol=1e-12)


def test_loss_is_that_of_the_mean_predictive_not_the_mean_loss() -> None:
    # Logits of class 0, against 0: x - 10, hopeless, and -x / 2, undecided. The hopeless one has most of the mean loss
    # and falls with x; the undecided one has all of the mean predictive and gains from it.
    slopes, shifts = torch.tensor([[1.0, -0.5], [-10.0, 0.0]], dtype=torch.float64)[..., None, None]
    functions = lambda x: torch.cat([slopes * x[:, None] + shifts, 0 * slopes * x[:, None]], -1)
    x, y = torch.zeros(1, 1, 1, dtype=torch.float64), torch.tensor([[0]])
    mean_losses = [-functions(x + step).log_softmax(-1)[..., 0].mean() for step in (0, 1e-3)]
    assert mean_losses[1] < mean_losses[0]
    assert ascent(functions, x, y) > 0
    assert fgsm(functions, x, y, 0.5, *FAR).item() == 0.5


def test_bounds_are_kept_and_reached(case) -> None:
    functions, x, y = case
    attacked = fgsm(functions, x, y, 0.5, -1.0, 1.0)
    assert attacked.min() == -1 and attacked.max() == 1
    free = fgsm(functions, x, y, 0.5, *FAR)
    torch.testing.assert_close(attacked, free.clamp(-1, 1))


def test_points_beyond_a_bound_go_no_further() -> None:
    functions = linear(torch.tensor([[[1.0, 0.0]]], dtype=torch.float64))  # the loss of class 0 grows to the left
    x, y = torch.tensor([[[-2.0], [2.0]]], dtype=torch.float64), torch.zeros(1, 2, dtype=torch.long)
    assert fgsm(functions, x, y, 0.5, -1.0, 1.0).flatten().tolist() == [-2.0, 1.5]


def test_epsilon_and_bounds_may_differ_by_channel() -> None:
    network = small.network(small.CNN, 3)
    weights = network.unflatten(small.streams(1).normal(1, network.n_parameters))
    x, y = small.inputs(1, 6, (2, 4, 4)), torch.arange(6)[None] % 3
    epsilon, low = (torch.tensor(values, dtype=x.dtype).view(2, 1, 1) for values in ([0.1, 0.4], [-1.0, -0.5]))
    moved = fgsm(lambda points: network(weights, points), x, y, epsilon, low, 1.0) - x
    assert moved[:, :, 0].abs().max() == pytest.approx(0.1) and moved[:, :, 1].abs().max() == pytest.approx(0.4)
    assert (x + moved)[:, :, 1].min() >= x[:, :, 1].clamp_max(-0.5).min()


@pytest.mark.parametrize("family", [{"name": "mean_field"}, {"name": "dropout", "rate": 0.2, "masks": "function"}])
def test_attack_raises_the_loss_and_leaves_parameters_alone(family) -> None:
    network = small.network(small.TANH, 3)
    chosen = FAMILIES.build(family)
    streams = small.streams(2)
    parameters = {name: value.requires_grad_() for name, value in chosen.init(network, streams).items()}
    functions = chosen.functions(network, parameters, 5, streams)
    x, y = small.inputs(2, 9), small.streams(2, name="labels").integers(3, 9)
    with torch.no_grad():
        attacked = fgsm(functions, x, y, 1e-3, *FAR)
        assert (loss(functions, attacked, y) > loss(functions, x, y)).all()
    assert not attacked.requires_grad and not x.requires_grad
    assert all(value.grad is None for value in parameters.values())


def test_points_and_replicas_are_attacked_apart(case) -> None:
    functions, x, y = case
    attacked = fgsm(functions, x, y, 0.1, *FAR)
    said: list[str] = []
    with listening(said.append):
        assert torch.equal(fgsm(functions, x, y, 0.1, *FAR, chunk=x.shape[1] - 1), attacked)
    assert said == ["attack on inputs: piece 1 of 2", "attack on inputs: piece 2 of 2"]
    assert torch.equal(fgsm(functions, x[1:, 3:4], y[1:, 3:4], 0.1, *FAR), attacked[1:, 3:4])


def test_a_sure_model_still_shows_the_way_up() -> None:
    functions = linear(torch.tensor([[[60.0, 0.0, 30.0], [0.0, 0.0, -20.0]]]))
    x, y = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[0]])
    assert functions(x).softmax(-1)[..., 0].item() == 1  # in float32
    # Class 2 comes nearest: its logit rises against class 0 to the left and down.
    assert torch.equal(fgsm(functions, x, y, 0.5, *FAR), torch.tensor([[[0.5, -0.5]]]))


def test_wrong_inputs_are_refused(case) -> None:
    functions, x, y = case
    with pytest.raises(TypeError, match="expected inputs of a floating type.*found torch.uint8"):
        fgsm(functions, x.to(torch.uint8), y, 0.1, *FAR)
    with pytest.raises(ValueError, match="expected epsilon >= 0, found -0.1"):
        fgsm(functions, x, y, -0.1, *FAR)
