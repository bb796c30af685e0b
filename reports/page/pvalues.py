"""P-values of a paper's tested cells: as many in every bin where each published number equals ours, more at the left
where some do not. Rounding of the published numbers moves some to the right end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reports.agreement import LEVEL

BINS = round(1 / LEVEL)  # the first one holds the cells that differ
WIDTH, HEIGHT = 10, 40  # of a bin, and of the largest one


def histogram(p_values: Sequence[float], words: str) -> str:
    """Return a histogram as SVG that these words describe, with a line where every bin would end."""
    counts, edges = np.histogram(p_values, BINS, (0.0, 1.0))
    scale = HEIGHT / counts.max()
    bars = "".join(
        f'<rect class="{"below" if i == 0 else "above"}" x="{WIDTH * i}" y="{HEIGHT - scale * count:.1f}" '
        f'width="{WIDTH - 1}" height="{scale * count:.1f}"><title>{low:.2f} to {high:.2f}: {count}</title></rect>'
        for i, (count, low, high) in enumerate(zip(counts, edges, edges[1:]))
    )
    level = HEIGHT - scale * len(p_values) / BINS
    return (
        f'<svg class="p-values" viewBox="0 0 {WIDTH * BINS} {HEIGHT}" role="img" aria-label="P-values: {words}">'
        f'{bars}<path d="M0 {level:.1f}H{WIDTH * BINS}"/></svg>'
    )
