"""Benchmarks of the tables' image classifiers: time of a step and an epoch, ratio to MAP, share of the matmul peak."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter, process_time

import numpy as np
import torch

import datasets
from benchmarks import tables
from benchmarks.tables.recipes import Parts, merge
from datasets.contract import Arrays, Pixels, Split
from fvi_core import linearisation, methods
from fvi_core.families.base import Functions, points_at_once
from fvi_core.networks import Network
from fvi_core.random import Streams
from fvi_core.registry import FAMILIES, NETWORKS
from tools.cost.timing import Measurement, Timing, duration, interleave, ratio, ready, threads
from tools.cost.trainings import one_by_one, training_of

STEPS, SEEDS = 40, 10
CHANGES, CHANGED = 100, 13  # changes of weights, and images: those that predictions take together
IMAGES = 264
ROTATED = ("MAP", "MAP fVI", "MC Dropout", "MC Dropout fVI", "Ensemble", "Ensemble fVI")
FASHION = ("MAP", "MFVI", "MFVI (radial)", "MC Dropout", "SWAG", "FSVI (monochrome)", "FSVI (KMNIST)")
CIFAR = {
    "rudner2022-2": ("MAP", "FSVI (monochrome)"),
    "dirichlet2022-11": ("MAP", "MAP fVI", "Radial fVI", "Rank1 fVI"),
}
GOALS = {
    "fashion_mnist": {"FSVI (monochrome)": 1.5, "FSVI (KMNIST)": 1.5},
    "cifar10": {"MAP": 2.0, "FSVI (monochrome)": 3.0},
}
"""Goals for an epoch on one H200, in seconds."""
RATIOS = {
    "fashion_mnist": {"MFVI": 5.0, "FSVI (monochrome)": 5.0, "FSVI (KMNIST)": 5.0, "MC Dropout": 4.5},
    "cifar10": {"FSVI (monochrome)": 1.5},
}
"""Goals for a step's ratio to MAP, which draws one network; on FashionMNIST these methods draw five."""
SHARES = {"fashion_mnist": {"MAP": 0.45}, "cifar10": {}}
"""Goals for the share of the peak rate of matrix products, on a CPU."""
COMPILED, GRAPHS = ", compiled", ", graphs"


def random_images(dataset: str, n: int, seed: int = 0, pools: Sequence[str] = (), scheme: str | None = None) -> Split:
    """Return ``n`` images of random pixels in a data set's shape, and as many in each pool."""
    described, rng = datasets.describe(dataset, scheme), np.random.default_rng(seed)
    shape = (n, *described.shape)
    x, y = rng.integers(256, size=shape, dtype=np.uint8), rng.integers(described.n_outputs, size=n)
    low, high = (np.full(described.shape, end, np.float32) for end in (-1, 1))
    pixels = Pixels((0.5,) * described.shape[0], (0.5,) * described.shape[0])
    drawn = {name: lambda: datasets.Pool(x, "random pixels") for name in pools}
    part = Arrays(x, y)
    about = (dataset, "1", seed, "", "classification", described.n_outputs)
    return Split(*about, part, part, low, high, pools=drawn, pixels=pixels)


def table_parts(table: str, label: str, dataset: str, changes: Parts | None = None) -> Parts:
    """Return the parts of a table's row on a data set at protocol paper, for one epoch."""
    spec = tables.get(table)
    row = next(row for row in spec.rows if row.label == label)
    recipe = spec.recipe(row, dataset, "paper")
    if row.method is None or recipe is None:
        raise ValueError(f"table {table}: expected a row with runs on {dataset}, found {label!r}, which has none")
    own = merge(methods.get(row.method).parts(), recipe.parts)
    return merge(own, merge({"training": {"epochs": 1}}, changes or {}))


def matmul_peak(device: torch.device, dtype: torch.dtype) -> Timing:
    """Measure floating-point operations per second, by either clock: the best of several square matrix products."""
    size = 8192 if device.type == "cuda" else 1024
    a = torch.ones(size, size, device=device, dtype=dtype)
    wall, process = [], []
    for _ in range(6):
        start = perf_counter(), process_time()
        float((a @ a)[0, 0])  # waits for the device
        wall.append(perf_counter() - start[0])
        process.append(process_time() - start[1])
    return Timing(2 * size**3 / min(wall), 2 * size**3 / min(process))


def operations(parts: Parts, split: Split, device: torch.device) -> int:
    """Count floating-point operations of the products and convolutions of one epoch."""
    from torch.utils.flop_counter import FlopCounterMode

    train = training_of(parts, [split], device)()
    with FlopCounterMode(display=False) as counter:
        train()
    return counter.get_total_flops()


def mlp(repeats: int) -> list[Measurement]:
    """Measure rotated MNIST's 784-50-50-10 network, batch 256, on one thread; ten seeds of MAP apart and stacked."""
    split = random_images("mnist", STEPS * 256)
    parts = {label: table_parts("rotated-mnist", label, "mnist") for label in ROTATED}
    works = {label: training_of(own, [split]) for label, own in parts.items()}
    looped = one_by_one([training_of(parts["MAP"], [split], seeds=[seed]) for seed in range(SEEDS)])
    stacked = training_of(parts["MAP"], [split], seeds=range(SEEDS))
    apart, together = "MAP, ten seeds looped", "MAP, ten seeds stacked"
    with threads(1):
        times = interleave(works, repeats, STEPS)
        seeds = interleave({apart: looped, together: stacked}, repeats, STEPS)
    goals, fvi = {"MAP": 1.4}, 2.0
    found = [duration("mlp", f"{label} step", times[label], goal=goals.get(label)) for label in ROTATED]
    of_map = {label: fvi if label == "MAP fVI" else None for label in ROTATED if label != "MAP"}
    found += [ratio("mlp", label, "MAP", times, 1, goal=goal) for label, goal in of_map.items()]
    found += [ratio("mlp", f"{label} fVI", label, times, 1, goal=fvi) for label in ("MC Dropout", "Ensemble")]
    return [*found, ratio("mlp", apart, together, seeds, count=1)]


