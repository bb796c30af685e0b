"""Methods of the catalogue on a user's module: fit, predict, score, save and load.

import fvi_core as fvi

posterior = fvi.fit(net, loader, "FSVI", epochs=50)
posterior.predict(x).probabilities      # [N, C]
posterior.score(x, y)                   # {"accuracy": ..., "nll": ..., "brier": ..., "ece": ...}
posterior.save("mine.fvi")
posterior = fvi.load("mine.fvi", net)
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import json
import operator
import warnings
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from fvi_core import methods, telling
from fvi_core.data import TrainingData
from fvi_core.families import Family
from fvi_core.families.base import NotSupported
from fvi_core.likelihoods import Likelihood
from fvi_core.networks import ModuleNetwork, Network, UnfitModule
from fvi_core.objective import Model, Weight
from fvi_core.prediction import FORMAT, VERSION, Posterior, structure
from fvi_core.random import Streams, seed_from
from fvi_core.reading import (
    Data,
    Survey,
    changes,
    check_columns,
    columns_of,
    drawn_from,
    inputs,
    read,
    streamed,
    training_data,
)
from fvi_core.registry import DIVERGENCES, FITS, LIKELIHOODS, REGISTRIES, TRAININGS, PartSpec, UnknownPart, make
from fvi_core.settings import unchanged
from fvi_core.spelling import INSTEAD, nearest
from fvi_core.stack import DTYPES, ReplicaResult, Stack
from fvi_core.targets import Targets

KINDS = ("family", "divergence", "prior", "context", "fit")
DEFAULTS: dict[str, Any] = {"epochs": 100, "optimiser": {"name": "adam", "lr": 1e-3}, "samples": 1}
BATCH = 128
UNLIKE = 10
"""Ratio of the standard deviations of two outputs' targets from which one noise does not suit both."""

for _module in ("fits", "hamiltonian", "vogn"):  # these modules register their parts
    importlib.import_module(f"fvi_core.{_module}")


class TrainingFailed(RuntimeError):
    """Error: training ended without parameters; the message says why.

    >>> fvi.fit(net, (x, y), "MAP", epochs=5, optimiser={"name": "sgd", "lr": 1e38}, progress=False)
    Traceback (most recent call last):
    fvi_core.interface.TrainingFailed: method 'MAP': ...
    """


