"""Figures of eigenvalues, of kernels and of functions' covariance, and of estimates of the regularised KL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure as Canvas
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

from reports.figures import NothingToShow, Runs
from reports.figures.parts import stack, titled
from reports.figures.style import PAGE, labelled, legend, panels, panels_of, plt

KERNELS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str, str]] = {
    "RBF": (lambda r: np.exp(-0.5 * r**2), "#0072B2", "-"),
    "Matern 1/2": (lambda r: np.exp(-r), "#D55E00", "--"),
}
LENGTHS = {0.5: "s", 2.0: "^", 10.0: "D"}
DIMENSIONS, POINTS, DRAWS = (1, 10, 100), 100, 10
GAMMAS = {1e-10: "s", 1e-5: "^", 1e-2: "D"}
SIZES = (5, 10, 20, 50, 100, 200, 300)
LENGTH, NOISE, TRAINING = 0.5, 0.1, 100
SMALLEST = 1e-16
SHADES = {"tanh": "#0072B2", "relu": "#D55E00", "softplus": "#009E73"}
NEGLIGIBLE = 1e-12  # relative to the largest eigenvalue; smaller ones are rounding


def gram(kernel: str, a: np.ndarray, b: np.ndarray, length: float) -> np.ndarray:
    """Return values of a kernel of variance 1 between points [N, D] and [M, D]."""
    return KERNELS[kernel][0](cdist(a, b) / length)


def eigenvalues(runs: Runs) -> Canvas:
    """Draw mean eigenvalues of the Gram matrix at uniform points of [-2, 2]^D, in increasing order (cinquin2024 fig.
    17)."""
    shown = panels_of({f"D = {d}": d for d in DIMENSIONS})
    figure, axes = panels(len(shown), 3, 2.2, sharey=True)
    for axis, (name, dimensions) in zip(axes, shown.items()):
        for kernel, (_, shade, drawn) in KERNELS.items():
            for length, marker in LENGTHS.items():
                random = np.random.default_rng(0)
                points = random.uniform(-2, 2, (DRAWS, POINTS, dimensions))
                values = [np.linalg.eigvalsh(gram(kernel, x, x, length)) for x in points]
                axis.plot(
                    np.arange(1, POINTS + 1), np.mean(values, 0).clip(SMALLEST), color=shade, linestyle=drawn,
                    marker=marker, markersize=3, markevery=0.15, label=f"{kernel}, length-scale {length:g}",
                )  # fmt: skip
        axis.set(title=name, xlabel="number of the eigenvalue", yscale="log")
    axes[0].set_ylabel("eigenvalue")
    legend(figure, labelled(axes[0]))
    return titled(figure, runs, f"computed; {POINTS} points, means over {DRAWS} draws")


def divergences(runs: Runs) -> Canvas:
    """Draw estimates of the regularised KL by points and gamma, from the exact posterior of the sine to its prior
    (cinquin2024 fig. 20)."""
    shown = panels_of({name: name for name in KERNELS})
    figure, axes = panels(len(shown), 2, 2.2, sharey=True)
    for axis, kernel in zip(axes, shown):
        _, shade, drawn = KERNELS[kernel]
        found = np.array([estimates(kernel, list(GAMMAS), SIZES, seed) for seed in range(DRAWS)])
        errors, means = found.std(0, ddof=1) / DRAWS**0.5, found.mean(0)
        for (gamma, marker), mean, error in zip(GAMMAS.items(), means, errors):
            axis.plot(SIZES, mean, color=shade, linestyle=drawn, marker=marker, markersize=3, label=f"γ = {gamma:g}")
            axis.fill_between(SIZES, mean - error, mean + error, color=shade, alpha=0.18, linewidth=0)
        axis.set(title=kernel, xlabel="points M", xscale="log", yscale="log")
        axis.legend()
    axes[0].set_ylabel("regularised KL (nats)")
    return titled(figure, runs, f"computed; means over {DRAWS} draws of the points; bands: SE")


def estimates(kernel: str, gammas: Sequence[float], sizes: Sequence[int], seed: int) -> list[list[float]]:
    """Return estimates (cinquin2024 eq. 2.9), by gamma and number of points of [-2, 2], from the exact posterior of
    y = sin(2 pi x) + noise to its prior of variance 1."""
    random = np.random.default_rng(seed)
    x = random.uniform(0.5, 1.0, (TRAINING, 1)) * random.choice([-1.0, 1.0], (TRAINING, 1))
    y = np.sin(2 * np.pi * x[:, 0]) + NOISE * random.standard_normal(TRAINING)
    points = random.uniform(-2, 2, (max(sizes), 1))
    noisy = gram(kernel, x, x, LENGTH) + NOISE**2 * np.eye(TRAINING)
    prior, cross = gram(kernel, points, points, LENGTH), gram(kernel, points, x, LENGTH)
    gain = np.linalg.solve(noisy, cross.T).T
    mean, covariance = gain @ y, prior - gain @ cross.T
    return [
        [regularised_kl(mean[:n], covariance[:n, :n], np.zeros(n), prior[:n, :n], gamma) for n in sizes]
        for gamma in gammas
    ]


def regularised_kl(mean_q: np.ndarray, cov_q: np.ndarray, mean_p: np.ndarray, cov_p: np.ndarray, gamma: float) -> float:
    """KL of Gaussians with gamma times the number of points on the diagonals of both covariances."""
    size = len(mean_q)
    jitter = gamma * size * np.eye(size)
    first, second = np.linalg.cholesky(cov_q + jitter), np.linalg.cholesky(cov_p + jitter)
    root = solve_triangular(second, first, lower=True, check_finite=False)
    shift = solve_triangular(second, mean_q - mean_p, lower=True, check_finite=False)
    logs = np.log(np.diag(second)).sum() - np.log(np.diag(first)).sum()
    return float(0.5 * ((root**2).sum() + shift @ shift - size) + logs)


def spectra(runs: Runs) -> Canvas:
    """Draw eigenvalues of the functions' covariance by activation, RBF solid and Matern 1/2 dotted (cinquin2024 fig.
    19)."""
    curves = runs.curves("spectrum/eigenvalues")
    figure, axis = plt.subplots(figsize=(PAGE / 1.6, 3.0))
    marks = dict(zip(SHADES, "s^D"))
    for label, found in curves.items():
        activation = next((name for name in SHADES if name in label), None)
        if activation is None:
            raise NothingToShow(f"row {label} names none of the activations {', '.join(SHADES)}")
        values = stack(found, "value")
        mean = (values / values[:, :1]).mean(0)
        shown = mean > NEGLIGIBLE
        number = np.arange(1, len(mean) + 1)[shown]
        axis.plot(
            number, mean[shown], color=SHADES[activation], linestyle=":" if "Matern" in label else "-",
            marker=marks[activation], markersize=3, markevery=0.15, label=label.removeprefix("GFSVI, "),
        )  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel="number of the eigenvalue", ylabel="share of the largest")
    legend(figure, labelled(axis))
    return titled(figure, runs, f"{runs.about()}, means")
