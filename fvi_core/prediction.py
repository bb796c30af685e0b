"""Fitted posterior and its predictions."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from fvi_core.families.base import NotSupported, points_at_once
from fvi_core.metrics import calibration, classification, regression
from fvi_core.metrics.ood import Detection
from fvi_core.metrics.probabilities import log_mean_exp
from fvi_core.networks import HEAD, ModuleNetwork, Parameters
from fvi_core.objective import Model
from fvi_core.random import Streams, seed_from
from fvi_core.reading import (
    Data,
    changes,
    check_columns,
    check_rows,
    drawn_from,
    inputs,
    read,
    target_values,
    training_data,
)
from fvi_core.registry import FITS
from fvi_core.spelling import check_limits
from fvi_core.targets import Targets, numbers_of
from fvi_core.telling import messages

FORMAT, VERSION = "fvi_core posterior", 1
"""The mark of saved files, and the version of their format."""


@dataclass(frozen=True)
class Prediction:
    """Values ``[S, N, Q]`` of S functions at N inputs: logits of a classifier, or values of a regression without noise,
    in the units of its targets.

    ``noise_std``: standard deviation ``[Q]`` of the observations' noise in these units, None for a classifier.
    ``moments``: mean and variance ``[N, Q]`` of the function where they have a closed form.

    >>> prediction = posterior.predict(x)
    >>> prediction.values.shape, prediction.probabilities.shape, prediction.entropy.shape
    (torch.Size([100, 40, 2]), torch.Size([40, 2]), torch.Size([40]))
    >>> prediction.mean.shape, prediction.std.shape
    (torch.Size([40, 2]), torch.Size([40, 2]))
    """

    values: Tensor
    noise_std: Tensor | None = None
    moments: tuple[Tensor, Tensor] | None = None

    def __repr__(self) -> str:
        return f"Prediction(values {list(self.values.shape)}, noise_std {self.noise_std})"

    @property
    def probabilities(self) -> Tensor:
        """Class probabilities ``[N, C]``, averaged over functions. Raises TypeError for a regression."""
        if self.noise_std is not None:
            raise TypeError("a regression has no class probabilities; use mean, std and noise_std")
        return self.values.softmax(-1).mean(0)

    @property
    def entropy(self) -> Tensor:
        """Entropy ``[N]`` of the class probabilities in nats. Raises TypeError for a regression."""
        return torch.special.entr(self.probabilities).sum(-1)

    @property
    def mean(self) -> Tensor:
        """Mean ``[N, Q]`` of the function values."""
        return self.values.mean(0) if self.moments is None else self.moments[0]

    @property
    def std(self) -> Tensor:
        """Standard deviation ``[N, Q]`` of the function values, without noise."""
        return self.values.std(0, correction=0) if self.moments is None else self.moments[1].sqrt()


@dataclass(frozen=True)
class Posterior:
    """A trained and fitted method on a module; :func:`fvi_core.fit` and :func:`fvi_core.load` return one.

    ``config``: method and hyper-parameters as plain JSON. ``loss``: of every epoch, in nats per training point.

    >>> posterior.network.n_outputs, posterior.device, posterior.dtype, posterior.classes, len(posterior.loss)
    (2, device(type='cpu'), torch.float32, None, 5)
    """

    model: Model
    parameters: Parameters
    targets: Targets
    config: dict[str, Any]

    def __repr__(self) -> str:
        fit, outputs = self.config["parts"]["fit"], "classes" if self.targets.classification else "outputs"
        facts = [f"inputs {list(self.network.input_shape)}", f"{self.network.n_outputs} {outputs}"]
        facts += [f"fit {fit['name']!r}"] if fit else []
        facts += [f"{len(self.loss)} epochs", f"last loss {self.loss[-1]:.4g}"] if self.loss else []
        return f"Posterior({self.config['method']!r}; {', '.join(facts)}; {self.device})"

    @property
    def loss(self) -> list[float]:
        """The objective of every epoch in nats per training point."""
        return self.config["loss"]

    @property
    def classes(self) -> list[str] | None:
        """Names of the classes in the order of the outputs, where labels were text."""
        return self.targets.classes

    @property
    def network(self) -> ModuleNetwork:
        """The module as a network."""
        return cast(ModuleNetwork, self.model.network)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(iter(self.parameters.values())).device

    @property
    def dtype(self) -> torch.dtype:
        """Type of inputs and parameters."""
        return getattr(torch, self.config["dtype"])

    def _streams(self, purpose: str, seed: int) -> Streams:
        return Streams([seed_from(purpose, seed)], self.device, self.dtype)

    def predict(self, x: Any, samples: int = 100, seed: int = 0) -> Prediction:
        """Return predictions at inputs ``x [N, ...]``, a tensor, array or frame; each seed gives the same functions at
        every call, apart from processes, which are drawn jointly at the inputs of a call, and from dropout, whose masks
        are drawn for each input.

        A point estimate has one function, whatever ``samples`` is. An ensemble has equally many of each member, at
        least one: 99 of three members for 100 samples. Raises ValueError for NaN and infinity in x.

        >>> posterior.predict(x, samples=20).probabilities.shape
        torch.Size([40, 2])
        """
        return self._predict(x, samples, seed, self.dtype)

    @torch.no_grad()
    def _predict(self, x: Any, samples: int, seed: int, dtype: torch.dtype) -> Prediction:
        check_columns(self.config, x=x)
        x = inputs(x)
        check_limits("samples", samples, "int", least=1)
        if x.shape[1:] != self.network.input_shape or not len(x):
            shape = str(list(self.network.input_shape))[1:-1]
            hint = "; give x[None] for one input" if x.shape == self.network.input_shape else ""
            raise ValueError(f"x: expected one input or more, [N, {shape}], found {list(x.shape)}{hint}")
        samples = max(samples, self.model.family.members)
        functions = self.model.functions(self.parameters, samples, self._streams("predict", seed))
        first = x[:1][None].to(self.device, self.dtype)
        drawn = functions(first).shape[1]  # one of a point estimate, those of an ensemble: fewer than samples
        pointwise = self.model.family.pointwise
        rows = points_at_once(functions, self.network, drawn, self.device) if pointwise else len(x)
        pieces = [each[None].to(self.device, self.dtype) for each in x.split(rows)]
        f = torch.cat([functions(piece)[0] for piece in pieces], 1)
        marginals = [self.model.marginals(self.parameters, piece) for piece in pieces]
        moments = None
        if all(each is not None for each in marginals) and not self.targets.count:
            moments = tuple(torch.cat([each[0] for each in parts]).double() for parts in zip(*cast(Any, marginals)))
        values = self.model.likelihood.predicted(f, cast(Any, moments)).cpu()
        if self.targets.classification:
            return Prediction(values.to(dtype))
        mean, std = (torch.tensor(v, dtype=torch.float64) for v in (self.targets.mean, self.targets.std))

        def in_units(values: Tensor, scale: Tensor, shift: Tensor | float = 0.0) -> Tensor:
            return (values.cpu() * scale + shift).to(dtype)

        noise = in_units(cast(Tensor, self.model.noise_std(self.parameters)), std).reshape(-1)
        if moments is not None:
            moments = in_units(moments[0], std, mean), in_units(moments[1], std.square())
        return Prediction(in_units(values, std, mean), noise, cast(Any, moments))

    def score(self, x: Any, y: Any = None, samples: int = 100) -> dict[str, float]:
        """Return metrics at inputs and targets, given directly or by a DataLoader.

        Of a loader that draws points at random, or changes them, the points that it drew are scored, with a warning.
        Accuracy, negative log-likelihood in nats, Brier score and expected calibration error (15 bins) of a classifier;
        root mean square error and negative log-likelihood of a regression, in the units of the targets. Each number of
        a vector target counts as a point: its own likelihood, averaged over points and numbers.

        >>> sorted(posterior.score(x, y))
        ['accuracy', 'brier', 'ece', 'nll']
        """
        check_columns(self.config, x=x, y=(None, y))
        check_rows(x, y)
        if y is None and changes(x):
            warnings.warn(
                "score: the loader draws its points at random, or other images at each reading (augmentation), so the "
                "numbers are of what it drew; give a loader without these to score every point once",
                stacklevel=2,
            )
        x, y = read(x) if y is None else (x, target_values(y))
        if len(x) != len(y):
            raise ValueError(f"targets: expected one for each of {len(x)} inputs, found {len(y)}")
        encoded = self.targets.encode(y, self.network.n_outputs)  # refuses what training refuses
        # float32 is coarse where targets are many of their deviations away from 0, such as times in seconds.
        prediction = self._predict(x, samples, 0, torch.float64)
        if prediction.noise_std is not None:
            targets = numbers_of(y).reshape(prediction.mean.shape).double().numpy()
            mean, values, noise = (each.numpy() for each in (prediction.mean, prediction.values, prediction.noise_std))
            if prediction.moments is not None:
                log = regression.log_normal(targets, mean, prediction.moments[1].numpy() + noise**2)
            else:
                log = log_mean_exp(regression.log_normal(targets, values, noise**2))
            return {"rmse": float(np.sqrt(((mean - targets) ** 2).mean())), "nll": -float(log.mean())}
        labels = encoded.numpy()
        summary = classification.summarise(prediction.values.numpy())
        p, right = summary.p, summary.p.argmax(-1) == labels
        return {
            "accuracy": classification.accuracy(p, labels),
            "nll": -classification.log_likelihood(summary.log_p, labels),
            "brier": classification.brier(p, labels),
            "ece": calibration.ece(p.max(-1), right),
        }

    def auroc(self, x: Any, other: Any, samples: int = 100) -> float:
        """Return how often inputs ``other``, of another source, have a larger predictive entropy than x: the area under
        the ROC curve, with ties one half. Raises TypeError for a regression, ValueError for logits that are not finite.

        >>> 0 <= posterior.auroc(x, 5 * x) <= 1
        True
        """
        if not self.targets.classification:
            raise TypeError("a regression has no predictive entropy; compare predict(x).std")
        both = [classification.summarise(self.predict(each, samples).values.numpy()) for each in (x, other)]
        return Detection.of(*(summary.scores["predictive_entropy"] for summary in both)).auroc()

    def modules(self, count: int, seed: int = 0) -> list[nn.Module]:
        """Return plain modules in ``eval()`` whose weights are drawn from the posterior: the functions that ``predict``
        evaluates with this seed and so many samples, in the units of the targets.

        After a Laplace approximation the weights are drawn from its Gaussian, but ``predict`` evaluates the network
        linearised about its trained weights ("predictive": "glm" or "probit") unless only the last layer is random.
        The modules are not linearised, so their predictions differ, most where the posterior is wide.
        Raises NotSupported for functions that are not the module at some weights.

        >>> [drawn(x).shape for drawn in posterior.modules(2)]
        [torch.Size([40, 2]), torch.Size([40, 2])]
        """
        check_limits("count", count, "int", least=1)
        head, model = f"{HEAD}.bias", self.model
        count = max(count, model.family.members)
        x = self.network.example[None].to(self.device, self.dtype)
        with torch.no_grad():
            drawn = model.weights(self.parameters, count, self._streams("predict", seed))
            if model.fit is None:
                f = model.functions(self.parameters, count, self._streams("predict", seed))(x)
                if not torch.allclose(self.network(drawn, x), f, rtol=1e-3, atol=1e-4):
                    part = model.family.name
                    raise NotSupported(f"functions of {part!r} are not the module at drawn weights; use predict")
        mean, std = (torch.tensor(v).to(drawn[head]) for v in (self.targets.mean, self.targets.std))
        if not self.targets.classification:
            drawn[f"{HEAD}.weight"] = drawn[f"{HEAD}.weight"] * std
            drawn[head] = drawn[head] * std + mean
        return [self.network.module_of(drawn, s) for s in range(drawn[head].shape[1])]

    def after(self, fit: str, data: Data, validation: Data | None = None, **options: Any) -> Posterior:
        """Return the posterior with a fit part ("laplace", "subnetwork_laplace", "temperature"), fitted to ``data``,
        the training data again. A temperature is fitted to ``validation`` if there are any.

        >>> posterior.after("temperature", (x, y)).predict(x).probabilities.shape
        torch.Size([40, 2])
        """
        spec, outputs = {"name": fit, **options}, self.network.n_outputs
        check_columns(self.config, data=data, validation=validation)
        with drawn_from(seed_from("reading", self.config["seed"])):  # as loaders that augment draw
            held = training_data(*read(data), self.targets, outputs, self.device, self.dtype, validation)
        streams = self._streams("fit", self.config["seed"])
        with messages(fit):
            model, parameters = self.model.refitted(FITS.build(spec), self.parameters, held, streams)
        config = {**self.config, "parts": {**self.config["parts"], "fit": spec}}
        return replace(self, model=model, parameters=parameters, config=config)

    def answer(self, asked: str | Path, out: str | Path, samples: int = 100, seed: int | None = None) -> None:
        """Write predictions at the sets of the file ``asked`` of ``benchmarks sets``, for ``benchmarks score``.

        seed: the seed of that file which this fit stands for, by default its first. Raises ValueError for another one,
        and for outputs with noise of different sizes, since an answer holds one.

        >>> sets = {"dataset": "mine", "split": 0, "seeds": [0], "test/x": x.numpy(), "test/fingerprint": "a"}
        >>> np.savez("sets.npz", **sets)
        >>> posterior.answer("sets.npz", "mine.npz")
        >>> np.load("mine.npz")["test/logits"].shape
        (100, 40, 2)
        """
        with np.load(asked) as sets:
            arrays: dict[str, Any] = {"dataset": sets["dataset"], "split": sets["split"], "seed": sets["seeds"][0]}
            if seed is not None:
                if seed not in sets["seeds"]:
                    raise ValueError(f"{asked}: expected one of its seeds {sets['seeds'].tolist()}, found {seed}")
                arrays["seed"] = np.int64(seed)
            for key in sets.files:
                name, _, kind = key.rpartition("/")
                if kind != "fingerprint":
                    continue
                prediction = self.predict(sets[f"{name}/x"], samples)
                arrays[key] = sets[key]
                if prediction.noise_std is None:
                    arrays[f"{name}/logits"] = prediction.values.numpy()
                    continue
                if len(sizes := prediction.noise_std.unique()) > 1:
                    raise ValueError(
                        f"noise: expected one size for all outputs, since an answer holds one, found {sizes[0]:.3g} to "
                        f"{sizes[-1]:.3g} in the units of the targets; such a fit has no answer"
                    )
                arrays["noise_std"] = float(prediction.noise_std[0])
                if prediction.moments is None:
                    arrays[f"{name}/samples"] = prediction.values.squeeze(-1).numpy()
                else:
                    arrays[f"{name}/mean"], arrays[f"{name}/variance"] = (
                        m.squeeze(-1).numpy() for m in prediction.moments
                    )
        np.savez_compressed(out, **arrays)

    def save(self, path: str | Path) -> None:
        """Write one file of tensors and text. It holds neither code nor the module, which :func:`fvi_core.load` needs
        again. A file that is there is replaced by a whole one, or stays. Raises OSError.

        >>> posterior.save("mine.fvi")
        """
        tensors = {name: value.detach().cpu().contiguous() for name, value in self.parameters.items()}
        config = self.config | {"targets": asdict(self.targets), "module": structure(self.network)}
        path = Path(path)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with open(partial, "wb") as file:  # given a name, torch hides why it cannot write there
                torch.save({FORMAT: VERSION, "config": json.dumps(config), "parameters": tensors}, file)
            partial.replace(path)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error  # not the partial file's name
        finally:
            partial.unlink(missing_ok=True)


def structure(network: ModuleNetwork) -> dict[str, Any]:
    """Return the structure that a saved posterior requires of a module: shapes of its parameters and running
    statistics, and a digest of its constants."""
    digest = hashlib.sha256()
    for name, value in sorted(network.constants.items()):
        digest.update(name.encode() + value.cpu().contiguous().numpy().tobytes())
    shapes = {name: list(shape) for name, shape in (network.shapes | network.buffers).items()}
    return {"shapes": shapes, "constants": digest.hexdigest()}
