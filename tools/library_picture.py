"""Draw docs/images/library.png, the effect of context and prior on a fit in one dimension: ``python -m
tools.library_picture``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import torch
from torch import nn

import fvi_core as fvi

OUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "library.png"
NEAR, WIDE = ({"name": "uniform_box", "low": -end, "high": end, "points": 40} for end in (1.0, 3.0))
PANELS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "GFSVI, context within the data": ("GFSVI", {"context": NEAR}),
    "GFSVI, context three times as wide": ("GFSVI", {"context": WIDE}),
    "FSVI, prior variance 1": ("FSVI", {"context": WIDE}),
    "FSVI, prior variance 100": ("FSVI", {"context": WIDE, "prior": {"variance": 100.0}}),
    "GFSVI, Matérn 1/2 prior": ("GFSVI", {"context": WIDE, "prior": {"kernel": {"name": "matern12"}}}),
    "MFVI, no context": ("MFVI", {}),
}


def problem() -> tuple[torch.Tensor, torch.Tensor]:
    """Return 40 inputs in two clusters between -1 and 1, and noisy values of a sine there."""
    torch.manual_seed(0)
    x = torch.cat([torch.rand(20, 1) * 0.6 - 1, torch.rand(20, 1) * 0.6 + 0.4])
    return x, torch.sin(4 * x[:, 0]) + 0.1 * torch.randn(40)


def module() -> nn.Module:
    """Return a network of 50 tanh units."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(1, 50), nn.Tanh(), nn.Linear(50, 50), nn.Tanh(), nn.Linear(50, 1))


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit every panel and write the picture."""
    argparse.ArgumentParser("python -m tools.library_picture", description=__doc__).parse_args(arguments)
    matplotlib.use("Agg")
    from matplotlib import pyplot

    x, y = problem()
    grid = torch.linspace(-3, 3, 200)[:, None]
    figure, axes = pyplot.subplots(3, 2, figsize=(8, 7), sharex=True, sharey=True, layout="constrained")
    for axis, (title, (method, parts)) in zip(axes.flat, PANELS.items(), strict=True):
        optimiser = {"name": "adam", "lr": 1e-2}
        posterior = fvi.fit(module(), (x, y), method, epochs=500, optimiser=optimiser, progress=False, **parts)
        prediction = posterior.predict(grid)
        mean, std = prediction.mean[:, 0], prediction.std[:, 0]
        axis.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, alpha=0.3, linewidth=0)
        axis.plot(grid[:, 0], mean)
        axis.plot(x[:, 0], y, ".", color="black", markersize=4)
        axis.set(title=title, ylim=(-4, 4))
    figure.savefig(OUT, dpi=80)


if __name__ == "__main__":
    main()
