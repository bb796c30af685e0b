"""A run's configuration: plain JSON, and the keys derived from it."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

SCHEMA = 1
MOST, WEIGHTS = 10, 1_000_000  # runs, and weights of all their networks, in one stack
REQUIRED = ("schema", "method", "dataset", "protocol", "seed", "parts", "evaluation")
PARTS = ("network", "family", "divergence", "prior", "context", "likelihood", "weight", "training")


class InvalidConfig(ValueError):
    """A run configuration that lacks a key, or has one that nobody reads."""


def canonical_json(config: Any) -> str:
    """The one spelling of a configuration: sorted keys, no spaces, no NaN."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=False)


def run_key(config: dict[str, Any]) -> str:
    """16 hexadecimal digits naming a run: sha256 of its canonical configuration."""
    return hashlib.sha256(canonical_json(config).encode()).hexdigest()[:16]


def stack_key(config: dict[str, Any]) -> str:
    """The key of what a run shares with its siblings: everything but the seed and the split."""
    shared = {k: v for k, v in config.items() if k != "seed"}
    shared["dataset"] = {k: v for k, v in config["dataset"].items() if k != "split"}
    return run_key(shared)


def is_large(config: dict[str, Any]) -> bool:
    """Whether a single run fills a core: its steps are long beside what surrounds them."""
    parts = config["parts"]
    return (parts["divergence"] or {}).get("name") == "nearest_neighbour_kl" or parts["network"]["name"] != "mlp"


def stack_limit(config: dict[str, Any]) -> int:
    """How many runs of one stack key are trained together: one if they are large, else as many as fit the caches."""
    import datasets  # here, since keys alone do not need it

    if is_large(config):
        return 1
    parts, data = config["parts"], config["dataset"]
    sizes = [math.prod(datasets.describe(data["name"], data["scheme"] or None).shape), *parts["network"]["hidden"]]
    weights = sum(a * b for a, b in zip(sizes, sizes[1:])) * parts["family"].get("size", 1)
    return max(1, min(MOST, WEIGHTS // max(1, weights)))


def validate_config(config: dict[str, Any]) -> None:
    """Raise :class:`InvalidConfig` unless the configuration has exactly the keys of the schema."""
    _same_keys("configuration", config, REQUIRED)
    _same_keys("configuration['parts']", config["parts"], PARTS)
    if config["schema"] != SCHEMA:
        raise InvalidConfig(f"configuration schema {config['schema']!r}: this version reads schema {SCHEMA}")


def _same_keys(where: str, found: dict[str, Any], expected: tuple[str, ...]) -> None:
    missing, extra = set(expected) - set(found), set(found) - set(expected)
    if missing or extra:
        raise InvalidConfig(f"{where}: missing {sorted(missing)}, not expected {sorted(extra)}; it has {sorted(expected)}")
