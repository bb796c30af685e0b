"""This library beside laplace-torch, gpytorch, bayesian-torch and posteriors: time and agreement, in turns in one run.

    python -m tools.libraries [--repeats N]

The same model, data, batch size, number of steps and objective on both sides; one thread; data of the digits that
scikit-learn holds, and random numbers in the shape of boston's. Prints a table in Markdown, with process times.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when torch is loaded

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.data import DataLoader, TensorDataset

import fvi_core as fvi
from fvi_core import interface, methods
from fvi_core.data import TrainingData
from fvi_core.fits.laplace import evidence
from fvi_core.fitting import FitData
from fvi_core.gaussian_process import log_marginal_likelihood, posterior
from fvi_core.networks import ModuleNetwork
from fvi_core.random import Streams
from fvi_core.registry import KERNELS, TRAININGS
from fvi_core.training import ReplicaResult
from reports.marks import grid
from tools.cost import modules
from tools.cost.__main__ import headline, machine
from tools.cost.modules import LR
from tools.cost.timing import Timing, Work, interleave, ready, threads

LIBRARIES = {
    "laplace-torch": "laplace",
    "gpytorch": "gpytorch",
    "bayesian-torch": "bayesian_torch",
    "posteriors": "posteriors",
}
"""Distributions, and the modules that they install."""
HEADING = ("work", "library", "here", "there", "here / there", "largest difference")
STRUCTURES = {"kronecker": ("all", "kron"), "last_layer": ("last_layer", "full"), "diagonal": ("all", "diag")}
BATCH, TRAINED, LOG_VAR = 128, 1437, -9.0
POINTS, STEPS = 455, 20

Row = tuple[str, str, str, str, str, str]


def digits() -> tuple[Tensor, Tensor]:
    """Return the 1,797 digits, ``[N, 64]`` between 0 and 1, and their labels."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)


def classifier() -> nn.Module:
    """Return a 64-50-50-10 network."""
    return nn.Sequential(nn.Linear(64, 50), nn.ReLU(), nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, 10))


def row(what: str, library: str, times: dict[str, Timing], difference: str) -> Row:
    """Return a row of the table."""
    here, there = (1e3 * times[side].process for side in ("here", "there"))
    return what, library, f"{here:.3g} ms", f"{there:.3g} ms", f"{here / there:.2f}", difference


def laplace(repeats: int) -> Iterator[Row]:
    """Fit Laplace approximations to a trained classifier, and predict with each in closed form (probit)."""
    from laplace import Laplace

    (x, y), net = digits(), classifier()
    descent = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(60):
        descent.zero_grad()
        nn.functional.cross_entropy(net(x[:TRAINED]), y[:TRAINED]).backward()
        descent.step()
    train, test = (x[:TRAINED], y[:TRAINED]), x[TRAINED:]
    for structure, (subset, hessian) in STRUCTURES.items():
        options = {"structure": structure, "precision": 1.0, "predictive": "probit"}

        def here() -> fvi.Posterior:
            return fvi.fit(net, train, "laplace", fit=options, progress=False)  # noqa: B023

        def there() -> Any:
            fitted = Laplace(net, "classification", subset, hessian, prior_precision=1.0)  # noqa: B023
            fitted.fit(DataLoader(TensorDataset(*train), batch_size=BATCH))
            return fitted

        ours, theirs = here(), there()

        def ours_at() -> Tensor:
            return ours.predict(test).probabilities  # noqa: B023

        def theirs_at() -> Tensor:
            return theirs(test, pred_type="glm", link_approx="probit")  # noqa: B023

        terms = float(theirs.log_marginal_likelihood() - theirs.log_likelihood)
        gap = abs(_evidence(ours, train) / terms - 1)
        fits = interleave({"here": ready(here), "there": ready(there)}, repeats)
        yield row(f"Laplace, {structure}: fit", "laplace-torch", fits, f"log evidence {gap:.0e} (relative)")
        times = interleave({"here": ready(ours_at), "there": ready(theirs_at)}, repeats)
        gap = float((ours_at() - theirs_at()).abs().max())
        yield row(f"Laplace, {structure}: 360 predictions", "laplace-torch", times, f"probabilities {gap:.0e}")


def _evidence(fitted: fvi.Posterior, train: tuple[Tensor, Tensor]) -> float:
    """Return the terms of the log evidence that depend on the prior precision 1."""
    from fvi_core.fits.posterior import Around

    model, network = fitted.model, fitted.network
    held = TrainingData(train[0][None], train[1][None], train[0][:1], train[0][:1])
    fitting = FitData.of(network, model.family, model.likelihood, held, Streams([0]))
    weights = {name: fitted.parameters[name][0] for name in network.shapes}
    structure = model.fit.posterior  # type: ignore[union-attr]
    curvature = structure.curvature(Around(weights, {}, fitting))
    random = structure.chosen(network.flatten(weights).double(), curvature)
    return evidence(structure.eigenvalues(curvature), float(random.square().sum()), 1.0)


