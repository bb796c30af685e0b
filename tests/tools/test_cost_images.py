"""The image benchmarks train the rows of the tables, and count what they say; their numbers are of one machine."""

import pytest
import torch

from tools.cost import images, trainings
from tools.cost.timing import Timing

pytestmark = pytest.mark.usefixtures("no_data")

CPU = torch.device("cpu")


def test_images_have_the_shape_of_the_data_set_and_are_bytes():
    split = images.random_images("cifar10", 6, pools=("cifar100",))
    assert split.train.x.shape == (6, 3, 32, 32) and split.train.x.dtype == "uint8" and split.pixels is not None
    assert split.pool("cifar100").x.shape == (6, 3, 32, 32) and split.n_outputs == 10


def test_rows_are_those_of_their_tables():
    parts = images.table_parts("rotated-mnist", "Ensemble fVI", "mnist")
    assert parts["family"]["size"] == 10 and parts["network"]["hidden"] == [50, 50]
    assert (parts["training"]["batch_size"], parts["training"]["epochs"]) == (256, 1)
    fsvi = images.table_parts("rudner2022-2", "FSVI (monochrome)", "cifar10", {"training": {"precision": "bfloat16"}})
    assert fsvi["network"]["name"] == "resnet18"
    assert fsvi["training"]["precision"] == "bfloat16" and fsvi["training"]["batch_size"] == 128


@pytest.mark.parametrize("label", images.ROTATED)
def test_every_row_of_rotated_mnist_takes_a_step(label):
    parts = images.table_parts("rotated-mnist", label, "mnist")
    (trained,) = trainings.training_of(parts, [images.random_images("mnist", 4)])()()
    assert trained.reason is None and trained.epochs == 1


@pytest.mark.parametrize(
    ("table", "dataset", "label"),
    [
        *(("rudner2022-1", "fashion_mnist", label) for label in images.FASHION),
        *((table, "cifar10", label) for table, labels in images.CIFAR.items() for label in labels),
    ],
)
def test_every_row_of_the_convolutional_networks_takes_a_step(table, dataset, label):
    narrow = {"width": 2} if dataset == "cifar10" else {"channels": [2, 2], "dense": [4]}
    parts = images.table_parts(table, label, dataset, {"network": narrow})
    (trained,) = trainings.training_of(parts, [images.random_images(dataset, 6, pools=("kmnist", "cifar100"))])()()
    assert trained.reason is None and trained.epochs == 1


def test_seeds_on_one_split_are_replicas():
    split, parts = images.random_images("mnist", 8), images.table_parts("rotated-mnist", "MAP", "mnist")
    together = trainings.training_of(parts, [split], seeds=[3, 4])()()
    (alone,) = trainings.training_of(parts, [split], seeds=[4])()()
    assert together[1].loss == alone.loss != together[0].loss


def test_operations_of_a_step_are_those_of_its_products():
    """Forward, to the weights, and, but for the first layer, to the inputs: two operations for each multiplication."""
    parts = images.table_parts("rotated-mnist", "MAP", "mnist")
    found = images.operations(parts, images.random_images("mnist", 4), CPU)
    assert found == 2 * 4 * (2 * 784 * 50 + 3 * (50 * 50 + 50 * 10))


def measured(monkeypatch, cuda, start):
    """Return measurements by name, and works, of two rows of ResNet-18; work ``i`` takes ``start + i`` seconds."""
    seen = {}

    def interleave(works, repeats, steps):
        seen.update(works)
        return {name: Timing(start + i, 1.0 + i) for i, name in enumerate(works)}

    monkeypatch.setattr(images, "interleave", interleave)
    monkeypatch.setattr(images, "matmul_peak", lambda device, dtype: Timing(1e9, 2e9))
    monkeypatch.setattr(images, "operations", lambda parts, split, device: 4e8)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    rows = {"rudner2022-2": ("MAP", "FSVI (monochrome)")}
    return {m.name: m for m in images._networks("resnet", "cifar10", rows, 1, batches=2)}, seen


def test_every_fvi_row_of_rotated_mnist_has_a_goal_beside_its_own_method(monkeypatch):
    monkeypatch.setattr(images, "interleave", lambda works, *_: dict.fromkeys(works, Timing(1.0, 1.0)))
    found = images.mlp(1)
    names = [each.name for each in found]
    assert len(set(names)) == len(names)
    goals = {each.name: each.goal for each in found if each.unit == "x" and each.goal}
    assert goals == {f"{label} fVI / {label}": 2.0 for label in ("MAP", "MC Dropout", "Ensemble")}


def test_a_row_says_step_epoch_ratio_and_share_of_the_peak(monkeypatch):
    found, _ = measured(monkeypatch, False, 0.5)
    assert found["MAP step"].wall == 500 and found["MAP epoch"].wall == 0.5 * 391 and found["MAP epoch"].goal is None
    assert found["FSVI (monochrome) / MAP"].wall == 3 and found["FSVI (monochrome) / MAP"].goal == 1.5
    share = found["MAP, share of matmul peak"]
    assert share.wall == pytest.approx(2e8 / 1e9 / 0.5) and share.process == pytest.approx(2e8 / 2e9 / 1.0)
    assert len(found) == 7


def test_on_a_gpu_rows_are_measured_as_they_are_compiled_and_as_graphs(monkeypatch):
    def training_of(parts, splits, device):
        assert device.type == "cuda" and parts["training"]["precision"] == "bfloat16"
        return parts

    monkeypatch.setattr(images, "training_of", training_of)
    found, works = measured(monkeypatch, True, 1.0)
    ways = {name: [way for way in ("compile", "graph") if parts["training"].get(way)] for name, parts in works.items()}
    assert ways == {
        "MAP": [],
        "MAP, compiled": ["compile"],
        "MAP, graphs": ["graph"],
        "FSVI (monochrome)": [],
        "FSVI (monochrome), compiled": ["compile"],
        "FSVI (monochrome), graphs": ["graph"],
    }
    assert found["FSVI (monochrome), compiled / MAP, compiled"].wall == 5 / 2
    assert found["FSVI (monochrome), graphs / MAP, graphs"].wall == 6 / 3
    assert found["FSVI (monochrome) / MAP"].wall == 4 / 1 and found["MAP, graphs epoch"].goal == 2
    assert found["MAP, compiled, share of matmul peak"].wall > 0


def test_the_peak_is_of_this_machine():
    assert 1e8 < images.matmul_peak(CPU, torch.float32).process < 1e15


def test_linearised_predictions_are_timed_beside_forward_mode_differentiation():
    (found,) = images.linearised(1)
    assert found.name == "forward mode / layer by layer" and found.threads == 1 and found.at_least
    assert found.wall > 0 and set(found.times) == {"forward mode", "layer by layer"}


def test_100_draws_are_timed_beside_ten_times_10(monkeypatch):
    monkeypatch.setattr(images, "IMAGES", 2)
    found = images.draws(1)
    assert [each.name for each in found] == [
        f"{label}, 100 draws / {label}, 10 times 10 draws" for label in ("MFVI", "MC Dropout")
    ]
    assert all(each.wall > 0 and each.threads == 1 and not each.at_least for each in found)
