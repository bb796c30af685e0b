"""Checks of a module before it becomes a network."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fvi_core.held import BUFFER
from fvi_core.networks.opaque import NORMS, SIDES, UnfitModule
from fvi_core.spelling import nearest

MANY = 2**18
"""Size of the inputs at which random numbers are searched for."""
PASSES = 5
"""Training passes after which buffers that follow the weights have moved."""


def copied(module: nn.Module) -> nn.Module:
    """Return a copy. Raises UnfitModule for a module with tensors that stand for its parameters."""
    try:
        return copy.deepcopy(module)
    except RuntimeError as error:
        raise UnfitModule(
            "the module cannot be copied, as weights are computed before a call: use torch.nn.utils.parametrizations "
            "in place of nn.utils.weight_norm and the like, and end pruning by prune.remove()"
        ) from error


def refuse_kind(module: nn.Module) -> None:
    """Raise UnfitModule for a module that stands for another one, or whose parameters have no shape yet."""
    if isinstance(module, nn.DataParallel | nn.parallel.DistributedDataParallel):
        raise UnfitModule(f"{type(module).__name__} is not evaluated: give the module in it, its attribute 'module'")
    if isinstance(module, torch.jit.ScriptModule):
        raise UnfitModule("a ScriptModule cannot be changed: give the module that it was made from")
    if compiled := [name for name, each in module.named_modules() if hasattr(each, "_orig_mod")]:
        where = f"submodule {compiled[0]!r}" if compiled[0] else "the module"
        raise UnfitModule(f"{where} is one of torch.compile: give the module that it was made from")
    if unknown := [name for name, value in module.named_parameters() if nn.parameter.is_lazy(value)]:
        raise UnfitModule(f"{', '.join(unknown)} have no shape yet: call the module on some inputs first")


@torch.no_grad()
def look(module: nn.Module, example: Tensor, head: str | None) -> tuple[str, int, dict[str, int]]:
    """Return the name of the linear layer whose output is the module's, the most numbers in a submodule's input or
    output per point, and the number of axes of the first input of each submodule.

    Raises UnfitModule for outputs that are not ``[N, Q]``, and without such a layer.
    """
    if len(example) < 2:
        raise UnfitModule(f"expected two or more inputs as an example, found {len(example)}")
    outputs: dict[str, Tensor] = {}
    ranks: dict[str, int] = {}
    sizes = [example.numel()]

    def note(name: str) -> Callable[..., None]:
        def see(each: nn.Module, args: tuple, out: Any) -> None:
            tensors = [v for v in (*args, out) if isinstance(v, Tensor)]
            sizes.extend(v.numel() for v in tensors)
            ranks.setdefault(name, args[0].dim() if args and isinstance(args[0], Tensor) else 0)
            if isinstance(each, nn.Linear):
                outputs[name] = out

        return see

    hooks = [each.register_forward_hook(note(name)) for name, each in module.named_modules()]
    try:
        out = module(example)
    except Exception as error:
        hints = {
            "; whole numbers are taken for tokens: give others in floating point": not example.is_floating_point(),
            "; inputs [N] have no axis of features: give x[:, None]": example.dim() == 1,
        }
        hint = "".join(words for words, holds in hints.items() if holds)
        raise UnfitModule(
            f"forward() fails at inputs {list(example.shape)}: {type(error).__name__}: {error}{hint}"
        ) from error
    finally:
        for hook in hooks:
            hook.remove()
    if not isinstance(out, Tensor) or out.dim() != 2 or len(out) != len(example):
        found = list(out.shape) if isinstance(out, Tensor) else f"{type(out).__name__}: return logits or means alone"
        raise UnfitModule(f"expected outputs [N, Q] in one tensor for {len(example)} inputs, found {found}")
    name = head if head is not None else next((name for name, z in outputs.items() if z is out), None)
    if name is None:
        raise UnfitModule(
            "no nn.Linear gives the module's output: leave softmax to the likelihood, or name the last layer as head; "
            f"its linear layers: {', '.join(map(repr, outputs)) or 'none, so end it with one'}"
        )
    last = dict(module.named_modules()).get(name)
    if last is None:
        raise UnfitModule(f"head {name!r} is no submodule; {nearest(name, outputs)}")
    if not name or type(last) is not nn.Linear or last.bias is None:
        hint = "" if name else "; wrap it: nn.Sequential(module)"
        raise UnfitModule(f"head {name!r}: expected an nn.Linear with a bias inside a module, found {last}{hint}")
    if head is not None and (name not in outputs or not torch.equal(outputs[name].reshape(-1), out.reshape(-1))):
        raise UnfitModule(
            f"head {name!r}: its output is not the module's; leave softmax and the like to the likelihood, or name the "
            f"last layer; linear layers: {', '.join(map(repr, outputs))}"
        )
    named = module.named_parameters(remove_duplicate=False)
    if tied := [own for own, value in named if value is last.weight and own != f"{name}.weight"]:
        raise UnfitModule(f"head {name!r} shares its weight with {tied[0]}, and a head has its own: give it a copy")
    if not (last.weight.requires_grad and last.bias.requires_grad):
        raise UnfitModule(f"head {name!r} is frozen, and no method can change it: set its requires_grad_(True)")
    return name, max(sizes) // len(example), ranks


@torch.no_grad()
def refuse_state(module: nn.Module, example: Tensor) -> None:
    """Raise UnfitModule unless a module's values are a function of each input alone."""
    trial = copy.deepcopy(module)
    before = {name: value.clone() for name, value in trial.named_buffers()}
    first = trial(copied := example.clone())
    if not torch.equal(copied, example):
        raise UnfitModule("forward() writes into its input: let it change a copy (x - 1 in place of x -= 1)")
    second, fewer = trial(example), trial(example[:-1])
    moved = [name for name, value in trial.named_buffers() if not torch.equal(value, before[name])]
    if moved:
        raise UnfitModule(
            f"forward() changes buffers {', '.join(moved)}: make its values a function of its input alone"
        )
    if not first.isfinite().all():
        raise UnfitModule("forward() gives no finite numbers at an example of its inputs")
    if not torch.equal(first, second):
        raise UnfitModule("forward() draws random numbers in eval mode: take them out, or use nn.Dropout")
    if not torch.allclose(first[:-1], fewer, rtol=1e-3, atol=1e-4):
        raise UnfitModule(
            "the value at an input depends on the inputs beside it: leave sums over the first axis to nn.BatchNorm"
        )


