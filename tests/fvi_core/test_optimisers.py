"""Optimisers and schedules against those of torch, one replica at a time."""

import pytest
import torch

from fvi_core import optimisers
from fvi_core.optimisers import OPTIMISERS, SCHEDULES, ScheduleState
from fvi_core.registry import UnknownPart
from tests.fvi_core import small

R = 3
RATES = torch.tensor([0.3, 0.05, 0.01], dtype=torch.float64)


def start():
    streams = small.streams(R)
    return [streams.normal(4, 2), streams.normal(3)]


def gradients(parameters, step):
    """Gradients of a function with curvature and noise; those of replica r depend on its own parameters alone."""
    noise = small.streams(R, name=f"noise {step}")
    return [(p.detach() ** 3 + 0.3 * noise.normal(*p.shape[1:])) for p in parameters]


@pytest.mark.parametrize(
    ("spec", "reference"),
    [
        ({"name": "adam"}, torch.optim.Adam),
        ({"name": "adam", "weight_decay": 0.1, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3}, torch.optim.Adam),
        ({"name": "sgd"}, torch.optim.SGD),
        ({"name": "sgd", "weight_decay": 0.1}, torch.optim.SGD),
        ({"name": "sgd", "momentum": 0.9}, torch.optim.SGD),
        ({"name": "sgd", "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, torch.optim.SGD),
    ],
)
def test_updates_are_those_of_torch(spec, reference):
    parameters, optimiser = start(), OPTIMISERS.build(spec)
    state = optimiser.start(parameters)
    options = {k: v for k, v in spec.items() if k not in ("name", "beta1", "beta2")}
    if "beta1" in spec:
        options["betas"] = (spec["beta1"], spec["beta2"])
    alone = [[p[r].clone() for p in parameters] for r in range(R)]
    references = [reference(alone[r], lr=RATES[r].item(), **options) for r in range(R)]
    for step in range(15):
        made = gradients(parameters, step)
        for r in range(R):
            for p, g in zip(alone[r], made, strict=True):
                p.grad = g[r].clone()
            references[r].step()
        optimiser.step(parameters, made, state, RATES)
    for r in range(R):
        for p, expected in zip(parameters, alone[r], strict=True):
            torch.testing.assert_close(p[r], expected, rtol=1e-12, atol=1e-12)


def test_gradients_given_are_not_changed():
    for name in ("adam", "sgd"):
        parameters, optimiser = start(), OPTIMISERS.build({"name": name, "weight_decay": 0.1})
        made = gradients(parameters, 0)
        copies = [g.clone() for g in made]
        optimiser.step(parameters, made, optimiser.start(parameters), RATES)
        assert all(torch.equal(g, c) for g, c in zip(made, copies, strict=True))


def walk(spec, losses, lr=0.1):
    """Learning rates [epochs, R] after every epoch, and which replicas are done."""
    schedule, state, rates = SCHEDULES.build(spec), ScheduleState.start(lr, losses.shape[1], torch.device("cpu")), []
    for epoch, loss in enumerate(losses, 1):
        schedule.after_epoch(state, epoch, len(losses), loss, lr)
        rates.append(state.lr.clone())
    return torch.stack(rates), state


def torch_walk(make, losses, lr=0.1):
    """Return learning rates [epochs, R] by one schedule of torch for each replica."""
    rates = torch.zeros(losses.shape, dtype=torch.float64)
    for r in range(losses.shape[1]):
        optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
        schedule = make(optimiser)
        for epoch, loss in enumerate(losses[:, r]):
            optimiser.step()
            schedule.step(*([loss.item()] if isinstance(schedule, torch.optim.lr_scheduler.ReduceLROnPlateau) else []))
            rates[epoch, r] = optimiser.param_groups[0]["lr"]
    return rates


def random_losses(epochs=80, replicas=20):
    """Falling, noisy sequences, from positive to negative or negative throughout; some hover within the threshold."""
    make = small.streams(replicas)
    noise, offset, slope = make.normal(epochs), 2 * make.normal(1), make.uniform(1)
    scale = 10.0 ** (-4 * make.uniform(1))
    return (offset + scale * noise - 0.05 * slope * torch.arange(epochs)).T.contiguous()


@pytest.mark.parametrize("patience", [0, 2, 5])
def test_plateau_is_that_of_torch_for_any_sequence_of_losses(patience):
    losses = random_losses()
    assert (losses < 0).any(1).any() and (losses > 0).any()
    rates, _ = walk({"name": "plateau", "factor": 0.5, "patience": patience, "min_lr": 0.0}, losses)
    expected = torch_walk(
        lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o, factor=0.5, patience=patience, threshold=1e-4, eps=0),
        losses,
    )
    torch.testing.assert_close(rates, expected, rtol=1e-12, atol=0)
    assert len(set(rates[-1].tolist())) > 2, "replicas should end at different rates"


def test_a_replica_is_done_at_the_smallest_rate():
    losses = torch.ones(10, 2)
    losses[:, 1] = torch.arange(10, 0, -1)
    rates, state = walk({"name": "plateau", "factor": 0.1, "patience": 1, "min_lr": 1e-3}, losses)
    assert state.done.tolist() == [True, False] and rates[-1, 1] == 0.1


def test_linear_holds_then_falls_on_a_line_then_holds():
    losses = torch.zeros(20, 2)
    rates, _ = walk({"name": "linear", "final": 0.2, "start": 0.5, "end": 0.75}, losses)
    expected = [0.1] * 10 + [0.1 * (1 - 0.8 * i / 5) for i in range(1, 6)] + [0.02] * 5
    torch.testing.assert_close(rates[:, 0], torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=0)
    with pytest.raises(ValueError, match="expected start < end, found 0.8 and 0.72"):
        SCHEDULES.build({"name": "linear", "final": 2.0, "start": 0.8})


def test_multistep_and_cosine_are_those_of_torch():
    losses = torch.zeros(20, 2)
    rates, _ = walk({"name": "multistep", "at": [0.5, 0.75], "factor": 0.2}, losses)
    expected = torch_walk(lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [10, 15], 0.2), losses)
    torch.testing.assert_close(rates, expected, rtol=1e-12, atol=0)
    rates, _ = walk({"name": "multistep", "at": [0.28, 0.55], "factor": 0.2}, losses.repeat(5, 1))  # 0.55 * 100 > 55
    expected = torch_walk(lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [28, 55], 0.2), losses.repeat(5, 1))
    torch.testing.assert_close(rates, expected, rtol=1e-12, atol=0)
    rates, _ = walk({"name": "cosine", "final": 0.1}, losses)
    expected = torch_walk(lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 20, eta_min=0.01), losses)
    torch.testing.assert_close(rates, expected, rtol=1e-10, atol=0)
    rates, state = walk({"name": "constant"}, losses)
    assert (rates == 0.1).all() and not state.done.any()


