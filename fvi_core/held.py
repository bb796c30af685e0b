"""Tensors of a stack, sorted by their part (family, likelihood, fit) and by what may change them.

Checkpoints, kept parameters and training hold them in one flat dict; only this module interprets its names.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

Tensors = dict[str, Tensor]
BUFFER = "buffer/"
"""Prefix of tensors among a family's that are not trained: running statistics, collected moments."""
CONSTANT = "constant/"
"""Prefix of untrained tensors that training steps also receive: fixed random draws, and results of a family's fit
before training."""
FOLLOWING = "following/"
"""Prefix of untrained tensors that training steps receive and the family moves after each step: centroids that follow
the features of training inputs."""
LIKELIHOOD, FIT = "likelihood/", "fit/"


class Held(NamedTuple):
    """Tensors ``[R, ...]`` of a family, its untrained ones included, of the likelihood, and of the fit part."""

    family: Tensors
    likelihood: Tensors = {}
    fit: Tensors = {}

    @classmethod
    def of(cls, flat: Tensors) -> Held:
        """Sort a flat dict; names lose the prefix of likelihood or fit part."""
        held = cls({}, {}, {})
        for name, value in flat.items():
            if name.startswith(LIKELIHOOD):
                held.likelihood[name.removeprefix(LIKELIHOOD)] = value
            elif name.startswith(FIT):
                held.fit[name.removeprefix(FIT)] = value
            else:
                held.family[name] = value
        return held

    def flat(self) -> Tensors:
        """Return all in one dict, the inverse of :meth:`of`."""
        likelihood = {LIKELIHOOD + name: value for name, value in self.likelihood.items()}
        return self.family | likelihood | {FIT + name: value for name, value in self.fit.items()}


def only_buffers(tensors: Tensors) -> Tensors:
    """Return those that prediction alone receives."""
    return {name: value for name, value in tensors.items() if name.startswith(BUFFER)}


def where(chosen: Tensor, first: Tensors, second: Tensors) -> Tensors:
    """Return the first tensors ``[R, ...]`` of the chosen replicas, ``[R]`` bool, and the second of the others; without
    gradients.
    """
    return {
        name: torch.where(chosen.view(-1, *[1] * (value.dim() - 1)), first[name].detach(), value.detach())
        for name, value in second.items()
    }


def trained_names(tensors: Tensors, learned: bool = True) -> list[str]:
    """Return the names of those that training steps change.

    ``learned``: whether the likelihood's are among them; weight decay would move fixed ones, although no gradient does.
    """
    fixed = (BUFFER, CONSTANT, FOLLOWING) if learned else (BUFFER, CONSTANT, FOLLOWING, LIKELIHOOD)
    return [name for name in tensors if not name.startswith(fixed)]