@torch.no_grad()
def refuse_pursuit(module: nn.Module, example: Tensor) -> None:
    """Raise UnfitModule where buffers that training passes move, batch normalisation's aside, change a module's values
    once its weights are others: the module is evaluated as in ``eval()``, so that they would stay behind the weights.
    """
    trial = _training_mode(module)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for each in trial.parameters():
            if each.requires_grad:
                each.add_(torch.randn_like(each) * each.abs().mean())
        before = {name: value.clone() for name, value in trial.named_buffers()}
        try:
            for _ in range(PASSES):
                trial(example)
        except Exception:  # a forward() that fails in training mode is not used there
            return
    moved = [name for name, value in trial.named_buffers() if not torch.equal(value, before[name])]
    if not moved:
        return
    after = trial.eval()(example)
    for name, value in trial.named_buffers():
        value.copy_(before[name])
    if not torch.allclose(after, trial(example), rtol=1e-3, atol=1e-4):
        raise UnfitModule(
            f"forward() moves buffers {', '.join(moved)} in training, which follow the weights (spectral "
            "normalisation, running statistics of instance normalisation): leave them out, or use nn.BatchNorm"
        )


@torch.no_grad()
def random_in_training(module: nn.Module, example: Tensor) -> str | None:
    """Return a sentence on random numbers that a module draws in training outside nn.Dropout; else None."""
    trial = _training_mode(module)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            values = [trial(torch.cat([example] * max(1, min(8, MANY // example.numel())))) for _ in range(2)]
        except Exception:  # a forward() that fails in training mode is not used there
            return None
    if not all(isinstance(each, Tensor) for each in values) or torch.equal(*values):
        return None
    return (
        "forward() draws random numbers in training (functional dropout, stochastic depth, nn.Dropout2d, dropout of "
        "attention or of recurrent layers), which are left out: the module is evaluated as in eval(). MC Dropout uses "
        "nn.Dropout modules only"
    )


def _training_mode(module: nn.Module) -> nn.Module:
    """A copy in training mode, except for batch normalisation and nn.Dropout."""
    trial = copy.deepcopy(module).train()
    for each in trial.modules():
        if isinstance(each, NORMS) or type(each) is nn.Dropout:
            each.eval()
    return trial


def momenta(norms: Mapping[str, Any]) -> dict[str, float]:
    """Return the share of the newest batch in each running statistic.

    Raises UnfitModule for batch normalisation without running statistics, scale or momentum.
    """
    for name, each in norms.items():
        if each.momentum is None or not (each.affine and each.track_running_stats):
            raise UnfitModule(
                f"submodule {name!r}: expected batch normalisation with affine=True, track_running_stats=True and a "
                f"momentum, found {each}"
            )
    return {f"{BUFFER}{name}.{side}": float(each.momentum) for name, each in norms.items() for side in SIDES}
