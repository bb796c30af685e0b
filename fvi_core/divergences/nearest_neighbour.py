"""Nearest-neighbour estimates of KL divergence and entropy, in parameter and in predictor space (pequignot2020 sec.
3.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.divergences.base import Divergence, Step
from fvi_core.families.base import AffineImage, Family, NotSupported
from fvi_core.products import product
from fvi_core.registry import DIVERGENCES, checked

FAR = 30.0
"""Distance from 0, in deviations, from which on points are centred before the search for neighbours."""


def nearest_index(inner: Tensor, squares: Tensor, k: int = 1, itself: bool = False) -> Tensor:
    """Index of each point's k-th nearest target from inner products ``[..., N, M]`` and the targets' squared norms
    ``[..., M]``.

    ``itself``: the targets are the points, and a point is not its own neighbour. In float32 a wrong neighbour may be
    taken where points lie 1000 times as far from 0 as from each other: centre them.
    """
    scores = squares.unsqueeze(-2) - 2 * inner
    if itself:
        scores.diagonal(dim1=-2, dim2=-1).fill_(math.inf)
    return scores.argmin(-1) if k == 1 else scores.topk(k, dim=-1, largest=False).indices[..., -1]


def selected_distance(points: Tensor, targets: Tensor, index: Tensor) -> Tensor:
    """Euclidean distance ``[..., N]`` of point i to target ``index[i]``, differentiable in both, floored at machine
    precision.

    Only N distances are computed with gradient, so the cost of the backward pass does not grow with the number of
    pairs.
    """
    rows, d = targets.shape[-2:]
    sets = torch.arange(index.numel() // index.shape[-1], device=index.device).view(*index.shape[:-1], 1)
    neighbours = targets.reshape(-1, d).index_select(0, (index + rows * sets).flatten()).view_as(points)
    squared = (points - neighbours).square().sum(-1)
    return squared.clamp_min(torch.finfo(points.dtype).eps ** 2).sqrt()


def nearest_distance(points: Tensor, others: Tensor | None = None, k: int = 1) -> Tensor:
    """Distance of each point ``[..., N, d]`` to its k-th nearest neighbour in others ``[..., M, d]`` (None: among the
    other points).
    """
    targets = points if others is None else others
    with torch.no_grad():
        centre = targets.mean(-2, keepdim=True)
        spread = (targets - centre).square().sum(-1, keepdim=True).mean(-2, keepdim=True)
        # Far from 0 inner products lose the digits that tell points apart; elsewhere bits stay those of records.
        centre = torch.where(centre.square().sum(-1, keepdim=True) > FAR**2 * spread, centre, 0.0)
        moved = targets - centre
        own = moved if others is None else points - centre
        index = nearest_index(own @ moved.mT, moved.square().sum(-1), k, itself=others is None)
    return selected_distance(points, targets, index)


def nearest_neighbour_kl(q: Tensor, p: Tensor, k: int = 1) -> Tensor:
    """``KL_k(Q, P) = ln(M / (N - 1)) + d/N sum_i ln(s_k(q_i) / r_k(q_i))`` (pequignot2020 eq. 4; Perez-Cruz 2008).

    r_k, s_k: distances from q_i to its k-th neighbour in Q without q_i and in P.
    Args: q ``[..., N, d]`` samples of Q; p ``[..., M, d]`` samples of P. Returns ``[...]``, in nats.
    """
    return _kl_from_distances(nearest_distance(q, None, k), nearest_distance(q, p, k), q.shape[-1], p.shape[-2])


def image_kl(image: AffineImage, p: Tensor, k: int = 1) -> Tensor:
    """Equation 4 for samples that are an affine image ``q = u A + c`` of few coordinates, in which neighbours are
    searched."""
    q = image.points()
    with torch.no_grad():
        gram = torch.matmul(image.matrix, image.matrix.transpose(-1, -2))
        moved = torch.matmul(image.coordinates, gram)
        inner = torch.matmul(moved, image.coordinates.transpose(-1, -2))
        own = nearest_index(inner, inner.diagonal(dim1=-2, dim2=-1), k, itself=True)
        transposed = p.transpose(-1, -2)
        shift = product(image.offset.unsqueeze(-2), transposed)
        inner = torch.matmul(image.coordinates, torch.matmul(image.matrix, transposed)) + shift
        other = nearest_index(inner, p.square().sum(-1), k)
    return _kl_from_distances(selected_distance(q, q, own), selected_distance(q, p, other), q.shape[-1], p.shape[-2])


def _kl_from_distances(r: Tensor, s: Tensor, d: int, m: int) -> Tensor:
    return math.log(m / (r.shape[-1] - 1)) + d * (s.log() - r.log()).mean(-1)


def nearest_neighbour_entropy(q: Tensor, k: int = 1) -> Tensor:
    """``H_k(Q) = ln N - psi(k) + ln(pi^(d/2) / Gamma(d/2 + 1)) + d/N sum_i ln r_k(q_i)`` (pequignot2020 eq. 5; Singh et
    al. 2003).

    Args: q ``[..., N, d]``. Returns ``[...]``, in nats.
    """
    n, d = q.shape[-2:]
    constant = math.log(n) - torch.digamma(torch.tensor(float(k))).item()
    constant += d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
    return constant + d * nearest_distance(q, None, k).log().mean(-1)


def predictor_entropy(values: Tensor, k: int = 1, inputs: int | None = None) -> Tensor:
    """``H_k(F^X) - d/2 ln T``: entropy in predictor space for one draw of T inputs.

    Each of the d dimensions is scaled by T^-1/2, as the norm of L2 is; functions with Q outputs have d = T Q.
    pequignot2020 eq. 7, for one output, prints 1/2 ln T; its code divides the distances inside the logarithm, and its
    table 1 follows the code.
    Args: values ``[..., N, d]`` of N functions at T inputs; inputs: T, where it is not d. Returns ``[...]``; average it
    over draws of the inputs.
    """
    size = values.shape[-1]
    return nearest_neighbour_entropy(values, k) - 0.5 * size * math.log(size if inputs is None else inputs)


@DIVERGENCES.register("nearest_neighbour_kl")
@dataclass(frozen=True)
class NearestNeighbourKL(Divergence):
    """Equation 4 on ``samples`` draws of q and of p: on network parameters (NN-) or on function values at a context
    (FuNN-).

    ``space`` "parameter": pequignot2020 eq. 8; "predictor": eq. 6 and 9, one context set in each step.
    """

    space: str = checked("predictor", among=("parameter", "predictor"))
    samples: int = checked(500, least=1)
    k: int = checked(1, least=1)

    def check(self, family: Family, draws: int) -> None:
        self._check_number(max(self.samples, family.members), family)

    def __call__(self, step: Step) -> Tensor:
        network = step.network
        if self.space == "parameter":
            p = step.prior.flat_weights(network, self.samples, step.prior_streams)
            image = step.family.affine_image(network, step.parameters, self.samples, step.streams)
            if image is not None:
                self._check_number(image.coordinates.shape[1], step.family)
                return image_kl(image, p, self.k)
            q = network.flatten(step.family.weights(network, step.parameters, self.samples, step.streams))
        else:
            context = step.sample_context()
            q = step.family.functions(network, step.parameters, self.samples, step.streams)(context).flatten(2)
            with torch.no_grad():
                drawn = step.prior.functions(network, step.prior_parameters, self.samples, step.prior_streams)
                p = drawn(context).flatten(2)
        self._check_number(q.shape[1], step.family)
        return nearest_neighbour_kl(q, p, self.k)

    def _check_number(self, draws: int, family: Family) -> None:
        if draws <= self.k:
            raise NotSupported(
                f"divergence {self.name!r} needs more than {self.k} draws, family {family.name!r} gives {draws}"
            )
