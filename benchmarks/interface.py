"""The suite from Python: records as a frame, what tables need and cost, training what is missing, measuring it again.

The command line calls these functions. docs/python.md shows them beside those of :mod:`reports.interface`. Sentences go
to ``say`` as they come (``print`` without it); names that are not known raise UnknownName with the nearest that are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.errors import UsageError
from benchmarks.records import frame
from benchmarks.records.config import run_key, training_key
from benchmarks.records.store import Store
from benchmarks.state import archive
from benchmarks.suite import Suite
from benchmarks.sweep import runner
from benchmarks.sweep.begin import SUITE, Names, Planned, Say, Seeds, TooLong, choose, look
from benchmarks.sweep.progress import Ticker, display
from benchmarks.sweep.runner import RESULTS, STATE, Summary
from benchmarks.sweep.where import make

if TYPE_CHECKING:
    import pandas

    from benchmarks.experiment.measure import Measured


def records(
    results: Path | str = RESULTS, out: Path | str | None = None, *, suite: Suite = SUITE, say: Say = print
) -> pandas.DataFrame:
    """Every metric of every record as one long frame, as ``export`` writes it; out: a .csv or .parquet file of it too.

    Records that cannot be trusted are left out, said, and named in ``frame.attrs["problems"]``. Raises UsageError for
    another kind of file, before anything is read, and OSError.
    """
    if out is not None:
        frame.check(Path(out))
    table, problems = frame.frame(Store(results, suite.metrics))
    if out is not None:
        frame.write(table, Path(out))
        say(f"wrote {len(table)} rows to {out}")
    for problem in problems:
        say(f"not counted: {problem}")
    table.attrs["problems"] = problems
    return table


def plan(
    tables: Names,
    protocol: str | None = None,
    seeds: Seeds = None,
    *,
    methods: Names = (),
    datasets: Names = (),
    also: Names = (),
    executor: str = "pool",
    workers: int | None = None,
    cost: bool = True,
    results: Path | str = RESULTS,
    state: Path | str = STATE,
    suite: Suite = SUITE,
    say: Say = print,
) -> Planned:
    """What tables miss, which data that lacks, and, unless ``cost`` is False, what training it would cost here.

    Trains nothing, fetches nothing.
    """
    asked = choose(tables, protocol, seeds, methods=methods, datasets=datasets, also=also, suite=suite, say=say)
    return look(asked, make(executor, workers), results, state, suite, cost=cost, say=say)


def run(
    tables: Names,
    protocol: str | None = None,
    seeds: Seeds = None,
    *,
    methods: Names = (),
    datasets: Names = (),
    also: Names = (),
    executor: str = "pool",
    workers: int | None = None,
    anyway: bool = False,
    progress: bool = True,
    results: Path | str = RESULTS,
    state: Path | str = STATE,
    suite: Suite = SUITE,
    say: Say = print,
) -> Summary:
    """Train what tables miss, as ``python -m benchmarks run``; Ctrl-C stops it, and the summary says so.

    progress: a live display on a terminal, elsewhere a line now and then. Raises TooLong for what would take more than
    a day here, unless ``anyway``; UsageError for a cluster, whose jobs outlive the caller; StoreError and ClaimError
    if the folders cannot be written.
    """
    where = make(executor, workers)
    if where.outlives:
        raise UsageError(
            f"executor {executor!r}: its jobs go on without this process: python -m benchmarks run TABLE "
            "--executor slurm submits them"
        )
    asked = choose(tables, protocol, seeds, methods=methods, datasets=datasets, also=also, suite=suite, say=say)
    planned = look(asked, where, results, state, suite, fetch=True, say=say)
    for line in planned.costs:
        say(line)
    if planned.too_long and not anyway:
        raise TooLong(planned)
    return runner.run(
        asked.configs,
        where.workers,
        results=results,
        state=state,
        suite=suite,
        display=display() if progress else None,
        plan=planned.plan,
        estimate=planned.estimate,
    )


def measure(
    tables: Names,
    protocol: str | None = None,
    seeds: Seeds = None,
    *,
    methods: Names = (),
    datasets: Names = (),
    progress: bool = True,
    results: Path | str = RESULTS,
    state: Path | str = STATE,
    suite: Suite = SUITE,
    say: Say = print,
) -> Measured:
    """Measure runs from kept predictions and parameters, as ``python -m benchmarks measure``: nothing is trained.

    What the state folder lacks is first taken from the archives that $FVI_ARTIFACTS names (docs/archives.md). What went
    wrong, and the keys of runs that only training can give, are in what it returns.
    """
    from benchmarks.experiment.measure import measure as measure_runs  # here, since it needs torch

    configs = choose(tables, protocol, seeds, methods=methods, datasets=datasets, suite=suite, say=say).configs
    store, state = Store(results, suite.metrics), Path(state)
    keys = {key(config) for config in configs for key in (run_key, training_key)}
    fetched = archive.fetch(store, state, archive.places(), keys, say)
    if fetched.taken:
        say(f"{fetched.taken} files taken from archives ({fetched.bytes / 1e6:,.1f} MB)")
    report = Ticker(len(configs), "runs") if progress else lambda *_: None
    found = measure_runs(configs, store, state, report)
    found.unfetched = fetched.problems
    return found


def score(
    table: str,
    files: Path | str | Sequence[Path | str],
    method: str,
    protocol: str | None = None,
    *,
    results: Path | str = RESULTS,
    suite: Suite = SUITE,
) -> list[Path]:
    """Measure files of predictions made elsewhere (docs/predictions.md), as a row of a table; the records' files.

    Raises Refused, a BenchmarkError that names the file and the set, and UsageError.
    """
    from benchmarks.experiment.external import score as score_file  # here, since it needs torch

    found = suite.table(table)
    chosen, store = found.check_protocol(protocol), Store(results, suite.metrics)
    given = [files] if isinstance(files, Path | str) else files
    return [score_file(found, chosen, method, Path(file), store, suite.catalogue()) for file in given]
