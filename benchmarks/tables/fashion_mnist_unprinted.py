"""FashionMNIST by settings whose size neither rudner2022 nor its code gives: MAP's penalty, the rate of dropout, MFVI's
prior and its weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import datasets
from benchmarks.tables import fashion_mnist
from benchmarks.tables.recipes import Recipe
from benchmarks.tables.spec import Row, Table

DECAYS = {"decay 1e-4": 1e-4, "decay 1e-3": 1e-3}
"""Weight decay by variant, for the mean loss over images: as in the authors' script for SWAG, and ten times as much."""
RATES = {"rate .25": 0.25, "rate .5": 0.5}
"""Rate of dropout by variant: half of the rate with which dropout was introduced (Srivastava et al. 2014), and it."""

VARIANCES = {"variance 0.1": 0.1, "variance 0.01": 0.01}
"""Prior variance of MFVI's weights by variant: a tenth of the table's, and a hundredth."""
FACTORS = {"3 times the weight": 3.0, "10 times the weight": 10.0}
"""Factor of MFVI's KL divergence by variant."""


def decayed(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return MAP of table rudner2022-1 with a prior of variance 1 / (images x decay) in place of 1."""
    found = fashion_mnist.recipe(replace(row, variant=""), dataset, protocol)
    if not row.variant:
        return found
    images = datasets.describe(dataset, fashion_mnist.PAPER).n_train
    return found.with_parts({"prior": {"variance": 1 / (images * DECAYS[row.variant])}})


def dropped(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return MC Dropout of table rudner2022-1 with another rate."""
    found = fashion_mnist.recipe(replace(row, variant=""), dataset, protocol)
    return found.with_parts({"family": {"rate": RATES[row.variant]}}) if row.variant else found


def narrowed(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return MFVI of table rudner2022-1 with a narrower prior."""
    found = fashion_mnist.recipe(replace(row, variant=""), dataset, protocol)
    return found.with_parts({"prior": {"variance": VARIANCES[row.variant]}}) if row.variant else found


def weighted(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return MFVI of table rudner2022-1 with a larger weight of its KL divergence."""
    found = fashion_mnist.recipe(replace(row, variant=""), dataset, protocol)
    return found.with_parts({"weight": {"factor": FACTORS[row.variant]}}) if row.variant else found


def _table(
    suffix: str, title: str, label: str, variants: dict[str, float], recipe: Callable[[Row, str, str], Recipe]
) -> Table:
    row = next(row for row in fashion_mnist.ROWS if row.label == label)
    return Table(
        f"{fashion_mnist.PAPER}-1-{suffix}",
        f"FashionMNIST: {title}",
        tuple(
            replace(row, label=", ".join(filter(None, (label, variant))), variant=variant)
            for variant in ("", *variants)
        ),
        fashion_mnist.TABLES[0].columns,
        recipe,
        paper=fashion_mnist.PAPER,
        reductions=fashion_mnist.REDUCTIONS,
    )


TABLES = (
    _table("penalty", "MAP by the penalty on its weights", "MAP", DECAYS, decayed),
    _table("dropout", "MC Dropout by its rate", "MC Dropout", RATES, dropped),
    _table("prior", "MFVI by the variance of its prior", "MFVI", VARIANCES, narrowed),
    _table("weight", "MFVI by the weight of its KL divergence", "MFVI", FACTORS, weighted),
)
