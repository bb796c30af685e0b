"""Tests of context distributions: where each puts its points."""

import numpy as np
import pytest
import torch

from fvi_core.contexts import ContextSource
from fvi_core.registry import CONTEXTS, UnknownPart
from tests.fvi_core import small

R, B = 3, 6


def source(shape=(2,)):
    """Batches whose every value is different, so that each can be found again."""
    x = torch.arange(R * B * torch.Size(shape).numel(), dtype=torch.float64).view(R, B, *shape)
    low, high = x.amin(1) - 1, x.amax(1) + 3
    pool = 1000 + torch.arange(5 * torch.Size(shape).numel(), dtype=torch.float64).view(5, *shape)
    return ContextSource(x, low, high, {"other": pool})


def draw(spec, shape=(2,), name="test"):
    found = source(shape)
    return CONTEXTS.build(spec)(found, small.streams(R, name=name)), found


def assert_fills(values, low, high):
    """All values lie between the bounds, and come close to both."""
    assert (values >= low).all() and (values <= high).all()
    reach = 0.05 * (high - low)
    assert (values.amin(1) < (low + reach).amax(1)).all() and (values.amax(1) > (high - reach).amin(1)).all()


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_uniform_box_fills_the_box_of_the_training_inputs(margin):
    points, s = draw({"name": "uniform_box", "points": 400, "margin": margin})
    assert points.shape == (R, 400, 2)
    width = (s.high - s.low)[:, None]
    assert_fills(points, s.low[:, None] - margin * width, s.high[:, None] + margin * width)


def test_uniform_box_between_given_bounds():
    points, _ = draw({"name": "uniform_box", "points": 400, "low": -2.0, "high": 5.0})
    assert_fills(points, torch.full((R, 1, 2), -2.0), torch.full((R, 1, 2), 5.0))


def test_grid_of_so_many_points_in_each_dimension():
    points, _ = draw({"name": "grid", "low": [-1.0, 0.0], "high": [2.0, 1.0], "counts": [4, 2]})
    expected = torch.cartesian_prod(torch.linspace(-1, 2, 4), torch.linspace(0, 1, 2))
    torch.testing.assert_close(points[0], expected.to(points.dtype))
    for both in ({}, {"step": 0.1, "counts": [2, 2]}):
        with pytest.raises(ValueError, match="context 'grid': expected step or counts"):
            CONTEXTS.build({"name": "grid", "low": [0.0], "high": [1.0], **both})


def test_grid_walks_every_step_of_the_plane():
    points, _ = draw({"name": "grid", "low": [0.0, -1.0], "high": [0.2, -0.9], "step": 0.1})
    expected = torch.tensor([[0.0, -1.0], [0.0, -0.9], [0.1, -1.0], [0.1, -0.9], [0.2, -1.0], [0.2, -0.9]])
    torch.testing.assert_close(points, expected.double().expand(R, -1, -1))


def test_training_batch_is_the_batch_itself_or_different_points_of_it():
    whole, s = draw({"name": "training_batch"})
    part, _ = draw({"name": "training_batch", "points": 4})
    assert whole.shape == s.x.shape and torch.equal(whole, s.x)
    found = CONTEXTS.build({"name": "training_batch"})(s, small.streams(R))
    assert found is s.x, "a divergence recognises the batch by identity and then needs no second forward pass"
    for r in range(R):
        rows = (part[r][:, None] == s.x[r]).all(-1).nonzero()[:, 1]
        assert len(set(rows.tolist())) == 4


def test_rotated_batch_turns_whole_images_counter_clockwise():
    images, s = draw({"name": "rotated_batch", "angles": [90, 180, -90]}, (2, 3, 3))
    assert images.shape == (R, 3 * B, 2, 3, 3)
    for turns, part in zip((1, 2, -1), images.split(B, dim=1), strict=True):
        np.testing.assert_array_equal(part, np.rot90(s.x, turns, (3, 4)))
    corner = s.x[0, 0, 0, 0, 2]
    assert images[0, 0, 0, 0, 0] == corner, "a quarter turn brings the upper right corner to the upper left"
    for angles in ([], [45]):
        with pytest.raises(ValueError, match="one or more multiples of 90"):
            CONTEXTS.build({"name": "rotated_batch", "angles": angles})
    with pytest.raises(ValueError, match=r"expected square images \[R, B, C, H, H\], found \[3, 6, 2\]"):
        draw({"name": "rotated_batch", "angles": [90]})


