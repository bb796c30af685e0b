"""Records as one table: a row for every metric of every run, as CSV or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import files
from benchmarks.errors import UsageError
from benchmarks.records.store import RecordError, Store

if TYPE_CHECKING:
    import pandas

FORMS = (".csv", ".parquet")


def frame(store: Store) -> tuple[pandas.DataFrame, list[str]]:
    """Every metric of every record, and what is wrong with the files that are left out.

    Columns: key, method, protocol, data set and split and seed that were trained; data set, condition, metric, value
    and n of the metric; commit, dirty, cpu, device and seconds of the training.
    """
    import pandas  # here, since most commands do without it

    rows: list[dict[str, Any]] = []
    problems: list[str] = []
    for record in store.records(curves=False):
        if isinstance(record, RecordError):
            problems.append(str(record))
            continue
        config, about = record["config"], record["provenance"]
        run = {
            "key": record["key"],
            "method": config["method"],
            "protocol": config["protocol"],
            "trained_on": config["dataset"]["name"],
            "scheme": config["dataset"].get("scheme", ""),
            "split": config["dataset"].get("split"),
            "seed": config.get("seed"),
        }
        origin = {name: about.get(name) for name in ("commit", "dirty", "cpu", "device", "seconds")}
        rows += [run | row | origin for row in record["metrics"]]
    return pandas.DataFrame(rows), problems


def write(store: Store, path: Path) -> tuple[int, list[str]]:
    """Write the frame whole or not at all; its number of rows, and what was left out. Raises UsageError and OSError."""
    if path.suffix not in FORMS:
        found = path.suffix or "no ending"
        raise UsageError(f"{path}: expected a file that ends in {' or '.join(FORMS)}, found {found!r}")
    table, problems = frame(store)
    with files.replacing(path) as file:
        if path.suffix == ".csv":
            table.to_csv(file, index=False)
        else:
            table.to_parquet(file, index=False)
    return len(table), problems
