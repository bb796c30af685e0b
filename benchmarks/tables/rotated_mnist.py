"""Rotated MNIST: dirichlet2022, tables 2 to 10, all from the same runs; and the index sets of its figure 4.

Table ``rotated-mnist`` is the nine tables side by side; ``rotated-mnist-draws`` shows the effect of more draws in
prediction on MC Dropout, ``rotated-mnist-nearest`` the effect of rotation without interpolation on all rows. Their
twins ``-seeds`` have thirty seeds in place of ten, ``-lecun`` other initial weights.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.records.published import recorded
from benchmarks.tables.recipes import Parts, Recipe, layered
from benchmarks.tables.spec import Cell, Column, Row, Table

PAPER, DATASET = "dirichlet2022", "mnist"
ANGLES = tuple(range(0, 181, 10))
METHODS = {
    "MAP": "MAP",
    "MAP fVI": "MAP fVI",
    "MC Dropout": "MC Dropout",
    "MC Dropout fVI": "MC Dropout fVI",
    "Ensemble": "Deep Ensemble",
    "Ensemble fVI": "Ensemble fVI",
}
ROWS = tuple(Row(label, label, method) for label, method in METHODS.items())
INDEX_SETS = {"": "", "90": " +90°", "90,180": " +90°, +180°"}
INDEX_ROWS = tuple(
    Row(label + added, None, method, variant)
    for label, method in METHODS.items()
    for variant, added in INDEX_SETS.items()
    if "fVI" in label or not variant
)
DRAWS = "50 draws"
NEAREST = "nearest"
TOGETHER = "the same batches"
MORE = "30 seeds"
LECUN = "LeCun"
_ROW = {row.label: row for row in ROWS}
TOGETHER_ROWS = _ROW["Ensemble"].varied("", TOGETHER)
DRAWS_ROWS = (*_ROW["MC Dropout"].varied("", DRAWS), *_ROW["MC Dropout fVI"].varied("", DRAWS))
_BESIDE = {"MC Dropout": DRAWS, "MC Dropout fVI": DRAWS, "Ensemble": TOGETHER}
NEAREST_ROWS = tuple(
    replace(row, label=", ".join(filter(None, (row.label, beside))), variant=", ".join(filter(None, (NEAREST, beside))))
    for row in ROWS
    for beside in dict.fromkeys(("", _BESIDE.get(row.label, "")))
)
SEEDS_ROWS, NEAREST_SEEDS_ROWS = (
    tuple(replace(row, label=f"{row.label}, {MORE}", variant=f"{turned}{MORE}") for row in ROWS)
    for turned in ("", f"{NEAREST}, ")
)
LECUN_ROWS = tuple(varied for row in ROWS for varied in row.varied(LECUN))
_TURNED = {
    turned: {"name": "mixture", "parts": [{"name": "training_batch"}, {"name": "rotated_batch", "angles": angles}]}
    for turned, angles in (("90", [90]), ("90,180", [90, 180]))
}
_MEMBERS = {"paper": 10, "short": 10, "smoke": 2}
_SEEDS = {"paper": range(10), "short": range(3), "smoke": range(2)}
_MORE = {"paper": range(30), "short": range(6), "smoke": range(4)}
_EPOCHS = {"paper": 30, "short": 10, "smoke": 1}


_COMMON = {
    "network": {"name": "mlp", "hidden": [50, 50], "activation": "relu"},
    "likelihood.name": "categorical",
    "training": {"batch_size": 256, "optimiser": {"name": "adam", "lr": 1e-3, "weight_decay": 0.0}},
}
_DROPOUT = {"family.rate": 0.2}
_OWN: dict[str, Parts] = {
    "MC Dropout": _DROPOUT, "MC Dropout fVI": _DROPOUT, "MAP": {"divergence": None, "prior": None},
}  # fmt: skip


def recipe(row: Row, dataset: str, protocol: str) -> Recipe:
    """App. F: MLP 2x50, Adam, learning rate 0.001, batches of 256, dropout 0.2, all 60,000 images in [-1, 1]; one run
    gives every angle. Prediction: 10 draws, or the members.
    """
    variants = row.variant.split(", ")
    parts = layered(
        _COMMON,
        _OWN.get(row.made_by, {}),
        {"training.epochs": _EPOCHS[protocol]},
        {"family.size": _MEMBERS[protocol]} if "Ensemble" in row.made_by else {},
        {"family.joint": True} if TOGETHER in variants else {},
        {"context": _TURNED[row.variant]} if row.variant in _TURNED else {},
        {"network.init": "lecun"} if LECUN in variants else {},
    )
    rotations = {NEAREST: ("nearest-rotation",), LECUN: ("rotation", "nearest-rotation")}
    turned = rotations.get(variants[0], ("rotation",))
    sets = ("test", *(f"{rotation}-{angle}" for rotation in turned for angle in ANGLES))
    seeds = tuple((0, seed) for seed in (_MORE if MORE in variants else _SEEDS)[protocol])
    samples = 50 if DRAWS in variants else _MEMBERS[protocol]
    return Recipe(parts, seeds, PAPER, samples=samples, sets=sets)


def _columns(metric: str, angles: tuple[int, ...], turned: str = "") -> tuple[Column, ...]:
    """Return a column for every angle. ``turned``: how images are turned here, where it is not as in the paper."""
    return tuple(
        shifted(DATASET, f"shift={turned}rotation;angle={angle}", metric, f"{angle}°", f"shift=rotation;angle={angle}")
        for angle in angles
    )


def shifted(dataset: str, condition: str, metric: str, label: str, published: str = "") -> Column:
    """Return a column of dirichlet2022. Its log-likelihoods are assumed to be of smoothed probabilities; see the notes.

    ``published``: the condition of its published numbers, if different.
    """
    scale = 100.0 if metric == "accuracy" else 1.0
    theirs = Cell(dataset, published or condition, metric)
    return Column(Cell(dataset, condition, recorded(PAPER, metric)), label, theirs, scale, 2)


REDUCTIONS = {
    "short": "10 epochs instead of 30, 3 seeds",
    "smoke": "1 epoch, 2 seeds, ensembles of 2: the numbers mean nothing",
}
TITLES = {"accuracy": "Accuracy (%)", "log_likelihood": "Log-likelihood", "ece": "Expected calibration error"}
_RANGES = (ANGLES[:7], ANGLES[7:13], ANGLES[13:])
_EVERY, _EVERY_NEAREST = (
    tuple(column for metric in TITLES for column in _columns(metric, ANGLES, turned)) for turned in ("", "nearest ")
)


def _table(
    name: str,
    title: str,
    columns: tuple[Column, ...] = _EVERY,
    number: str | None = None,
    rows: tuple[Row, ...] = ROWS,
    paper: str | None = PAPER,
) -> Table:
    return Table(name, title, rows, columns, recipe, paper=paper, number=number, reductions=REDUCTIONS)


_ALL = "(dirichlet2022, tables 2 to 10)"
_WITHOUT = "turned without interpolation"
_BESIDE_TABLES = (
    ("draws", ": MC Dropout by the number of draws in prediction (dirichlet2022)", _EVERY, DRAWS_ROWS),
    ("together", ": ensembles whose networks see the same batches (dirichlet2022)", _EVERY, TOGETHER_ROWS),
    ("nearest", f" by angle, {_WITHOUT} {_ALL}", _EVERY_NEAREST, NEAREST_ROWS),
    ("seeds", f" by angle, over thirty seeds {_ALL}", _EVERY, SEEDS_ROWS),
    ("nearest-seeds", f" by angle, {_WITHOUT}, over thirty seeds {_ALL}", _EVERY_NEAREST, NEAREST_SEEDS_ROWS),
    ("lecun", f" by angle, from LeCun's initial weights {_ALL}", _EVERY, LECUN_ROWS),
    ("nearest-lecun", f" by angle, from LeCun's initial weights, {_WITHOUT} {_ALL}", _EVERY_NEAREST, LECUN_ROWS),
)
"""Suffix, title, columns and rows of the tables beside ``rotated-mnist``."""
TABLES = (
    _table("rotated-mnist", "Rotated MNIST by angle (dirichlet2022, tables 2 to 10)"),
    *(
        _table(f"{PAPER}-{2 + 3 * i + j}", f"{title} on rotated MNIST", _columns(metric, angles), str(2 + 3 * i + j))
        for i, (metric, title) in enumerate(TITLES.items())
        for j, angles in enumerate(_RANGES)
    ),
    _table(
        "rotated-mnist-index-sets",
        "Rotated MNIST: index sets of function-space inference (dirichlet2022, figure 4)",
        rows=INDEX_ROWS,
        paper=None,
    ),
    *(
        _table(f"rotated-mnist-{suffix}", f"Rotated MNIST{title}", columns, rows=rows)
        for suffix, title, columns, rows in _BESIDE_TABLES
    ),
)
