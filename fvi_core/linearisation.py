"""Gaussian moments of a network whose weights are Gaussian: mean and covariance of f at inputs X.

Covariances are of each output by itself, "full" ``[R, Q, N, N]`` or "diagonal" ``[R, Q, N]``, or "joint" of all outputs
at all inputs, ``[R, 1, N Q, N Q]`` with the outputs of one input together, and the mean ``[R, 1, N Q]``.

Last layer (rudner2022 eq. 12-14 with R = 1): given one draw of the inner layers the network is linear in the last, so
mean and covariance are exact. Full network (rudner2022 eq. 8-11, cinquin2024 eq. 2.6): ``J S J^T`` is summed layer by
layer from each layer's inputs and back-propagated outputs; the Jacobian of a convolutional network never exists as a
whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from fvi_core.networks import HEAD, BatchNorm, Conv2d, Linear, Network, Parameters, ParametricLayer, PlacesLayer, Tape
from fvi_core.products import product

BLOCK = 2**24
"""Most elements of a layer's Jacobian held at once; larger layers are worked through in blocks and recomputed for
gradients.
"""


def linearised(network: Network, centre: Parameters, steps: Parameters, kept: Parameters) -> Callable[[Tensor], Tensor]:
    """The functions ``f(x; m) + J(x; m) d`` for each sample d of ``steps [R, S, *shape]`` away from ``centre`` m ``[R,
    *shape]``.

    ``kept [R, 1, *shape]``: running statistics, which are constants.
    """
    at = {name: centre[name].unsqueeze(1).expand_as(step).contiguous() for name, step in steps.items()}

    def evaluate(x: Tensor) -> Tensor:
        value, change, *_ = torch.func.jvp(lambda w: network(w | kept, x), (at,), (steps,))
        return value + change

    return evaluate


def last_layer_moments(
    network: Network, inner: Parameters, mean: Parameters, log_var: Parameters, x: Tensor, covariance: str = "full"
) -> tuple[Tensor, Tensor]:
    """Moments of f(x) under a Gaussian last layer, given inner parameters (rudner2022 eq. 14, R = 1).

    ``cov_k = phi diag(var_k) phi^T + var_bias_k`` for output k.

    Args: inner: parameters ``[R, *shape]`` that define the features phi; mean, log_var: those of the head are used.
    Returns mean ``[R, Q, N]`` and covariance ``[R, Q, N, N]`` in float64 ("full") or variance ``[R, Q, N]``
      ("diagonal").
    """
    phi = network.features({k: v.unsqueeze(1) for k, v in inner.items()}, x).squeeze(1)
    return head_moments(phi, mean, log_var, covariance)


def head_moments(phi: Tensor, mean: Parameters, log_var: Parameters, covariance: str = "full") -> tuple[Tensor, Tensor]:
    """The same, given the features ``phi`` themselves, ``[R, N, F]``, or ``[R, N, F, Q]`` of a head that all outputs
    share.
    """
    weight, bias = f"{HEAD}.weight", f"{HEAD}.bias"
    if phi.dim() == 4:
        return _shared_head_moments(phi, mean[weight], log_var[weight].exp(), covariance)
    f = product(phi, mean[weight], mean[bias].unsqueeze(1)).transpose(-1, -2)
    var_weight, var_bias = log_var[weight].exp(), log_var[bias].exp()
    if covariance == "diagonal":
        return f, (torch.matmul(phi.square(), var_weight) + var_bias.unsqueeze(1)).transpose(-1, -2)
    # In double precision: more points than features leave the covariance singular, and float32 would round it
    # indefinite.
    phi = phi.unsqueeze(1).double()
    scaled = phi * var_weight.double().transpose(-1, -2).unsqueeze(2)
    full = torch.matmul(scaled, phi.transpose(-1, -2)) + var_bias.double()[..., None, None]
    return (f, full) if covariance == "full" else (joint_mean(f), joint_of_independent(full))


def _shared_head_moments(phi: Tensor, mean: Tensor, var: Tensor, covariance: str) -> tuple[Tensor, Tensor]:
    """Moments of ``f_q = phi_q w`` for phi ``[R, N, F, Q]`` and one vector of weights w of mean and variance ``[R, F,
    1]``.
    """
    rows = phi.movedim(-1, 1)  # [R, Q, N, F]
    f = product(rows.flatten(1, 2), mean).squeeze(-1).unflatten(-1, rows.shape[1:3])
    std = var.sqrt().mT.unsqueeze(1)
    if covariance == "joint":
        return joint_mean(f), _gram(rows.movedim(1, 2).flatten(1, 2).unsqueeze(1) * std)
    return f, _covariance_of(rows * std, covariance)


def joint_mean(mean: Tensor) -> Tensor:
    """Means of each output ``[R, Q, N]`` as one vector of all, ``[R, 1, N Q]``."""
    return mean.mT.flatten(1).unsqueeze(1)


def joint_of_independent(covariance: Tensor) -> Tensor:
    """The joint covariance ``[R, 1, N Q, N Q]`` of independent outputs, whose own are ``[R, Q, N, N]``."""
    n = covariance.shape[1] * covariance.shape[2]
    return torch.diag_embed(covariance.movedim(1, -1)).transpose(2, 3).reshape(-1, 1, n, n)


def full_network_moments(
    network: Network,
    mean: Parameters,
    log_var: Parameters,
    x: Tensor,
    covariance: str = "full",
    stop_gradient: bool = False,
) -> tuple[Tensor, Tensor]:
    """Moments of the network linearised about its mean weights: ``f(x; m)`` and ``J(x; m) S J(x; m)^T`` per output.

    rudner2022 eq. 9-10, cinquin2024 eq. 2.7. ``stop_gradient`` treats the Jacobian as constant in m. A network with
    batch normalisation is linearised as it predicts: ``mean`` must hold its running statistics too, which are
    constants.
    Returns mean ``[R, Q, N]`` and covariance ``[R, Q, N, N]`` in float64 ("full") or variance ``[R, Q, N]``
      ("diagonal"), or those of all outputs together ("joint"), for which the rows of a layer's Jacobian are held at
      once.
    """
    if not torch.is_grad_enabled():
        with torch.enable_grad():
            tracked = {k: v.detach().requires_grad_() for k, v in mean.items()}
            f, cov = full_network_moments(network, tracked, log_var, x, covariance, stop_gradient=True)
        return f.detach(), cov.detach()
    tape = Tape()
    at = {k: v.unsqueeze(1) for k, v in mean.items()}
    f = network(at, x, tape=tape)
    outputs = [z for _, _, z in tape.entries]
    std = {k: torch.exp(0.5 * v) for k, v in log_var.items()}
    layers = [(layer, a.detach() if stop_gradient else a) for layer, a, _ in tape.entries]
    shared = [_shared_gram(layer, a, std, covariance) for layer, a in layers]
    covariances = []
    rows: list[list[Tensor]] = []
    for q in range(network.n_outputs):
        deltas = torch.autograd.grad(f[..., q].sum(), outputs, create_graph=not stop_gradient, retain_graph=True)
        if covariance == "joint":
            held = [(delta.detach() if stop_gradient else delta).squeeze(1) for delta in deltas]
            each = zip(layers, held, strict=True)
            rows.append([row for (layer, a), delta in each for row in _rows(layer, a, delta, at, std)])
            continue
        total: Any = 0.0  # a tensor from the first layer on
        for (layer, a), delta, gram in zip(layers, deltas, shared, strict=True):
            delta = (delta.detach() if stop_gradient else delta).squeeze(1)
            if gram is None:
                total = total + _layer_covariance(layer, a, delta, at, std, covariance)
            else:
                total = total + torch.einsum("rnmo,rno,rmo->rnm", gram, delta.double(), delta.double())
        covariances.append(total)
    if covariance == "joint":
        both = (torch.stack(own, dim=2).flatten(1, 2) for own in zip(*rows, strict=True))  # [R, N Q, P] of every tensor
        return joint_mean(f.squeeze(1).mT), cast(Tensor, sum(_gram(each) for each in both)).unsqueeze(1)
    return f.squeeze(1).transpose(-1, -2), torch.stack(covariances, dim=1)


def _shared_gram(layer: ParametricLayer, a: Tensor, std: Parameters, covariance: str) -> Tensor | None:
    """``sum_i (a_i std_ij)_n (a_i std_ij)_m`` and the bias's variance, for each unit j, ``[R, N, N, out]`` in float64.

    It serves every output of the network. None where the layer has no such thing, or so few inputs that its Jacobian is
    the smaller.
    """
    if not isinstance(layer, Linear) or covariance == "diagonal" or a.shape[2] > min(layer.inputs, layer.outputs):
        return None
    a = a.squeeze(1).double()
    n, m = torch.tril_indices(a.shape[1], a.shape[1], device=a.device)
    pairs = torch.matmul(a[:, n] * a[:, m], std[f"{layer.name}.weight"].double().square())
    pairs = pairs + std[f"{layer.name}.bias"].double().square().unsqueeze(1)
    place = torch.empty(a.shape[1], a.shape[1], dtype=torch.long, device=a.device)
    place[n, m] = place[m, n] = torch.arange(len(n), device=a.device)
    return pairs[:, place]


def _layer_covariance(
    layer: ParametricLayer, a: Tensor, delta: Tensor, at: Parameters, std: Parameters, covariance: str
) -> Tensor:
    """One layer's term of ``J S J^T``: ``[R, N, N]`` or its diagonal ``[R, N]``.

    The layer's inputs are ``a [R, 1, N, ...]``, the gradients to its outputs delta ``[R, N, ...]``, the parameters
    ``at`` are ``[R, 1, ...]``.
    """
    if not isinstance(layer, Linear):
        return cast(Tensor, sum(_covariance_of(rows, covariance) for rows in _rows(layer, a, delta, at, std)))
    a = a.squeeze(1)
    weight, bias = std[f"{layer.name}.weight"], std[f"{layer.name}.bias"]
    if covariance == "diagonal":
        squares = torch.matmul(a.square(), weight.square()) + bias.square().unsqueeze(1)
        return (squares * delta.square()).sum(-1)
    total = _gram(delta * bias.unsqueeze(1))
    rows = max(1, BLOCK // (delta.numel()))
    for start in range(0, layer.inputs, rows):
        block = slice(start, start + rows)
        if rows >= layer.inputs:
            return total + _outer_gram(a, delta, weight)
        total = total + checkpoint(_outer_gram, a[..., block], delta, weight[:, block], use_reentrant=False)
    return total


def _rows(layer: ParametricLayer, a: Tensor, delta: Tensor, at: Parameters, std: Parameters) -> list[Tensor]:
    """One layer's Jacobian times the standard deviations, ``[R, N, P]`` of each of its tensors; arguments as above."""
    if isinstance(layer, BatchNorm):
        scale, shift = (std[name].unsqueeze(1) for name in layer.shapes)
        return [(layer.normalised(at, a).squeeze(1) * delta).sum((-1, -2)) * scale, delta.sum((-1, -2)) * shift]
    a = a.squeeze(1)
    if isinstance(layer, PlacesLayer):
        return [(j * std[name].unsqueeze(1)).flatten(2) for name, j in layer.jacobian(a, delta).items()]
    weight, bias = std[f"{layer.name}.weight"], std.get(f"{layer.name}.bias")
    if isinstance(layer, Conv2d):
        a = F.unfold(a.flatten(0, 1), layer.kernel, padding=layer.padding, stride=layer.stride).unflatten(
            0, a.shape[:2]
        )
        delta = delta.flatten(-2)
        jacobian = torch.matmul(a, delta.transpose(-1, -2))  # [R, N, in k k, out]
        rows = [(jacobian * weight.flatten(2).transpose(-1, -2).unsqueeze(1)).flatten(-2)]
        return rows if bias is None else [*rows, delta.sum(-1) * bias.unsqueeze(1)]
    outer = a.unsqueeze(-1) * delta.unsqueeze(-2) * weight.unsqueeze(1)
    return [outer.flatten(-2), delta * std[f"{layer.name}.bias"].unsqueeze(1)]


def _covariance_of(rows: Tensor, covariance: str) -> Tensor:
    """``A A^T`` or its diagonal, for a layer's scaled Jacobian A ``[R, N, P]``."""
    return rows.square().sum(-1) if covariance == "diagonal" else _gram(rows)


def _outer_gram(a: Tensor, delta: Tensor, std: Tensor) -> Tensor:
    """``sum_ij (a_i delta_j std_ij)_n (a_i delta_j std_ij)_m`` for a ``[R, N, in]``, delta ``[R, N, out]``, std ``[R,
    in, out]``.
    """
    return _gram((a.unsqueeze(-1) * delta.unsqueeze(-2) * std.unsqueeze(1)).flatten(-2))


def _gram(rows: Tensor) -> Tensor:
    """``A A^T`` in double precision, in which it is positive semi-definite to far below any jitter."""
    rows = rows.double()
    return torch.matmul(rows, rows.transpose(-1, -2))
