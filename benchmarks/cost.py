"""What a training step costs, on random arrays of the data's shapes: no data set is read.

    python -m benchmarks.cost [fsvi] [stacked] [hyvi] [catalogue] [--repeats N] [--output FOLDER]

What is compared is timed in turns, so that a ratio is of one run and a slow minute slows both sides; every number is the
median of its turns. Process time (of all threads) stands beside wall time: on a busy machine wall time counts the waiting too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

import datasets
from benchmarks import provenance
from benchmarks.execute import build_model, build_problem
from benchmarks.inspection import columns
from benchmarks.tables import digits, pequignot
from benchmarks.tables.spec import Parts, Row, merge
from datasets.contract import Arrays, Split
from fvi_core import methods
from fvi_core.random import Streams
from fvi_core.registry import nearest
from fvi_core.training import DTYPES, Trained, Trainer, Training

OUTPUT = Path("reports/output")
REPEATS = 7
Work = Callable[[], Callable[[], list[Trained]]]
"""Makes fresh trainers, which is not timed, and returns the training, which is."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one step, or of one whole training: medians over the turns."""

    wall: float
    process: float


@dataclass(frozen=True)
class Measurement:
    """One number: ``wall`` and ``process`` are it by either clock, in ``unit``; ``times`` what it was made of, in ms.

    ``goal`` bounds it from above, or from below where more is better; None where none was set.
    """

    benchmark: str
    name: str
    threads: int
    unit: str
    wall: float
    process: float
    times: dict[str, tuple[float, float]]
    goal: float | None = None
    at_least: bool = False

    def met(self, value: float) -> bool | None:
        """Whether a value of this measurement reaches the goal."""
        if self.goal is None:
            return None
        return value >= self.goal if self.at_least else value <= self.goal

    @property
    def verdict(self) -> str:
        """By wall time; where process time says otherwise, that too."""
        said = {None: "", True: "yes", False: "no"}
        wall, process = said[self.met(self.wall)], said[self.met(self.process)]
        return wall if wall == process else f"{wall} (process: {process})"


def interleave(works: dict[str, Work], repeats: int, steps: int = 1) -> dict[str, Timing]:
    """Each work in turn, ``repeats`` times after one turn that is not counted; seconds divided by ``steps``.

    Raises RuntimeError if a training fails, since it would then be short.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, make in works.items():
            train = make()
            wall, process = time.perf_counter(), time.process_time()
            trained = train()
            spent = time.perf_counter() - wall, time.process_time() - process
            reasons = [result.reason for result in trained if result.reason]
            if reasons:
                raise RuntimeError(f"{name} failed while it was timed: {reasons[0]}")
            if turn:
                times[name].append(spent)
    return {name: Timing(*(median(clock) / steps for clock in zip(*spent, strict=True))) for name, spent in times.items()}


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Torch works with that many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def random_split(shape: Sequence[int], n_outputs: int, n: int, seed: int = 0) -> Split:
    """A data set of ``n`` random inputs: classification with ``n_outputs`` classes, or regression for one output."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, *shape), dtype=np.float32)
    y = rng.integers(n_outputs, size=n) if n_outputs > 1 else rng.standard_normal(n)
    task = "classification" if n_outputs > 1 else "regression"
    return Split("random", "1", seed, "", task, n_outputs, Arrays(x, y), Arrays(x, y), x.min(0), x.max(0))


def training_of(parts: Parts, splits: list[Split]) -> Work:
    """Training of a method's parts, one replica for each split, all stacked."""
    settings = Training(**parts["training"])
    dtype = DTYPES[settings.dtype]
    model = build_model({"parts": parts}, splits[0])
    problem = build_problem(model, splits, torch.device("cpu"), dtype)
    seeds = [split.split for split in splits]
    return lambda: Trainer(model, settings, problem, Streams(seeds, dtype=dtype)).run