def cnn(repeats: int) -> list[Measurement]:
    """Measure rudner2022's FashionMNIST network, every row with its table's settings."""
    return _networks("cnn", "fashion_mnist", {"rudner2022-1": FASHION}, repeats, batches=2)


def resnet(repeats: int) -> list[Measurement]:
    """Measure ResNet-18 on CIFAR-10, batch 128; on a GPU in bfloat16."""
    return _networks("resnet", "cifar10", CIFAR, repeats, batches=1)


def linearised(repeats: int) -> list[Measurement]:
    """Measure predictions of GFSVI's network of images: 100 changes of its weights layer by layer, on one thread,
    beside forward-mode differentiation of the whole network."""
    spec = table_parts("cinquin2024-2", "GFSVI (KMNIST)", "fashion_mnist")["network"]
    about = datasets.describe("fashion_mnist")
    network, streams = NETWORKS.build(spec).build(about.shape, about.n_outputs), Streams([0])
    centre, x = network.init(streams), streams.normal(CHANGED, *about.shape)
    steps = {name: 0.01 * streams.normal(CHANGES, *shape) for name, shape in network.shapes.items()}
    at = {name: value.unsqueeze(1).expand_as(steps[name]).contiguous() for name, value in centre.items()}
    layers, whole = "layer by layer", "forward mode"
    ways = {
        layers: lambda: linearisation.linearised(network, centre, steps, {})(x),
        whole: lambda: torch.add(*torch.func.jvp(lambda w: network(w, x), (at,), (steps,))),
    }
    with threads(1), torch.no_grad():
        times = interleave({name: ready(way) for name, way in ways.items()}, repeats)
    return [ratio("linearised", whole, layers, times, count=1, goal=2.5, at_least=True)]


def draws(repeats: int) -> list[Measurement]:
    """Measure predictions of rudner2022's FashionMNIST network with 100 draws beside ten times 10, on one thread."""
    about, streams = datasets.describe("fashion_mnist"), Streams([0])
    x = streams.normal(IMAGES, *about.shape)
    many, few = "100 draws", "10 times 10 draws"
    found = []
    for label in ("MFVI", "MC Dropout"):
        parts = table_parts("rudner2022-1", label, "fashion_mnist")
        network = NETWORKS.build(parts["network"]).build(about.shape, about.n_outputs)
        family = FAMILIES.build(parts["family"])
        parameters = family.init(network, streams)
        predict = partial(_predict, partial(family.functions, network, parameters), network, streams, x)
        ways = {many: partial(predict, 100, 1), few: partial(predict, 10, 10)}
        with threads(1), torch.no_grad():
            times = interleave({f"{label}, {name}": ready(way) for name, way in ways.items()}, repeats)
        found.append(ratio("draws", f"{label}, {many}", f"{label}, {few}", times, count=1, goal=1.2))
    return found


def _predict(
    draw: Callable[..., Functions], network: Network, streams: Streams, x: torch.Tensor, samples: int, times: int
) -> None:
    for _ in range(times):
        functions = draw(samples, streams)
        for piece in x.split(points_at_once(functions, network, samples, x.device), 1):
            functions(piece)


def _networks(
    name: str, dataset: str, rows: Mapping[str, Sequence[str]], repeats: int, batches: int
) -> list[Measurement]:
    """Measure rows of tables on one data set: a step, an epoch, the ratio to the first table's MAP, share of the peak.

    On a GPU in bfloat16: eager, compiled, and as graphs.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    cuda = device.type == "cuda"
    precision: Parts = {"training": {"precision": "bfloat16"}} if cuda else {}
    ways: dict[str, Parts] = {"": {}}
    if cuda:
        ways |= {COMPILED: {"training": {"compile": True}}, GRAPHS: {"training": {"graph": True}}}
    count = 1 if cuda else torch.get_num_threads()
    batches = 100 if cuda else batches
    works, needed, labels = {}, {}, {}
    for i, (table, own) in enumerate(rows.items()):
        for row in own:
            label = row if i == 0 else f"{row} ({table})"
            plain = table_parts(table, row, dataset, precision)
            batch = plain["training"]["batch_size"]
            split = random_images(dataset, batches * batch, pools=("kmnist", "cifar100"))
            needed[label] = operations(plain, split, device) / batches
            for way, changes in ways.items():
                works[label + way] = training_of(merge(plain, changes), [split], device)
                labels[label + way] = label, way, batch
    times = interleave(works, repeats, batches)
    peak = matmul_peak(device, torch.bfloat16 if cuda else torch.float32)
    found = []
    for shown, (label, way, batch) in labels.items():
        steps, timing = -(-datasets.describe(dataset).n_train // batch), times[shown]
        goal = GOALS[dataset].get(label) if cuda else None
        found += [
            duration(name, f"{shown} step", timing, count),
            duration(name, f"{shown} epoch", timing, count, goal, "s", steps),
        ]
        if label != "MAP":
            found.append(ratio(name, shown, f"MAP{way}", times, count, goal=RATIOS[dataset].get(label)))
        shares = needed[label] / peak.wall / timing.wall, needed[label] / peak.process / timing.process
        share = None if cuda else SHARES[dataset].get(label)
        found.append(Measurement(name, f"{shown}, share of matmul peak", count, "x", *shares, {}, share, at_least=True))
    return found
