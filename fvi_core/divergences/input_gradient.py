"""Penalty on the gradients of functions in their inputs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fvi_core.divergences.base import Divergence, Step
from fvi_core.families.base import Family, NotSupported
from fvi_core.registry import DIVERGENCES


@DIVERGENCES.register("input_gradient")
@dataclass(frozen=True)
class InputGradient(Divergence):
    """``mean_x (|grad_x sum_c exp f_c(x)| - target)^2`` over the training batch, two-sided (van Amersfoort et al. 2020,
    eq. 6).

    The outputs f_c are logarithms of class scores, so the gradient is the summed scores'. Not for Gaussian processes:
    kernels are differentiated once, and autograd leaves out the second derivatives without an error.
    """

    target: float = 1.0

    def __call__(self, step: Step) -> Tensor:
        member = getattr(step.family, "member", step.family)  # of an ensemble
        if type(member).process is not Family.process:
            raise NotSupported(
                f"divergence 'input_gradient' differentiates functions twice, and the kernel of family {member.name!r} "
                "is differentiated once; use a family of networks"
            )
        x = step.x.detach().requires_grad_()
        network = step.network.layer_by_layer()
        functions = step.family.functions(network, step.parameters, 1, step.streams)
        scores = functions(x).exp().sum((0, 2, 3)).unbind()  # of each function
        each = [torch.autograd.grad(score, x, create_graph=True, allow_unused=True)[0] for score in scores]
        if any(gradient is None for gradient in each):
            raise NotSupported("divergence 'input_gradient': inputs are whole numbers, in which nothing has a gradient")
        terms = [(gradient.flatten(2).norm(dim=-1) - self.target).square().mean(1) for gradient in each]
        return torch.stack(terms).mean(0)
