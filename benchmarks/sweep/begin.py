"""Selection and planning of a sweep: the chosen runs, their statuses, missing data and cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from benchmarks.errors import BenchmarkError, UsageError, unknown
from benchmarks.metrics.registry import METRICS
from benchmarks.records.config import method_of, run_key
from benchmarks.shapes import RunConfig
from benchmarks.suite import Suite
from benchmarks.sweep import hints
from benchmarks.sweep.estimate import LONGEST, Estimate, hours
from benchmarks.sweep.plan import MEANINGLESS, NONE, Missing, Plan, RunGroup, counts_text
from benchmarks.sweep.progress import duration
from benchmarks.sweep.slurm.options import Options
from benchmarks.sweep.workers import Workers
from fvi_core.spelling import meant
from fvi_core.telling import plural

if TYPE_CHECKING:
    import pandas

Say = Callable[[str], None]
Names = str | Sequence[str]
Seeds = str | int | Iterable[int] | None  # "0-4" as on the command line, how many (5), or which ([0, 3])
Where = Workers | Options | None
SUITE = Suite()
EXECUTORS = ("inprocess", "pool", "slurm")
MOST_SEEDS = 1_000_000  # more than any table has; much larger numbers, as 20261130, would fill the memory
REDUCED = {"short": "reduced as its notes say", MEANINGLESS: "seconds; meaningless numbers"}


def place(name: str, workers: int | None = None, options: Options | None = None) -> Where:
    """Return where an executor trains: None for this process, worker processes, or a cluster, by its options.

    Raises UnknownName, and UsageError for an invalid number of workers.
    """
    if name not in EXECUTORS:
        raise unknown("executor", name, EXECUTORS)
    return {"inprocess": None, "pool": Workers(workers), "slurm": options or Options()}[name]


class TooLong(BenchmarkError):
    """Error for a sweep that would take more than a day on this machine; ``planned`` holds its plan."""

    def __init__(self, planned: Planned) -> None:
        super().__init__("\n".join(planned.refusal))
        self.planned = planned


@dataclass(frozen=True)
class Selection:
    """Runs of tables under a protocol (None: each table's default); metrics: those that the tables show of each run."""

    tables: list[Any]
    protocol: str | None
    configs: list[RunConfig]
    metrics: Mapping[str, set[str]]


@dataclass(frozen=True)
class Planned:
    """Plan of a selection, the place of training, missing data, and cost (estimate: None unless requested)."""

    selection: Selection
    plan: Plan
    where: Where = field(repr=False)
    missing: Missing = field(default_factory=Missing)
    estimate: Estimate | None = None

    @property
    def groups(self) -> list[RunGroup]:
        """Run groups left to train."""
        return self.plan.groups

    @property
    def counts(self) -> dict[str, int]:
        """Number of runs by status: done, running, queued, failed, stale, missing, waiting for data."""
        return self.plan.counts

    @property
    def core_seconds(self) -> float | None:
        """Seconds on one core of all runs whose cost is known; None without an estimate."""
        return None if self.estimate is None else self.estimate.seconds

    @property
    def workers(self) -> int | None:
        """Number of run groups trained at once on this machine; None where runs are trained on a cluster."""
        return None if isinstance(self.where, Options) else self.where.count if self.where else 1

    @property
    def seconds(self) -> float | None:
        """Least seconds on this machine; None without an estimate, or where runs are trained elsewhere."""
        return None if self.estimate is None or self.workers is None else self.estimate.wall(self.workers)

    @property
    def runs(self) -> pandas.DataFrame:
        """Table of all runs: key, configuration in words, status, note."""
        import pandas

        columns = ["key", "method", "dataset", "split", "seed", "protocol", "status", "note"]
        rows = []
        for run in self.plan.runs:
            config, where = run.config, run.config["dataset"]
            named = run.key, method_of(config), where["name"], where["split"], config["seed"], config["protocol"]
            rows.append((*named, run.status, run.note))
        return pandas.DataFrame(rows, columns=columns)

    @property
    def costs(self) -> list[str]:
        """Describe the cost and its sources, in sentences."""
        return self.estimate.lines(self.workers) if self.estimate else []

    @property
    def too_long(self) -> bool:
        """Whether the sweep would take longer on this machine than the limit for starting without confirmation."""
        return (self.seconds or 0.0) > LONGEST

    @property
    def refusal(self) -> list[str]:
        """Explain why the sweep does not start and what to do instead; empty where it starts."""
        estimate, tables = self.estimate, self.selection.tables
        if estimate is None or not self.groups:
            return []
        how, seconds = estimate.bound or "about", estimate.seconds
        protocols = {table.name: table.check_protocol(self.selection.protocol) for table in tables}
        ways = [
            (hints.option("PROTOCOL", name), meaning)
            for name, meaning in REDUCED.items()
            if all(name in table.protocols[table.protocols.index(protocols[table.name]) + 1 :] for table in tables)
        ]
        if isinstance(self.where, Options):
            gpu = [table.name for table in tables if protocols[table.name] in table.gpu]
            if not gpu or self.where.on_gpu:
                return []
            protocol = protocols[gpu[0]]
            take = "takes" if estimate.runs == 1 else "take"
            cost = f"without one {plural(estimate.runs, 'run')} {take} {hours(seconds, how)} core-hours"
            lines = [
                f"not submitted: table {', '.join(gpu)} at protocol {protocol} is made for a GPU, and its array "
                f"tasks have none; {cost if seconds else 'the cost without one is unknown'}",
                "alternatives: the same command with",
            ]
            ways.insert(0, (hints.option("SLURM", "gpus=1"), "array tasks with a GPU; or gpus = 1 in slurm.toml"))
            ways.append((hints.option("ANYWAY"), "without a GPU, however long it takes"))
        elif self.too_long:
            lines = [
                f"not started: it would take {how} {duration(self.seconds or 0.0)} here; "
                f"sweeps of more than {LONGEST / 3600:.0f} h need confirmation",
                "alternatives: the same command on a machine with a GPU, or here with",
            ]
            first = {run_key(config) for table in tables for config in table.runs(protocols[table.name], [0])}
            parts = [cost * sum(key in first for key in keys) / len(keys) for keys, cost in estimate.groups.items()]
            fewer = max(sum(parts) / (self.workers or 1), max(parts, default=0.0))
            if 0 < fewer < (self.seconds or 0.0):
                takes = duration(fewer)
                ways.append((hints.option("SEEDS", "1"), f"one seed or split of each row: {how} {takes} here"))
            ways.append((hints.option("EXECUTOR", "slurm"), "on a cluster, see docs/cluster.md"))
            ways.append((hints.option("ANYWAY"), "here, however long it takes"))
        else:
            return []
        width = max(len(option) for option, _ in ways)
        return [*lines, *(f"  {option.ljust(width)}  {meaning}" for option, meaning in ways)]

    @cached_property
    def misfits(self) -> list[str]:
        """Return a sentence for every method whose parts do not fit together, except methods with records or
        checkpoints."""
        return self.plan.suite.misfits(self.estimate.untried) if self.estimate else []

    def __str__(self) -> str:
        lines = [f"{plural(len(self.plan.runs), 'run')}: {counts_text(self.counts)}", *self.missing.lines(tried=False)]
        return "\n".join([*lines, *self.costs, *self.refusal])


def choose(
    tables: Names,
    protocol: str | None = None,
    seeds: Seeds = None,
    *,
    methods: Names = (),
    datasets: Names = (),
    also: Names = (),
    suite: Suite = SUITE,
    say: Say = print,
) -> Selection:
    """Choose runs of tables: all, or some replicates, methods (or rows by label) and data sets; also: methods that get
    an extra row.

    Says where a table has fewer replicates than requested, and which rows lack a plug-in or data. Raises UsageError for
    seeds that select nothing, and where every row lacks something.
    """
    named, numbers = names(tables), parse_seeds(seeds)
    chosen = with_rows(named, also, suite)
    configs = [config for table in chosen for config in table.runs(protocol, numbers)]
    absent = lacking(chosen, protocol)
    if absent and not configs:
        raise UsageError("\n".join(("no run is left:", *absent)))
    if numbers and not configs:
        text = seeds_text(seeds)
        raise UsageError(f"--seeds {text} chooses none of the runs of {', '.join(named)}: they are counted from 0")
    for line in (*beyond(chosen, protocol, seeds), *absent):
        say(line)
    metrics = merged(table.metrics_of_runs(protocol, numbers) for table in chosen)
    rows = merged(table.keys_of_rows(protocol, numbers) for table in chosen if methods)
    return Selection(chosen, protocol, only(configs, names(methods), names(datasets), rows, suite.catalogue), metrics)


def with_rows(tables: Names, also: Names | None, suite: Suite) -> list[Any]:
    """Return tables by name, each with an extra row for every method of ``also`` (case ignored).

    Raises UnknownName and NoRecipe.
    """
    return list(map(adding(suite, also).extended, names(tables)))


def adding(suite: Suite, also: Names | None) -> Suite:
    """Return the suite whose extended tables have a row for each method (case ignored). Raises UnknownName."""
    catalogue = suite.catalogue() if also else {}
    known = {alias.lower(): name for name, method in catalogue.items() for alias in getattr(method, "aliases", ())}
    known |= {name.lower(): name for name in catalogue}
    for method in names(also):
        if method.lower() not in known:
            raise unknown("method", method, catalogue, "`python -m benchmarks methods` lists them")
    return replace(suite, also=tuple(known[method.lower()] for method in names(also))) if also else suite


def names(value: Names | None) -> list[str]:
    """Return one name or several as a list."""
    return [value] if isinstance(value, str) else list(value or ())


def merged(sets: Iterable[Mapping[str, set[str]]]) -> dict[str, set[str]]:
    """Return the union of sets under the same name."""
    union: dict[str, set[str]] = {}
    for each in sets:
        for name, content in each.items():
            union.setdefault(name, set()).update(content)
    return union


def beyond(tables: Iterable[Any], protocol: str | None, seeds: Seeds) -> list[str]:
    """Return a sentence for every table with fewer replicates than requested."""
    requested, sentences = parse_seeds(seeds) or [], []
    for table in tables:
        chosen = table.check_protocol(protocol)
        count = table.replicates(chosen)
        used = sum(seed < count for seed in requested)
        if count > 0 and used < len(requested):
            limit = f"table {table.name} has {plural(count, 'replicate')} at protocol {chosen}"
            some = f"{used or 'none'} of {len(requested)} requested are used"
            sentences.append(
                f"--seeds {seeds_text(seeds)}: {limit}, {some if used < count else f'all {count} are used'}"
            )
    return sentences


def lacking(tables: Sequence[Any], protocol: str | None) -> list[str]:
    """Return a sentence for every row whose plug-in or data are absent, so that its runs cannot be planned, and for
    every column whose metric is not known."""
    rows = (
        f"table {table.name}, row {row.label}: {reason}"
        for table in tables
        for row in table.rows
        for dataset in table.datasets
        if (reason := table.lacks(row, dataset, protocol))
    )
    columns = (sentence for table in tables for sentence in _unknown_metrics(table))
    return list(dict.fromkeys([*rows, *columns]))


def _unknown_metrics(table: Any) -> Iterator[str]:
    if not any(row.method for row in table.rows):
        return
    for column in table.columns:
        if (name := column.cell.metric) not in METRICS:
            reason = "; ".join(filter(None, (f"no metric {name!r}", meant(name, METRICS))))
            yield f"table {table.name}, column {column.label}: plug-in absent: {reason}"


def only(
    configs: list[RunConfig],
    methods: Collection[str],
    datasets: Collection[str],
    rows: Mapping[str, Collection[str]] = NONE,
    catalogue: Callable[[], Collection[str]] = tuple,
) -> list[RunConfig]:
    """Select the runs of these methods and data sets (none named: all). Raises UnknownName.

    rows: keys of the runs of a row, by its label, which may stand in place of a method. catalogue: the methods that a
    table could have too.
    """
    sets = {config["dataset"]["name"] for config in configs}
    chosen = (("method or row", methods, {*map(method_of, configs), *rows}), ("data set", datasets, sets))
    for kind, names, known in chosen:
        for name in names:
            if name not in known:
                other = names is methods and name in catalogue()
                raise unknown(f"{kind} of this table", name, known, f"--also {name!r} adds a row for it" * other)
    keys = {key for name in methods for key in rows.get(name, ())}
    return [
        config
        for config in configs
        if (not methods or method_of(config) in methods or run_key(config) in keys)
        and (not datasets or config["dataset"]["name"] in datasets)
    ]


def parse_seeds(seeds: Seeds) -> list[int] | None:
    """Parse seeds: '5' (how many: 0 to 4), '0-4', '0,3', '2-2' (2 alone), or as numbers. Raises UsageError."""
    text = seeds_text(seeds)
    if not text:
        return None
    numbers: set[int] = set()
    try:
        for part in [f"0-{int(text) - 1}"] if text.isdecimal() else filter(None, text.split(",")):
            first, dash, last = part.partition("-")
            if int(last if dash else first) >= MOST_SEEDS:
                expected = f"expected numbers below {MOST_SEEDS:,}: how many, or which, counted from 0"
                raise UsageError(f"--seeds is {text!r}, {expected}")
            numbers.update(range(int(first), int(last if dash else first) + 1))
    except ValueError:
        numbers.clear()
    if not numbers:
        raise UsageError(f"--seeds is {text!r}, expected how many (5), a range (0-4) or a list (0,3)")
    return sorted(numbers)


def seeds_text(seeds: Seeds) -> str:
    """Convert seeds to the command line's notation; empty for all."""
    if seeds is None or isinstance(seeds, str):
        return seeds or ""
    if not isinstance(seeds, Iterable):
        return str(seeds)
    words = list(map(str, seeds))
    return f"{words[0]}," if len(words) == 1 else ",".join(words)  # "3" alone is how many
