"""KL divergence between Dirichlet predictives (dirichlet2022 sec. 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.dirichlet import dirichlet_kl_monte_carlo, fit_dirichlet
from fvi_core.divergences.base import Divergence, Step
from fvi_core.families.base import NotSupported
from fvi_core.registry import DIVERGENCES
from fvi_core.smoothing import smooth


@DIVERGENCES.register("dirichlet_kl")
@dataclass(frozen=True)
class DirichletKL(Divergence):
    """``1/M sum_m log q(f^m) - log p(f^m)`` with a Dirichlet q fitted to the M sampled class probabilities
    (dirichlet2022 eq. 6).

    q's mean is the samples' mean, its precision Minka's estimate clipped to [K, N], and N for one sample; q is constant
    in the gradient (sec. 3.3). ``smoothing``: label smoothing of the probabilities (App. F). ``index_set`` "mean": the
    expectation over the index set of eq. 4; "sum": the sum over it, S times as much.
    """

    smoothing: float = 1e-4
    index_set: str = "mean"

    def __post_init__(self):
        if self.index_set not in ("mean", "sum"):
            raise ValueError(f"divergence 'dirichlet_kl': index_set must be 'mean' or 'sum', found {self.index_set!r}")

    def __call__(self, step: Step) -> Tensor:
        context = step.sample_context()
        if step.functions is None or step.values is None:
            raise NotSupported(
                "divergence 'dirichlet_kl' needs a draw of functions, and the family is trained in closed form"
            )
        f = step.values if context is step.x else step.functions(context)
        probabilities = smooth(torch.softmax(f, -1), self.smoothing)
        n_classes = float(f.shape[-1])
        alpha = fit_dirichlet(probabilities, z_min=n_classes, z_max=max(n_classes, float(step.n_train)))
        concentration = step.prior.concentration(f.shape[-1], f.device).to(alpha)
        kl = dirichlet_kl_monte_carlo(probabilities, alpha, concentration)
        return kl.mean(-1) if self.index_set == "mean" else kl.sum(-1)
