"""Gaussian moments of a network whose weights are Gaussian: mean and covariance of f at inputs X.

Covariances are per output, "full" ``[R, Q, N, N]`` or "diagonal" ``[R, Q, N]``, or "joint" over all outputs and inputs,
``[R, 1, N Q, N Q]`` with the outputs of one input together, and the mean ``[R, 1, N Q]``.

Last layer (rudner2022 eq. 12-14 with R = 1): given one draw of the inner layers the network is linear in the last, so
mean and covariance are exact. Full network (rudner2022 eq. 8-11, cinquin2024 eq. 2.6): ``J S J^T`` is summed layer by
layer from each layer's inputs and back-propagated outputs; the Jacobian of a convolutional network is never formed as a
whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from fvi_core import tangents
from fvi_core.blocks import changes_at_once, in_blocks
from fvi_core.grams import layer_gram
from fvi_core.networks import (
    HEAD,
    SLOPED,
    Activation,
    BatchNorm,
    Conv2d,
    Linear,
    Network,
    Parameters,
    ParametricLayer,
    PlacesLayer,
    Tape,
    UnfitModule,
)
from fvi_core.products import product


def linearised(
    network: Network, centre: Parameters, steps: Parameters, buffers: Parameters
) -> Callable[[Tensor], Tensor]:
    """Return the functions ``f(x; m) + J(x; m) d`` for each sample d of ``steps [R, S, *shape]`` away from ``centre`` m
    ``[R, *shape]``.

    ``buffers [R, 1, *shape]``: running statistics, which are constants.
    """
    samples = next(iter(steps.values())).shape[1]
    if samples > 1 and tangents.fits(network):
        point = {name: centre[name].unsqueeze(1) for name in steps} | buffers

        def changed(x: Tensor) -> Tensor:
            pieces = in_blocks(steps, samples, changes_at_once(network, x))
            return torch.cat([tangents.changed(network, point, piece, x) for piece in pieces], 1)

        return changed
    at = {name: centre[name].unsqueeze(1).expand_as(step).contiguous() for name, step in steps.items()}

    def evaluate(x: Tensor) -> Tensor:
        if network.perceptron:
            tape = Tape()
            value = network(at, x, tape=tape)
            return value + tangents.change_of_perceptron(network, at, steps, tape)
        value, change = _derivative(lambda w: network(w | buffers, x), at, steps)
        return value + change

    return evaluate


def _derivative(f: Callable[[Parameters], Tensor], at: Parameters, steps: Parameters) -> tuple[Tensor, Tensor]:
    """Return f and its derivative along steps: in forward mode, or by two backward passes where an operation of torch
    has no forward mode (weight normalisation), for which torch raises AssertionError where it is a vectorised
    autograd.Function. Raises UnfitModule where it has neither."""
    try:
        value, change, *_ = torch.func.jvp(f, (at,), (steps,))
    except (NotImplementedError, AssertionError):
        value, backward, *_ = torch.func.vjp(f, at)
        try:
            (change,) = torch.func.vjp(lambda v: backward(v)[0], torch.zeros_like(value))[1](steps)
        except NotImplementedError as error:
            raise UnfitModule(f"torch has no derivative that Jacobians of the module need: {error}") from error
    return value, change


def last_layer_moments(
    network: Network, inner: Parameters, mean: Parameters, log_var: Parameters, x: Tensor, covariance: str = "full"
) -> tuple[Tensor, Tensor]:
    """Moments of f(x) under a Gaussian last layer, given inner parameters (rudner2022 eq. 14, R = 1).

    ``cov_k = phi diag(var_k) phi^T + var_bias_k`` for output k.

    Args: inner: parameters ``[R, *shape]`` that define the features phi; mean, log_var: only the head's are used.
    Returns mean ``[R, Q, N]`` and covariance ``[R, Q, N, N]`` in float64 ("full") or variance ``[R, Q, N]``
      ("diagonal").
    """
    phi = network.features({k: v.unsqueeze(1) for k, v in inner.items()}, x).squeeze(1)
    return head_moments(phi, mean, log_var, covariance)


def head_moments(phi: Tensor, mean: Parameters, log_var: Parameters, covariance: str = "full") -> tuple[Tensor, Tensor]:
    """Moments as :func:`last_layer_moments`, given the features ``phi``: ``[R, N, F]``, or ``[R, N, F, Q]`` for a head
    that all outputs share.
    """
    weight, bias = f"{HEAD}.weight", f"{HEAD}.bias"
    if phi.dim() == 4:
        return _shared_head_moments(phi, mean[weight], log_var[weight].exp(), covariance)
    f = product(phi, mean[weight], mean[bias].unsqueeze(1)).transpose(-1, -2)
    if covariance == "diagonal":
        var_weight, var_bias = log_var[weight].exp(), log_var[bias].exp()
        return f, (product(phi.square(), var_weight) + var_bias.unsqueeze(1)).transpose(-1, -2)
    full = _head_covariance(phi, log_var[weight], log_var[bias])
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
    """Return the joint covariance ``[R, 1, N Q, N Q]`` of independent outputs with covariances ``[R, Q, N, N]``."""
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
    batch normalisation is linearised in prediction mode: ``mean`` must include its running statistics, as constants.
    Returns mean ``[R, Q, N]`` and covariance ``[R, Q, N, N]`` in float64 ("full") or variance ``[R, Q, N]``
      ("diagonal"), or of all outputs together ("joint"), which holds all rows of a layer's Jacobian at once.
    """
    if not torch.is_grad_enabled() and not network.perceptron:
        with torch.enable_grad():
            tracked = {k: v.detach().requires_grad_() for k, v in mean.items()}
            f, cov = full_network_moments(network, tracked, log_var, x, covariance, stop_gradient=True)
        return f.detach(), cov.detach()
    tape = Tape()
    at = {k: v.unsqueeze(1) for k, v in mean.items()}
    f = network(at, x, tape=tape)
    with torch.set_grad_enabled(torch.is_grad_enabled() and not (stop_gradient and network.perceptron)):
        if network.perceptron:
            deltas = _deltas_by_chain_rule(network, at, tape)
        else:
            deltas = _deltas_by_autograd(network, f, tape, not stop_gradient)
    layers = [
        (layer, a.detach(), delta.detach()) if stop_gradient else (layer, a, delta)
        for (layer, a, _), delta in zip(tape.entries, deltas, strict=True)
    ]
    if stop_gradient:
        at = {k: v.detach() for k, v in at.items()}
    std = {k: torch.exp(0.5 * v) for k, v in log_var.items()}
    if covariance == "joint":
        outputs = zip(*(delta.unbind(1) for _, _, delta in layers), strict=True)
        rows = [
            [row for (layer, a, _), delta in zip(layers, own, strict=True) for row in _rows(layer, a, delta, at, std)]
            for own in outputs
        ]
        both = (torch.stack(own, dim=2).flatten(1, 2) for own in zip(*rows, strict=True))  # [R, N Q, P] of every tensor
        return joint_mean(f.squeeze(1).mT), cast(Tensor, sum(_gram(each) for each in both)).unsqueeze(1)
    total: Any = 0.0  # a tensor from the first layer on
    for layer, a, delta in layers:
        if not isinstance(layer, Linear):
            # Unbound: the gradient of an indexed output would fill zeros for all others.
            each = (_rows(layer, a, own, at, std) for own in delta.unbind(1))
            terms = [cast(Tensor, sum(_covariance_of(row, covariance) for row in rows)) for rows in each]
            total = total + torch.stack(terms, dim=1)
        elif covariance == "diagonal":
            total = total + torch.stack([_variance(layer, a.squeeze(1), own, std) for own in delta.unbind(1)], dim=1)
        else:
            variances = [log_var[name] for name in layer.shapes]
            head, a = layer is network.head, a.squeeze(1)
            total = total + (_head_covariance(a, *variances) if head else layer_gram(a, delta, *variances))
    return f.squeeze(1).transpose(-1, -2), total