def gaussian_process(repeats: int) -> Iterator[Row]:
    """Train an exact Gaussian process in float64, and predict."""
    import gpytorch

    train = modules.data((13,), POINTS, 1)
    x, y = train.x[0].double(), train.y[0].double() + torch.randn(POINTS, dtype=torch.float64)
    train = TrainingData(x[None], y[None], x[None].amin(1), x[None].amax(1))

    class Process(gpytorch.models.ExactGP):
        def __init__(self, noise: Any) -> None:
            super().__init__(x, y, noise)
            self.mean, self.kernel = (
                gpytorch.means.ZeroMean(),
                gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()),
            )

        def forward(self, inputs: Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(inputs), self.kernel(inputs))

    def new_process() -> Any:
        return Process(gpytorch.likelihoods.GaussianLikelihood()).double()

    def there() -> Callable[[], None]:
        process = new_process()
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(process.likelihood, process)
        descent = torch.optim.Adam(process.parameters(), LR)

        def run() -> None:
            for _ in range(STEPS):
                descent.zero_grad()
                (-objective(process(x), y)).backward()
                descent.step()

        return run

    parts = methods.get("GP").parts() | {"likelihood": {"name": "gaussian"}}
    spec = {"name": "gradient", "epochs": STEPS, "batch_size": POINTS, "dtype": "float64"}
    training = TRAININGS.build(spec | {"optimiser": {"name": "adam", "lr": LR}})
    unused = nn.Sequential(nn.Linear(13, 1))  # a Gaussian process has no network
    model = interface.build(ModuleNetwork(unused, train.x[0, :3].float()), parts, {})
    start = {"here": lambda: training.start(model, train, Streams([0], dtype=torch.float64)).run, "there": there}
    times = interleave(start, repeats, STEPS)
    kernel, process, at = KERNELS.build(parts["family"]["kernel"]), new_process(), x + 0.1
    noise, scale = process.likelihood.noise.detach(), process.kernel
    hyper = {
        "log_variance": scale.outputscale.detach().log().reshape(1),
        "log_lengthscale": scale.base_kernel.lengthscale.detach().log().reshape(1, 1),
    }
    ours = log_marginal_likelihood(kernel, hyper, noise, train.x, train.y)
    theirs = gpytorch.mlls.ExactMarginalLogLikelihood(process.likelihood, process)(process(x), y) * POINTS
    gap = abs(float(ours) / float(theirs.detach()) - 1)
    yield row(f"exact GP, {POINTS} points: step", "gpytorch", times, f"log evidence {gap:.0e} (relative)")
    process.eval()

    def ours_at() -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            return posterior(kernel, hyper, noise, train.x, train.y, at[None])

    def theirs_at() -> tuple[Tensor, Tensor]:
        process.train()  # forgets what it holds of the training points
        process.eval()
        with torch.no_grad():
            predicted = process(at)
            return predicted.mean, predicted.variance

    times = interleave({"here": ready(ours_at), "there": ready(theirs_at)}, repeats)
    gap = max(float((a[0] - b).abs().max()) for a, b in zip(ours_at(), theirs_at(), strict=True))
    yield row(f"exact GP: {POINTS} predictions", "gpytorch", times, f"mean and variance {gap:.0e}")


