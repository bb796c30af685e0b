"""Row of the catalogue of methods."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from fvi_core.registry import PartSpec

Parts = dict[str, Any]
PARTS = ("family", "divergence", "prior", "context", "weight", "fit")


@dataclass(frozen=True)
class Method:
    """Row of the catalogue: the four parts with their hyper-parameters, and the weight of the divergence.

    ``fit``: part that changes trained parameters before prediction (a Laplace approximation, say). ``likelihood`` and
    ``training``, if given, replace a table's; a table with the same part sets what is left open, and without a
    ``name`` they are the table's part. ``aliases``: other names in papers. ``trained_as``: the method whose trainings
    it shares; each evaluation then fits the fit part to their parameters, and the method's name is "<trained_as> (<fit
    part>)".

    >>> Method("Mine", "one network", "", family={"name": "point"}).family
    {'name': 'point'}
    """

    name: str
    description: str
    paper: str
    family: PartSpec
    divergence: PartSpec | None = None
    prior: PartSpec | None = None
    context: PartSpec | None = None
    weight: PartSpec = field(default_factory=lambda: {"scaling": "elbo", "factor": 1.0})
    fit: PartSpec | None = None
    likelihood: PartSpec | None = None
    training: PartSpec | None = None
    aliases: tuple[str, ...] = ()
    trained_as: str | None = None

    def parts(self) -> Parts:
        """Return the four parts and the weight as a new plain dict.

        >>> fvi.methods.get("MAP").parts()["divergence"]
        {'name': 'weight_penalty'}
        """
        return copy.deepcopy({name: getattr(self, name) for name in PARTS})

    def own_parts(self) -> Parts:
        """Return the method's own likelihood and training, which tables choose otherwise, as a new plain dict.

        >>> fvi.methods.get("MAP").own_parts()
        {}
        """
        own = {"likelihood": self.likelihood, "training": self.training}
        return copy.deepcopy({name: part for name, part in own.items() if part is not None})


def fitted_name(method: str, fit: PartSpec) -> str:
    """Return the name of a method that applies a fit part to trained parameters of another."""
    return f"{method} ({fit['name']})"
