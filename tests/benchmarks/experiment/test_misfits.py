"""Trials before a sweep: the network, the inputs and the context of the run itself, unless they are too large."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

import datasets
import fvi_core as fvi
from benchmarks.experiment import misfits as trials
from benchmarks.experiment.assembly import build_model
from benchmarks.experiment.misfits import misfits
from fvi_core.contexts import Context, ContextSource
from fvi_core.divergences import Divergence, Step
from fvi_core.kernels import Kernel
from fvi_core.likelihoods import Likelihood
from fvi_core.networks import ModuleNetwork
from fvi_core.registry import CONTEXTS, DIVERGENCES, KERNELS, LIKELIHOODS, NETWORKS
from tests.benchmarks.experiment.test_execute import CURVE, MOONS, config

HELD: dict[str, Any] = {"name": "held"}
LAPLACE = {"name": "laplace", "structure": "full"}


class Tokens(nn.Module):
    """Mean embedding of tokens, which no other numbers may stand for."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(5, 3), nn.Linear(3, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.words(x).mean(1))


def normed(shape: tuple[int, ...], outputs: int) -> ModuleNetwork:
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(shape[0], 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, outputs))

    return ModuleNetwork(make, torch.randn(3, *shape))


def images(shape: tuple[int, ...], outputs: int) -> ModuleNetwork:
    def make() -> nn.Module:
        return nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(72, outputs))

    return ModuleNetwork(make, torch.randn(3, *shape))


class Twice(nn.Linear):
    """Its outputs, twice."""

    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x), super().forward(x)


NETWORK = {
    "tuple": lambda shape, outputs: ModuleNetwork(Twice(shape[0], outputs), torch.randn(3, *shape)),
    "normed": normed,
    "images": images,
    "tokens": lambda shape, outputs: ModuleNetwork(lambda: Tokens(outputs), torch.randint(5, (3, *shape))),
    "wrong": lambda shape, outputs: ModuleNetwork(lambda: nn.Sequential(nn.Linear(2, 9)), torch.randn(3, *shape)),
}


