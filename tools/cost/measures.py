"""Benchmarks, each a function of the number of turns."""

from __future__ import annotations

import datasets
from tools.cost import images, modules, trainings
from tools.cost.overhead import overhead
from tools.cost.timing import Measurement, duration, interleave, ratio, threads
from tools.cost.trainings import training_of


def fsvi(repeats: int) -> list[Measurement]:
    """Measure the ratio of an FSVI (last layer) step to a MAP step, on two threads."""
    steps, split = 2, trainings.random_split((1, 28, 28), 10, 256)
    works = {f"{name} step": training_of(trainings.fsvi_parts(name), [split]) for name in ("FSVI", "MAP")}
    with threads(2):
        return [ratio("fsvi", "FSVI step", "MAP step", interleave(works, repeats, steps), count=2, goal=1.5)]


def stacked(repeats: int) -> list[Measurement]:
    """Measure ten splits of boston trained one after another, over the ten as one stack, on one thread."""
    splits = [trainings.boston(i) for i in range(10)]
    found = []
    for method in ("MAP", "MC Dropout", "MFVI"):
        parts = trainings.uci_parts(method, epochs=2)
        looped = trainings.one_by_one([training_of(parts, [split]) for split in splits])
        apart, together = f"{method} looped", f"{method} stacked"
        with threads(1):
            times = interleave({apart: looped, together: training_of(parts, splits)}, repeats)
        found.append(ratio("stacked", apart, together, times, count=1, goal=3.0, at_least=True))
    return found


def hyvi(repeats: int) -> list[Measurement]:
    """Measure milliseconds of one HyVI step on boston, on one thread."""
    goals, split = {"FuNN-HyVI": 18.0, "NN-HyVI": 9.0}, trainings.boston()
    works = {name: training_of(trainings.uci_parts(name, epochs=1), [split]) for name in goals}
    steps = -(-len(split.train) // trainings.uci_parts("NN-HyVI", 1)["training"]["batch_size"])
    with threads(1):
        times = interleave(works, repeats, steps)
    return [duration("hyvi", f"{name} step", took, goal=goals[name]) for name, took in times.items()]


def catalogue(repeats: int) -> list[Measurement]:
    """Measure the ratio of each method's step to MAP's on the digits network, on one thread."""
    described = datasets.describe("digits")
    steps, split = 4, trainings.random_split(described.shape, described.n_outputs, 4 * 128)
    works = {name: training_of(parts, [split]) for name, parts in trainings.catalogue_parts().items()}
    with threads(1):
        times = interleave(works, repeats, steps)
    goals = {"GFSVI": 6.0}
    return [ratio("catalogue", name, "MAP", times, count=1, goal=goals.get(name)) for name in works if name != "MAP"]


def gfsvi(repeats: int) -> list[Measurement]:
    """Measure milliseconds of a GFSVI step on boston with cinquin2024's 500 context points, on one thread."""
    parts, split = trainings.gfsvi_parts(points=500, epochs=1), trainings.boston()
    with threads(1):
        times = interleave({"GFSVI step, 500 points": training_of(parts, [split])}, repeats)
    return [duration("gfsvi", name, took, goal=56.0) for name, took in times.items()]


BENCHMARKS = {
    "fsvi": fsvi,
    "stacked": stacked,
    "hyvi": hyvi,
    "catalogue": catalogue,
    "gfsvi": gfsvi,
    "overhead": overhead,
    "mlp": images.mlp,
    "cnn": images.cnn,
    "resnet": images.resnet,
    "modules": modules.modules,
    "small": modules.small,
}
