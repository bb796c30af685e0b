"""Settings that decide the numbers of FSVI and MFVI on photographs of the retina: covariance of the prior, variance of
the initial weights."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import retina, retina_mnist, retinopathy
from benchmarks.tables.recipes import Parts, Recipe, merge
from benchmarks.tables.spec import Cell, Column, Row, Table

_RETINA_KL = retina.function_space(retina.COUNTRY)
_NARROW: Parts = {"layers": "all", "log_var_init": retina.FSVI_LOG_VARIANCES}
_WIDE: Parts = {"layers": "all", "log_var_init": [-10.0, -8.0]}
_CONTEXT: Parts = {"context": {"name": "training_batch", "points": 10}}
FULL = "full covariance"
DIVERGENCES: dict[str, Parts] = {
    FULL: {},
    f"{FULL}, jitter 0.01": {"divergence": {"jitter": 0.01}},
    "diagonal": {"divergence": {"covariance": "diagonal"}},
    f"{FULL}, features of the current network": {"prior": {"features": "current"}},
    "KL of RETINA": _RETINA_KL,
    "KL and variances of RETINA, all layers drawn": merge(_RETINA_KL, {"family": _NARROW}),
}
_PLAIN: Parts = {
    "divergence": {"name": "weight_kl"},
    "prior": {"name": "gaussian_weights", "variance": 1.0},
    "weight": {"factor": 1.0, "rise": 0.0},
}
STARTS: dict[str, dict[str, Parts]] = {
    "FSVI": {
        "all layers drawn": {"family": _NARROW},
        "all layers drawn, log-variances -10 to -8": {"family": _WIDE},
    },
    "MFVI": {
        "prior N(0, 1), whole KL": _PLAIN | {"family": {"layers": "all", "log_var_init": [-14.0, -13.7]}},
        "prior N(0, 1), whole KL, log-variances -10 to -8": _PLAIN | {"family": _WIDE},
    },
}
_MEASURED = ("auroc", "balanced_accuracy", "nll", "ece", "sensitivity_at_80_specificity")
_LARGE = retinopathy.TABLES[0]


def _row(method: str, variant: str = "") -> Row:
    return Row(f"{method}, {variant}" if variant else method, None, method, variant)


def _rows() -> tuple[Row, ...]:
    """Return the rows: each method as in table retinopathy, and its readings; ensembles only with the widest."""
    rows = [_row(method, variant) for method, readings in STARTS.items() for variant in ("", *readings)]
    for method, readings in STARTS.items():
        rows += [_row(f"{method} Ensemble", variant) for variant in ("", list(readings)[-1])]
    return tuple(rows)


def _small(row: Row, dataset: str, protocol: str) -> Recipe:
    """FSVI of table retina-mnist, or with another divergence in its place."""
    if not row.variant:
        return retina_mnist.recipe(row, dataset, protocol)
    return retina_mnist.common(row, protocol).with_parts(merge(_CONTEXT, DIVERGENCES[row.variant]))


def _large(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """Return the recipe of a row of table retinopathy, unchanged or with other initial variances."""
    first = _LARGE.recipe(replace(row, variant=""), dataset, protocol)
    if first is None or not row.variant:
        return first
    member = row.made_by.removesuffix(" Ensemble")
    changes = STARTS[member][row.variant]
    return first.with_parts(changes if member == row.made_by else changes | {"family": {"base": changes["family"]}})


def _columns(table: Table, dataset: str) -> tuple[Column, ...]:
    cells = {Cell(dataset, "", metric) for metric in _MEASURED}
    return tuple(column for column in table.columns if column.cell in cells)


TABLES = (
    Table(
        "retina-mnist-fsvi",
        "RetinaMNIST: FSVI by its divergence",
        (_row("FSVI"), *(_row("FSVI", variant) for variant in DIVERGENCES), _row("MAP")),
        _columns(retina_mnist.TABLE, "retina_mnist"),
        _small,
        protocols=retina_mnist.TABLE.protocols,
        recorded=retina_mnist.RECORDED,
        reductions=retina_mnist.TABLE.reductions,
    ),
    Table(
        "retinopathy-fsvi",
        "Diabetic retinopathy: FSVI and MFVI by the variances of weights at the start",
        _rows(),
        _columns(_LARGE, "aptos"),
        _large,
        protocols=("short", "smoke"),
        reductions=retinopathy.REDUCTIONS,
    ),
)
