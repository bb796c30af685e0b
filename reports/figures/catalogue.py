"""Catalogue of figures: names, runs, and functions that draw them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.records.lists import lines_of

FILE = Path(__file__).with_name("catalogue.csv")
COLUMNS = ("name", "title", "table", "dataset", "draw", "paper", "number", "rows", "note", "against_at", "against")
NEEDED = ("name", "title", "draw")
NAMES = {
    "mnist": "MNIST", "fashion_mnist": "FashionMNIST", "notmnist": "NotMNIST", "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100", "svhn": "SVHN", "eyepacs": "EyePACS", "aptos": "APTOS", "idrid": "IDRiD",
    "retina_mnist": "RetinaMNIST", "cinquin_1d": "y = sin(2πx), noise 0.1", "boston": "Boston",
    "cinquin_1d_noisy": "y = sin(2πx), noise 1", "concrete": "Concrete", "energy": "Energy", "wine": "Wine",
    "yacht": "Yacht", "snelson": "Snelson", "two_moons_rudner": "two moons (rudner2021)", "photos": "photographs",
    "two_moons_dirichlet": "two moons (dirichlet2022)", "two_moons_cinquin": "two moons (cinquin2024)",
    "pequignot_1d": "y = cos(4(x + 0.2))", "gulf_drifters": "Gulf drifters",
}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """Figure: the runs of a table on one data set (default: all), and "module:function" that draws them, with the words
    that the function takes ("shifts:by_shift rotation brier").

    paper and number: the published figure that it follows; rows: labels of the rows (empty: all). A figure without a
    table is computed. note: settings that the paper leaves open, for the caption. against: contradiction between the
    figure and its paper's text, with the experiment that explains it; against_at: the protocol that shows it.
    """

    name: str
    title: str
    table: str
    dataset: str
    draw: str
    paper: str = ""
    number: str = ""
    rows: tuple[str, ...] = ()
    note: str = ""
    against_at: str = ""
    against: str = ""

    def remarks(self, protocol: str) -> tuple[str, ...]:
        """Return sentences for the caption: settings that the paper leaves open, and contradictions to the paper."""
        return tuple(filter(None, (self.note, self.against if protocol == self.against_at else "")))


_LINES = lines_of(FILE, COLUMNS, set(COLUMNS) - set(NEEDED), several={"rows": ";"})
FIGURES = {line["name"]: Figure(**line) for line, _ in _LINES}