def _deltas_by_chain_rule(network: Network, at: Parameters, tape: Tape) -> list[Tensor]:
    """Gradients of every output to the outputs of each layer, ``[R, Q, N, units]``, of a perceptron: as plain
    operations, all outputs at once.
    """
    functions, f = [x.function for x in network.layers if isinstance(x, Activation)], tape.entries[-1][2]
    identity = torch.eye(network.n_outputs, dtype=f.dtype, device=f.device)
    deltas = [identity.unsqueeze(1).expand(len(f), -1, f.shape[2], -1)]
    for i in reversed(range(len(functions))):
        layer, a, _ = tape.entries[i + 1]
        weight, z = at[f"{layer.name}.weight"].squeeze(1), tape.entries[i][2]
        if layer is network.head:
            delta = weight.mT.unsqueeze(-1).expand(-1, -1, -1, f.shape[2])
        else:
            wide = weight.unsqueeze(1).expand(-1, network.n_outputs, -1, -1)
            delta = product(wide.flatten(0, 1), deltas[0].mT.flatten(0, 1)).unflatten(0, wide.shape[:2])
        deltas.insert(0, SLOPED[functions[i]](delta, z.mT.expand_as(delta), a.mT.expand_as(delta)).mT)
    return deltas


def _deltas_by_autograd(network: Network, f: Tensor, tape: Tape, differentiable: bool) -> list[Tensor]:
    """Gradients ``[R, Q, N, ...]`` of the outputs in each layer's output, by autograd, one output after another."""
    outputs = [z for _, _, z in tape.entries]
    each = [
        torch.autograd.grad(f[..., q].sum(), outputs, create_graph=differentiable, retain_graph=True)
        for q in range(network.n_outputs)
    ]
    return [torch.cat([delta.movedim(1, 0) for delta in own]).movedim(0, 1) for own in zip(*each, strict=True)]