def test_random_pixel_keeps_positions_and_mixes_images():
    images, s = draw({"name": "random_pixel", "points": 20}, (2, 3, 3))
    assert images.shape == (R, 20, 2, 3, 3)
    source = (images[:, :, None] == s.x[:, None]).float()
    assert (source.sum(2) == 1).all(), "every pixel stands where some image of the batch has it"
    assert (source.flatten(3).mean(-1).amax(2) < 1).all(), "no image is a whole image of the batch"


def test_random_monochrome_is_the_colour_of_one_pixel():
    images, s = draw({"name": "random_monochrome", "points": 20}, (3, 2, 2))
    assert images.shape == (R, 20, 3, 2, 2)
    colours = images[..., 0, 0]
    assert torch.equal(images, colours[..., None, None].expand_as(images))
    for r in range(R):
        pixels = s.x[r].movedim(1, -1).flatten(0, 2)
        assert (colours[r][:, None] == pixels).all(-1).any(-1).all()
        assert len(colours[r].unique(dim=0)) > 5


def test_random_monochrome_of_independent_channels_mixes_pixels():
    images, s = draw({"name": "random_monochrome", "points": 20, "channels": "independent"}, (3, 2, 2))
    colours = images[..., 0, 0]
    assert torch.equal(images, colours[..., None, None].expand_as(images))
    for r in range(R):
        by_channel = s.x[r].movedim(1, 0).flatten(1)
        assert all(torch.isin(colours[r, :, c], by_channel[c]).all() for c in range(3))
        pixels = s.x[r].movedim(1, -1).flatten(0, 2)
        assert not (colours[r][:, None] == pixels).all(-1).any(-1).all()


def test_uniform_noise_covers_the_widened_range_of_all_pixels():
    images, s = draw({"name": "uniform_noise", "points": 100, "margin": 0.25}, (1, 2, 2))
    for r in range(R):
        low, high = s.low[r].min(), s.high[r].max()
        margin = 0.25 * (high - low)
        assert_fills(images[r].view(1, -1, 1), (low - margin).view(1, 1, 1), (high + margin).view(1, 1, 1))


def test_images_come_from_their_pool_only():
    context = CONTEXTS.build({"name": "images", "points": 30, "pool": "other"})
    assert context.pools() == {"other"}
    s = source((1, 2, 2))
    images = context(s, small.streams(R))
    assert images.shape == (R, 30, 1, 2, 2)
    same = (images[:, :, None] == s.pools["other"]).flatten(3).all(-1)
    assert (same.sum(-1) == 1).all() and (same.sum(1) > 0).all(), "each is one of the pool, and each of the pool comes"


def test_a_mixture_holds_the_points_of_its_parts():
    parts = [{"name": "training_batch", "points": 4}, {"name": "images", "points": 3, "pool": "other"}]
    context = CONTEXTS.build({"name": "mixture", "parts": parts})
    s = source()
    points = context(s, small.streams(R))
    assert points.shape == (R, 7, 2) and context.pools() == {"other"}
    assert (points[:, :4] < 1000).all() and (points[:, 4:] >= 1000).all()


RANDOM = [
    {"name": "uniform_box", "points": 5},
    {"name": "training_batch", "points": 5},
    {"name": "random_pixel", "points": 5},
    {"name": "random_monochrome", "points": 5},
    {"name": "random_monochrome", "points": 5, "channels": "independent"},
    {"name": "uniform_noise", "points": 5},
    {"name": "images", "points": 5, "pool": "other"},
    {"name": "mixture", "parts": [{"name": "uniform_box", "points": 2}, {"name": "uniform_noise", "points": 3}]},
]


@pytest.mark.parametrize("spec", RANDOM, ids=lambda s: s["name"])
def test_draws_differ_repeat_by_seed_and_do_not_depend_on_neighbours(spec):
    context, s, streams = CONTEXTS.build(spec), source((3, 2, 2)), small.streams(R)
    first, second = context(s, streams), context(s, streams)
    assert first.shape == (R, 5, 3, 2, 2) and not torch.equal(first, second)
    assert torch.equal(context(s, small.streams(R)), first)
    for r in range(R):
        alone = ContextSource(*(small.one(t, r) for t in (s.x, s.low, s.high)), s.pools)
        assert torch.equal(context(alone, small.streams(R).subset([r])), first[r : r + 1])


def test_unknown_contexts_and_options_name_the_nearest():
    with pytest.raises(UnknownPart, match="context 'uniform_boxes' is not known; did you mean 'uniform_box'"):
        CONTEXTS.build({"name": "uniform_boxes"})
    with pytest.raises(
        UnknownPart, match="context 'uniform_box' has no hyper-parameter 'point'; did you mean 'points'"
    ):
        CONTEXTS.build({"name": "uniform_box", "point": 3})
    with pytest.raises(UnknownPart, match="context: a 'name' is needed"):
        CONTEXTS.build({"points": 3})