def one_by_one(works: list[Work]) -> Work:
    """The same trainings, one after another."""

    def make() -> Callable[[], list[Trained]]:
        trainings = [work() for work in works]
        return lambda: [result for train in trainings for result in train()]

    return make


def ratio(benchmark: str, top: str, bottom: str, times: dict[str, Timing], count: int, **goal: Any) -> Measurement:
    """How many times ``bottom`` goes into ``top``, by both clocks."""
    a, b = times[top], times[bottom]
    made_of = {name: (1e3 * times[name].wall, 1e3 * times[name].process) for name in (top, bottom)}
    return Measurement(benchmark, f"{top} / {bottom}", count, "x", a.wall / b.wall, a.process / b.process, made_of, **goal)


def fsvi_parts(method: str) -> Parts:
    """rudner2022's FashionMNIST network, batch of 128 and 32 monochrome context images; one function sample."""
    parts = merge(methods.get(method).parts(), {
        "network": {"name": "cnn", "channels": [32, 64], "pool": [1, 1], "dense": [256]},
        "likelihood": {"name": "categorical"},
        "training": {"epochs": 1, "batch_size": 128, "optimiser": {"name": "adam", "lr": 5e-4}},
    })
    return merge(parts, {"context": {"name": "random_monochrome", "points": 32}}) if parts["context"] else parts


def fsvi(repeats: int) -> list[Measurement]:
    """One FSVI (last layer) step over one MAP step on two threads."""
    steps, split = 2, random_split((1, 28, 28), 10, 256)
    works = {f"{name} step": training_of(fsvi_parts(name), [split]) for name in ("FSVI", "MAP")}
    with threads(2):
        return [ratio("fsvi", *works, interleave(works, repeats, steps), count=2, goal=2.2)]


def uci_parts(method: str, epochs: int) -> Parts:
    """A method on pequignot2020's boston, as table 5 has it; methods that it lacks get its network and optimiser."""
    known = {row.method for row in pequignot.ROWS}
    recipe = pequignot.recipe(Row(method, None, method if method in known else "MC Dropout"), "boston", "paper")
    own = recipe.parts if method in known else {k: recipe.parts[k] for k in ("network", "likelihood", "training")}
    return merge(merge(methods.get(method).parts(), own), {"training": {"epochs": epochs}})


def boston(split: int = 0) -> Split:
    """Random numbers in the shape of boston's training part."""
    described = datasets.describe("boston", pequignot.PAPER)
    return random_split(described.shape, 1, described.n_train, split)


def stacked(repeats: int) -> list[Measurement]:
    """Ten splits of boston trained one after another, over the same ten trained as one stack, on one thread."""
    splits = [boston(i) for i in range(10)]
    found = []
    for method in ("MAP", "MC Dropout", "MFVI"):
        parts = uci_parts(method, epochs=2)
        looped = one_by_one([training_of(parts, [split]) for split in splits])
        works = {f"{method} looped": looped, f"{method} stacked": training_of(parts, splits)}
        with threads(1):
            found.append(ratio("stacked", *works, interleave(works, repeats), count=1, goal=3.0, at_least=True))
    return found