def _head_covariance(phi: Tensor, log_var_weight: Tensor, log_var_bias: Tensor) -> Tensor:
    """``phi diag(var_q) phi^T + var_bias_q`` of each output ``[R, Q, N, N]``, in double precision: more points than
    features leave it singular, and float32 would round it indefinite.
    """
    var_weight, var_bias = log_var_weight.exp(), log_var_bias.exp()
    phi = phi.unsqueeze(1).double()
    scaled = phi * var_weight.double().transpose(-1, -2).unsqueeze(2)
    return torch.matmul(scaled, phi.transpose(-1, -2)) + var_bias.double()[..., None, None]


def _variance(layer: Linear, a: Tensor, delta: Tensor, std: Parameters) -> Tensor:
    """A linear layer's term of the diagonal of ``J S J^T`` of one output, ``[R, N]``, for inputs ``a [R, N, in]`` and
    gradients ``delta [R, N, out]``.
    """
    weight, bias = (std[name] for name in layer.shapes)
    # Recomputed for each output: sharing would sum gradients in another order than earlier records.
    squares = product(a.square(), weight.square()) + bias.square().unsqueeze(1)
    return (squares * delta.square()).sum(-1)


def _rows(layer: ParametricLayer, a: Tensor, delta: Tensor, at: Parameters, std: Parameters) -> list[Tensor]:
    """One layer's Jacobian of one output times the standard deviations, ``[R, N, P]`` of each of its tensors.

    The layer's inputs are ``a [R, 1, N, ...]``, the gradients to its outputs ``[R, N, ...]``, the parameters ``at`` are
    ``[R, 1, ...]``.
    """
    if isinstance(layer, BatchNorm):
        scale, shift = (std[name].unsqueeze(1) for name in layer.shapes)
        return [(layer.normalised(at, a).squeeze(1) * delta).sum((-1, -2)) * scale, delta.sum((-1, -2)) * shift]
    a = a.squeeze(1)
    if isinstance(layer, PlacesLayer):
        return [(j * std[name].unsqueeze(1)).flatten(2) for name, j in layer.jacobian(a, delta, at).items()]
    weight, bias = std[f"{layer.name}.weight"], std.get(f"{layer.name}.bias")
    if isinstance(layer, Conv2d):
        windows = F.unfold(a.flatten(0, 1), layer.kernel, padding=layer.padding, stride=layer.stride)
        a = windows.unflatten(0, a.shape[:2])
        delta = delta.flatten(-2)
        jacobian = torch.matmul(a, delta.transpose(-1, -2))  # [R, N, in k k, out]
        rows = [(jacobian * weight.flatten(2).transpose(-1, -2).unsqueeze(1)).flatten(-2)]
        return rows if bias is None else [*rows, delta.sum(-1) * bias.unsqueeze(1)]
    outer = a.unsqueeze(-1) * delta.unsqueeze(-2) * weight.unsqueeze(1)
    return [outer.flatten(-2), delta * std[f"{layer.name}.bias"].unsqueeze(1)]


def _covariance_of(rows: Tensor, covariance: str) -> Tensor:
    """``A A^T`` or its diagonal, for a layer's scaled Jacobian A ``[R, N, P]``."""
    return rows.square().sum(-1) if covariance == "diagonal" else _gram(rows)


def _gram(rows: Tensor) -> Tensor:
    """``A A^T`` in double precision, in which it is positive semi-definite to far below any jitter."""
    rows = rows.double()
    return torch.matmul(rows, rows.transpose(-1, -2))
