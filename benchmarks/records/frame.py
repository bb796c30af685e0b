"""Records as one long frame: a row for every metric of every run, as CSV or Parquet."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import files
from benchmarks.errors import UsageError
from benchmarks.records.config import method_of
from benchmarks.records.form import RecordError
from benchmarks.records.rows import Rows
from benchmarks.records.store import Store

if TYPE_CHECKING:
    import pandas

FORMS = (".csv", ".parquet")
COLUMNS = {
    "key": "of the run, and the name of its record",
    "method": "as in the catalogue of methods",
    "protocol": "paper or own (full settings; those of retina-mnist are recorded as paper), short or smoke",
    "trained_on": "the data set of the training",
    "scheme": "how that is split; empty where there is one way",
    "split": "which of its splits",
    "seed": "of the training",
    "dataset": "the data set that the metric belongs to",
    "condition": "the shift, out-of-distribution set, score or part (shift=rotation;angle=30); empty: its test set",
    "metric": "as in tables",
    "value": "as in the record: fractions, not per cent",
    "n": "over how many inputs",
    "commit": "of the code that trained it",
    "dirty": "whether that code had uncommitted changes",
    "cpu": "the processor's model",
    "device": "what trained it: cpu, or the name of a GPU",
    "seconds": "that the training took",
}


def frame(store: Store) -> tuple[pandas.DataFrame, list[str]]:
    """Return every metric of every record in COLUMNS, and the errors of files that are left out."""
    import pandas  # here, since most commands do without it

    runs: list[dict[str, Any]] = []
    read: list[tuple[Rows, array]] = []
    problems: list[str] = []
    for path in store.files():
        try:
            record, rows, values = store.columns(path)
        except RecordError as error:
            problems.append(str(error))
            continue
        config, about = record["config"], record["provenance"]
        runs.append(
            {
                "key": record["key"],
                "method": method_of(config),
                "protocol": config["protocol"],
                "trained_on": config["dataset"]["name"],
                "scheme": config["dataset"].get("scheme", ""),
                "split": config["dataset"].get("split"),
                "seed": config.get("seed"),
                **{name: about.get(name) for name in ("commit", "dirty", "cpu", "device", "seconds")},
            }
        )
        read.append((rows, values))
    long = pandas.DataFrame(runs, columns=list(COLUMNS))
    long = long.loc[long.index.repeat([len(values) for _, values in read])].reset_index(drop=True)
    for place, name in enumerate(("dataset", "condition", "metric")):
        long[name] = pandas.Series([cell[place] for rows, _ in read for cell in rows.cells], dtype="str")
    long["value"] = pandas.Series([value for _, values in read for value in values], dtype=float)
    long["n"] = pandas.Series([n for rows, _ in read for n in rows.n], dtype=int)
    return long, problems


def check(path: Path) -> None:
    """Raise UsageError for an unknown file extension."""
    if path.suffix not in FORMS:
        found = path.suffix or "no ending"
        raise UsageError(f"{path}: expected a file that ends in {' or '.join(FORMS)}, found {found!r}")


def write(table: pandas.DataFrame, path: Path) -> None:
    """Write a frame whole or not at all, in the format of the file's extension. Raises UsageError and OSError."""
    check(path)
    with files.replacing(path) as file:
        if path.suffix == ".csv":
            table.to_csv(file, index=False)
        else:
            table.to_parquet(file, index=False)