def fit(
    module: nn.Module | Callable[[], nn.Module],
    data: Data,
    method: str = "FSVI",
    *,
    validation: Data | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    optimiser: PartSpec | None = None,
    samples: int | None = None,
    likelihood: PartSpec | None = None,
    contexts: Mapping[str, Any] = MappingProxyType({}),
    head: str | None = None,
    seed: int = 0,
    training: Mapping[str, Any] = MappingProxyType({}),
    stream: bool | None = None,
    progress: bool = True,
    **parts: Mapping[str, Any],
) -> Posterior:
    """Train a method of the catalogue on a module; or fit a fit part ("laplace", "temperature") to a trained module
    without changing its weights.

    Args:
      module: an nn.Module, which is not changed and whose weights training starts from (members of an ensemble except
        the first are initialised again), or a function that makes one. Inputs and parameters stay on its device.
      data: a pair x ``[N, ...]``, y, or a DataLoader or Dataset. Whole numbers and text are labels; floating-point
        targets ``[N]``, ``[N, 1]`` or ``[N, Q]`` are for regression, standardised here. Inputs are not.
      validation: data of the same form, for early stopping and fit parts that need it.
      epochs, batch_size, optimiser, samples: options of training; default: the method's own, else 100, the loader's or
        128 (all data of a family trained by its evidence), Adam with rate 0.001, one function in each step (ten for a
        divergence that is estimated from them).
        ``training``: further options of the training part.
      likelihood: instead of "categorical" for labels ("robust_max" for GWI) and "gaussian" for other targets.
      contexts: named inputs ``[P, ...]`` for contexts of the kind "images".
      head: name of the last layer, where it is not the nn.Linear whose output the module returns.
      stream: read the loader again at each epoch and hold no data. None: do so where its inputs change between readings
        (augmentation) or are drawn at random, but not for an IterableDataset.
      progress: show progress.
      parts: changed hyper-parameters of the method's parts, as ``context={"points": 50}``; with a "name", another part;
        None: no such part. ``weight``: the divergence's weight.

    Ctrl-C ends training early: the posterior then has the current parameters, with early stopping the best ones.

    Raises UnfitModule, UnknownMethod, UnknownPart, NotSupported, ValueError and TypeError before training,
    TrainingFailed and FitFailed after it.

    >>> posterior = fvi.fit(net, (x, y), "FSVI", epochs=2, context={"points": 10}, progress=False)
    >>> laplace = fvi.fit(net, (x, y), "laplace", fit={"structure": "last_layer"})
    """
    if not callable(module):
        raise TypeError(f"module: expected an nn.Module, or a function that makes one, found {type(module).__name__}")
    if not isinstance(method, str):
        raise TypeError(
            f"method: expected a name, found {type(method).__name__}; data are one pair: fit(module, (x, y))"
        )
    if not torch.is_grad_enabled():
        raise RuntimeError("fit() needs gradients: call it outside torch.no_grad() and torch.inference_mode()")
    seed = _whole(seed)
    trained_already = method in FITS.classes
    row = methods.get("MAP" if trained_already else method)
    chosen, own = {**row.parts(), **({"fit": {"name": method}} if trained_already else {})}, row.own_parts()
    _choose(chosen, parts)
    if trained_already and not isinstance(module, nn.Module):
        raise TypeError(f"fit {method!r} is for a trained module: expected an nn.Module, found a function")
    if not hasattr(data, "batch_size") and stream:
        raise TypeError(f"stream: expected a DataLoader, found {type(data).__name__}")
    stream = changes(data) and not trained_already if stream is None else stream
    columns = columns_of(data)
    check_columns(columns, validation=validation, **{f"contexts: {name!r}": pool for name, pool in contexts.items()})
    with drawn_from(seed_from("reading", seed)):
        survey = Survey.of(data) if stream else None
        x, y = read(data) if survey is None else (survey.x, survey.y)
    if len(x) < 2:
        raise ValueError(f"data: expected two points or more, found {len(x)}")
    network = ModuleNetwork(module, x[:3], head=head)
    likelihood_part = likelihood or own.get("likelihood")
    built = LIKELIHOODS.build(likelihood_part) if likelihood_part else None
    standardise = not trained_already and (built is None or built.standardised)
    targets = Targets.of(y, network.n_outputs, built, standardise)
    of_labels = REGISTRIES["family"].classes.get(str((chosen["family"] or {}).get("name")), Family).label_likelihood
    usual = of_labels if targets.classification else "residual_gaussian" if trained_already else "gaussian"
    chosen["likelihood"] = likelihood_part or {"name": usual}
    _match_dropout(network, method, chosen["family"], parts)
    divergence = DIVERGENCES.classes.get(str((chosen["divergence"] or {}).get("name")))
    defaults = DEFAULTS | ({"samples": divergence.usual_samples} if divergence else {})
    spec = _training(own.get("training", {}), training, defaults, epochs=epochs, optimiser=optimiser, samples=samples)
    if trained_already:
        if epochs or optimiser or training:
            raise TypeError(f"fit {method!r} trains nothing: leave out epochs, optimiser and training")
        spec["epochs"] = 0
    own_type = next(network.module.parameters()).dtype
    spec.setdefault("dtype", str(own_type).removeprefix("torch."))
    dtype = DTYPES.get(spec["dtype"], own_type)  # another name is refused with the other options of training
    model = build(network, chosen, spec)
    by_evidence = type(model.family.independent()[0]).log_evidence is not Family.log_evidence
    loaders = getattr(getattr(data, "batch_sampler", None), "batch_size", None) or getattr(data, "batch_size", None)
    size = len(y) if by_evidence else loaders or BATCH
    wanted = spec.get("batch_size") if batch_size is None else batch_size
    spec["batch_size"] = min(size if wanted is None else wanted, len(y))
    pools = model.context.pools() if model.context else set()
    if pools != set(contexts):
        form = "context={'name': 'images', 'pool': NAME, 'points': ...} and contexts={NAME: inputs}"
        raise ValueError(f"contexts: the context draws from {sorted(pools)}, found {sorted(contexts)}: say {form}")
    device = next(module.parameters()).device if isinstance(module, nn.Module) else torch.device("cpu")
    about = targets, network.n_outputs
    with drawn_from(seed_from("validation", seed)):
        held = training_data(x, y if survey is None else y[: len(x)], *about, device, dtype, validation, contexts)
    if trained_already and not targets.classification:
        _warn_of_scales(held.y[0])
    elif isinstance(module, nn.Module) and not (targets.classification or targets.count or by_evidence):
        _warn_of_units(network, held, targets)  # targets.count: outputs are other numbers than those of the targets
    if survey is not None:
        _refuse_streaming(model)
        held = streamed(data, survey, seed, *about, held)
    if model.fit is not None:
        model.fit.check_data(held)
    streams = Streams([seed_from("fit", seed)], device, dtype)
    shown = partial(telling.messages, method) if progress else contextlib.nullcontext
    with shown():
        stack = TRAININGS.build(spec).start(model, held, streams)
    tensors = {} if survey is not None else held.tensors
    with unchanged("training", tensors):
        trained = _run(stack, method, progress and not trained_already)
    if trained.parameters is None:
        raise TrainingFailed(
            f"method {method!r}: {trained.reason}; a smaller learning rate may help, or dtype 'float64'"
        )
    for warning in trained.warnings:
        warnings.warn(warning, stacklevel=2)
    config = {"method": method, "seed": seed, "head": head, "parts": chosen, "training": spec, "loss": trained.loss}
    config |= {"input": list(x.shape[1:]), "inputs": str(x.dtype).removeprefix("torch."), "dtype": spec["dtype"]}
    config |= columns
    with shown(), unchanged("fitting", tensors):
        return Posterior(model, model.after_training(trained.parameters, held, streams.child("fit")), targets, config)


