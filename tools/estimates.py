"""Check estimates of a sweep's cost against records: ``python -m tools.estimates``.

The records of each kind of training are left out in turn, and its cost is estimated from those of other kinds.
``--measure`` compares the largest kinds with the processor time of their first steps on this machine, since most
records have only the wall time of a training beside other work.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

from benchmarks.commands.inspection import columns
from benchmarks.experiment.assembly import build_data, build_model, load_split, run_streams
from benchmarks.experiment.trained import device_of
from benchmarks.records.config import method_of, stack_key, training_key
from benchmarks.records.store import Store
from benchmarks.sweep.estimate import Known, low
from benchmarks.sweep.plan import MEANINGLESS
from benchmarks.sweep.similar import Recorded, paces, passes, similar
from benchmarks.sweep.threads import limited
from datasets import DataNotFound
from fvi_core.registry import TRAININGS
from fvi_core.stack import DTYPES

LARGEST = 12
BATCHES = 4  # training data of a measured epoch


class Enough(Exception):
    """Raised to end a training that has been measured."""


def kinds(results: Path = Path("results")) -> list[tuple[list[Recorded], float, float]]:
    """Return the kinds of training: their records, lower quartile in seconds and estimate by others, largest first."""
    known = Known(Store(results), results / "no-state")
    methods: dict[str, dict[str, list[Recorded]]] = defaultdict(lambda: defaultdict(list))
    for folder in sorted(results.glob("*/*")):
        for one in known.records(folder):
            if one.config["protocol"] != MEANINGLESS:
                methods[one.config["method"]][stack_key(one.config)].append(one)
    listed = []
    everything = [one for own in methods.values() for same in own.values() for one in same]
    usual = paces(everything)
    for own in methods.values():
        for kind, same in own.items():
            counts = Counter(one.clock for one in same)
            known.clock = max(counts, key=lambda clock: (clock.own, counts[clock]))
            alone = len(counts) == 1  # tells nothing of paces
            known.paces = usual if alone else paces(one for one in everything if stack_key(one.config) != kind)
            others = (known.scaled(one) for other, recorded in own.items() if other != kind for one in recorded)
            if cost := similar(same[0].config, others, same[0].stack):
                here = [one for one in same if one.clock == known.clock]
                listed.append((same, low([one.cost.training for one in here]), cost.training))
    return sorted(listed, key=lambda each: -sum(one.cost.training for one in each[0]))


def measured(same: Sequence[Recorded], seconds: float) -> float:
    """Return the processor seconds of a training here, as many epochs as the recorded ones made, from its start.

    Raises DataNotFound.
    """
    configs = list({training_key(one.config): one.config for one in same}.values())[: int(same[0].stack)]
    splits = [load_split(config) for config in configs]
    parts, points = configs[0]["parts"], len(splits[0].train.y)
    batch = min(parts["training"].get("batch_size") or points, points)
    used = points if batch == points else min(points, BATCHES * batch)
    some = [replace(s, train=replace(s.train, x=s.train.x[:used], y=s.train.y[:used])) for s in splits]
    training, model, device = TRAININGS.build(parts["training"]), build_model(parts, some[0]), device_of()
    data = build_data(model, some, device, DTYPES[training.dtype])
    streams = run_streams(configs, device, DTYPES[training.dtype]).child("train")
    times: list[float] = []

    def report(fraction: float, text: str) -> None:
        times.append(time.process_time())
        if len(times) > 2 and times[-1] - times[0] > seconds:
            raise Enough

    with suppress(Enough):
        training.start(model, data, streams, None).run(report)
    steps = (len(times) - 1) * math.ceil(used / batch)
    epoch_steps = fmean(one.share for one in same) * passes(configs[0]) * math.ceil(points / batch)
    return (times[-1] - times[0]) / steps * epoch_steps / len(configs)


def distribution(name: str, pairs: Iterable[tuple[float, float]]) -> str:
    """Describe how many times estimates are too large or too small."""
    off = sorted(max(a / b, b / a) for a, b in pairs if a and b)
    if not off:
        return f"{name}: none"
    high = off[math.ceil(0.9 * len(off)) - 1]
    return f"{name}: {len(off)} kinds, factor off: median {median(off):.2f}, 90 % {high:.2f}, largest {off[-1]:.1f}"


def main(arguments: list[str] | None = None) -> None:
    """Print the largest kinds, and how far estimates of these and of all kinds are off."""
    parser = argparse.ArgumentParser(prog="python -m tools.estimates", description=__doc__)
    parser.add_argument("--largest", type=int, default=LARGEST, help=f"how many of the largest kinds ({LARGEST})")
    parser.add_argument(
        "--measure", type=float, default=0.0, metavar="SECONDS", help="train each of these so long here"
    )
    options = parser.parse_args(arguments)
    listed, here, rows = kinds(), [], []
    for same, seconds, guess in listed[: options.largest]:
        config, own = same[0].config, 0.0
        if options.measure:
            with suppress(DataNotFound), limited():
                own = measured(same, options.measure)
                here.append((own, guess))
        named = method_of(config), config["dataset"]["name"], config["protocol"], str(len(same))
        rows.append((*named, f"{seconds:,.0f}", f"{own:,.0f}" if own else "-", f"{guess:,.0f}"))
    print(columns([("method", "data set", "protocol", "runs", "recorded", "here", "estimate"), *rows]))
    print(distribution("largest, by their records", ((a, b) for _, a, b in listed[: options.largest])))
    timed = [(a, b) for same, a, b in listed if any(one.clock.own for one in same)]
    print(distribution("largest with processor time", timed[: options.largest]))
    print(distribution("all, by their records", ((a, b) for _, a, b in listed)))
    print(distribution("all with processor time", timed))
    if options.measure:
        print(distribution("largest, by processor time here", here))


if __name__ == "__main__":
    main()
