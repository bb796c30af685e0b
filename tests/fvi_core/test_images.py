"""Pixels on the device: scaled, cropped, mirrored; and training on bytes is training on the scaled numbers."""

import dataclasses

import pytest
import torch

from fvi_core.data import Augmentation, Scale, TrainingData, crop
from fvi_core.training import Trainer, Training
from tests.fvi_core import small

R, B = 3, 40
SHAPE = (2, 4, 4)
SCALE = Scale((0.2, 0.5), (0.5, 0.25), torch.float64)


def pixels(replicas=R, points=B, shape=SHAPE):
    """Return images of bytes without black pixels, so that padding can be recognised."""
    return small.streams(replicas, name="pixels").integers(255, points, *shape).to(torch.uint8) + 1


@pytest.mark.parametrize("kind", [torch.uint8, torch.float32, torch.float64])
@pytest.mark.parametrize(("mean", "std"), [((0.5,), (0.5,)), ((0.2, 0.5, 0.7), (0.5, 0.25, 1.0))])
def test_scale_is_the_formula_for_each_channel(kind, mean, std):
    x = torch.arange(256, dtype=kind).repeat(2, len(mean), 1, 1).view(2, len(mean), 16, 16)
    kept = x.clone()
    scaled = Scale(mean, std, torch.float64)(x)
    assert scaled.dtype == torch.float64 and torch.equal(x, kept)
    for c in range(len(mean)):
        torch.testing.assert_close(scaled[:, c], (x[:, c].double() / 255 - mean[c]) / std[c], rtol=0, atol=1e-14)


def test_scale_of_a_number_does_not_depend_on_its_place():
    x = pixels(1, 257)[0]
    scale = dataclasses.replace(SCALE, dtype=torch.float32)
    assert torch.equal(scale(x)[100:], scale(x[100:])) and torch.equal(scale(x)[7], scale(x[7]))


@pytest.mark.parametrize("margin", [1, 4])
def test_a_crop_is_a_slice_of_the_padded_image(margin):
    x, height, width = pixels(2, 30, (3, 5, 6)), 5, 6
    top, left = (small.streams(2, name=name).integers(2 * margin + 1, 30) for name in ("top", "left"))
    found = crop(x, margin, top, left)
    assert found.shape == x.shape and found.dtype == torch.uint8
    for r in range(2):
        for i in range(30):
            padded = torch.zeros(3, height + 2 * margin, width + 2 * margin, dtype=torch.uint8)
            padded[:, margin:-margin, margin:-margin] = x[r, i]
            y0, x0 = top[r, i], left[r, i]
            assert torch.equal(found[r, i], padded[:, y0 : y0 + height, x0 : x0 + width])


def test_the_middle_crop_and_no_augmentation_are_the_identity():
    x = pixels()
    middle = torch.full((R, B), 2)
    assert torch.equal(crop(x, 2, middle, middle), x)
    assert Augmentation()(x, small.streams(R)) is x


def test_half_of_the_images_are_mirrored_and_the_others_kept():
    x = pixels(points=400)
    found = Augmentation(flip=True)(x, small.streams(R))
    kept, mirrored = ((found == y).flatten(2).all(2) for y in (x, x.flip(-1)))
    assert (kept | mirrored).all()
    assert ((mirrored.float().mean(1) > 0.4) & (mirrored.float().mean(1) < 0.6)).all()
    assert not torch.equal(mirrored[0], mirrored[1])


def test_every_corner_is_drawn_as_often():
    margin, n = 2, 5000
    marked = torch.zeros(1, n, 1, 5, 5, dtype=torch.uint8)
    marked[..., 2, 2] = 1  # where it goes, the image has been moved
    where = Augmentation(crop=margin)(marked, small.streams(1)).flatten(2)[0].argmax(1)
    counts = torch.bincount(where, minlength=25)
    assert (counts > 0.6 * n / 25).all() and counts.sum() == n


def test_an_image_is_augmented_for_itself_and_again_at_every_call():
    x, streams = pixels(1, 1).expand(R, 50, *SHAPE), small.streams(R)
    first, second = (Augmentation(crop=1, flip=True)(x, streams) for _ in range(2))
    assert len({image.numpy().tobytes() for image in first.flatten(0, 1)}) > 10
    assert not torch.equal(first, second) and not torch.equal(first[0], first[1])
    alone = Augmentation(crop=1, flip=True)(x[1:2], small.streams(R).subset([1]))
    assert torch.equal(alone[0], first[1])


