"""Hamiltonian Monte Carlo: its trajectories, its step sizes, moments of distributions that are known, and what it says
of chains.
"""

import math
from dataclasses import replace

import pytest
import torch

from fvi_core import convergence
from fvi_core.hamiltonian import HamiltonianMonteCarlo, kinetic, leapfrog
from fvi_core.registry import TRAININGS
from tests.fvi_core import small
from tests.fvi_core.test_samplers import NOISE, PARTS, VARIANCE, R

HMC = HamiltonianMonteCarlo(samples=6, thinning=2, warmup=4, dtype="float64", leapfrogs=4, map_steps=20)


class Density:
    """A target with a given log density of one vector, in place of a network's posterior."""

    def __init__(self, log_density):
        self.log_density = log_density

    def energy(self, position):
        return -self.log_density(position["x"][:, 0])

    def gradient(self, position):
        x = position["x"].detach().requires_grad_()
        energy = self.energy({"x": x})
        (made,) = torch.autograd.grad(energy.sum(), x)
        return energy.detach(), {"x": made}


def sampled(density, start, sampler, warmup, kept):
    """Positions ``[kept, chains, d]`` after warm-up, and the memory."""
    target, streams = Density(density), small.streams(len(start))
    position = {"x": start.unsqueeze(1)}
    energy, memory, found = target.energy(position), sampler.remember(position), []
    for move in range(warmup + kept):
        position, energy, memory = sampler.move(position, energy, memory, target, streams, move < warmup)
        found.append(position["x"][:, 0])
    return torch.stack(found[warmup:]), memory


def quartic(x):
    return -(x.square() / 2 + x**4 / 4).sum(-1) - x[:, 0] * x[:, 1]


def trajectory(step, time=1.0):
    start, momentum = ({"x": small.streams(5, name=name).normal(1, 3)} for name in ("position", "momentum"))
    target = Density(quartic)
    steps = round(time / step)
    end, final, energy = leapfrog(target.gradient, start, momentum, torch.full((5,), step).double(), steps)
    return target, start, momentum, end, final, energy, steps