def load(path: str | Path, module: nn.Module | Callable[[], nn.Module], example: Any = None) -> Posterior:
    """Load a posterior from a file of :meth:`Posterior.save`, on a module of the same structure.

    ``example``: some inputs ``[N, ...]``, for a module that takes no zeros (tokens) or normal numbers. No code of the
    file is run. Raises ValueError for another file and for another module, with the difference.

    >>> posterior.save("mine.fvi")
    >>> torch.equal(fvi.load("mine.fvi", net).predict(x).values, posterior.predict(x).values)
    True
    """
    whole = Path(path).read_bytes()
    expected = f"{path}: expected a whole file of Posterior.save"
    try:
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:  # torch does not compare the checksums of tensors
            if (spoilt := archive.testzip()) is not None:
                raise ValueError(f"the checksum of {spoilt} differs")
        held = torch.load(io.BytesIO(whole), map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many types, and advises to run the code of the file
        raise ValueError(f"{expected}: it is damaged, or another file") from error
    if not isinstance(held, dict) or FORMAT not in held:
        raise ValueError(f"{expected}: it holds something else")
    if held[FORMAT] != VERSION:
        raise ValueError(
            f"{path}: expected format {VERSION}, found {held[FORMAT]}; load it with the version that wrote it"
        )
    config = json.loads(held["config"])
    saved = config.pop("module")
    targets = Targets(**config.pop("targets"))
    kind = getattr(torch, config["inputs"])
    trial = torch.zeros(3, *config["input"], dtype=kind)
    if kind.is_floating_point:
        trial = torch.randn(trial.shape, generator=torch.Generator().manual_seed(0), dtype=kind)
    try:
        network = ModuleNetwork(module, trial if example is None else inputs(example), head=config["head"])
    except UnfitModule as error:
        hint = "; give load() some of its inputs, as load(path, module, x), if made-up ones are not valid"
        raise UnfitModule(f"{error}{hint * (example is None)}") from error
    current = structure(network)
    for name in sorted(saved["shapes"].keys() | current["shapes"].keys()):
        was, now = (each["shapes"].get(name, "none") for each in (saved, current))
        if was != now:
            raise ValueError(f"{path}: parameter {name}: expected {now}, as the module has, found {was} in the file")
    if saved["constants"] != current["constants"]:
        raise ValueError(f"{path}: frozen parameters or buffers of the module differ from those in training")
    device = next(module.parameters()).device if isinstance(module, nn.Module) else torch.device("cpu")
    parameters = {name: value.to(device) for name, value in held["parameters"].items()}
    return Posterior(build(network, config["parts"], config["training"]), parameters, targets, config)


def build(network: Network, parts: Mapping[str, Any], training: Mapping[str, Any]) -> Model:
    """Return the parts of a method, built. Raises UnknownPart."""
    built = {kind: REGISTRIES[kind].build(parts[kind]) if parts.get(kind) else None for kind in KINDS}
    likelihood, weight = LIKELIHOODS.build(parts["likelihood"]), make("weight", Weight, parts["weight"])
    if isinstance(network, ModuleNetwork) and training.get("dtype") in DTYPES:
        network.constants_in(DTYPES[training["dtype"]])
    return Model(network, likelihood=likelihood, weight=weight, precision=training.get("precision", "float32"), **built)  # type: ignore[arg-type]


def _choose(chosen: dict[str, Any], parts: Mapping[str, Any]) -> None:
    """Put a user's options into the parts of a method."""
    for kind, options in parts.items():
        if kind in INSTEAD:
            raise TypeError(f"fit() has no option {kind!r}: {INSTEAD[kind]}")
        if kind not in (*KINDS, "weight"):
            known = (*KINDS, "weight", *(fit.__kwdefaults__ or ()))
            raise TypeError(f"fit() has no option {kind!r}; {nearest(kind, known)}")
        if options is None and kind in ("divergence", "prior", "context", "fit"):
            chosen[kind] = None
            continue
        if not isinstance(options, Mapping):
            also = f"; of classes, {INSTEAD['class_weights']}" if kind == "weight" else ""
            found = f"{type(options).__name__} {options!r}" if isinstance(options, str) else type(options).__name__
            raise TypeError(f"{kind}: expected hyper-parameters by name, as {{'name': ...}}, found {found}{also}")
        before = chosen.get(kind) or {}
        if not before and kind != "weight" and "name" not in options:
            raise UnknownPart(f"{kind}: the method has none, so {sorted(options)} change nothing; add a 'name'")
        other = "name" in options and options["name"] != before.get("name")
        chosen[kind] = dict(options) if other else {**before, **options}


def _whole(seed: Any) -> int:
    """Return a seed as Python's integer: 1 and ``np.int64(1)`` are the same."""
    try:
        if not isinstance(seed, bool):
            return operator.index(seed)
    except TypeError:
        pass
    raise TypeError(f"seed: expected a whole number, found {seed!r}")


def _training(
    own: Mapping[str, Any], options: Mapping[str, Any], usual: Mapping[str, Any], **arguments: Any
) -> dict[str, Any]:
    """Return the training part from its own options, the user's, and the usual ones."""
    spec = {"name": "gradient", **own, **options}
    if spec["name"] not in TRAININGS.classes:
        TRAININGS.build(spec)  # the error lists the known options
    fields = {each.name for each in dataclasses.fields(TRAININGS.classes[spec["name"]])}
    for name, value in arguments.items():
        if value is not None and name not in fields:
            raise TypeError(f"training {spec['name']!r} has no {name}; its options are {', '.join(sorted(fields))}")
        if value is not None:
            spec[name] = value
        elif name in fields and name in usual and "name" not in own:
            spec.setdefault(name, usual[name])
    return spec


def _match_dropout(network: ModuleNetwork, method: str, family: dict[str, Any], parts: Mapping[str, Any]) -> None:
    """Give the dropout family the rate of a module's nn.Dropout modules; warn of a method that leaves them out."""
    rates = {each.p for each in network.module.modules() if type(each) is nn.Dropout and each.p}
    bottom = family
    while "base" in bottom:
        bottom = bottom["base"]
    if bottom["name"] != "dropout":
        if rates:
            warnings.warn(f"method {method!r} leaves the module's nn.Dropout out; 'MC Dropout' has it", stacklevel=3)
    elif network.buried:
        raise UnfitModule(
            f"{', '.join(network.buried)}: nn.Dropout beside parameters of the same submodule is not masked; put these "
            "parameters into a submodule of their own"
        )
    elif "rate" not in parts.get("family", {}) and rates:
        if len(rates) > 1:
            raise ValueError(
                f"family 'dropout' has one rate, the module's nn.Dropout has {sorted(rates)}: give family.rate"
            )
        bottom["rate"] = rates.pop()


def _warn_of_scales(y: Tensor) -> None:
    """Warn where one noise cannot suit all outputs of a trained module; y: its targets ``[N]`` or ``[N, Q]``."""
    std = y.reshape(len(y), -1).double().std(0, correction=0)
    if std.max() > UNLIKE * std.min():
        warnings.warn(
            "targets: all outputs of a trained module get one noise, and the standard deviations of these targets "
            f"are {std.min():.3g} to {std.max():.3g}: train the module on targets of equal scale",
            stacklevel=3,
        )


@torch.no_grad()
def _warn_of_units(network: ModuleNetwork, held: TrainingData, targets: Targets) -> None:
    """Warn where training would begin at a module that was trained in the units of its targets."""
    x = held.x[:, :BATCH]
    weights = {name: value[None, None].to(x) for name, value in network.parameters_of(network.module).items()}
    f = network(weights, x)[0, 0].double()
    y = held.y[0, :BATCH].double().reshape(f.shape)
    mean, std = f.new_tensor(targets.mean), f.new_tensor(targets.std)
    if ((f - mean) / std - y).square().mean() < 0.5 and (f - y).square().mean() > 1:  # the mean of the targets has 1
        warnings.warn(
            "module: its outputs are in the units of the targets, and training takes them for (y - mean) / std, so "
            "begins far off; change its last layer before: weight / std, (bias - mean) / std",
            stacklevel=3,
        )


def _refuse_streaming(model: Model) -> None:
    """Raise NotSupported for parts that are fitted to all data after training."""
    family = model.family.independent()[0]
    noise = type(model.likelihood).estimate_noise is not Likelihood.estimate_noise
    if noise or type(family).condition is not Family.condition:
        name = model.likelihood.name if noise else family.name
        raise NotSupported(f"{name!r} is fitted to all training data at once: give them in memory (stream=False)")
    if model.fit is not None:
        raise NotSupported(f"fit {model.fit.name!r} needs data in memory: train without it, then use posterior.after()")


def _run(stack: Stack, method: str, progress: bool) -> ReplicaResult:
    try:
        with telling.training(stack, method) if progress else contextlib.nullcontext():
            return stack.run()[0]
    except KeyboardInterrupt:
        if stack.now.epoch == 0 and stack.progress == 1:  # nothing is trained yet
            raise
        try:
            trained = stack.end()[0]
        except Exception:
            raise KeyboardInterrupt from None
        warnings.warn(
            f"stopped in {stack.unit} {stack.epoch + 1} of {stack.epochs}: the posterior has these parameters",
            stacklevel=3,
        )
        return trained