def hyvi(repeats: int) -> list[Measurement]:
    """Milliseconds of one step on boston, on one thread."""
    goals, split = {"FuNN-HyVI": 25.0, "NN-HyVI": 11.0}, boston()
    works = {name: training_of(uci_parts(name, epochs=1), [split]) for name in goals}
    steps = -(-len(split.train) // uci_parts("NN-HyVI", 1)["training"]["batch_size"])
    with threads(1):
        times = interleave(works, repeats, steps)
    return [Measurement("hyvi", f"{name} step", 1, "ms", 1e3 * t.wall, 1e3 * t.process, {}, goals[name]) for name, t in times.items()]


def digits_parts(method: str) -> Parts:
    """A method on table ``digits``' network; a fitted prior is fitted for a few steps only, which is not timed."""
    recipe = digits.recipe(Row(method, None, method), "digits", "smoke")
    return merge(merge(methods.get(method).parts(), recipe.parts), {"training": {"epochs": 1}})


def catalogue_parts() -> dict[str, Parts]:
    """Every row of the catalogue but exact Gaussian processes, which are no networks and only regress."""
    rows = methods.catalogue().values()
    return {row.name: digits_parts(row.name) for row in rows if row.family["name"] != "exact_gp"}


def catalogue(repeats: int) -> list[Measurement]:
    """One step of each method over one step of MAP on the digits network, on one thread."""
    described = datasets.describe("digits")
    steps, split = 4, random_split(described.shape, described.n_outputs, 4 * 128)
    works = {name: training_of(parts, [split]) for name, parts in catalogue_parts().items()}
    with threads(1):
        times = interleave(works, repeats, steps)
    return [ratio("catalogue", name, "MAP", times, count=1) for name in works if name != "MAP"]


BENCHMARKS = {"fsvi": fsvi, "stacked": stacked, "hyvi": hyvi, "catalogue": catalogue}
HEADING = ("benchmark", "measured", "threads", "wall", "process", "goal", "met", "wall ms (process ms)")


def table(measurements: list[Measurement]) -> list[tuple[str, ...]]:
    """Rows of text under :data:`HEADING`."""
    rows = []
    for m in measurements:
        goal = "" if m.goal is None else f"{'>=' if m.at_least else '<='} {m.goal:g} {m.unit}"
        made_of = ", ".join(f"{name} {wall:.4g} ({process:.4g})" for name, (wall, process) in m.times.items())
        rows.append((m.benchmark, m.name, str(m.threads), f"{m.wall:.3g} {m.unit}", f"{m.process:.3g} {m.unit}", goal, m.verdict, made_of))
    return rows


def machine() -> dict[str, Any]:
    """Where and of what the numbers are; ``load``: processes that wanted a core in the last minute, before this one began."""
    about = {k: v for k, v in provenance.collect().items() if k != "threads"}
    return about | {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "made": provenance.now()}


def write(folder: Path, about: dict[str, Any], headline: str, measurements: list[Measurement]) -> list[Path]:
    """``cost.json`` and ``cost.md`` in the folder."""
    found = [asdict(m) | {"met": m.met(m.wall), "met_by_process_time": m.met(m.process)} for m in measurements]
    lines = ["| " + " | ".join(row) + " |" for row in (HEADING, ("---",) * len(HEADING), *table(measurements))]
    texts = {"cost.json": json.dumps({"machine": about, "measurements": found}, indent=1),
             "cost.md": "\n".join(["# Cost of training steps", "", headline, "", *lines])}
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text + "\n")
    return [folder / name for name in texts]


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write. Status 2 for an unknown name or a folder that cannot be written; goals do not change the status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(BENCHMARKS)}; without it all")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"turns that are counted ({REPEATS})")
    parser.add_argument("--output", type=Path, default=OUTPUT, help=f"folder of cost.json and cost.md ({OUTPUT})")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in BENCHMARKS:
            parser.error(f"no benchmark {name!r}; {nearest(name, BENCHMARKS)}")
    if options.repeats < 1:
        parser.error(f"--repeats must be 1 or more, found {options.repeats}")
    about = machine()
    measurements = []
    for name in dict.fromkeys(options.names or BENCHMARKS):
        print(f"measuring {name} ...", file=sys.stderr)
        measurements += BENCHMARKS[name](options.repeats)
    headline = (f"{about['cpu']}, {about['cores']} cores, load {about['load']} before the start, torch {about['versions']['torch']}, "
                f"commit {about['commit'][:10]}{' with changes' if about['dirty'] else ''}; medians of {options.repeats} turns")
    print(f"{columns([HEADING, *table(measurements)])}\n{headline}")
    try:
        written = write(options.output, about, headline, measurements)
    except OSError as error:
        print(f"error: --output {options.output} cannot be written ({error.strerror}); name another folder", file=sys.stderr)
        return 2
    print("wrote", *written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
