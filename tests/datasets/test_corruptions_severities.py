"""Severities of every corruption, as `make_cifar_c.py` (hendrycks/robustness, commit ca36008) has them.

Most other tests take the severities from the generator, and would pass with any numbers that grow.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from datasets.corruptions import CORRUPTIONS, SEVERITIES, corrupt, generator

PUBLISHED = {
    "gaussian_noise": [0.04, 0.06, 0.08, 0.09, 0.10],
    "shot_noise": [500, 250, 100, 75, 50],
    "impulse_noise": [0.01, 0.02, 0.03, 0.05, 0.07],
    "defocus_blur": [(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)],
    "glass_blur": [(0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)],
    "motion_blur": [(6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)],
    # The script's enlargements, of which rounding errors say whether the end belongs to them; ours count per cents.
    "zoom_blur": [len(np.arange(1, end, 0.01)) - 1 for end in (1.06, 1.11, 1.16, 1.21, 1.26)],
    "snow": [
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ],
    "frost": [(1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)],
    "fog": [(0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)],
    "brightness": [0.05, 0.1, 0.15, 0.2, 0.3],
    "contrast": [0.75, 0.5, 0.4, 0.3, 0.15],
    "elastic_transform": [
        (0, 0, 32 * 0.08),
        (32 * 0.05, 32 * 0.2, 32 * 0.07),
        (32 * 0.08, 32 * 0.06, 32 * 0.06),
        (32 * 0.1, 32 * 0.04, 32 * 0.05),
        (32 * 0.1, 32 * 0.03, 32 * 0.03),
    ],
    "pixelate": [0.95, 0.9, 0.85, 0.75, 0.65],
    "jpeg_compression": [80, 65, 58, 50, 40],
    "speckle_noise": [0.06, 0.1, 0.12, 0.16, 0.2],
    "gaussian_blur": [0.4, 0.6, 0.7, 0.8, 1],
    "spatter": [
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ],
    "saturate": [(0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)],
}
OVERLAYS = ("no file of frost is read",)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_every_severity_has_the_published_parameters(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, found = generator._CORRUPTIONS[name], []
    assert made.apply.__name__ == name
    watched = dataclasses.replace(made, apply=lambda x, draws, *parameters: found.append(parameters) or x)
    monkeypatch.setitem(generator._CORRUPTIONS, name, watched)
    monkeypatch.setattr(generator.weather, "frost_overlays", lambda root: OVERLAYS)
    for severity in SEVERITIES:
        corrupt(np.zeros((1, 32, 32, 3), np.uint8), name, severity)
    others = (OVERLAYS,) if name == "frost" else ()
    expected = [each if isinstance(each, tuple) else (each,) for each in PUBLISHED[name]]
    assert found == [(*each, *others) for each in expected]


def test_no_corruption_is_left_out() -> None:
    assert set(PUBLISHED) == set(CORRUPTIONS) and len(SEVERITIES) == 5
