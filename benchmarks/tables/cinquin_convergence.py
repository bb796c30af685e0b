"""cinquin2024, figures 15 and 16: validation expected log-likelihood by the length of training.

Each length is a training of its own. Without early stopping and with a constant learning rate, the shorter trainings
are stages of the longest, draw for draw.
"""

from __future__ import annotations

from benchmarks.tables import cinquin_images
from benchmarks.tables.cinquin import METHODS, METRIC
from benchmarks.tables.cinquin_candidates import CANDIDATES, PAPER, settings
from benchmarks.tables.recipes import Parts, Recipe, folds, merge
from benchmarks.tables.spec import Cell, Column, Row, Table

LABELS = ("GFSVI", "TFSVI", "MFVI")
STEPS = (1, 3, 10, 30, 100, 300, 1000, 3000)
PASSES = (1, 2, 4, 8)
_FOLDS = {"paper": 5, "short": 2, "smoke": 1}
_SEEDS = {"paper": 3, "short": 1, "smoke": 1}
_SETS = ("test", "validation")


def _rows(lengths: tuple[int, ...], unit: str) -> tuple[Row, ...]:
    return tuple(Row(f"{label}, {n} {unit}", None, METHODS[label], f"{n}") for label in LABELS for n in lengths)


def _length(row: Row, lengths: tuple[int, ...], protocol: str) -> Parts:
    """Return as many epochs as the row says, and the most for a row that a user adds."""
    place = lengths.index(int(row.variant)) if row.variant else len(lengths) - 1
    epochs = place + 1 if protocol == "smoke" else lengths[place]
    return {"training": {"epochs": epochs, "early_stopping": None}}


def _boston(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return settings of table cinquin2024-9, which has 100 points, with the first candidate of each method."""
    parts = merge(settings(row.made_by, "short"), next(iter(CANDIDATES["short"].get(row.made_by, {"": {}}).values())))
    if protocol == "smoke" and row.made_by == "GFSVI":
        parts = merge(parts, {"prior": {"fit_steps": 5}})
    parts = merge(parts, _length(row, STEPS, protocol))
    return Recipe(parts, folds(_FOLDS[protocol]), PAPER, samples=100, sets=_SETS)


def _mnist(row: Row, dataset: str, protocol: str) -> Recipe:
    """Return settings of table cinquin2024-2 with KMNIST as measurement points."""
    context = "kmnist" if row.made_by in cinquin_images.METHODS.values() else ""
    asked = Row(row.label, method=row.method, variant=context)
    found = cinquin_images.recipe(asked, dataset, "smoke" if protocol == "smoke" else "paper")
    parts = merge(found.parts, _length(row, PASSES, protocol))
    samples = 2 if protocol == "smoke" else 20
    return Recipe(parts, folds(_SEEDS[protocol]), cinquin_images.SCHEME, samples=samples, sets=_SETS)


TABLES = (
    Table(
        f"{PAPER}-figure-15",
        "Validation expected log-likelihood on Boston by steps (figure 15)",
        _rows(STEPS, "steps"),
        (Column(Cell("boston", "part=validation", METRIC), "validation"),),
        _boston,
        reductions={"short": "2 folds", "smoke": "1 to 8 steps, 1 fold"},
    ),
    Table(
        f"{PAPER}-figure-16",
        "Validation expected log-likelihood on MNIST by passes over the training images (figure 16)",
        _rows(PASSES, "passes"),
        (Column(Cell("mnist", "part=validation", "expected_log_likelihood"), "validation"),),
        _mnist,
        reductions={"short": "1 seed", "smoke": "a small network, 1 to 4 passes of batches of 2,000, 2 draws"},
    ),
)
