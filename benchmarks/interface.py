"""Suite from Python: records as a frame, plans and costs, training, measuring.

The command line calls these functions. docs/python.md shows them beside those of :mod:`reports.interface`. Messages go
to ``say`` (default: ``print``); unknown names raise UnknownName with the nearest known ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.errors import UsageError
from benchmarks.records import frame
from benchmarks.records.config import run_key, training_key
from benchmarks.records.store import Store
from benchmarks.state import archive
from benchmarks.suite import Suite
from benchmarks.sweep import runner
from benchmarks.sweep.begin import SUITE, Names, Planned, Say, Seeds, TooLong, choose, place
from benchmarks.sweep.estimate import Known, estimate
from benchmarks.sweep.plan import make_plan, missing_data
from benchmarks.sweep.progress import Ticker, display
from benchmarks.sweep.runner import RESULTS, STATE, Summary
from benchmarks.sweep.slurm import jobs
from benchmarks.sweep.slurm.options import Options

if TYPE_CHECKING:
    import pandas

    from benchmarks.experiment.measure import Measured


def records(
    results: Path | str = RESULTS, out: Path | str | None = None, *, suite: Suite = SUITE, say: Say = print
) -> pandas.DataFrame:
    """Return every metric of every record as one long frame, as ``export`` writes it; out: also write a .csv or
    .parquet file.

    Invalid records are left out, reported, and named in ``frame.attrs["problems"]``. Raises UsageError for another kind
    of file, before anything is read, and OSError.
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
    options: Options | None = None,
    cost: bool = True,
    fetch: bool = False,
    results: Path | str = RESULTS,
    state: Path | str = STATE,
    suite: Suite = SUITE,
    say: Say = print,
) -> Planned:
    """Return missing runs of tables, missing data and, unless ``cost`` is False, the cost of training them here.

    Trains nothing, and fetches missing data only with ``fetch``. options: of a cluster. Raises StoreError and
    ClaimError if it fetches and the folders cannot be written.
    """
    where = place(executor, workers, options)
    selection = choose(tables, protocol, seeds, methods=methods, datasets=datasets, also=also, suite=suite, say=say)
    # A sweep on this machine makes the runs that wait in a cluster's queue; an overview lists them as queued.
    queued = jobs.pending(state) if isinstance(where, Options) or not cost else {}
    sweep_plan = make_plan(selection.configs, results, state, suite, selection.metrics, queued=queued)
    if not cost:
        return Planned(selection, sweep_plan, where)
    missing = missing_data(sweep_plan, fetch, say)
    for line in missing.lines(tried=fetch):
        say(line)
    sweep_plan = sweep_plan.waiting(missing)
    if fetch and sweep_plan.groups:
        sweep_plan.check_writable()
    cost_estimate = estimate(sweep_plan.groups, Known(sweep_plan.store, sweep_plan.state))
    return Planned(selection, sweep_plan, where, missing, cost_estimate)


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
    """Train missing runs of tables, as ``python -m benchmarks run``; Ctrl-C stops it, which the summary notes.

    progress: a live display on a terminal, elsewhere a line now and then. Raises TooLong for more than a day here,
    unless ``anyway``; UsageError for a cluster, whose jobs outlive the caller; StoreError and ClaimError if the folders
    cannot be written.
    """
    if executor == "slurm":
        raise UsageError(
            f"executor {executor!r}: its jobs outlive this process: python -m benchmarks run TABLE "
            "--executor slurm submits them"
        )
    only: Any = {"methods": methods, "datasets": datasets, "also": also}
    where: Any = {"executor": executor, "workers": workers, "results": results, "state": state, "suite": suite}
    planned = plan(tables, protocol, seeds, **only, **where, fetch=True, say=say)
    for line in planned.costs:
        say(line)
    if planned.too_long and not anyway:
        raise TooLong(planned)
    assert not isinstance(planned.where, Options), "a cluster was refused"
    return runner.run(planned.plan, planned.where, display() if progress else None, planned.estimate)


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
    """Measure runs from stored predictions and parameters without training, as ``python -m benchmarks measure``.

    Files missing from the state folder are first taken from the archives in $FVI_ARTIFACTS (docs/archives.md). The
    result has problems, and the keys of runs that need training.
    """
    from benchmarks.experiment.measure import measure as measure_runs  # here, since it needs torch

    configs = choose(tables, protocol, seeds, methods=methods, datasets=datasets, suite=suite, say=say).configs
    store, state = Store(results, suite.metrics), Path(state)
    keys = {key(config) for config in configs for key in (run_key, training_key)}
    fetched = archive.fetch(store, state, archive.places(), keys, say)
    if fetched.taken:
        say(f"{fetched.taken} files taken from archives ({fetched.bytes / 1e6:,.1f} MB)")
    report = Ticker(len(configs), "runs") if progress else lambda *_: None
    measured = measure_runs(configs, store, state, report)
    measured.unfetched = fetched.problems
    return measured


def score(
    table: str,
    files: Path | str | Sequence[Path | str],
    method: str,
    protocol: str | None = None,
    *,
    results: Path | str = RESULTS,
    suite: Suite = SUITE,
) -> list[Path]:
    """Measure external predictions (docs/predictions.md) as a row of a table; return the records' files.

    Raises Refused, a BenchmarkError that names the file and the set, and UsageError.
    """
    from benchmarks.experiment.external import score as score_file  # here, since it needs torch

    spec = suite.table(table)
    protocol, store = spec.check_protocol(protocol), Store(results, suite.metrics)
    paths = [files] if isinstance(files, Path | str) else files
    return [score_file(spec, protocol, method, Path(file), store, suite.catalogue()) for file in paths]