@pytest.fixture(autouse=True)
def own(monkeypatch):
    for registry in (NETWORKS, CONTEXTS, DIVERGENCES, KERNELS, LIKELIHOODS):
        monkeypatch.setattr(registry, "classes", dict(registry.classes))
    for name, make in NETWORK.items():
        body = {"__doc__": "A network.", "build": lambda self, shape, outputs, make=make: make(shape, outputs)}
        NETWORKS.register(name)(dataclass(frozen=True)(type(name, (), body)))

    @DIVERGENCES.register("of_vectors")
    @dataclass(frozen=True)
    class OfVectors(Divergence):
        """A divergence for inputs that are vectors."""

        def __call__(self, step: Step) -> torch.Tensor:
            return torch.einsum("rbd,rbe->r", step.x, step.sample_context())

    @DIVERGENCES.register("held")
    @dataclass(frozen=True)
    class Held(Divergence):
        """The first weight's square, without a gradient, or with one after moving the inputs."""

        moves: bool = False

        def __call__(self, step: Step) -> torch.Tensor:
            if self.moves:
                step.x.mul_(2)
            first = next(iter(step.parameters.values())).flatten(1)[:, 0].square()
            return first if self.moves else first.detach()

    @LIKELIHOODS.register("joined")
    @dataclass(frozen=True)
    class Joined(Likelihood):
        """Squares of outputs without their axis of samples."""

        def log_prob(self, params: Any, f: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return -(f.squeeze(-1) - y).square()

        def noise_std(self, params: Any) -> torch.Tensor:
            return torch.ones(1)

    @KERNELS.register("unstacked")
    @dataclass(frozen=True)
    class Unstacked(Kernel):
        """The kernel of one replica."""

        def __call__(self, params: Any, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
            return (-torch.cdist(x1[0], x2[0])).exp().double()

    @LIKELIHOODS.register("counts")
    @dataclass(frozen=True)
    class Counts(Joined):
        """For targets as they are."""

        standardised = False

        def log_prob(self, params: Any, f: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.distributions.Poisson(f[..., 0].exp()).log_prob(y[:, None])

    @CONTEXTS.register("every_other")
    @dataclass(frozen=True)
    class EveryOther(Context):
        """Every other point of a pool."""

        pool: str = "photos"
        points: int = 50

        def pools(self) -> set[str]:
            return {self.pool}

        def __call__(self, source: ContextSource, streams: Any) -> torch.Tensor:
            raise RuntimeError(f"{len(source.pools[self.pool])} inputs, {self.points} points")


def one(method: str, network: str, dataset: str = MOONS, **parts: Any) -> str:
    return "\n".join(misfits([config(method, dataset=dataset, parts={"network": {"name": network}, **parts})]))


def test_the_network_of_the_run_is_tried():
    assert one("MAP", "normed") == ""
    assert f"does not fit: GFSVI on {MOONS}: NotSupported: " in one("GFSVI", "normed")
    assert "found 9" in one("MAP", "wrong")
    assert "UnfitModule: network 'tuple': expected outputs [N, Q] in one tensor for 3 inputs" in one("MAP", "tuple")


def test_methods_that_fail_alike_share_a_line():
    wrong = {"network": {"name": "wrong"}}
    (line,) = misfits([config(method, dataset=MOONS, parts=wrong) for method in ("MAP", "MFVI")])
    assert line.startswith(f"does not fit: MAP, MFVI on {MOONS}: ValueError: network 'wrong': expected as many outputs")


def test_inputs_have_the_shape_of_the_data_and_tokens_stay_tokens():
    assert one("MAP", "images", "digits") == "" and one("MFVI", "tokens") == ""
    flat = {"network": {"name": "mlp", "hidden": [3]}, "divergence": {"name": "of_vectors"}}
    assert "number of subscripts" in one("FSVI", "images", "digits", divergence={"name": "of_vectors"})
    assert "number of subscripts" in "".join(misfits([config("FSVI", dataset="digits", parts=flat)]))


def test_a_context_of_ones_own_is_tried_with_made_up_pools():
    assert "RuntimeError: 4 inputs, 4 points" in one("FSVI", "images", "digits", context={"name": "every_other"})


def test_a_network_that_is_too_large_is_named_and_a_tiny_one_is_tried(monkeypatch, capsys):
    monkeypatch.setattr(trials, "WEIGHTS", 20)
    assert one("GFSVI", "normed") == ""
    assert capsys.readouterr().out == (
        f"not tried: network 'normed' on {MOONS} has 30 weights, of at most 20 in a trial; a tiny network takes its "
        "place\n"
    )
    monkeypatch.setattr(trials, "FITTED", 29)
    assert one("MAP", "normed", fit=LAPLACE) == ""
    assert "has 30 weights, of at most 29 in a trial of a fit part;" in capsys.readouterr().out
    monkeypatch.setattr(trials, "WEIGHTS", 30)
    monkeypatch.setattr(trials, "PRODUCTS", 5)
    assert one("GFSVI", "normed") == ""
    assert "multiplications for an input, of at most 5 in a trial;" in capsys.readouterr().out


def test_the_gradient_of_a_divergence_and_tensors_of_others_are_watched():
    assert "divergence 'held': expected a value with a gradient in the trained" in one(
        "MFVI", "normed", divergence=HELD
    )
    assert "more than one element of the written-to tensor" in one("MAP", "normed", divergence=HELD | {"moves": True})


def test_parts_of_plugins_are_tried_on_more_replicas_than_samples():
    """A likelihood that joins ``[R, S, N]`` and ``[R, N]`` is right for one replica."""
    joined = {"name": "joined"}
    message = "log_prob(): expected [R, S, N], here [3, 1, 4], found [3, 3, 4]: f is [R, S, N, Q] and y [R, N]"
    assert message in one("MFVI", "normed", CURVE, likelihood=joined)


def test_a_likelihood_without_noise_says_how_it_gets_one():
    (line,) = misfits([config("MAP", dataset=CURVE, parts={"likelihood": {"name": "categorical"}})])
    assert line.endswith("data set (made up) for regression; one for regression has a method noise_std()")


@pytest.mark.parametrize("fixed", [None, {"log_variance": 0.0}])
def test_a_kernel_without_the_axis_of_replicas_is_named(fixed):
    prior = {"name": "gaussian_process", "kernel": {"name": "unstacked"}, "parameters": fixed}
    message = "kernel 'unstacked': expected values [R, N, M], here [3, 4, 4], found [4, 4]: keep the first axis"
    assert message in one("FSVI", "normed", CURVE, prior=prior)


def test_a_likelihood_of_counts_is_tried_on_counts_and_refuses_standardised_targets(tmp_path):
    counts = {"likelihood": {"name": "counts"}}
    assert one("MAP", "normed", CURVE, **counts) == ""
    message = (
        "likelihood 'counts' is for targets as they are, .* data set boston are standardised: .* standardise=False"
    )
    with pytest.raises(ValueError, match=message):
        build_model(config("MAP", dataset="boston", parts=counts)["parts"], datasets.load("boston"))


def test_fit_leaves_counts_as_they_are():
    x, y = torch.linspace(-1, 1, 30)[:, None], torch.arange(30) // 6
    posterior = fvi.fit(nn.Sequential(nn.Linear(1, 1)), (x, y), "MAP", epochs=2, likelihood={"name": "counts"})
    assert (posterior.targets.mean, posterior.targets.std) == ((0.0,), (1.0,))
