"""What decides how FSVI, and MFVI, fare on photographs of the retina: the prior's covariance, and how far weights vary
at the start."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables import retina_mnist, retinopathy
from benchmarks.tables.spec import LEFT_OUT, Cell, Column, Parts, Recipe, Row, Table, merge

_RETINA_KL = retinopathy.function_space("country")
_NARROW: dict[str, Parts] = {
    method: {"family": {"log_var_init": retinopathy.LOG_VARIANCES[method]}} for method in ("FSVI", "MFVI")
}
_NARROW |= {f"{method} Ensemble": {"family": {"base": parts["family"]}} for method, parts in _NARROW.items()}
_DIVERGENCES: dict[str, Parts] = {
    "": {},
    "jitter .01": {"divergence": {"jitter": 0.01}},
    "diagonal": {"divergence": {"covariance": "diagonal"}},
    "features of the current network": {"prior": {"features": "current"}},
    "KL of RETINA": _RETINA_KL,
    "KL and variances of RETINA": merge(_RETINA_KL, _NARROW["FSVI"]),
}
VARIANCES = "variances of RETINA"
_MEASURED = ("auroc", "balanced_accuracy", "nll", "ece", "sensitivity_at_80_specificity")
_LARGE = retinopathy.TABLES[0]


def _row(method: str, variant: str) -> Row:
    return Row(f"{method}, {variant}" if variant else method, None, method, variant)


def _small(row: Row, dataset: str, protocol: str) -> Recipe:
    """FSVI of table retina-mnist, with another divergence."""
    first = retina_mnist.recipe(replace(row, variant=""), dataset, protocol)
    return replace(first, parts=merge(first.parts, _DIVERGENCES[row.variant]))


def _large(row: Row, dataset: str, protocol: str) -> Recipe | None:
    """A row of table retinopathy, with other variances of weights at the start."""
    first = _LARGE.recipe(replace(row, variant=""), dataset, protocol)
    return first and replace(first, parts=merge(first.parts, _NARROW[row.made_by] if row.variant else {}))


def _columns(table: Table, dataset: str) -> tuple[Column, ...]:
    cells = {Cell(dataset, "", metric) for metric in _MEASURED}
    return tuple(column for column in table.columns if column.cell in cells)


TABLES = (
    Table(
        "retina-mnist-fsvi",
        "RetinaMNIST: FSVI by its divergence",
        (*(_row("FSVI", variant) for variant in _DIVERGENCES), _row("MAP", "")),
        _columns(retina_mnist.TABLE, "retina_mnist"),
        _small,
        protocols=("paper", "smoke"),
        notes={
            "paper": (
                "No paper: the settings of table retina-mnist, and nothing is chosen by these numbers. The row FSVI is "
                "that table's: KL of the last layer with full covariance at 10 images of the training batch, prior "
                "N(0, 1) of the last layer's weights under the features of the initial network, jitter 1e-6.",
                "KL of RETINA: diagonal, a variance of 15.4 of every function value, divided by the numbers of context "
                "points and of images in the batch; its variances: exp(-20) to exp(-18) at the start.",
            )
        },
        reductions=retina_mnist.TABLE.reductions,
    ),
    Table(
        "retinopathy-fsvi",
        "Diabetic retinopathy: FSVI and MFVI by the variances of weights at the start",
        tuple(_row(method, variant) for method in _NARROW for variant in ("", VARIANCES)),
        _columns(_LARGE, "aptos"),
        _large,
        protocols=("short", "smoke"),
        default_protocol="short",
        notes={
            "short": (
                "The settings of table retinopathy, and nothing is chosen by these numbers. There log-variances begin "
                f"at -10 to -8; {VARIANCES}: at -20 to -18 for FSVI, at -14 to -13.7 for MFVI, as that paper's code "
                "has them for its ResNet-50.",
                LEFT_OUT,
            )
        },
        reductions=retinopathy.REDUCTIONS,
    ),
)