def mean_field(repeats: int) -> Iterator[Row]:
    """Train a mean-field Gaussian over the classifier's weights, one function a step, from equal parameters."""
    x, y = (each[:TRAINED] for each in digits())
    train = TrainingData(x[None], y[None], x[None].amin(1), x[None].amax(1))
    net, count = classifier(), -(-TRAINED // BATCH)
    network = ModuleNetwork(net, x[:3])
    parts = methods.get("MFVI").parts() | {"likelihood": {"name": "categorical"}}
    parts["family"] = {**parts["family"], "log_var_init": (LOG_VAR, LOG_VAR)}
    spec = {"name": "gradient", "epochs": 1, "batch_size": BATCH, "optimiser": {"name": "adam", "lr": LR}}
    model, training = interface.build(network, parts, {}), TRAININGS.build(spec)
    start = training.start(model, train, Streams([0])).now.parameters
    log_vars = {k: v for k, v in start.items() if k.startswith("log_var/")}
    means = {k: v for k, v in start.items() if k.startswith("mean/")}
    ours = float(model.family.weight_kl(network, means | log_vars, 0.0, 1.0, None))
    for library, there in (("bayesian-torch", _bayesian_torch), ("posteriors", _posteriors)):
        loop, kl = there(net, x, y)
        works: dict[str, Work] = {"here": lambda: training.start(model, train, Streams([0])).run, "there": loop}
        times = interleave(works, repeats, count)
        yield row("MFVI: step", library, times, f"KL {abs(kl / ours - 1):.0e} (relative)")


def _bayesian_torch(net: nn.Module, x: Tensor, y: Tensor) -> tuple[Work, float]:
    """Return an epoch of training, and the KL that it begins with."""
    from bayesian_torch.models.dnn_to_bnn import dnn_to_bnn, get_kl_loss

    std = math.exp(LOG_VAR / 2)
    prior = {"prior_mu": 0.0, "prior_sigma": 1.0, "posterior_mu_init": 0.0, "type": "Reparameterization"}
    options = {**prior, "posterior_rho_init": math.log(math.expm1(std)), "moped_enable": False, "moped_delta": 0.5}

    def bayesian_copy() -> nn.Module:
        bayesian = classifier()
        dnn_to_bnn(bayesian, options)
        for own, source in zip(_layers(bayesian), _layers(net), strict=True):
            for kind in ("weight", "bias"):
                getattr(own, f"mu_{kind}").data.copy_(getattr(source, kind).data)
                getattr(own, f"rho_{kind}").data.fill_(options["posterior_rho_init"])
        return bayesian

    def loop() -> Callable[[], list[ReplicaResult]]:
        bayesian = bayesian_copy()

        def loss(rows: Tensor, labels: Tensor) -> Tensor:
            return nn.functional.cross_entropy(bayesian(rows), labels) + get_kl_loss(bayesian) / len(x)

        return modules.steps(dict(bayesian.named_parameters()), loss, x, y, BATCH)

    total = 0.0  # get_kl_loss adds means over a tensor's weights, so is not the KL
    for layer in _layers(bayesian_copy()):
        for kind in ("weight", "bias"):
            mu, rho, *at = (getattr(layer, f"{name}_{kind}") for name in ("mu", "rho"))
            at = [getattr(layer, f"prior_{kind}_{side}") for side in ("mu", "sigma")]
            total += float(layer.kl_div(mu, nn.functional.softplus(rho), *at)) * mu.numel()
    return loop, total


def _layers(module: nn.Module) -> list[Any]:
    """Return the layers with parameters."""
    return [each for each in module if list(each.parameters())]  # type: ignore[attr-defined]


def _posteriors(net: nn.Module, x: Tensor, y: Tensor) -> tuple[Work, float]:
    """Return an epoch of training, and an estimate by draws of the KL that it begins with."""
    import posteriors
    import torchopt

    start = {name: value.detach().clone() for name, value in net.named_parameters()}

    def log_prior(weights: dict[str, Tensor]) -> Tensor:
        return posteriors.diag_normal_log_prob(weights)

    def log_posterior(weights: dict[str, Tensor], batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        f = functional_call(net, weights, (batch[0],))
        return -nn.functional.cross_entropy(f, batch[1]) + log_prior(weights) / len(x), f

    def loop() -> Callable[[], None]:
        transform = posteriors.vi.diag.build(
            log_posterior, torchopt.adam(lr=LR), temperature=1 / len(x), stl=False, init_log_sds=LOG_VAR / 2
        )
        state = transform.init(start)

        def run() -> None:
            now = state
            for rows in torch.randperm(len(x)).split(BATCH):
                now, _ = transform.update(now, (x[rows], y[rows]))

        return run

    sds = {name: torch.full_like(value, math.exp(LOG_VAR / 2)) for name, value in start.items()}
    total = float(
        posteriors.vi.diag.nelbo(start, sds, None, lambda w, _: (log_prior(w), w), n_samples=100, stl=False)[0]
    )
    return loop, total


def main(arguments: list[str] | None = None) -> int:
    """Print the table. Return 2 if a library is missing."""
    parser = argparse.ArgumentParser(prog="python -m tools.libraries", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=9, help="turns that are counted (9)")
    options = parser.parse_args(arguments)
    missing = [name for name, module in LIBRARIES.items() if importlib.util.find_spec(module) is None]
    if missing:
        print(f"error: not installed: {', '.join(missing)}; install them with pip and run this again", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    about = machine()
    with threads(1):
        rows = [row for measure in (laplace, gaussian_process, mean_field) for row in measure(options.repeats)]
    print(grid(HEADING, rows))
    print(f"{headline(about, options.repeats)}; {', '.join(f'{name} {version(name)}' for name in LIBRARIES)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