def problems(replicas=R):
    """Return one data set as bytes with a scale, and as scaled numbers."""
    scaled = dataclasses.replace(SCALE, dtype=torch.float32)
    x, y = pixels(replicas, 20), small.streams(replicas, name="labels").integers(3, 20)
    pool, ends = pixels(1, 9)[0], torch.ones(replicas, *SHAPE)
    held = list(zip(x[:, :6], y[:, :6], strict=True))
    raw = TrainingData(x[:, 6:], y[:, 6:], -ends, ends, held, {"other": pool}, scaled)
    return raw, TrainingData(
        scaled(raw.x), raw.y, -ends, ends, [(scaled(a), b) for a, b in held], {"other": scaled(pool)}
    )


WEIGHTS = {"name": "gaussian_weights", "variance": 0.7}
IMAGES = {"name": "images", "pool": "other", "points": 5}
OTHERS = ({"name": "random_monochrome", "points": 3}, {"name": "uniform_box", "points": 2})
MIXED = {"name": "mixture", "parts": [IMAGES, *OTHERS]}
PROCESS = {"name": "gaussian_process", "kernel": {"name": "rbf", "ard": False}, "fit_steps": 3, "fit_batch": 7}
METHODS = {
    "MAP": {"family": {"name": "point"}},
    "FSVI": {
        "family": {"name": "mean_field"},
        "divergence": {"name": "gaussian_kl"},
        "prior": WEIGHTS,
        "context": MIXED,
    },
    "GP prior": {
        "family": {"name": "linearised_mean_field"},
        "divergence": {"name": "regularised_kl"},
        "prior": PROCESS,
        "context": IMAGES,
    },
}


def train(parts, data, replicas=R, **options):
    model = small.model(parts | {"network": small.CNN}, 3, SHAPE)
    common = {"epochs": 3, "batch_size": 5, "optimiser": {"name": "adam", "lr": 0.01}, "samples": 2}
    training = Training(**common | options)
    streams = small.streams(R, torch.float32)
    return Trainer(model, training, data, streams.subset(range(replicas))).run()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("batch_size", [5, 14])
def test_training_on_bytes_is_training_on_the_scaled_numbers(method, batch_size):
    raw, scaled = problems()
    both = (train(METHODS[method], data, batch_size=batch_size) for data in (raw, scaled))
    for one, other in zip(*both, strict=True):
        assert one.loss == other.loss and one.reason is None
        for name, value in one.parameters.items():
            assert torch.equal(value, other.parameters[name]), name


def test_replicas_share_one_data_set_of_bytes():
    raw, _ = problems(1)
    copies = {name: getattr(raw, name).repeat_interleave(R, 0) for name in ("x", "y", "low", "high")}
    copied = dataclasses.replace(raw, **copies)
    options = {"augment": {"crop": 1, "flip": True}}
    for one, other in zip(*(train(METHODS["FSVI"], data, **options) for data in (raw, copied)), strict=True):
        assert one.loss == other.loss


def test_validation_of_images_in_pieces_is_the_whole(monkeypatch):
    early = {"early_stopping": {"patience": 1, "every": 1}, "epochs": 8, "optimiser": {"name": "adam", "lr": 0.2}}
    raw, _ = problems()
    whole = train(METHODS["MAP"], raw, **early)
    seen, scale = [], Scale.__call__
    monkeypatch.setattr(Scale, "__call__", lambda self, x: seen.append(x.shape[1]) or scale(self, x))
    monkeypatch.setattr("fvi_core.training.VALIDATION_IMAGES", 4)
    pieces = train(METHODS["MAP"], raw, **early)
    assert {5, 4, 2} <= set(seen) and 6 not in seen  # batches of 5 and 4; pieces of 4 and 2
    for one, other in zip(whole, pieces, strict=True):
        assert one.epochs == other.epochs
        for name, value in one.parameters.items():
            assert torch.equal(value, other.parameters[name])


def test_augmentation_changes_batches_before_they_are_scaled(monkeypatch):
    raw, _ = problems()
    seen, scale = [], Scale.__call__
    monkeypatch.setattr(Scale, "__call__", lambda self, x: seen.append(x) or scale(self, x))
    plain = train(METHODS["MAP"], raw, epochs=1)
    images = {image.numpy().tobytes() for image in raw.x.flatten(0, 1)}
    assert all(image.numpy().tobytes() in images for x in seen for image in x.flatten(0, 1))
    seen.clear()
    moved = train(METHODS["MAP"], raw, epochs=1, augment={"crop": 1, "flip": True})
    assert any(image.numpy().tobytes() not in images for x in seen for image in x.flatten(0, 1))
    assert (torch.cat([x.flatten() for x in seen]) == 0).any()  # black came in as 0, before the scale
    assert moved[0].loss != plain[0].loss


def test_unknown_augmentation_is_refused():
    with pytest.raises(TypeError, match="rotate"):
        train(METHODS["MAP"], problems()[0], augment={"rotate": 5})