def test_a_trajectory_leads_back_with_the_momentum_reversed():
    target, start, momentum, end, final, energy, steps = trajectory(0.05)
    assert not torch.allclose(end["x"], start["x"], atol=0.1)
    torch.testing.assert_close(energy, target.energy(end))
    back, reached, _ = leapfrog(target.gradient, end, {"x": -final["x"]}, torch.full((5,), 0.05).double(), steps)
    torch.testing.assert_close(back["x"], start["x"], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(reached["x"], -momentum["x"], rtol=1e-10, atol=1e-10)


def test_the_energy_error_falls_with_the_square_of_the_step():
    def error(step):
        target, start, momentum, _, final, energy, _ = trajectory(step)
        return (energy + kinetic(final) - target.energy(start) - kinetic(momentum)).abs()

    ratios = error(0.02) / error(0.01)
    assert ((ratios > 3.7) & (ratios < 4.3)).all()


def test_moments_of_a_correlated_gaussian():
    covariance = torch.tensor([[1.0, 1.2], [1.2, 4.0]]).double()
    precision, mean = torch.linalg.inv(covariance), torch.tensor([1.0, -2.0]).double()
    draws, memory = sampled(
        lambda x: -0.5 * torch.einsum("ri,ij,rj->r", x - mean, precision, x - mean),
        5 * small.streams(200).normal(2),
        replace(HMC, leapfrogs=8, step=0.1),
        warmup=60,
        kept=40,
    )
    # The chains are independent: the spread of their own means says how far the mean of all may be off.
    own = draws.mean(0)
    assert ((own.mean(0) - mean).abs() < 4 * own.std(0) / 200**0.5).all()
    centred = draws - mean
    second = torch.einsum("tri,trj->rij", centred, centred) / len(draws)
    assert ((second.mean(0) - covariance).abs() < 4 * second.std(0) / 200**0.5).all()
    assert (own.std(0) < 0.5 * covariance.diagonal().sqrt()).all(), "the chains have mixed"
    # Dual averaging comes from above: short warm-ups end with a higher acceptance rate than requested.
    assert 0.7 < HMC.diagnostics(memory)["acceptance"].mean() < 0.97


def test_moments_of_a_funnel():
    """v ~ N(0, 1), x | v ~ N(0, e^v) (after Neal 2003): E v = 0, E v^2 = 1, E x^2 = e^(1/2)."""
    draws, _ = sampled(
        lambda z: -0.5 * (z[:, 0].square() + z[:, 1].square() * (-z[:, 0]).exp() + z[:, 0]),
        small.streams(300).normal(2),
        replace(HMC, leapfrogs=8, step=0.1),
        warmup=50,
        kept=60,
    )
    v, x = draws.unbind(-1)
    for found, expected in ((v, 0.0), (v.square(), 1.0), (x.square(), math.exp(0.5)), (x, 0.0)):
        own = found.mean(0)
        assert abs(own.mean() - expected) < 4 * own.std() / 300**0.5


def test_the_step_is_learned_by_dual_averaging():
    """Two updates of Hoffman and Gelman (2014), algorithm 5, by hand, for acceptance 1 and .5 at target .8."""
    sampler = HamiltonianMonteCarlo(step=0.1)
    memory, first = sampler.remember({"x": torch.zeros(2, 1, 1).double()}), torch.zeros(0)
    for m in (1, 2):
        memory = memory | {"moves": memory["moves"] + 1}
        memory |= sampler._adapted(memory, torch.tensor([1.0, 0.5]).double())
        h = [-0.2 / 11, 0.3 / 11] if m == 1 else [-0.2 / 11 * 11 / 12 - 0.2 / 12, 0.3 / 11 * 11 / 12 + 0.3 / 12]
        log_step = [math.log(1.0) - m**0.5 / 0.05 * each for each in h]
        assert memory["log_step"].tolist() == pytest.approx(log_step)
        first = memory["log_step"] if m == 1 else first
    averaged = 2**-0.75 * memory["log_step"] + (1 - 2**-0.75) * first
    torch.testing.assert_close(memory["averaged"], averaged)


def test_lengths_are_round_2_u_l_and_at_least_one():
    lengths = [replace(HMC, leapfrogs=50).length(i) for i in range(400)]
    assert min(lengths) >= 1 and max(lengths) <= 100 and len(set(lengths)) > 80
    assert abs(sum(lengths) / 400 - 50) < 4 * 100 / 12**0.5 / 400**0.5
    assert replace(HMC, leapfrogs=1).length(3) in (1, 2)


def test_a_chain_begins_at_the_mode_in_the_prior_or_at_the_initial_network():
    model, data = small.model(PARTS), small.training_data(R, 12)

    def placed(**options):
        chains = replace(HMC, **options).start(model, data, small.streams(R))
        position = {k: v for k, v in chains.parameters.items() if not k.startswith("likelihood/")}
        target = chains._target(chains.now)
        return position, chains.procedure.place(position, target, small.streams(R)), target

    initial, position, target = placed(map_steps=1000)
    features = torch.cat([data.x, torch.ones(R, 12, 1, dtype=torch.float64)], 2)
    precision = features.mT @ features / NOISE**2 + torch.eye(3, dtype=torch.float64) / VARIANCE
    mode = torch.linalg.solve(precision, features.mT @ data.y.unsqueeze(-1) / NOISE**2).squeeze(-1)
    torch.testing.assert_close(model.network.flatten(position)[:, 0], mode, rtol=0, atol=0.01)
    initial, position, _ = placed(start_at="initial")
    assert all(torch.equal(position[name], value) for name, value in initial.items())
    wide = replace(HMC, start_at="prior")
    assert wide.place(initial, target, small.streams(R))["head.weight"].shape == initial["head.weight"].shape
    drawn = model.prior.weights(model.network, 1, small.streams(R))
    assert torch.equal(wide.place(initial, target, small.streams(R))["head.weight"], drawn["head.weight"])


def ensemble(size):
    return small.model({**PARTS, "family": {"name": "ensemble", "base": {"name": "samples"}, "size": size}})


def test_chains_of_a_replica_are_compared_in_its_diagnostics():
    data = small.training_data(R, 12)
    good = replace(HMC, samples=40, warmup=20, step=0.1)
    trained = good.start(ensemble(6), data, small.streams(R)).run()
    for each in trained:
        diagnostics = each.diagnostics
        assert each.reason is None and each.warnings == []
        assert 0.6 < diagnostics["acceptance"] <= 1 and diagnostics["divergent"] == 0 and diagnostics["step"] > 0.01
        assert diagnostics["r_hat_predictions"] < 1.05 and diagnostics["r_hat_log_density"] < 1.05
        for quantity in ("predictions", "log_density"):
            assert all(diagnostics[f"ess_{part}_{quantity}"] > 20 for part in ("bulk", "tail"))


def test_a_stopped_chain_is_judged_without_its_warmup(monkeypatch):
    def stop(fraction, text):
        if fraction == 0.75:
            raise KeyboardInterrupt

    stack = replace(HMC, samples=40, warmup=40, thinning=1).start(
        ensemble(2), small.one(small.training_data(R, 12), 0), small.streams(R).subset([0])
    )
    with pytest.raises(KeyboardInterrupt):
        stack.run(stop)
    seen, r_hat = [], convergence.r_hat
    monkeypatch.setattr(convergence, "r_hat", lambda draws: seen.append(draws.shape[-1]) or r_hat(draws))
    stack.end()
    assert seen and set(seen) == {20}


def test_chains_that_have_not_converged_say_so():
    stuck = replace(HMC, samples=10, warmup=0, step=0.001, start_at="prior", thinning=1)
    (trained, *_) = stuck.start(ensemble(3), small.training_data(R, 12), small.streams(R)).run()
    assert trained.parameters is not None and trained.diagnostics["r_hat_predictions"] >= 1.05
    assert any(warning.startswith("not converged: R-hat of predictions is ") for warning in trained.warnings)
    (short, *_) = replace(HMC, samples=3).start(ensemble(2), small.training_data(R, 12), small.streams(R)).run()
    assert short.warnings == ["convergence is not judged: chains of 3 draws, expected 4 or more"]


def test_chains_that_diverge_fail_with_the_cause():
    wild = replace(HMC, samples=10, warmup=0, step=5.0, start_at="initial")
    found = wild.start(ensemble(2), small.training_data(R, 12), small.streams(R)).run()
    for each in found:
        assert each.parameters is None
        assert each.reason.startswith("ensemble member 0: 100 % of the trajectories after warm-up gained more energy")
    shares = {"kept": torch.full((2,), 100.0), "divergent": torch.tensor([5.0, 6.0])}
    (place,) = HMC.faults({**HMC.remember({"w": torch.zeros(2, 1)}), **shares})
    assert place == 1  # more than 5 %
    # Steps that are too large by less are refused every time, and the chains never move.
    still = replace(wild, most_divergent=1.0)
    (trained, *_) = still.start(ensemble(2), small.training_data(R, 12), small.streams(R)).run()
    assert trained.parameters is None and trained.reason == "no trajectory of the chains was accepted"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start_at": "nowhere"}, "start_at 'nowhere' is not known; known: initial, map, prior"),
        ({"leapfrogs": 0}, "training 'hmc': leapfrogs: expected 1 or more, found 0"),
        ({"acceptance": 1.0}, "training 'hmc': acceptance: expected above 0 and below 1, found 1.0"),
        ({"samples": 0}, "training 'hmc': samples: expected 1 or more, found 0"),
        ({"thinning": 0}, "training 'hmc': thinning: expected 1 or more, found 0"),
        ({"warmup": -1}, "training 'hmc': warmup: expected 0 or more, found -1"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        TRAININGS.build({"name": "hmc", **options})