@pytest.mark.parametrize(("steps", "rise"), [(3, 0.3), (20, 0.3), (100, 0.25), (20, 0.05)])
def test_one_cycle_is_that_of_torch_step_by_step(steps, rise):
    schedule = SCHEDULES.build({"name": "one_cycle", "rise": rise})
    state, rates = ScheduleState.start(0.1, 2, torch.device("cpu")), []
    for step in range(steps):
        schedule.before_step(state, step, steps, 0.1)
        rates.append(state.lr.clone())
    one_cycle = torch.optim.lr_scheduler.OneCycleLR
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    if rise * steps == 1:  # torch divides by zero there: the first step is the top
        assert rates[0].tolist() == [0.1, 0.1] and (torch.stack(rates).diff(dim=0) < 0).all()
        return
    made, expected = one_cycle(optimiser, 0.1, steps, pct_start=rise, cycle_momentum=False), []
    for step in range(steps):
        expected.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        if step < steps - 1:
            made.step()
    expected = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(torch.stack(rates), expected[:, None].expand(-1, 2), rtol=1e-10, atol=0)


def test_one_cycle_of_a_single_step_and_a_bad_rise():
    state = ScheduleState.start(0.1, 1, torch.device("cpu"))
    SCHEDULES.build({"name": "one_cycle", "rise": 1.0}).before_step(state, 0, 1, 0.1)
    assert state.lr.tolist() == [0.1]
    SCHEDULES.build({"name": "one_cycle"}).before_step(state, 0, 1, 0.1)
    assert torch.isfinite(state.lr).all()
    with pytest.raises(ValueError, match="rise: expected 0 or more and 1 or less, found 1.5"):
        SCHEDULES.build({"name": "one_cycle", "rise": 1.5})


def test_unknown_names_name_the_nearest():
    with pytest.raises(UnknownPart, match="optimiser 'adamw' is not known; did you mean 'adam'"):
        OPTIMISERS.build({"name": "adamw"})
    with pytest.raises(
        UnknownPart, match="schedule 'plateau' has no hyper-parameter 'patients'; did you mean 'patience'"
    ):
        SCHEDULES.build({"name": "plateau", "patients": 3})


def test_small_tensors_move_together_by_the_bits_of_each(monkeypatch):
    def walked(joined):
        monkeypatch.setattr(optimisers, "JOINED", joined)
        optimiser, streams = OPTIMISERS.build({"name": "adam", "weight_decay": 0.1}), small.streams(R)
        parameters = [streams.normal(4, 3), streams.normal(7).float(), streams.normal(), streams.normal(5)]
        state = optimiser.start(parameters)
        for step in range(5):
            made = [g.to(p) for g, p in zip(gradients(parameters, step), parameters, strict=True)]
            optimiser.step(parameters, made, state, RATES)
        return parameters, len(state["m"].joined)

    (alone, vectors), (together, fewer), (some, most) = walked(0), walked(2**13), walked(20)
    assert (vectors, fewer, most) == (4, 2, 3)  # by type; 36 and 21 numbers are too many for the last
    for one, all_, few in zip(alone, together, some, strict=True):
        assert torch.equal(one, all_) and torch.equal(one, few)
