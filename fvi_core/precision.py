"""Precision of networks: float32 as their inputs, or bfloat16 for products and convolutions."""

from __future__ import annotations

import warnings
from functools import cache

import torch

from fvi_core.spelling import check_known

PRECISIONS = ("float32", "bfloat16")


def check(precision: str) -> None:
    """Raise ValueError for an unknown precision."""
    check_known("training: precision", precision, PRECISIONS)


@cache
def has_bfloat16(device: str) -> bool:
    """Whether a kind of device ("cpu", "cuda") has instructions for products in bfloat16 (on a CPU: AMX or AVX-512
    BF16). Without them such products are slower than in float32.
    """
    return device != "cpu" or torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def used(precision: str, device: torch.device) -> str:
    """Return the precision of computations for a requested ``precision`` on a device: float32 in place of bfloat16 on
    devices without it, with one warning per process."""
    check(precision)
    if precision == "float32" or has_bfloat16(device.type):
        return precision
    _say(device.type)
    return "float32"


@cache
def _say(device: str) -> None:
    warnings.warn(instead(device), stacklevel=3)


def instead(device: str) -> str:
    """Return the warning that bfloat16 is not available and float32 is used."""
    found = "neither AMX nor AVX-512 BF16" if device == "cpu" else "no instructions for it"
    return f"training: precision 'bfloat16' was asked for, but this {device} has {found}: float32 is used"
