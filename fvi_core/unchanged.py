"""Guard for tensors that parts share: a part reads them and must not write into them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor


class ChangedInPlace(ValueError):
    """A part wrote into tensors that others use too."""


@contextmanager
def unchanged(stage: str, tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """Raise ChangedInPlace if any of the tensors, by name, is written into before the block ends.

    PyTorch counts the writes to a tensor and to its views (``Tensor._version``). A write through ``Tensor.data`` or a
    NumPy array is not counted.
    """
    before = {name: tensor._version for name, tensor in tensors.items()}
    yield
    changed = [name for name, tensor in tensors.items() if tensor._version != before[name]]
    if changed:
        raise ChangedInPlace(
            f"a part of the run wrote into {', '.join(changed[:3])} in place during {stage}, where they are shared: "
            "let it change a copy (x.clone(), or x - 1 in place of x -= 1)"
        )
